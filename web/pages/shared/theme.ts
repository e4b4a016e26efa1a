// The dark/light toggle. public/theme.js has set <html data-theme> before the first paint and follows the system; a
// choice that equals the system's is not stored, so the page follows the system again.

const storageKey = 'headlight.theme';
type Theme = 'light' | 'dark';

function currentTheme(): Theme {
  return document.documentElement.dataset.theme === 'dark' ? 'dark' : 'light';
}

function store(theme: Theme): void {
  const system: Theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  try {
    if (theme === system) localStorage.removeItem(storageKey);
    else localStorage.setItem(storageKey, theme);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

/** Wires a button that holds a sun and a moon; its label says what a click does. */
export function wireThemeToggle(button: HTMLButtonElement): void {
  const describe = () => {
    const next = currentTheme() === 'dark' ? 'light' : 'dark';
    button.setAttribute('aria-label', `Switch to the ${next} theme`);
    button.title = `Switch to the ${next} theme`;
  };
  button.addEventListener('click', () => {
    const next: Theme = currentTheme() === 'dark' ? 'light' : 'dark';
    document.documentElement.dataset.theme = next;
    store(next);
  });
  new MutationObserver(describe).observe(document.documentElement, {
    attributeFilter: ['data-theme'],
  });
  describe();
}
