// What every page does: the sidebar on a phone, menus, the theme, times, copying.
import "./keys.js";
import { showTimes } from "./times.js";

const root = document.documentElement;

// --- the sidebar, where there is no room for it ---

const opener = document.querySelector("[data-nav-open]");
const narrow = matchMedia("(max-width: 1023px)");

function openSidebar(open) {
  root.classList.toggle("nav-open", open);
  opener?.setAttribute("aria-expanded", String(open));
  if (!open) return;
  document.querySelector(".sidebar a")?.focus();
}

opener?.addEventListener("click", () => openSidebar(!root.classList.contains("nav-open")));
document.querySelector(".backdrop")?.addEventListener("click", () => openSidebar(false));
narrow.addEventListener("change", () => openSidebar(false));

// --- menus close when one turns to something else ---

function closeMenus(except) {
  document.querySelectorAll("details.menu[open]").forEach((menu) => {
    if (menu !== except) menu.open = false;
  });
}

document.addEventListener("click", (event) => closeMenus(event.target.closest("details.menu")));
document.addEventListener("focusin", (event) => {
  if (!event.target.closest("details.menu")) closeMenus(null);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.querySelector("details.menu[open]");
  closeMenus(null);
  menu?.querySelector("summary").focus();
  if (root.classList.contains("nav-open")) {
    openSidebar(false);
    opener.focus();
  }
});

// --- a row of tabs that is wider than the window shows where one is ---

const tab = document.querySelector(".tabs [aria-current]");
if (tab) tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - 16;

// --- the theme ---

const themes = document.querySelectorAll("[data-theme-choice]");

function markTheme() {
  themes.forEach((button) => {
    const chosen = button.dataset.themeChoice === window.consoleTheme.chosen();
    button.setAttribute("aria-pressed", String(chosen));
  });
}

themes.forEach((button) =>
  button.addEventListener("click", () => {
    window.consoleTheme.choose(button.dataset.themeChoice);
    markTheme();
  }),
);
markTheme();

// --- copying: <button data-copy="text"> ---

async function write(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Over plain HTTP browsers have no clipboard but this one.
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await write(button.dataset.copy);
  button.classList.add("is-copied");
  const status = document.querySelector("#copy-status");
  if (status) status.textContent = button.dataset.copied;
  setTimeout(() => button.classList.remove("is-copied"), 1500);
});

// --- what is here, and what htmx brings later ---

showTimes(document);
document.addEventListener("htmx:load", (event) => showTimes(event.target));
