// The page of a decision about many sessions asks for step after step. What fails is asked again, and
// said; what is refused (the right was lost, or the login) shows when the page is loaded anew.

const LONGEST = 30_000;
let wait = 1_000;

document.addEventListener("htmx:afterRequest", (event) => {
  const { successful, xhr } = event.detail;
  document.querySelector("[data-unanswered]").hidden = Boolean(successful);
  if (successful) {
    wait = 1_000;
    return;
  }
  if (xhr.status >= 400 && xhr.status < 500) {
    location.reload();
    return;
  }
  setTimeout(() => window.htmx.trigger("[data-next]", "console:again"), wait);
  wait = Math.min(2 * wait, LONGEST);
});
