// Keeps the message field above an on-screen keyboard. Browsers that honour `interactive-widget=resizes-content` do it by
// themselves; iOS only shrinks the visual viewport, so the page takes its height from there while a keyboard is open.

// Smaller differences are browser bars and rounding, no keyboard.
const keyboardMinPx = 120;

export function followKeyboard(onResize: () => void): void {
  const visual = window.visualViewport;
  if (!visual) return;
  const apply = () => {
    const root = document.documentElement;
    // A pinch also shrinks the visual viewport; that is no keyboard.
    const keyboard = visual.scale === 1 && window.innerHeight - visual.height > keyboardMinPx;
    if (keyboard) {
      root.style.setProperty('--app-height', `${Math.round(visual.height)}px`);
      window.scrollTo(0, 0);
    } else root.style.removeProperty('--app-height');
    onResize();
  };
  visual.addEventListener('resize', apply);
}
