"use strict";
// Plots and the strip of states, with the time that is shown.
const charts = (() => {
  const COLOURS = ["#1f6fd0", "#d9660f", "#1a8a54", "#8d4fc0", "#c9302c", "#0f8b95", "#a87a06", "#c2408f", "#777", "#456"];
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const all = [], place = element("plots"), strip = element("states");
  const first = run.t[0], last = run.t[run.t.length - 1], NEAR = Math.min(1, last - first);
  let near = true, window_ = [first, last], seek = () => {};
  const range = () => window_;

  /** The stretch that is shown; near: a second, turned over like a page when the time leaves it. */
  function turn(now) {
    if (!near) return [first, last];
    const [a, b] = window_;
    if (b - a <= NEAR * 1.001 && now >= a && now <= b) return window_;
    const begin = Math.min(last - NEAR, Math.max(first, now - 0.35 * NEAR));
    return [begin, begin + NEAR];
  }
  function make(plot) {
    const title = document.createElement("h2"), box = document.createElement("div");
    title.textContent = `${plot.title} [${plot.unit}]`;
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", `${plot.title} over time`);
    place.append(title, box);
    const size = () => ({ width: Math.max(220, place.clientWidth - 4), height: 150 });
    const u = new uPlot({
      ...size(),
      scales: { x: { time: false, range } },
      axes: [{ stroke: css("--muted"), size: 26, grid: { stroke: css("--grid") } }, { stroke: css("--muted"), size: 52, grid: { stroke: css("--grid") } }],
      series: [{ label: "s" }, ...plot.lines.map((l, k) => ({ label: l.name, stroke: COLOURS[k % COLOURS.length], width: 1.4, points: { show: false } }))],
      legend: { live: false }, cursor: { drag: { x: false, y: false } },
    }, [plot.t, ...plot.lines.map((l) => l.values)], box);
    u.over.addEventListener("click", (e) => seek(u.posToVal(e.offsetX, "x")));
    new ResizeObserver(() => u.setSize(size())).observe(place);
    const mark = document.createElement("div");
    mark.className = "now";
    u.over.append(mark);
    all.push({ u, mark });
  }
  const [from, name, row] = [0, 44, 13];
  function states() {
    const ratio = window.devicePixelRatio || 1, width = strip.clientWidth, rows = run.states.length;
    strip.style.height = `${rows * row}px`;
    strip.width = width * ratio;
    strip.height = rows * row * ratio;
    const c = strip.getContext("2d"), [a, b] = range(), x = (t) => name + (width - name - 4) * (t - a) / (b - a);
    c.scale(ratio, ratio);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    run.states.forEach((s, k) => {
      c.fillStyle = css("--muted");
      c.fillText(s.name, from, k * row + row / 2, name - 4);
      for (let j = Math.max(0, run.before(s.t, a)); j < s.t.length && s.t[j] <= b; j++) {
        c.fillStyle = css(`--${run.STATES[s.state[j]]}`) || "#999";
        if (!s.state[j]) continue;
        const begin = Math.max(s.t[j], a), end = Math.min(j + 1 < s.t.length ? s.t[j + 1] : last, b);
        if (end > begin) c.fillRect(x(begin), k * row + 2, Math.max(0.6, x(end) - x(begin)), row - 4);
      }
    });
  }
  strip.addEventListener("click", (e) => {
    const [a, b] = range();
    seek(a + (b - a) * (e.offsetX - name) / (strip.clientWidth - name - 4));
  });
  run.plots.forEach(make);
  new ResizeObserver(states).observe(strip);
  return {
    onSeek: (f) => (seek = f),
    /** The time that is shown; curves are drawn anew only where another stretch of them is to be seen. */
    show(time, only = near) {
      const fresh = ((near = only), turn(time)), moved = fresh[0] !== window_[0] || fresh[1] !== window_[1];
      window_ = fresh;
      const [min, max] = fresh;
      if (moved) {
        for (const { u } of all) u.setScale("x", { min, max });
        states();
      }
      for (const { u, mark } of all) mark.style.transform = `translateX(${u.valToPos(time, "x")}px)`;
      const width = strip.clientWidth - name - 4;
      element("at").style.transform = `translateX(${name + width * (time - min) / (max - min)}px)`;
    },
  };
})();
