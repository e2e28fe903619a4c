"use strict";
// Signals over the last seconds of simulated time; a range that is dragged stands still, a double click follows again.
const live = (() => {
  const SPAN_S = 20, ROLES = ["blue", "orange", "green", "purple", "red", "teal", "gold", "muted", "pink"];
  const all = [], group = new plots.Group("live", [0, 1]), set = group.set.bind(group);
  let held = false;
  group.set = (begin, end) => { held = true; set(begin, end); };
  group.all = () => { held = false; };
  const range = (u, low, high) => (held ? group.range : [Math.max(0, high - SPAN_S), Math.max(high, 1)]);

  /** lines: [{label, of: message -> number}] */
  function add(id, lines, unit) {
    const data = [[], ...lines.map(() => [])], shown = lines.map(({ label }, k) => ({ label, role: ROLES[k % ROLES.length], style: "line" }));
    element(id).className = "panel";
    element(id).dataset.unit = unit;
    all.push({ id, made: plots.panel(element(id), { unit, height: 180, lines: shown }, data, { group, x: "s", last: true, range }), data, lines });
  }
  function remove(id) {
    const at = all.findIndex((plot) => plot.id === id);
    all[at].made.remove();
    all.splice(at, 1);
  }

  /** Keep a message. Drawn by draw(). */
  function take(message) {
    const t = message.t;
    for (const { data, lines } of all) {
      const times = data[0];
      // back to a checkpoint, or another run
      if (times.length && t <= times[times.length - 1]) { data.forEach((column) => (column.length = 0)); held = false; }
      times.push(t);
      lines.forEach((line, k) => data[k + 1].push(line.of(message) ?? null));
      const first = held ? 0 : times.findIndex((x) => x >= t - SPAN_S);
      if (first > 200) data.forEach((column) => column.splice(0, first));
      group.full = [times[0], t];
    }
  }
  const draw = () => all.forEach(({ made, data }) => made.u.setData(data));
  function clear() {
    all.forEach(({ made }) => made.remove());
    all.length = 0;
  }
  return { add, remove, take, draw, clear };
})();
