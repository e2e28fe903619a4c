"use strict";
// CAN trace: of each message the newest frame, bytes that change in colour, signals decoded.
const trace = (() => {
  const body = document.querySelector("#trace tbody"), filter = element("trace-filter"), rows = new Map();

  function made(row) {
    const line = document.createElement("tr"), below = document.createElement("tr"), signals = below.insertCell();
    for (let k = 0; k < 9; k += 1) line.insertCell();
    const code = document.createElement("code");
    line.cells[8].append(code);
    signals.colSpan = 9;
    signals.className = "signals";
    text(line.cells[0], row.bus);
    text(line.cells[1], row.id);
    text(line.cells[3], row.sent ? "sent" : "received");
    return { line, below, signals, code, names: [], words: "" };
  }

  /** Bytes in hexadecimal; those that have changed since the last picture stand out. */
  function hexadecimal(place, row) {
    const changed = new Set(row.changed);
    place.replaceChildren(...(row.data.match(/../g) || []).flatMap((byte, k) => {
      const part = document.createElement(changed.has(k) ? "b" : "span");
      part.textContent = byte;
      return k ? [" ", part] : [part];
    }));
  }

  function fill(found, row) {
    const { cells } = found.line;
    text(cells[2], row.name);
    text(cells[4], row.t.toFixed(3));
    text(cells[5], row.period_s === null ? "–" : (1e3 * row.period_s).toFixed(1));
    text(cells[6], String(row.count));
    text(cells[7], String(row.refused));
    cells[7].className = row.refused ? "bad" : "";
    hexadecimal(found.code, row);
    const names = row.signals.map(([name]) => name).join(" ");
    if (names !== found.names) {
      found.names = names;
      found.signals.replaceChildren(...row.signals.map(([name, , unit]) => {
        const place = document.createElement("span"), value = document.createElement("b");
        place.append(`${name} `, value, unit ? ` ${unit}` : "");
        return place;
      }));
      found.words = `${row.bus} ${row.id} ${row.name} ${row.sent ? "sent" : "received"} ${names}`.toLowerCase();
      choose(found);
    }
    row.signals.forEach(([, value], k) => text(found.signals.children[k].querySelector("b"), value));
  }

  const wanted = () => filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  function choose(found) {
    const seen = wanted().every((word) => found.words.includes(word));
    found.line.hidden = found.below.hidden = !seen;
  }

  /** news: {rows, left_out, error}; rows of which frames have come. */
  function take({ rows: news, left_out: leftOut, error }) {
    for (const row of news) {
      const key = `${row.bus} ${row.id} ${row.sent}`;
      if (!rows.has(key)) {
        const found = made(row), next = [...rows.keys()].filter((other) => other > key).sort()[0];
        rows.set(key, found);
        const before = next ? rows.get(next).line : null;
        body.insertBefore(found.line, before);
        body.insertBefore(found.below, before);
      }
      fill(rows.get(key), row);
    }
    text("trace-count", `${rows.size} messages${leftOut ? `, ${leftOut} frames of others left out` : ""}`);
    element("trace-error").hidden = !error;
    text("trace-error", error);
  }
  function clear() {
    rows.clear();
    body.replaceChildren();
  }
  filter.addEventListener("input", () => rows.forEach(choose));
  return { take, clear };
})();
