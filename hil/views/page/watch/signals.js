"use strict";
// All signals with their values now: a list of any length, of which only the rows in view are drawn.
const signals = (() => {
  const ROW = 22, MORE = 4;          // px of a row (watch.css), rows drawn beyond either end
  const box = element("signal-list"), inside = element("signal-rows"), filter = element("filter");
  const rows = [];
  let all = [], shown = [], first = -1;

  /** known: [{name, unit}] in the order of the rig. */
  function set(known) {
    all = known;
    choose();
  }

  function choose() {
    const words = filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    shown = all.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
    inside.style.height = `${shown.length * ROW}px`;
    text("signal-count", `${shown.length} of ${all.length}`);
    first = -1;
    place();
  }

  /** The rows in view, at their places. */
  function place() {
    const top = Math.max(0, Math.floor(box.scrollTop / ROW) - MORE);
    const count = Math.min(shown.length - top, Math.ceil(box.clientHeight / ROW) + 2 * MORE);
    if (top === first && count === rows.length) return;
    first = top;
    while (rows.length > Math.max(0, count)) rows.pop().line.remove();
    while (rows.length < count) {
      const line = document.createElement("div"), name = document.createElement("span"), number = document.createElement("b"), unit = document.createElement("i");
      line.setAttribute("role", "listitem");
      line.append(name, number, unit);
      inside.append(line);
      rows.push({ line, name, number, unit });
    }
    rows.forEach((row, k) => {
      const signal = shown[first + k];
      row.line.style.transform = `translateY(${(first + k) * ROW}px)`;
      text(row.name, signal.name);
      text(row.unit, signal.unit === "1" ? "" : signal.unit);
    });
  }

  function draw(message) {
    place();
    rows.forEach((row, k) => {
      const x = value(message, shown[first + k].name);
      text(row.number, x === undefined ? "–" : Number.isInteger(x) ? String(x) : x.toPrecision(6));
    });
  }
  filter.addEventListener("input", choose);
  box.addEventListener("scroll", place, { passive: true });
  return { set, draw };
})();
