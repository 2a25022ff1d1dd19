// Runs before the first paint, so that a page that was set dark never flashes
// light. Everything else waits for main.js.
(() => {
  try {
    const theme = localStorage.getItem('askback.theme');
    if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
  } catch { /* storage is switched off: the system's choice holds */ }
})();
