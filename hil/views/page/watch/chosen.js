"use strict";
// Plots that the user chooses: any signals by name, in one plot where they have one unit.
const chosen = (() => {
  const SHOWN = { "rad/s": [RPM, "rpm"], Pa: [1e-5, "bar"], "m/s": [3.6, "km/h"] };
  const field = element("plot-signals"), place = element("chosen");
  let units = new Map(), count = 0;

  /** known: [{name, unit}] of all signals. */
  function set(known) {
    units = new Map(known.map(({ name, unit }) => [name, unit]));
    element("plot-names").replaceChildren(...[...units.keys()].map((name) => Object.assign(document.createElement("option"), { value: name })));
    place.replaceChildren();
  }

  /** Add a plot of these names; why not, or nothing. */
  function add(names) {
    const unknown = names.find((name) => !units.has(name)), kinds = new Set(names.map((name) => units.get(name)));
    if (!names.length || unknown) return `there is no signal called ${unknown || "nothing"}`;
    if (kinds.size > 1) return `one plot has one unit, these are in ${[...kinds].join(", ")}`;
    const [factor, unit] = SHOWN[[...kinds][0]] || [1, [...kinds][0] === "1" ? "" : [...kinds][0]];
    const box = document.createElement("section"), title = document.createElement("h2"), inside = document.createElement("div"), close = document.createElement("button");
    box.className = "plot";
    inside.id = `chosen-${(count += 1)}`;
    Object.assign(close, { type: "button", textContent: "×", title: `remove the plot of ${names.join(", ")}` });
    title.append(close, ` ${names.join(", ")}`);
    box.append(title, inside);
    place.append(box);
    live.add(inside.id, names.map((name) => ({ label: name, of: (m) => { const x = value(m, name); return x === undefined ? null : x * factor; } })), unit);
    close.addEventListener("click", () => { live.remove(inside.id); box.remove(); });
    return "";
  }
  element("plot").addEventListener("submit", (event) => {
    event.preventDefault();
    const why = add(field.value.split(/[\s,]+/).filter(Boolean));
    text("plot-answer", why);
    // the keys drive again
    if (!why) { field.value = ""; field.blur(); }
  });
  return { set };
})();
