// A page that follows what is going on. htmx asks every two seconds for the parts that have
// changed; here: not while nobody looks, and nothing is taken from under the hands of who reads.

const poller = () => document.querySelector("[data-live]");

document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.target === poller()) event.preventDefault();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && poller()) window.htmx.trigger(poller(), "console:refresh");
});

// --- a part that is about to be replaced ---

function isBeingRead(part) {
  const selection = document.getSelection();
  return Boolean(selection && !selection.isCollapsed && selection.containsNode(part, true));
}

// What has the focus, in words that the new part understands too.
function placeOf(element) {
  const same = `${element.tagName.toLowerCase()}`;
  const key = ["id", "href", "aria-label", "data-copy"].find((name) => element.hasAttribute(name));
  return key ? `${same}[${key}="${CSS.escape(element.getAttribute(key))}"]` : null;
}

const SCROLLED = ".waterfall-wrap, .table-wrap, pre";
let kept = null;

document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const part = event.detail.target;
  if (isBeingRead(part)) {
    event.detail.shouldSwap = false; // the next answer brings it again
    return;
  }
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  kept = {
    id: part.id,
    focus: focused && placeOf(focused),
    scroll: [...part.querySelectorAll(SCROLLED)].map((each) => [each.scrollLeft, each.scrollTop]),
  };
});

document.addEventListener("htmx:oobAfterSwap", () => {
  const part = kept && document.getElementById(kept.id);
  if (!part) return;
  [...part.querySelectorAll(SCROLLED)].forEach((each, place) => {
    if (kept.scroll[place]) [each.scrollLeft, each.scrollTop] = kept.scroll[place];
  });
  if (kept.focus) part.querySelector(kept.focus)?.focus({ preventScroll: true });
  kept = null;
});
