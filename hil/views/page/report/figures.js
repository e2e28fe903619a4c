"use strict";
// Figures of a page that is a file: each is made when it comes into view; all over the time of the run move together.
(async () => {
  const page = (window.torqueloop = { drawn: 0, groups: {} });   // what tests look at
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme:dark)").matches);
  element("theme").onclick = () => { root.dataset.theme = dark() ? "light" : "dark"; plots.recolour(); };
  if (!element("figures")) return;
  const { blocks, figures, gears, column } = await recorded.read();
  const places = [...document.querySelectorAll("figure[data-figure]")], bar = element("bar");
  page.column = column;

  // a page that is served asks for every sample of what it shows of a long recording
  const panels = [], served = location.protocol !== "file:" && blocks[0]?.group > 1;
  let asked = 0;
  async function finer() {
    const mine = ++asked, [begin, end] = run.range;
    await new Promise((resolve) => setTimeout(resolve, 300));
    const own = panels.filter(({ lines }) => lines.every(({ y }) => y.block === 0 && recordedName(y)));
    if (mine !== asked || !own.length) return;
    const names = [...new Set(own.flatMap(({ lines }) => lines.map(({ y }) => recordedName(y))))].slice(0, 40);
    const query = new URLSearchParams([["token", new URLSearchParams(location.search).get("token")], ["from", begin], ["to", end], ...names.map((n) => ["name", n])]);
    const answer = await (await fetch(`/samples?${query}`)).json();
    if (mine !== asked || !answer.blocks) return;
    const near = recorded.opened(answer.blocks, await recorded.inflate(bytes(answer.numbers)));
    for (const { made, lines } of own) {
      const at = lines.map(({ y }) => names.indexOf(recordedName(y)) + 1);
      if (at.every((k) => k > 0)) made.u.setData([near(0, 0), ...at.map((k, n) => near(0, k).map((v) => (v === null ? null : v * lines[n].factor)))], false);
      made.u.redraw();
    }
    page.finer = answer.blocks[0].group;
  }
  const derived = new Set(["acceleration of the car", "rig - vehicle model", "wake lateness", "compute"]);
  const recordedName = ({ number }) => { const name = blocks[0].columns[number][0]; return derived.has(name) ? "" : name; };

  const times = blocks.length ? column(0, 0) : [0, 1];
  const run = (page.run = new plots.Group("run", [times[0] ?? 0, times[times.length - 1] ?? 1]));
  const at = (x) => { if (x !== null) element("at").textContent = `t = ${plots.digits(x, 7)} s`; };
  run.told = ({ range: [a, b] }) => { element("seen").textContent = `${plots.digits(a, 6)} – ${plots.digits(b, 6)} s`; if (served) finer(); };
  run.told(run);

  /** [x, y ...] of the lines of a panel; lines over other times are joined. */
  function series(lines) {
    const read = lines.map(({ x, y, factor }) => {
      const from = Array.isArray(y) ? [x, y] : [column(y.block, 0), column(y.block, y.number)];
      return factor === 1 ? from : [from[0], from[1].map((v) => (v === null ? null : v * factor))];
    });
    if (!read.length || read.every(([x]) => x === read[0][0])) return { data: read.length ? [read[0][0], ...read.map(([, y]) => y)] : [[0], []], joined: false };
    return { data: uPlot.join(read), joined: true };
  }

  const extent = (figure) => {
    const ends = figure.panels.flatMap(({ lines, rows }) => [
      ...lines.flatMap(({ x, y, right }) => (Array.isArray(y) ? [...x, ...right] : [column(y.block, 0)[0], column(y.block, 0).at(-1)])),
      ...rows.flatMap(([, row]) => row).flatMap(({ begin, end }) => [begin, end]),
    ]).filter((x) => x !== null && x !== undefined);
    return [ends.reduce((a, b) => Math.min(a, b), Infinity), ends.reduce((a, b) => Math.max(a, b), -Infinity)];
  };

  function draw(place) {
    const figure = figures[place.dataset.figure];
    if (!figure || place.dataset.drawn) return;
    place.dataset.drawn = "yes";
    place.replaceChildren();
    const own = figure.begin !== null || figure.x !== "s", [low, high] = own ? extent(figure) : run.full;
    let group = run;
    if (own) {
      const room = figure.log || figure.panels.some(({ rows }) => rows.length) ? 0 : figure.x === "s" ? 0 : 0.03 * (high - low);
      group = new plots.Group(figure.x === "s" ? "run" : figure.name, figure.log ? [low, high] : [low - room, high + room]);
      if (figure.begin !== null) group.full = [figure.begin, figure.end];
      group.range = [...group.full];
    }
    page.groups[figure.name] = group;
    if (Object.keys(figure.colours).length) {
      const key = document.createElement("p");
      key.className = "key";
      for (const [role, words] of Object.entries(figure.colours)) {
        const box = document.createElement("i");
        box.style.background = `var(--${role})`;
        key.append(box, words);
      }
      place.append(key);
    }
    figure.panels.forEach((panel, k) => {
      const box = document.createElement("div");
      box.className = "panel";
      if (panel.unit) box.dataset.unit = panel.unit;
      place.append(box);
      const { data, joined } = series(panel.lines);
      const how = { group, x: figure.x, log: figure.log, joined, first: k === 0, last: k === figure.panels.length - 1, marks: figure.marks, at: figure.x === "s" ? at : null, go: figure.x === "s" ? page.go : null };
      const made = plots.panel(box, panel, data, { ...how, gears: figure.gears && figure.x === "s" ? gears : null });
      if (group === run && panel.lines.length) panels.push({ made, lines: panel.lines });
    });
    page.drawn += 1;
  }

  const seen = new IntersectionObserver((entries) => entries.forEach((e) => { if (e.isIntersecting) { seen.unobserve(e.target); draw(e.target); } }), { rootMargin: "300px" });
  places.forEach((place) => seen.observe(place));

  /** Show a stretch of the run in all figures over its time. */
  page.go = (begin, end) => {
    run.set(begin, end);
    (document.querySelector('figure[data-figure="drive"]') || places[0])?.scrollIntoView({ behavior: "smooth", block: "center" });
  };
  document.addEventListener("click", (e) => {
    const link = e.target.closest("a.at");
    if (!link) return;
    e.preventDefault();
    page.go(Number(link.dataset.begin), Number(link.dataset.end));
  });

  // any recorded signal by its name
  const first = blocks[0]?.columns || [], numbers = new Map(first.map(([name], k) => [name, k]));
  element("signals").replaceChildren(...first.slice(1).map(([name]) => Object.assign(document.createElement("option"), { value: name })));
  page.show = (name) => {
    const number = numbers.get(name);
    if (number === undefined || number === 0) return false;
    const unit = first[number][1], shown = { "rad/s": [30 / Math.PI, "1/min"], Pa: [1e-5, "bar"] }[unit] || [1, unit === "1" ? "" : unit];
    const place = Object.assign(document.createElement("div"), { className: "panel added" }), close = Object.assign(document.createElement("button"), { textContent: "×", title: `remove ${name}` });
    element("added").append(place);
    const { data } = series([{ x: [], y: { block: 0, number }, factor: shown[0] }]);
    const role = ["blue", "orange", "green", "purple", "teal", "red"][element("added").children.length % 6];
    const made = plots.panel(place, { unit: shown[1], height: 130, lines: [{ label: name, role, style: "line" }] }, data, { group: run, x: "s", gears, last: true, at });
    panels.push({ made, lines: [{ y: { block: 0, number }, factor: shown[0] }] });
    close.onclick = () => { panels.splice(panels.findIndex((p) => p.made === made), 1); made.remove(); place.remove(); };
    place.prepend(close);
    place.scrollIntoView({ behavior: "smooth", block: "nearest" });
    return true;
  };
  element("add").onsubmit = (e) => {
    e.preventDefault();
    const field = element("signal");
    field.setCustomValidity(page.show(field.value.trim()) ? "" : "no signal of this name was recorded");
    if (field.reportValidity()) field.value = "";
  };
  element("signal").oninput = (e) => e.target.setCustomValidity("");

  const acts = { in: () => run.zoom(0.5), out: () => run.zoom(2), back: () => run.move(-0.25), on: () => run.move(0.25), all: () => run.all() };
  bar.addEventListener("click", (e) => acts[e.target.dataset?.act]?.());
  const keys = { "+": "in", "-": "out", ArrowLeft: "back", ArrowRight: "on", 0: "all" };
  document.addEventListener("keydown", (e) => {
    if (e.target.matches("input, textarea, select") || e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
    e.preventDefault();
    acts[keys[e.key]]();
  });
  bar.hidden = !blocks.length;

  // paper: everything, in the light
  let theme = null;
  addEventListener("beforeprint", () => { theme = root.dataset.theme ?? ""; root.dataset.theme = "light"; places.filter((p) => p.offsetParent).forEach(draw); plots.recolour(); });
  addEventListener("afterprint", () => { if (theme) root.dataset.theme = theme; else delete root.dataset.theme; plots.recolour(); });
  page.ready = true;
})();
