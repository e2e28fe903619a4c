"use strict";
// Panels of every page: lines over an axis or rows of spans, drawn by uPlot; those of a group share range and cursor.
const plots = (() => {
  const all = new Set();
  let known = new Map();

  /** A colour of the page's theme by its name. */
  function colour(role) {
    if (!known.has(role)) known.set(role, getComputedStyle(document.documentElement).getPropertyValue(`--${role}`).trim() || role);
    return known.get(role);
  }
  /** Draw everything in the colours of the theme that is chosen now. */
  function recolour() {
    known = new Map();
    for (const u of all) {
      u.redraw(false);
      u.root.querySelectorAll(".u-series").forEach((row, k) => {
        const marker = row.querySelector(".u-marker"), { stroke } = u.series[k];
        if (marker && stroke) marker.style.borderColor = stroke(u, k);
      });
    }
  }

  matchMedia("(prefers-color-scheme:dark)").addEventListener("change", recolour);

  const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  /** A number for reading. */
  function digits(x, n = 5) {
    if (x === null || x === undefined || !Number.isFinite(x)) return "–";
    const size = Math.abs(x);
    return size && (size < 1e-3 || size >= 1e7) ? x.toExponential(n - 2) : String(+x.toPrecision(Math.max(n, Math.ceil(Math.log10(size + 1)))));
  }
  const power = (x) => `10${[...String(Math.round(Math.log10(x)))].map((c) => RAISED[c]).join("")}`;
  /** Powers of ten between two numbers. */
  const powers = (u, axis, low, high) => {
    const from = Math.ceil(Math.log10(low) - 1e-9), n = Math.floor(Math.log10(high) + 1e-9) - from + 1;
    return Array.from({ length: Math.max(0, n) }, (_, k) => 10 ** (from + k));
  };
  const first = (words, unit) => words.map((word, k) => (k ? word : `${word} ${unit}`));

  /** Panels that move together. full: [begin, end] of everything. */
  class Group {
    constructor(name, full) {
      Object.assign(this, { name, full, range: [...full], members: new Set(), told: () => {} });
    }
    /** Show from begin to end; nothing beyond what there is. */
    set(begin, end) {
      const [low, high] = this.full, wide = Math.min(Math.max(end - begin, (high - low) * 1e-6), high - low);
      const from = Math.min(Math.max(begin, low), high - wide);
      this.range = [from, from + wide];
      for (const u of this.members) u.setScale("x", { min: from, max: from + wide });
      this.told(this);
    }
    all() { this.set(...this.full); }
    /** Wider (factor > 1) or narrower about a place. */
    zoom(factor, about = (this.range[0] + this.range[1]) / 2) {
      this.set(about + (this.range[0] - about) * factor, about + (this.range[1] - about) * factor);
    }
    /** Along by a part of what is seen. */
    move(part) {
      const by = part * (this.range[1] - this.range[0]);
      this.set(this.range[0] + by, this.range[1] + by);
    }
  }

  const within = (u, draw) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    draw(ctx, bbox, (x) => u.valToPos(x, "x", true), (y) => u.valToPos(y, "y", true));
    ctx.restore();
  };
  const font = (u) => `${11 * devicePixelRatio}px system-ui, sans-serif`;

  /** Stretches with an engaged gear, named where there is room. */
  function shade(u, gears, named) {
    within(u, (ctx, box, px) => gears.forEach(([begin, end, name], k) => {
      const left = Math.max(px(begin), box.left), right = Math.min(px(end), box.left + box.width);
      if (right - left < 1) return;
      ctx.fillStyle = colour(k % 2 ? "band_b" : "band_a");
      ctx.fillRect(left, box.top, right - left, box.height);
      ctx.font = font(u);
      if (!named || right - left < 30 * devicePixelRatio) return;
      ctx.fillStyle = colour("muted");
      ctx.textAlign = "center";
      ctx.textBaseline = "top";
      ctx.fillText(right - left > 70 * devicePixelRatio ? `gear ${name}` : name, (left + right) / 2, box.top + 3 * devicePixelRatio);
    }));
  }

  function bars(u, lines) {
    within(u, (ctx, box, px, py) => lines.forEach((line) => {
      ctx.fillStyle = colour(line.role);
      line.x.forEach((x, k) => {
        const top = py(line.y[k] * line.factor), left = px(x);
        ctx.fillRect(left, top, Math.max(1, px(line.right[k]) - left - devicePixelRatio / 2), box.top + box.height - top);
      });
    }));
  }

  function rows(u, spans) {
    within(u, (ctx, box, px, py) => spans.forEach((row, y) => {
      const top = py(y - 0.38), high = py(y + 0.38) - top;
      ctx.font = font(u);
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      let seen = -1;
      for (const s of row) {
        const left = Math.max(px(s.begin), box.left), right = Math.min(px(s.end), box.left + box.width);
        // many spans in one pixel: the first of them
        if (right < box.left || left > box.left + box.width || right <= seen) continue;
        ctx.fillStyle = colour(s.role);
        ctx.fillRect(left, top, Math.max(devicePixelRatio, right - left), high);
        seen = Math.max(right, left + devicePixelRatio);
        if (s.text && ctx.measureText(s.text).width + 8 < right - left) {
          ctx.fillStyle = colour(["free", "band_a", "band_b"].includes(s.role) ? "fg" : "panel");
          ctx.fillText(s.text, (left + right) / 2, top + high / 2);
        }
      }
    }));
  }

  function marks(u, found, named) {
    within(u, (ctx, box, px) => found.forEach(({ x, text, role }, k) => {
      const at = px(x), right = at > box.left + 0.75 * box.width;
      ctx.strokeStyle = ctx.fillStyle = colour(role);
      ctx.lineWidth = devicePixelRatio;
      ctx.beginPath(); ctx.moveTo(at, box.top); ctx.lineTo(at, box.top + box.height); ctx.stroke();
      ctx.font = font(u);
      ctx.textAlign = right ? "right" : "left";
      ctx.textBaseline = "top";
      if (!named) return;
      // on a ground of its own: rows of spans have text, too
      const left = at + (right ? -4 : 4), top = box.top + (2 + 13 * (k % 5)) * devicePixelRatio, wide = ctx.measureText(text).width;
      ctx.fillStyle = colour("panel");
      ctx.fillRect(right ? left - wide - 2 : left - 2, top - 1, wide + 4, 13 * devicePixelRatio);
      ctx.fillStyle = colour(role === "orange" ? "fg" : role);
      ctx.fillText(text, left, top);
    }));
  }

  /** A click on a mark or on a stretch of a row goes there: go(begin, end). */
  function targets(u, lines, spans, go) {
    const NEAR = 6;
    u.over.addEventListener("click", (e) => {
      const box = u.over.getBoundingClientRect(), left = e.clientX - box.left, x = u.posToVal(left, "x");
      const mark = lines.find((m) => Math.abs(u.valToPos(m.x, "x") - left) <= NEAR);
      const span = (spans[Math.round(u.posToVal(e.clientY - box.top, "y"))] || []).find((s) => s.begin <= x && x <= s.end);
      // a drag ends with a click, too
      if (down === null || Math.abs(e.clientX - down) > 3 || e.shiftKey) return;
      if (mark) go(mark.x - 1, mark.x + 1);
      else if (span) go(span.begin - 0.3, span.end + 0.3);
    });
    let down = null;
    u.over.addEventListener("pointerdown", (e) => { down = e.clientX; });
  }

  /** Mouse and fingers: drag for a range, double click for all, Shift and drag or two fingers to move, Ctrl and wheel. */
  function moves(u, group) {
    const fingers = new Map(), value = (e) => u.posToVal(e.clientX - u.over.getBoundingClientRect().left, "x");
    u.over.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.metaKey && !e.shiftKey) return;
      e.preventDefault();
      if (e.shiftKey) group.move(Math.sign(e.deltaY || e.deltaX) * 0.1);
      else group.zoom(e.deltaY > 0 ? 1.25 : 0.8, value(e));
    }, { passive: false });
    const down = (e) => {
      if (e.pointerType !== "touch" && !e.shiftKey) return;
      fingers.set(e.pointerId, value(e));
      if (e.pointerType !== "touch") u.over.setPointerCapture(e.pointerId);
    };
    const move = (e) => {
      if (!fingers.has(e.pointerId)) return;
      const now = value(e), before = fingers.get(e.pointerId), others = [...fingers].filter(([id]) => id !== e.pointerId);
      const [begin, end] = group.range;
      if (e.pointerType !== "touch") return group.set(begin - now + before, end - now + before);
      if (!others.length) return u.setCursor({ left: u.valToPos(now, "x"), top: 1 });
      const fixed = others[0][1], factor = Math.min(4, Math.max(0.25, (before - fixed) / (now - fixed) || 1));
      group.zoom(factor, fixed);
    };
    const up = (e) => fingers.delete(e.pointerId);
    for (const [kind, act] of [["pointerdown", down], ["pointermove", move], ["pointerup", up], ["pointercancel", up], ["pointerleave", up]])
      u.over.addEventListener(kind, act);
  }

  /**
   * A panel at a place of the page: {unit, title, height, low, high, lines: [{label, role, style}], rows: [[name, spans]]}.
   * data: [x, y ...] as uPlot has it. how: {group, x, log, gears, marks, range, first, last}.
   */
  function panel(place, made, data, how) {
    const names = (made.rows || []).map(([name]) => name), spans = (made.rows || []).map(([, row]) => row), { group, log = false } = how;
    const lines = made.lines || [], isTime = how.x === "s";
    const size = () => ({ width: Math.max(200, place.clientWidth), height: made.height + (how.last ? 24 : 0) });
    const told = (x, row) => { const s = row.find(({ begin, end }) => begin <= x && x < end); return s ? s.text || digits(s.end - s.begin, 4) : "–"; };
    const path = { step: () => uPlot.paths.stepped({ align: -1 }), dots: () => () => null, rings: () => () => null, bars: () => () => null };
    const label = (line) => line.label;
    const axis = { stroke: () => colour("muted"), grid: { stroke: () => colour("grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const only = { splits: powers, filter: (self, at) => at };
    const widest = Math.max(0, ...names.map((n) => n.length)), scale = log ? { distr: 3 } : {};
    const u = new uPlot({
      ...size(),
      title: made.title || undefined,
      padding: [6, 18, how.last ? 0 : 6, 0],
      cursor: {
        sync: { key: group.name }, drag: { x: true, y: false, setScale: false, dist: 4 },
        bind: { dblclick: () => () => group.all(), mousedown: (self, target, act) => (e) => { if (e.button === 0 && !e.shiftKey) act(e); } },
        points: { size: 6 }, y: false,
      },
      select: { show: true },
      scales: {
        x: { time: false, ...scale, range: how.range || (() => group.range) },
        y: names.length ? { range: () => [-0.5, names.length - 0.5], dir: -1 }
          : { ...scale, range: (self, low, high) => {
            if (log) return uPlot.rangeLog(made.low ?? low ?? 0.5, made.high ?? high ?? 1, 10, true);
            if (low === null) return [0, 1];
            const room = 0.05 * (high - low) || Math.abs(high) * 0.1 || 1;
            return [made.low ?? (low >= 0 && low < 0.3 * high ? Math.min(0, low) : low - room), made.high ?? high + room];
          } },
      },
      axes: [
        { ...axis, show: Boolean(how.last), size: 24, values: (self, at) => first(at.map(log ? power : (x) => digits(x, 6)), how.x || ""), ...(log ? only : {}) },
        names.length ? { ...axis, size: Math.min(120, 14 + 6.6 * Math.max(6, widest)), splits: () => names.map((_, k) => k), values: () => names, grid: { show: false }, gap: 6 }
          : { ...axis, size: 54, gap: 4, values: (self, at) => at.map(log ? power : (x) => digits(x, 5)), ...(log ? only : {}) },
      ],
      series: [
        { label: isTime ? "t" : how.x, value: (self, x) => `${digits(x, 7)} ${how.x}` },
        ...lines.map((line) => ({
          label: label(line), stroke: () => colour(line.role), width: line.style === "dash" ? 1.2 : 1.6, dash: line.style === "dash" ? [6, 4] : undefined,
          paths: path[line.style]?.(), spanGaps: line.style === "step" || how.joined,
          points: line.style === "dots" || line.style === "rings"
            ? { show: true, size: line.style === "dots" ? 4 : 8, stroke: () => colour(line.role), fill: () => (line.style === "dots" ? colour(line.role) : "transparent") }
            : { show: false },
          value: (self, y) => (y === null || y === undefined ? "–" : `${digits(y)} ${made.unit || ""}`),
        })),
        ...names.map((name, k) => ({ label: name, value: (self) => (self.cursor.left >= 0 ? told(self.posToVal(self.cursor.left, "x"), spans[k]) : "–") })),
      ],
      legend: { live: how.live ?? true, markers: { show: !names.length } },
      hooks: {
        drawClear: [(self) => how.gears && shade(self, how.gears, how.first)],
        draw: [(self) => {
          if (spans.length) rows(self, spans);
          bars(self, lines.filter((line) => line.style === "bars"));
          marks(self, how.marks || [], how.first);
        }],
        setSelect: [(self) => {
          const { left, width } = self.select;
          if (width > 3) group.set(self.posToVal(left, "x"), self.posToVal(left + width, "x"));
          self.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }],
        setCursor: [(self) => how.at?.(self.cursor.left >= 0 ? self.posToVal(self.cursor.left, "x") : null)],
      },
    }, names.length ? [[...group.full], ...names.map(() => [null, null])] : data, place);
    if (made.unit) u.root.dataset.unit = made.unit;
    moves(u, group);
    if (how.go) targets(u, how.marks || [], spans, how.go);
    group.members.add(u);
    all.add(u);
    const watch = new ResizeObserver(() => { if (u.width !== size().width) u.setSize(size()); });
    watch.observe(place);
    return { u, remove: () => { watch.disconnect(); group.members.delete(u); all.delete(u); u.destroy(); } };
  }
  return { panel, panels: () => [...all], colour, recolour, digits, Group };
})();
