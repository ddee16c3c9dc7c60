// Choosing rows of a list for an action.
const bar = document.querySelector(".actionbar");
const toggle = document.querySelector("#action-toggle");
const across = document.querySelector("[data-across]");
const boxes = [...document.querySelectorAll("input[name=_selected_action]")];

function count() {
  const chosen = boxes.filter((box) => box.checked).length;
  boxes.forEach((box) => box.closest("tr").classList.toggle("selected", box.checked));
  toggle.checked = chosen > 0 && chosen === boxes.length;
  toggle.indeterminate = chosen > 0 && chosen < boxes.length;
  const counter = bar.querySelector("[data-counter]");
  counter.textContent = counter.dataset.counter.replace("%d", chosen);
  if (across && chosen < boxes.length) across.checked = false;
}

if (bar && toggle && boxes.length) {
  toggle.addEventListener("change", () => {
    boxes.forEach((box) => (box.checked = toggle.checked));
    count();
  });
  boxes.forEach((box) => box.addEventListener("change", count));
  across?.addEventListener("change", () => {
    boxes.forEach((box) => (box.checked = across.checked));
    count();
  });
  count();
}

// A range of time: the server's fields are in UTC, a person's in their zone.
const two = (number) => String(number).padStart(2, "0");
const day = (date) => [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
const field = (date) => `${day(date)}T${two(date.getHours())}:${two(date.getMinutes())}`;

document.querySelectorAll("form[data-range]").forEach((form) => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  form.querySelectorAll("[data-zone]").forEach((each) => (each.textContent = zone ? `(${zone})` : ""));
  form.querySelectorAll("input[type=datetime-local]").forEach((input) => {
    if (input.value) input.value = field(new Date(`${input.value}Z`));
  });
  form.addEventListener("formdata", ({ formData }) => {
    for (const [name, value] of [...formData]) {
      if (!name.startsWith("active_")) continue;
      if (value) formData.set(name, new Date(value).toISOString().slice(0, 16));
      else formData.delete(name);
    }
  });
});
