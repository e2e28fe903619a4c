"use strict";
// Gear sets as levers that move, friction elements as a table.
const gearbox = (() => {
  const MODES = { "-1": ["slips −", "slips"], 0: ["stuck", "stuck"], 1: ["slips +", "slips"], 2: ["free", "free"] };
  let layout = { levers: [], elements: [] }, rows = [];

  function set(found, has) {
    layout = found;
    const body = document.querySelector("#elements tbody");
    body.replaceChildren();
    rows = layout.elements.filter((name) => has(`${name}.mode`) && has(`${name}.w_rel`)).map((name) => {
      const row = body.insertRow();
      const cells = [0, 1, 2, 3, 4].map(() => row.insertCell());
      cells[0].textContent = name;
      const bar = document.createElement("span"), fill = document.createElement("i"), number = document.createElement("span");
      if (has(`${name}.p`)) { bar.className = "bar"; bar.append(fill); cells[2].append(bar, number); }
      return { name, cells, fill, number, freeWheel: !has(`${name}.p`) };
    });
  }

  function table(message) {
    for (const { name, cells, fill, number, freeWheel } of rows) {
      let mode = MODES[Math.round(value(message, `${name}.mode`))] || ["–", ""];
      if (freeWheel && mode[1] === "slips") mode = ["overruns", "free"];
      text(cells[1], mode[0]);
      cells[1].className = mode[1];
      const p = value(message, `${name}.p`), w = value(message, `${name}.w_rel`), tau = value(message, `${name}.tau`);
      if (p !== undefined) {
        fill.style.width = `${Math.min(100, Math.max(0, p / 2e4))}%`;   // 20 bar is the whole bar
        text(number, `${(p / 1e5).toFixed(2)} bar`);
      }
      text(cells[3], w === undefined ? "" : String(Math.round(w * RPM) || 0));
      text(cells[4], tau === undefined ? "" : tau.toFixed(1));
    }
  }

  /** Speed of each member [rad/s]: sent, the housing's 0, or from the line through the two others. */
  function speeds(lever, message) {
    const w = lever.members.map((m) => (m.shaft === "" ? 0 : m.signal ? value(message, m.signal) : undefined));
    const known = w.map((x, k) => k).filter((k) => w[k] !== undefined);
    if (known.length >= 2 && known.length < w.length) {
      const [a, b] = known, x = lever.members.map((m) => m.x);
      w.forEach((speed, k) => { if (speed === undefined) w[k] = w[a] + (w[b] - w[a]) * (x[k] - x[a]) / (x[b] - x[a]); });
    }
    return w;
  }

  let span = 100;
  function levers(message) {
    const canvas = element("levers"), width = canvas.clientWidth, height = canvas.clientHeight, scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale)) { canvas.width = Math.round(width * scale); canvas.height = Math.round(height * scale); }
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = plots.colour("muted");
    if (!layout.levers.length) return pen.fillText("this driveline has no gear sets to draw", 8, 20);
    const all = layout.levers.map((lever) => speeds(lever, message));
    const largest = Math.max(50, ...all.flat().filter((x) => x !== undefined).map(Math.abs));
    span = largest > span ? largest * 1.1 : Math.max(largest * 1.1, span * 0.995);   // the scale shrinks slowly
    const each = width / layout.levers.length, top = 22, bottom = height - 44, zero = (top + bottom) / 2;
    layout.levers.forEach((lever, n) => {
      const x = lever.members.map((m) => m.x), low = Math.min(...x), high = Math.max(...x), pad = Math.min(26, each / 6);
      const place = (k) => n * each + pad + (x[k] - low) / (high - low) * (each - 2 * pad), level = (w) => zero - w / span * (zero - top);
      pen.strokeStyle = plots.colour("grid"); pen.lineWidth = 1;
      pen.beginPath(); pen.moveTo(n * each + 4, zero); pen.lineTo((n + 1) * each - 4, zero); pen.stroke();
      pen.fillStyle = plots.colour("muted"); pen.textAlign = "center";
      pen.fillText(lever.name, (n + 0.5) * each, 12);
      lever.members.forEach((m, k) => {
        pen.beginPath(); pen.moveTo(place(k), top); pen.lineTo(place(k), bottom); pen.stroke();
        pen.fillText(m.name[0].toUpperCase(), place(k), bottom + 13);
        pen.fillText(m.shaft || "⏚", place(k), bottom + (k % 2 ? 39 : 26));
      });
      const w = all[n];
      if (w.some((speed) => speed === undefined)) return;
      pen.strokeStyle = pen.fillStyle = plots.colour("blue"); pen.lineWidth = 3;
      pen.beginPath();
      w.forEach((speed, k) => pen[k ? "lineTo" : "moveTo"](place(k), level(speed)));
      pen.stroke();
      w.forEach((speed, k) => {
        pen.beginPath(); pen.arc(place(k), level(speed), 4, 0, 7); pen.fill();
        pen.fillText((speed * RPM).toFixed(0), place(k), level(speed) + (k % 2 ? 18 : -9));   // beside its neighbours'
      });
    });
  }
  return { set, draw: (message) => { table(message); levers(message); } };
})();
