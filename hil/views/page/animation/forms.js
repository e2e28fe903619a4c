"use strict";
// Geometry: bodies of revolution and wheels around the x axis, with a bright mark by which turning is seen.
const forms = (() => {
  const TAU = 2 * Math.PI, BASE = 0.86, MARK = 1.5, DARK = 0.62, PRESSURE = 20 * Math.PI / 180;
  const inv = (a) => Math.tan(a) - a;

  class Builder {
    constructor() { this.p = []; this.n = []; this.c = []; }
    /** Four corners in order around the face, and the normal of each or of all. */
    quad(a, b, c, d, shade, na, nb, nc, nd) {
      if (!na) na = nb = nc = nd = normal(a, b, d);
      for (const [v, n] of [[a, na], [b, nb], [c, nc], [a, na], [c, nc], [d, nd]]) {
        this.p.push(...v); this.n.push(...n); this.c.push(shade, shade, shade);
      }
    }
    done() {
      const g = new THREE.BufferGeometry();
      for (const [name, values] of [["position", this.p], ["normal", this.n], ["color", this.c]])
        g.setAttribute(name, new THREE.BufferAttribute(new Float32Array(values), 3));
      return g;
    }
  }
  function normal(a, b, c) {
    const u = b.map((x, k) => x - a[k]), v = c.map((x, k) => x - a[k]);
    const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
    const l = Math.hypot(...n) || 1;
    return n.map((x) => x / l);
  }
  const at = (x, r, a) => [x, r * Math.cos(a), r * Math.sin(a)];

  /** A closed section [[x, r], ...], counter-clockwise in (x, r), turned about the axis; stripes: bright marks. */
  function revolved(section, sectors = 48, stripes = 3, skip = null) {
    const b = new Builder();
    for (let k = 0; k < sectors; k++) {
      const a0 = TAU * k / sectors, a1 = TAU * (k + 1) / sectors;
      const shade = stripes && k % (sectors / stripes) < 2 ? (k < 2 ? MARK : DARK) : BASE;
      if (skip && skip(k, sectors)) continue;
      for (let j = 0; j < section.length; j++) {
        const [x0, r0] = section[j], [x1, r1] = section[(j + 1) % section.length];
        const l = Math.hypot(x1 - x0, r1 - r0) || 1, nx = (r1 - r0) / l, nr = -(x1 - x0) / l;
        const m = (a) => [nx, nr * Math.cos(a), nr * Math.sin(a)];
        b.quad(at(x0, r0, a0), at(x1, r1, a0), at(x1, r1, a1), at(x0, r0, a1), shade, m(a0), m(a0), m(a1), m(a1));
      }
    }
    return b.done();
  }
  const box = (x0, x1, r0, r1) => [[x0, r0], [x1, r0], [x1, r1], [x0, r1]];
  const tube = (x0, x1, r0, r1, sectors) => revolved(box(x0, x1, r0, r1), sectors);

  /** A disc with windows where there is room for them. */
  function disc(x, thick, r0, r1) {
    const gap = r1 - r0, x0 = x - thick / 2, x1 = x + thick / 2;
    if (gap < 0.34) return [revolved(box(x0, x1, r0, r1))];
    const low = r0 + 0.22 * gap, high = r1 - 0.22 * gap;
    return [revolved(box(x0, x1, r0, low)), revolved(box(x0, x1, high, r1)),
            revolved(box(x0, x1, low, high), 48, 3, (k) => k % 16 > 5)];
  }

  /** Half the angle of a tooth (of a gap of a ring) at a radius: involute of 20 degrees. */
  const half = (z, r, rho) => Math.PI / (2 * z) + inv(PRESSURE) - inv(Math.acos(Math.min(1, r * Math.cos(PRESSURE) / rho)));

  /** Outline of one pitch: [radius, angle from the middle of the tooth]. */
  function pitch(z, r, ring) {
    const m = 2 * r / z, base = r * Math.cos(PRESSURE);
    const foot = ring ? r + 1.22 * m : r - 1.22 * m, tip = ring ? r - 0.92 * m : r + 0.92 * m;
    if (ring) {  // the gap of a ring has the form of a tooth
      const radii = [tip, 0.5 * (tip + r), r, 0.5 * (r + foot), foot];
      const gap = radii.map((rho) => [rho, Math.max(0.06 / z, 1.03 * half(z, r, Math.max(rho, base)))]);
      const P = Math.PI / z;
      return [...gap.slice().reverse().map(([rho, a]) => [rho, a - P]), ...gap.map(([rho, a]) => [rho, P - a])];
    }
    const low = Math.max(foot, base);
    const radii = [...(low > foot + 1e-9 ? [foot] : []), low, r, 0.5 * (r + tip), tip];
    const side = radii.map((rho) => [rho, Math.max(0.04 / z, 0.97 * half(z, r, Math.max(rho, base)))]);
    return [...side.map(([rho, a]) => [rho, -a]), ...side.slice().reverse().map(([rho, a]) => [rho, a])];
  }

  /** A wheel with a tooth in direction 0; `other`: bore, or the outside of a ring. The first tooth is marked. */
  function wheel(z, r, x0, x1, other, ring = false) {
    const b = new Builder(), one = pitch(z, r, ring), line = [];
    for (let k = 0; k < z; k++) for (const [rho, a] of one) line.push([rho, a + TAU * k / z, k === 0]);
    line.push([line[0][0], line[0][1] + TAU, false]);
    for (let j = 0; j + 1 < line.length; j++) {
      const [r0, a0, mark] = line[j], [r1, a1] = line[j + 1];
      const shade = mark ? MARK : BASE;
      const p = [at(x0, r0, a0), at(x1, r0, a0), at(x1, r1, a1), at(x0, r1, a1)];
      if (ring) b.quad(p[0], p[1], p[2], p[3], shade * 0.9);
      else b.quad(p[3], p[2], p[1], p[0], shade * 0.9);
      for (const [x, side] of [[x1, 1], [x0, -1]]) {
        const face = [at(x, other, a0), at(x, r0, a0), at(x, r1, a1), at(x, other, a1)], n = [side, 0, 0];
        b.quad(...((side > 0) === ring ? face.reverse() : face), shade, n, n, n, n);
      }
      const way = ring ? 1 : -1, n0 = [0, way * Math.cos(a0), way * Math.sin(a0)], n1 = [0, way * Math.cos(a1), way * Math.sin(a1)];
      const [b0, b1, b2, b3] = [at(x0, other, a0), at(x1, other, a0), at(x1, other, a1), at(x0, other, a1)];
      if (ring) b.quad(b3, b2, b1, b0, shade, n1, n1, n0, n0);
      else b.quad(b0, b1, b2, b3, shade, n0, n0, n1, n1);
    }
    return b.done();
  }

  /** Blades of a bowl between two radii: thin radial sheets. */
  function blades(count, x0, x1, r0, r1, bend) {
    const b = new Builder();
    for (let k = 0; k < count; k++) {
      const a = TAU * k / count, shade = k ? BASE : MARK;
      b.quad(at(x0, r0, a), at(x1, r0 + 0.12 * (r1 - r0), a + bend), at(x1, r1 - 0.12 * (r1 - r0), a + bend), at(x0, r1, a), shade);
    }
    return b.done();
  }
  return { revolved, box, tube, disc, wheel, blades };
})();
