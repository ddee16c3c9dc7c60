// The transcript: jumping between what users said, opening and closing all, links to messages.
const transcript = document.querySelector(".transcript");

// --- jump between user turns ---

function nextTurn(direction) {
  const turns = [...document.querySelectorAll('.turn[data-role="user"]')];
  // Both stick to the top of the window; on a phone the second one does not.
  const bars = document.querySelectorAll(".topbar, .transcript-bar");
  const here = Math.max(...[...bars].map((bar) => bar.getBoundingClientRect().bottom));
  const tops = turns.map((turn) => turn.getBoundingClientRect().top - here);
  if (direction > 0) return turns[tops.findIndex((top) => top > 24)];
  return turns[tops.findLastIndex((top) => top < -2)];
}

document.querySelectorAll("[data-user-turn]").forEach((button) =>
  button.addEventListener("click", () => {
    const turn = nextTurn(Number(button.dataset.userTurn));
    turn?.scrollIntoView({ block: "start" });
  }),
);

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
