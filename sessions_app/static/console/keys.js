// Keys for whoever's hands are on the keyboard: never while something is typed, and never together
// with a modifier. One character alone is also what speech says by accident: they can be turned off.
const OFF = "consoleKeysOff";
const TYPED = "input, textarea, select, [contenteditable]";
const ITEMS = ".turn, .beyond, .table tbody tr, .waterfall tbody tr, .excerpts > li:not(.beyond)";

const help = document.querySelector("#keys-help");
const toggle = document.querySelector("[data-keys-on]");

function isOn() {
  try {
    return localStorage.getItem(OFF) === null;
  } catch {
    return true; // nothing can be kept here, so nothing was turned off
  }
}

// --- to the next and the previous: a message, a row ---

function itemFrom(direction) {
  const items = [...document.querySelectorAll(ITEMS)].filter((each) => each.checkVisibility());
  const here = items.findIndex((each) => each.contains(document.activeElement));
  if (here >= 0) return items[here + direction];
  const bar = document.querySelector(".topbar")?.getBoundingClientRect().bottom ?? 0;
  const isBelow = (each) => each.getBoundingClientRect().top >= bar;
  return direction > 0 ? items.find(isBelow) : items.findLast((each) => !isBelow(each));
}

function goTo(item) {
  if (!item) return;
  const isTurn = item.matches(".turn");
  const link = isTurn ? null : item.querySelector("th a, a");
  if (!link) item.tabIndex = -1;
  (link ?? item).focus({ preventScroll: true, focusVisible: true });
  item.scrollIntoView({ block: isTurn ? "start" : "nearest" });
}

// --- all tool calls open, or all closed; where none can be opened, to where they are ---

function tools() {
  const cards = [...document.querySelectorAll("details.call")];
  const opens = cards.some((each) => !each.open);
  cards.forEach((each) => (each.open = opens));
  if (!cards.length) document.querySelector("[data-key-tools]")?.focus();
}

function search() {
  const field = document.querySelector("[data-key-search], #searchbar");
  field?.focus();
  field?.select();
}

const ACTIONS = {
  "/": search,
  j: () => goTo(itemFrom(1)),
  k: () => goTo(itemFrom(-1)),
  t: tools,
  "?": () => help?.showModal(),
};

document.addEventListener("keydown", (event) => {
  const isTyped = event.isComposing || event.target.closest?.(TYPED);
  if (isTyped || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (!Object.hasOwn(ACTIONS, event.key) || document.querySelector("dialog[open]") || !isOn()) return;
  event.preventDefault();
  ACTIONS[event.key]();
});

// --- what they are, and turning them off ---

document.querySelector("[data-keys-help]")?.addEventListener("click", () => help.showModal());
help?.addEventListener("click", (event) => event.target === help && help.close());

if (toggle) {
  toggle.checked = isOn();
  toggle.addEventListener("change", () => {
    if (toggle.checked) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "yes");
  });
}
