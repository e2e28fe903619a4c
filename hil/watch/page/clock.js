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

  // Classes of the rig are fine and uneven: here even ones of a tenth of a decade, 0.1 µs to 100 ms, counts as logarithms.
  function histograms(stats) {
    const canvas = element("histograms"), width = canvas.clientWidth, height = canvas.clientHeight, scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale); canvas.height = Math.round(height * scale);
    const pen = canvas.getContext("2d"), N = 60, left = 8, base = height - 18, wide = (width - 2 * left) / N;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.font = "11px system-ui, sans-serif";
    const shown = [["wake lateness", stats.clock.wake_lateness_us, plots.colour("blue")], ["computing", stats.clock.compute_us, plots.colour("orange")]];
    shown.filter(([, timing]) => timing).forEach(([label, timing, colour], n) => {
      const counts = new Array(N).fill(0);
      for (const [edge, count] of timing.hist) counts[Math.min(N - 1, Math.max(0, Math.floor((Math.log10(Math.max(edge, 0.1)) + 1) * 10)))] += count;
      const top = Math.log10(1 + Math.max(1, ...counts));
      pen.fillStyle = colour;
      pen.globalAlpha = 0.55;
      counts.forEach((count, k) => {
        const high = Math.log10(1 + count) / top * (base - 20);
        pen.fillRect(left + k * wide, base - high, Math.max(1, wide - 1), high);
      });
      pen.globalAlpha = 1;
      pen.fillText(label, left + 4 + n * 100, 12);
    });
    pen.fillStyle = plots.colour("muted"); pen.textAlign = "center";
    ["0.1 µs", "1", "10", "100", "1 ms", "10", "100 ms"].forEach((word, k) => pen.fillText(word, Math.min(width - 20, Math.max(18, left + k * 10 * wide)), height - 4));
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
  return { show: (stats) => { words(stats); histograms(stats); buses(stats); } };
})();
