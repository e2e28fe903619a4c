"use strict";
// What the file holds, decoded, and its values at a time.
const run = (() => {
  const content = JSON.parse(element("content").textContent);
  const TAU = 2 * Math.PI;
  const floats = (text) => new Float32Array(bytes(text).buffer);
  const doubles = (text) => new Float64Array(bytes(text).buffer);
  const t = doubles(content.t);
  const tracks = content.tracks.map((x) => ({ name: x.name, angle: floats(x.angle), speed: floats(x.speed) }));
  const plots = content.plots.map((p) => ({
    title: p.title, unit: p.unit, t: doubles(p.t), lines: p.lines.map((l) => ({ name: l.name, values: floats(l.values) })),
  }));
  const states = content.states.map((s) => ({ name: s.name, t: doubles(s.t), state: new Int8Array(bytes(s.state).buffer) }));
  const attitude = content.body ? floats(content.body.q) : null;

  /** Number of the last entry at or before a time, at least 0. */
  function before(times, time) {
    let low = 0, high = times.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (times[middle] <= time) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Angle of a track modulo a turn: cubic through angles and speeds of two samples, whole turns from the speeds. */
  function angle(track, time) {
    const x = tracks[track];
    const k = Math.min(before(t, time), t.length - 2);
    if (k < 0) return x.angle[0] || 0;
    const h = t[k + 1] - t[k], s = Math.min(1, Math.max(0, (time - t[k]) / h));
    const v0 = x.speed[k] * h, v1 = x.speed[k + 1] * h, mean = 0.5 * (v0 + v1);
    const rest = x.angle[k + 1] - x.angle[k] - mean;
    const d = mean + rest - TAU * Math.round(rest / TAU);
    return x.angle[k] + s * (v0 + s * (3 * d - 2 * v0 - v1 + s * (v0 + v1 - 2 * d)));
  }

  function speed(track, time) {
    const x = tracks[track].speed, k = Math.min(before(t, time), t.length - 2);
    if (k < 0) return x[0] || 0;
    const s = Math.min(1, Math.max(0, (time - t[k]) / (t[k + 1] - t[k])));
    return x[k] + s * (x[k + 1] - x[k]);
  }

  /** State of an element: 0 open, 1 slipping, 2 locked, 3 not recorded. */
  function state(name, time) {
    const found = states.find((s) => s.name === name);
    return found && found.t.length ? found.state[before(found.t, time)] : 3;
  }

  function gear(time) {
    const found = content.gears.find((g) => time >= g[0] && time <= g[1]);
    if (found) return found[2];
    const shift = content.shifts.find((s) => time > s[1] && time < s[2]);
    return shift ? shift[0] : "–";
  }

  /** Quaternion (x, y, z, w) of the body, turned from its first attitude by `factor` times what it has turned. */
  function turned(time) {
    if (!attitude) return null;
    const k = Math.min(before(t, time), Math.max(0, t.length - 2));
    const s = t.length > 1 ? Math.min(1, Math.max(0, (time - t[k]) / (t[k + 1] - t[k]))) : 0;
    const at = (j) => new THREE.Quaternion(attitude[4 * j + 1], attitude[4 * j + 2], attitude[4 * j + 3], attitude[4 * j]);
    const q = at(k).slerp(at(Math.min(k + 1, t.length - 1)), s).multiply(at(0).conjugate()).normalize();
    if (q.w < 0) q.set(-q.x, -q.y, -q.z, -q.w);
    const half = Math.acos(Math.min(1, q.w)), sine = Math.sin(half);
    if (sine < 1e-12) return { q: new THREE.Quaternion(), angle: 0 };
    const big = half * content.body.factor, scale = Math.sin(big) / sine;
    return { q: new THREE.Quaternion(q.x * scale, q.y * scale, q.z * scale, Math.cos(big)), angle: 2 * half };
  }

  return { content, t, tracks, plots, states, angle, speed, state, gear, turned, before, STATES: ["open", "slipping", "locked", "unknown"] };
})();
