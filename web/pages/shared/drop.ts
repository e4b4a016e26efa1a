// Files dropped anywhere on the page. Dragged text and links are left to the browser.

function carriesFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes('Files') ?? false;
}

/** @param target shown over the page while files are dragged over it */
export function acceptDrops(target: HTMLElement, onFiles: (files: File[]) => void): void {
  // Entering a child fires before leaving its parent: count instead of toggling.
  let depth = 0;
  const show = (visible: boolean) => {
    if (!visible) depth = 0;
    target.hidden = !visible;
  };
  addEventListener('dragenter', (event) => {
    if (!carriesFiles(event)) return;
    depth += 1;
    show(true);
  });
  addEventListener('dragleave', (event) => {
    if (!carriesFiles(event)) return;
    depth -= 1;
    if (depth <= 0) show(false);
  });
  addEventListener('dragover', (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    if (event.dataTransfer) event.dataTransfer.dropEffect = 'copy';
  });
  addEventListener('drop', (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    show(false);
    onFiles([...(event.dataTransfer?.files ?? [])]);
  });
}
