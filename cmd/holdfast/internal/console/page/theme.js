// The theme: that of the system, unless the switch has been set. It runs before anything is drawn.

(() => {
  const key = "holdfast-theme";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null;
    }
  };

  const show = () => {
    const dark = (chosen() ?? (system.matches ? "dark" : "light")) === "dark";
    root.dataset.theme = dark ? "dark" : "light";
    document.getElementById("theme")?.setAttribute("aria-checked", String(dark));
  };

  show();
  system.addEventListener("change", show);
  document.addEventListener("DOMContentLoaded", () => {
    show();
    document.getElementById("theme")?.addEventListener("click", () => {
      const next = root.dataset.theme === "dark" ? "light" : "dark";
      try {
        localStorage.setItem(key, next);
      } catch {
        root.dataset.theme = next;
      }
      show();
    });
  });
})();
