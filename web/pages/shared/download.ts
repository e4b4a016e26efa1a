// Files that a page makes for its user.

/** Hands a text or a picture to the browser's downloads. */
export function download(content: string | Blob, name: string, type: string): void {
  const blob = typeof content === 'string' ? new Blob([content], { type }) : content;
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser has taken the blob by then; the wait is for those that start late.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
