// The pages' icons: 24 x 24 strokes in the current colour, decorative (the button around them carries the name).

const paths = {
  plus: 'M12 5v14M5 12h14',
  sliders: 'M4 7h9M18 7h2M4 17h3M12 17h8M15.5 4.5v5M9.5 14.5v5',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8ZM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M18.7 5.3l-1.4 1.4M6.7 17.3l-1.4 1.4',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5Z',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  check: 'm5 12.5 4.5 4.5L19 7.5',
  pencil: 'm5 19 1-4L16.5 4.5l3 3L9 18l-4 1ZM14 7l3 3',
  refresh: 'M19.5 12a7.5 7.5 0 1 1-2.3-5.4L19.5 9M19.5 4.5V9H15',
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M7 7h10v10H7z',
  download: 'M12 4v11M7 10.5l5 5 5-5M5 20h14',
  close: 'M6 6l12 12M18 6 6 18',
  left: 'm14.5 6-6 6 6 6',
  right: 'm9.5 6 6 6-6 6',
  down: 'M12 5v14M6 13l6 6 6-6',
  chip: 'M7 7h10v10H7zM10 3v4M14 3v4M10 17v4M14 17v4M3 10h4M3 14h4M17 10h4M17 14h4',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
} as const;

export type IconName = keyof typeof paths;

const svgNamespace = 'http://www.w3.org/2000/svg';

export function icon(name: IconName): SVGSVGElement {
  const svg = document.createElementNS(svgNamespace, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(svgNamespace, 'path');
  path.setAttribute('d', paths[name]);
  svg.append(path);
  return svg;
}

/** Puts icons into the page's own buttons: every element with data-icon="name". */
export function fillIcons(root: ParentNode): void {
  for (const element of root.querySelectorAll<HTMLElement>('[data-icon]')) {
    const name = element.dataset.icon ?? '';
    if (!(name in paths)) throw new Error(`No icon is called "${name}"`);
    element.prepend(icon(name as IconName));
    delete element.dataset.icon;
  }
}
