// Runs before the first paint (a classic script, since modules run later): puts the theme that the user chose, or else
// the system's, on <html data-theme>. shared/theme.ts holds the toggle. A browser without storage follows the system.
(() => {
  const key = 'headlight.theme';
  const system = matchMedia('(prefers-color-scheme: dark)');
  const chosen = () => {
    try {
      const value = localStorage.getItem(key);
      return value === 'dark' || value === 'light' ? value : null;
    } catch {
      return null;
    }
  };
  const apply = () => {
    document.documentElement.dataset.theme = chosen() ?? (system.matches ? 'dark' : 'light');
  };
  system.addEventListener('change', apply);
  addEventListener('storage', (event) => {
    if (event.key === key || event.key === null) apply();
  });
  apply();
})();
