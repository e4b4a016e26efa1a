// The few lines of DOM building that the pages share. Text always becomes text nodes: nothing here parses HTML.

type AttributeValue = string | number | boolean | undefined;
export type Attributes = Readonly<Record<string, AttributeValue>>;
type Child = Node | string | null | undefined | false;

/** An element with attributes (true: present and empty; false or undefined: absent) and children. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

/** The element of the page with that id, of that class; a page without it is broken, so this throws. */
export function byId<T extends Element>(id: string, type: abstract new () => T): T {
  const element = document.getElementById(id);
  if (!(element instanceof type)) throw new Error(`The page has no ${type.name} #${id}`);
  return element;
}

export function isEditable(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches('input, textarea, select'))
  );
}

/** Opens a <dialog> as a modal; a click on its backdrop closes it. The browser returns the focus. */
export function openDialog(dialog: HTMLDialogElement): void {
  if (!dialog.open) dialog.showModal();
}

/** Once per dialog: close buttons ([data-close]) and the backdrop. */
export function prepareDialog(dialog: HTMLDialogElement): void {
  dialog.addEventListener('click', (event) => {
    const onBackdrop = event.target === dialog;
    const onClose = event.target instanceof Element && event.target.closest('[data-close]');
    if (onBackdrop || onClose) dialog.close();
  });
}
