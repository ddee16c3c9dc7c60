// A page that follows what is going on. htmx asks every two seconds for what has changed; here: not
// while nobody looks, and nothing is taken from under the hands of who reads.

const poller = () => document.querySelector("[data-live]");

document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.target === poller()) event.preventDefault();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && poller()) window.htmx.trigger(poller(), "console:refresh");
});

// --- whoever was logged out meanwhile is led to the login page; it is no part of this one ---

document.addEventListener("htmx:beforeSwap", (event) => {
  const { pathInfo, xhr } = event.detail;
  const asked = new URL(pathInfo.finalRequestPath, location.href).pathname;
  if (new URL(xhr.responseURL).pathname === asked) return;
  event.detail.shouldSwap = false;
  location.reload();
});

// --- a page that says which version it shows: what was not taken must be brought again ---

let asked = null;
let missed = null;

document.addEventListener("htmx:configRequest", (event) => {
  const { parameters } = event.detail;
  if (event.target !== poller() || parameters.since === undefined) return;
  if (missed) parameters.since = missed;
  const first = document.querySelector(".turn");
  if (first) parameters.first = first.id.slice(1); // earlier messages may have been fetched
  [asked, missed] = [parameters.since, null];
});

// --- a part that is about to be replaced ---

function isBeingRead(part) {
  const selection = document.getSelection();
  return Boolean(selection && !selection.isCollapsed && selection.containsNode(part, true));
}

// What has the focus, in words that the new part understands too.
function placeOf(element, part) {
  const tag = element.tagName.toLowerCase();
  const key = ["id", "href", "aria-label", "data-copy"].find((name) => element.hasAttribute(name));
  const same = key ? `${tag}[${key}="${CSS.escape(element.getAttribute(key))}"]` : tag;
  return { same, index: [...part.querySelectorAll(same)].indexOf(element) };
}

const SCROLLED = ".waterfall-wrap, .table-wrap, pre";
const scrolled = (part) => [part, ...part.querySelectorAll(SCROLLED)];
let kept = null;

document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const part = event.detail.target;
  if (isBeingRead(part)) {
    event.detail.shouldSwap = false; // the next answer brings it again
    missed = asked;
    return;
  }
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  kept = {
    id: part.id,
    isFocused: focused === part,
    focus: focused && focused !== part && placeOf(focused, part),
    scroll: scrolled(part).map((each) => [each.scrollLeft, each.scrollTop]),
    open: [...part.querySelectorAll("details")].map((each) => each.open),
  };
});

document.addEventListener("htmx:oobAfterSwap", () => {
  const part = kept && document.getElementById(kept.id);
  if (!part) return;
  part.querySelectorAll("details").forEach((each, place) => {
    each.open ||= kept.open[place];
  });
  scrolled(part).forEach((each, place) => {
    if (kept.scroll[place]) [each.scrollLeft, each.scrollTop] = kept.scroll[place];
  });
  const { focus } = kept;
  const again = kept.isFocused ? part : focus && part.querySelectorAll(focus.same)[focus.index];
  again?.focus({ preventScroll: true });
  kept = null;
});
