// Choosing rows of a list for an action.
const bar = document.querySelector(".actionbar");
const toggle = document.querySelector("#action-toggle");
const boxes = [...document.querySelectorAll("input[name=_selected_action]")];

function count() {
  const chosen = boxes.filter((box) => box.checked).length;
  boxes.forEach((box) => box.closest("tr").classList.toggle("selected", box.checked));
  toggle.checked = chosen > 0 && chosen === boxes.length;
  toggle.indeterminate = chosen > 0 && chosen < boxes.length;
  const counter = bar.querySelector("[data-counter]");
  counter.textContent = counter.dataset.counter.replace("%d", chosen);
}

if (bar && toggle && boxes.length) {
  toggle.addEventListener("change", () => {
    boxes.forEach((box) => (box.checked = toggle.checked));
    count();
  });
  boxes.forEach((box) => box.addEventListener("change", count));
  count();
}
