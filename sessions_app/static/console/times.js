// Times as the viewer's clock shows them. The server writes UTC, which stays for those without
// scripts and, exactly, in the title. <time data-relative> says how long ago or ahead.
const language = document.documentElement.lang;
const exact = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "long" });
const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60]];
const LONGEST_DAYS = 30;

const two = (number) => String(number).padStart(2, "0");

function local(date) {
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

function fromNow(date) {
  const seconds = (date - Date.now()) / 1000;
  if (Math.abs(seconds) > LONGEST_DAYS * 86400) return local(date).slice(0, 10);
  const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length) || ["second", 1];
  if (unit === "second") return relative.format(0, "second");
  return relative.format(Math.trunc(seconds / length), unit);
}

function show(element) {
  const date = new Date(element.dateTime);
  if (Number.isNaN(date.getTime())) return;
  const isRelative = "relative" in element.dataset;
  const text = isRelative ? fromNow(date) : local(date);
  if (element.textContent !== text) element.textContent = text;
  if (element.dataset.shown) return;
  element.dataset.shown = "";
  const utc = `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  element.title = isRelative ? `${exact.format(date)}\n${utc}` : utc;
}

export function showTimes(root) {
  root.querySelectorAll("time[datetime]").forEach(show);
}

setInterval(() => document.querySelectorAll("time[data-relative]").forEach(show), 30_000);
