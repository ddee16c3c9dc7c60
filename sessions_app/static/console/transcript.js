// The transcript: jumping between what users said, opening and closing all, links to messages.
const transcript = document.querySelector(".transcript");

// --- what sticks to the top covers no message: how high it is depends on the window ---

const bar = document.querySelector(".transcript-bar");

function measure() {
  const sticks = bar && getComputedStyle(bar).position === "sticky";
  document.documentElement.style.setProperty("--bar-height", `${sticks ? bar.offsetHeight : 0}px`);
}

measure();
if (bar) new ResizeObserver(measure).observe(bar);

// --- jump between user turns ---

const userTurns = () => [...document.querySelectorAll('.turn[data-role="user"]')];

function nextTurn(direction) {
  const turns = userTurns();
  // Both stick to the top of the window; on a phone the second one does not.
  const bars = document.querySelectorAll(".topbar, .transcript-bar");
  const here = Math.max(...[...bars].map((bar) => bar.getBoundingClientRect().bottom));
  const tops = turns.map((turn) => turn.getBoundingClientRect().top - here);
  if (direction > 0) return turns[tops.findIndex((top) => top > 24)];
  return turns[tops.findLastIndex((top) => top < -2)];
}

// Where this page has none, the next one is fetched, and the one after it; not the whole session.
const MOST_FETCHED = 5;
let wanted = null;
let settled = 0;

function fetchTurns(direction, last, fetches) {
  const more = transcript?.querySelector(`[data-beyond="${direction}"] a`);
  wanted = more && fetches ? { direction, last, more, fetches: fetches - 1 } : null;
  if (wanted) more.click();
}

function jump(direction) {
  const turn = nextTurn(direction);
  if (turn) turn.scrollIntoView({ block: "start" });
  else fetchTurns(direction, userTurns().at(direction < 0 ? 0 : -1), MOST_FETCHED);
}

function jumpOn() {
  if (!wanted || wanted.more.isConnected) return;
  const { direction, last, fetches } = wanted;
  const turns = userTurns();
  const turn = last ? turns[turns.indexOf(last) + direction] : turns.at(direction < 0 ? -1 : 0);
  wanted = null;
  if (turn) turn.scrollIntoView({ block: "start" });
  else fetchTurns(direction, last, fetches);
}

document.querySelectorAll("[data-user-turn]").forEach((button) =>
  button.addEventListener("click", () => jump(Number(button.dataset.userTurn))),
);
document.addEventListener("htmx:afterSettle", () => {
  clearTimeout(settled); // it comes once for each element that was brought
  settled = setTimeout(jumpOn);
});

// --- expand and collapse all ---

document.querySelectorAll("[data-expand]").forEach((button) =>
  button.addEventListener("click", () => {
    const open = button.dataset.expand === "true";
    transcript?.querySelectorAll("details").forEach((each) => (each.open = open));
  }),
);

// --- a link to a message that is not on this page ---

function follow() {
  const found = location.hash.match(/^#m(\d+)$/);
  if (!found || !transcript) return;
  const target = document.getElementById(found[0].slice(1));
  if (!target) {
    const asked = new URLSearchParams(location.search).get("at");
    if (asked !== found[1]) location.replace(`${transcript.dataset.address}?at=${found[1]}#m${found[1]}`);
    return;
  }
  if (target.tagName === "DETAILS") target.open = true;
  target.scrollIntoView({ block: "start" });
}

follow();
addEventListener("hashchange", follow);

// --- what is shown whole needs no "show all"; a day begins once ---

document.addEventListener("htmx:afterRequest", (event) => {
  const link = event.detail.elt;
  if (event.detail.successful && link?.matches?.("[data-once]")) link.closest(".rest-more").remove();
});

document.addEventListener("htmx:afterSettle", () => {
  let before = "";
  transcript?.querySelectorAll(".mark-day").forEach((mark) => {
    mark.hidden = mark.textContent === before;
    before = mark.textContent;
  });
});
