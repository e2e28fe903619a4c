"use strict";
// Numbers of the run: deadlines with their histograms, buses, links.
const clock = (() => {
  const us = (x) => (x >= 1000 ? `${(x / 1000).toFixed(2)} ms` : `${x.toFixed(1)} µs`);

  function words(stats) {
    const c = stats.clock, parts = [`${c.ticks} ticks`];
    if (c.wake_lateness_us) parts.push(`${c.missed} missed`, `${c.overruns} overruns`,
      `lateness p50 ${us(c.wake_lateness_us.p50)}, p99 ${us(c.wake_lateness_us.p99)}, max ${us(c.wake_lateness_us.max)}`);
    else parts.push("virtual clock: no deadlines");
    if (c.compute_us && c.compute_us.count) parts.push(`computing p50 ${us(c.compute_us.p50)}, p99 ${us(c.compute_us.p99)}, max ${us(c.compute_us.max)}`);
    if (c.real_time_factor) parts.push(`${c.real_time_factor.toFixed(2)} × real time`);
    text("deadlines", parts.join(" · "));
  }

  // Classes of the rig are fine and uneven: here even ones of a tenth of a decade, 0.1 µs to 100 ms.
  const CLASSES = 60, edge = (k) => 10 ** (k / 10 - 1), edges = Array.from({ length: CLASSES }, (_, k) => edge(k));
  const bars = ["wake lateness", "computing"].map((label, k) => ({ label, role: ["blue", "orange"][k], style: "bars", factor: 1, x: [], y: [], right: [] }));
  const group = new plots.Group("times", [edge(0), edge(CLASSES)]);
  const { u } = plots.panel(element("histograms"), { unit: "ticks", height: 200, low: 0.5, lines: bars }, [edges, ...bars.map(() => edges.map(() => null))], { group, x: "µs", log: true, last: true });
  function histograms({ clock: { wake_lateness_us: lateness, compute_us: computing } }) {
    const columns = [lateness, computing].map((timing, n) => {
      const counts = edges.map(() => null);
      for (const [from, count] of timing?.hist || []) {
        const k = Math.min(CLASSES - 1, Math.max(0, Math.floor((Math.log10(Math.max(from, 0.1)) + 1) * 10 + 1e-9)));
        if (count) counts[k] += count;
      }
      const there = edges.map((_, k) => k).filter((k) => counts[k]);
      Object.assign(bars[n], { x: there.map(edge), y: there.map((k) => counts[k]), right: there.map((k) => edge(k + 1)) });
      return counts;
    });
    u.setData([edges, ...columns]);
  }

  const sum = (messages, key) => Object.values(messages || {}).reduce((total, m) => total + (m[key] || 0), 0);
  function buses(stats) {
    const body = document.querySelector("#buses tbody");
    body.replaceChildren();
    for (const [name, bus] of Object.entries(stats.buses || {})) {
      const bad = ["crc", "counter", "length", "bad", "refused", "timeouts"].reduce((total, key) => total + sum(bus.rx, key), 0);
      const row = body.insertRow();
      [name, bus.rx_frames ?? sum(bus.rx, "frames"), bus.rx_bad ?? bad, bus.tx_frames ?? sum(bus.tx, "frames"), bus.tx_dropped ?? 0]
        .forEach((x) => (row.insertCell().textContent = x));
    }
    const parts = Object.entries(stats.recording || {}).map(([name, s]) => `${name} ${(s.bytes_written / 1e6).toFixed(1)} MB${s.lost_records ? `, ${s.lost_records} LOST` : ""}`);
    text("links", `recorded: ${parts.join(", ") || "nothing"}${(stats.degraded || []).length ? ` · degraded: ${stats.degraded.join("; ")}` : ""}`);
  }
  return { stats: null, show(stats) { this.stats = stats.clock; words(stats); histograms(stats); buses(stats); } };
})();
