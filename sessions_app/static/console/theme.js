// In the head, before anything is painted: the theme that was chosen here, else the system's.
// The skin keeps its own under the same name, as JSON.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return JSON.parse(localStorage.getItem("adminTheme")) || "auto";
    } catch {
      return "auto";
    }
  };
  const paint = () => {
    const isDark = chosen() === "dark" || (chosen() === "auto" && dark.matches);
    document.documentElement.classList.toggle("dark", isDark);
    document.documentElement.classList.toggle("light", !isDark);
  };
  dark.addEventListener("change", paint);
  addEventListener("storage", paint);
  window.consoleTheme = {
    chosen,
    choose(name) {
      localStorage.setItem("adminTheme", JSON.stringify(name));
      paint();
    },
  };
  paint();
})();
