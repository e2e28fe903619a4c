"use strict";
// Signals over the last seconds of simulated time.
const plots = (() => {
  const SPAN_S = 20, COLOURS = ["#1f5fbf", "#c2570c", "#1a7f47", "#7b3fa0", "#b3261e", "#0b7285", "#8a6d00", "#444", "#d6336c"];
  const all = [];

  /** lines: [{label, of: message -> number}] */
  function add(id, lines, unit) {
    const place = element(id);
    const data = [[], ...lines.map(() => [])];
    const size = () => ({ width: Math.max(240, place.clientWidth), height: 210 });
    const plot = new uPlot({
      ...size(),
      scales: { x: { time: false, range: (_, low, high) => [Math.max(0, high - SPAN_S), Math.max(high, 1)] } },
      axes: [{ label: "s", labelSize: 14, size: 34 }, { label: unit, labelSize: 16, size: 58 }],
      series: [{ label: "t" }, ...lines.map((line, k) => ({ label: line.label, stroke: COLOURS[k % COLOURS.length], width: 1.5 }))],
      legend: { live: false },
    }, data, place);
    new ResizeObserver(() => plot.setSize(size())).observe(place);
    all.push({ plot, data, lines });
  }

  /** Keep a message. Drawn by draw(). */
  function take(message) {
    const t = message.t;
    for (const { data, lines } of all) {
      const times = data[0];
      // back to a checkpoint, or another run
      if (times.length && t <= times[times.length - 1]) data.forEach((column) => (column.length = 0));
      times.push(t);
      lines.forEach((line, k) => data[k + 1].push(line.of(message) ?? null));
      const first = times.findIndex((x) => x >= t - SPAN_S);
      if (first > 200) data.forEach((column) => column.splice(0, first));
    }
  }
  const draw = () => all.forEach(({ plot, data }) => plot.setData(data));
  function clear() {
    all.forEach(({ plot }) => plot.destroy());
    all.length = 0;
  }
  return { add, take, draw, clear };
})();
