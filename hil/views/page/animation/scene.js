"use strict";
// The gearbox in three dimensions: made once, then turned by the angles of its tracks.
const scene = (() => {
  const { content } = run;
  const root = new THREE.Scene(), machine = new THREE.Group(), turning = [], packs = new Map(), labels = [];
  // what lies behind a joint is bent with it: the part of the machine that a shaft is in; what is to be posed at a time
  const bent = new Map(), posed = [];
  // meshes of the converter, which stands before the sets: left out where they are looked at from the front
  const hidden = [];
  let before = null;
  const COLOURS = ["#b3bcc9", "#e8891d", "#2a66b9", "#9a9a9a"], MUTED = "#8b95a3";
  // a quarter is taken out of what hides the wheels: above and towards the viewer
  const QUARTER = [new THREE.Plane(new THREE.Vector3(0, -1, 0), 0), new THREE.Plane(new THREE.Vector3(0, 0, -1), 0)];
  const HALF = [new THREE.Plane(new THREE.Vector3(0, 0, -1), 0)];
  const left = content.converter ? -1.75 : -0.55, right = content.length + 0.55;
  const middle = (left + right) / 2;

  function material(colour, clip = null, more = {}) {
    return new THREE.MeshLambertMaterial({
      color: new THREE.Color(colour), vertexColors: true, side: clip ? THREE.DoubleSide : THREE.FrontSide, clippingPlanes: clip, clipIntersection: true, ...more,
    });
  }
  /** A group that turns with a track (-1: stands). */
  function group(track) {
    if (track < 0) {
      const still = new THREE.Group();
      machine.add(still);
      return still;
    }
    let found = turning.find((x) => x.track === track && !x.planet);
    if (!found) {
      found = { track, group: new THREE.Group() };
      turning.push(found);
      (bent.get(track) || machine).add(found.group);
    }
    return found.group;
  }
  const put = (where, geometry, stuff) => {
    const mesh = new THREE.Mesh(geometry, stuff);
    where.add(mesh);
    if (before) before.push(mesh);
  };
  const shaftColour = (track) => (content.shafts.find((s) => s.track === track) || {}).colour || MUTED;

  function shafts() {
    for (const shaft of content.shafts) {
      const where = group(shaft.track), stuff = material(shaft.colour, QUARTER), solid = material(shaft.colour);
      for (const [r, a, b] of shaft.tubes) {
        if (Math.abs(b - a) < 1e-9) continue;
        const axle = r < 0.05;
        put(where, forms.tube(a - 0.012, b + 0.012, axle ? 0.0 : r - 0.016, axle ? 0.045 : r + 0.016, axle ? 24 : 48), axle ? solid : stuff);
      }
      for (const [x, a, b] of shaft.discs) {
        if (Math.abs(b - a) < 1e-9) continue;
        for (const g of forms.disc(x, 0.034, a < 0.05 ? 0.0 : a - 0.016, b + 0.016)) put(where, g, stuff);
      }
    }
  }

  function wheelSet(set) {
    for (const w of set.wheels) {
      const x0 = set.x + w.rows[0] * set.width + 0.012, x1 = set.x + (w.rows[1] + 1) * set.width - 0.012;
      if (w.role === "ring") {
        const where = group(w.track), mesh = new THREE.Mesh(forms.wheel(w.teeth, w.radius, x0, x1, w.radius + content.rim, true), material(w.colour, QUARTER));
        mesh.rotation.x = w.phases[0];
        where.add(mesh);
        if (w.track < 0) put(where, forms.tube(x0, x1, w.radius + content.rim, content.housing), material(MUTED, HALF));
      } else if (w.role === "sun") {
        const foot = w.radius * (1 - 2.5 / w.teeth), bore = Math.min(0.9 * foot, (Math.max(1, Math.floor((w.radius - 0.06) / 0.07) - 1) + 1) * 0.07);
        const mesh = new THREE.Mesh(forms.wheel(w.teeth, w.radius, x0, x1, bore), material(w.colour));
        mesh.rotation.x = w.phases[0];
        group(w.track).add(mesh);
        if (w.track < 0) put(machine, forms.revolved(forms.box(x0 - 0.16, x0, bore, foot)), material(MUTED, QUARTER));
      } else planets(set, w, x0, x1);
    }
    const first = set.wheels.find((w) => w.role === "planet");
    const carrier = group(set.carrier.track), stuff = material(set.carrier.colour, QUARTER), [distance] = first.places[0];
    const x0 = set.x, x1 = set.x + set.rows * set.width;
    set.plates.forEach((on, k) => {
      if (on) put(carrier, forms.revolved(forms.box(k ? x1 + 0.02 : x0 - 0.07, k ? x1 + 0.07 : x0 - 0.02, distance - 0.085, distance + 0.085)), stuff);
    });
    labels.push({ text: set.name, kind: "set", place: [(x0 + x1) / 2, 1.24, 0.0] });
  }

  function planets(set, w, x0, x1) {
    const geometry = forms.wheel(w.teeth, w.radius, x0, x1, 0.055);
    const stuff = material(w.name === "planet_inner" || w.name === "planet1" ? "#c79a55" : "#d9b56a");
    const pin = forms.revolved(forms.box(x0 - 0.06, x1 + 0.06, 0, 0.05), 16, 0), pinStuff = material(set.carrier.colour);
    const all = w.places.map(([r, a], k) => {
      const holder = new THREE.Group(), mesh = new THREE.Mesh(geometry, stuff);
      holder.add(mesh, new THREE.Mesh(pin, pinStuff));
      machine.add(holder);
      return { holder, mesh, r, a, phase: w.phases[k] };
    });
    turning.push({ track: w.track, planet: true, carrier: set.carrier.track, all });
  }

  /** Plates between two races, coloured by the state; a brake's outer ones stand in the housing. */
  function coupling(c) {
    if (c.joint) return joint(c);
    const inner = group(c.inner), outer = group(c.outer), x0 = c.x + 0.012, x1 = c.x + c.width - 0.012, n = 5, w = (x1 - x0) / (2 * n - 1);
    const colour = material(COLOURS[3], QUARTER), dark = material(COLOURS[3], QUARTER);
    packs.set(c.name, [colour, dark]);
    if (c.kind === "freewheel") rollers(c, inner, x0, x1, colour);
    else if (c.kind === "clutch" || c.kind === "brake") {
      for (let k = 0; k < 2 * n - 1; k++) {
        const a = x0 + k * w, mine = k % 2 ? inner : outer;
        put(mine, forms.tube(a + 0.1 * w, a + 0.9 * w, k % 2 ? c.r_in : c.r_in + 0.03, k % 2 ? c.r_out - 0.03 : c.r_out, 30), k % 2 ? dark : colour);
      }
    } else put(outer, forms.tube(x0, x1, c.r_in, c.r_out), colour);
    put(inner, forms.tube(x0 - 0.01, x1 + 0.01, c.r_in - 0.025, c.r_in), material(shaftColour(c.inner), QUARTER));
    const stands = c.outer < 0;
    put(outer, forms.tube(x0 - 0.01, x1 + 0.01, c.r_out, c.r_out + 0.025), material(stands ? MUTED : shaftColour(c.outer), QUARTER));
    if (stands) put(outer, forms.revolved(forms.box(x0 - 0.01, x1 + 0.01, c.r_out + 0.02, content.housing), 48, 0, (k) => k % 6 > 1), material(MUTED, QUARTER));
    labels.push({ text: c.name, kind: "element", element: c.name, place: placed(bent.get(c.inner) || machine, [c.x + c.width / 2, c.r_out + 0.07, 0]) });
  }
  function rollers(c, where, x0, x1, stuff) {
    const r = (c.r_in + c.r_out) / 2, one = forms.revolved(forms.box(x0, x1, 0, (c.r_out - c.r_in) / 2 - 0.006), 10, 0);
    for (let k = 0; k < 24; k++) {
      const a = 2 * Math.PI * k / 24, mesh = new THREE.Mesh(one, stuff);
      mesh.position.set(0, r * Math.cos(a), r * Math.sin(a));
      where.add(mesh);
    }
  }

  // ---- joints: forks and a cross, or a bell with balls; what is behind one is bent by its angle
  const FORK = 0.26, ARM = 0.19;
  /** Shafts behind joints, from left to right: groups that are bent about the centre of their joint. */
  function bend() {
    let at = machine;
    if (!content.couplings.some((c) => c.joint)) return;
    for (const c of [...content.couplings].sort((a, b) => a.x - b.x)) {
      if (!bent.has(c.outer)) bent.set(c.outer, at);
      if (!c.joint) {
        bent.set(c.inner, at);
        continue;
      }
      const { joints, planes, ends: bends } = c.joint, end = c.x + c.width;
      const centres = joints === 2 ? [c.x + 0.4, end - 0.4] : [c.x + 0.4];
      c.parts = centres.map((x, k) => {
        const from = at, turn = new THREE.Quaternion().setFromAxisAngle(new THREE.Vector3(0, 0, 1), bends[k].bend), roll = k ? planes : 0;
        const way = (a) => new THREE.Quaternion().setFromAxisAngle(new THREE.Vector3(1, 0, 0), a);
        const whole = way(roll).multiply(turn).multiply(way(-roll));
        at = new THREE.Group();
        at.quaternion.copy(whole);
        at.position.set(x, 0, 0).sub(new THREE.Vector3(x, 0, 0).applyQuaternion(whole));
        from.add(at);
        return { x, from, to: at, whole, roll, ...bends[k] };
      });
      bent.set(c.inner, at);
    }
  }
  /** A bent line from one side of the picture to the other. */
  function level() {
    const last = [...content.couplings].sort((a, b) => a.x - b.x).pop(), away = new THREE.Vector3(...placed(bent.get(last.inner), [content.length, 0, 0]));
    away.sub(machine.position).sub(body.position);
    const turn = new THREE.Quaternion().setFromUnitVectors(away.clone().normalize(), ALONG), half = away.multiplyScalar(0.5);
    machine.quaternion.copy(turn);
    machine.position.copy(half).negate().applyQuaternion(turn);
    for (const label of labels) label.place = new THREE.Vector3(...label.place).sub(half).applyQuaternion(turn).add(body.position).toArray();
  }
  /** A place in a part of the machine, in the axes of the machine. */
  function placed(part, place) {
    machine.updateMatrixWorld(true);
    return part.localToWorld(new THREE.Vector3(...place)).toArray();
  }
  /** Two arms and their bridge at x, the arms along +-y; side: where the shaft is, -1 left. */
  function fork(where, x, side, colour) {
    const holder = new THREE.Group(), stuff = material(colour), back = x + side * FORK;
    for (const y of [-ARM, ARM]) holder.add(rod([back, y, 0], [x - side * 0.05, y, 0], 0.055, stuff));
    holder.add(rod([back, -ARM - 0.05, 0], [back, ARM + 0.05, 0], 0.06, stuff));
    where.add(holder);
    return holder;
  }
  const direction = (a) => new THREE.Vector3(0, Math.cos(a), Math.sin(a)), ALONG = new THREE.Vector3(1, 0, 0);
  /** Angle of the shaft behind the cross of a joint, that of the fork before it being x. */
  const behind = (x, b) => x + Math.atan2((1 - Math.cos(b)) * Math.sin(x) * Math.cos(x), Math.cos(b) * Math.cos(x) ** 2 + Math.sin(x) ** 2);

  function joint(c) {
    const parts = c.parts, last = parts[parts.length - 1], tube = parts[0].to, end = c.x + c.width;
    const first = shaftColour(c.outer), second = shaftColour(c.inner), grey = "#9aa7b5";
    const stop = parts.length === 2 ? last.x - FORK : end;
    const shaft = new THREE.Group();
    shaft.add(rod([parts[0].x + FORK, 0, 0], [stop, 0, 0], 0.075, material(grey)));
    tube.add(shaft);
    parts.forEach((p, k) => {
      // the fork of an outer shaft, and the one of the shaft between; the track tells the outer one's angle
      const outerTrack = k ? c.inner : c.outer, outerSide = k ? p.to : p.from, innerSide = k ? p.from : p.to, side = k ? 1 : -1;
      const colour = k ? second : first, [near, far] = k ? [p.x + FORK, end] : [p.x - FORK, c.x];
      const stub = new THREE.Group();
      stub.add(rod([near, 0, 0], [far, 0, 0], 0.06, material(colour)));
      outerSide.add(stub);
      if (!p.hooke) return bell(p, outerSide, innerSide, outerTrack, side, colour, grey, k ? null : shaft);
      const outer = fork(outerSide, p.x, side, colour), inner = fork(innerSide, p.x, -side, grey);
      const cross = [0, 1].map(() => {
        const bar = rod([-0.24, 0, 0], [0.24, 0, 0], 0.04, material("#e0b44c"));
        const holder = new THREE.Group();
        holder.position.set(p.x, 0, 0);
        bar.position.set(-0.24, 0, 0);
        holder.add(bar);
        p.from.add(holder);
        return holder;
      });
      posed.push((time) => {
        const x = p.fork + run.angle(outerTrack, time), y = behind(x, p.bend);
        outer.rotation.x = stub.rotation.x = p.roll + x;
        inner.rotation.x = p.roll + y + Math.PI / 2;
        if (!k) shaft.rotation.x = y;
        const mine = direction(p.roll + x), theirs = direction(p.roll + y + Math.PI / 2);
        // in the axes before the joint
        (k ? mine : theirs).applyQuaternion(p.whole);
        cross[0].quaternion.setFromUnitVectors(ALONG, mine);
        cross[1].quaternion.setFromUnitVectors(ALONG, theirs);
      });
    });
    labels.push({ text: c.name, kind: "element", element: c.name, place: placed(parts[0].from, [parts[0].x, ARM + 0.2, 0]) });
  }

  /** A joint of constant velocity: a bell, a hub, six balls in the plane between both shafts. */
  function bell(p, outerSide, innerSide, track, side, colour, grey, shaft) {
    const cup = new THREE.Group(), hub = new THREE.Group(), cage = new THREE.Group(), balls = new THREE.Group();
    cup.add(new THREE.Mesh(forms.revolved(forms.box(p.x - 0.17, p.x + 0.17, 0.22, 0.27), 48, 3, (k) => k % 24 < 13), material(colour)));
    cup.add(new THREE.Mesh(forms.tube(Math.min(p.x + side * FORK, p.x + side * 0.17), Math.max(p.x + side * FORK, p.x + side * 0.17), 0, 0.25), material(colour)));
    hub.add(new THREE.Mesh(forms.tube(p.x - 0.09, p.x + 0.09, 0, 0.1), material(grey)));
    hub.add(rod([p.x, 0, 0], [p.x - side * FORK, 0, 0], 0.06, material(grey)));
    outerSide.add(cup);
    innerSide.add(hub);
    const one = forms.revolved([...Array(9).keys()].map((k) => [-0.06 * Math.cos(Math.PI * k / 8), 0.06 * Math.sin(Math.PI * k / 8)]).reverse(), 16, 0);
    for (let k = 0; k < 6; k++) {
      const ball = new THREE.Mesh(one, material("#e0b44c")), a = Math.PI * k / 3;
      ball.position.set(0, 0.16 * Math.cos(a), 0.16 * Math.sin(a));
      balls.add(ball);
    }
    cage.add(balls);
    cage.position.set(p.x, 0, 0);
    cage.quaternion.slerp(p.whole, 0.5);
    p.from.add(cage);
    posed.push((time) => {
      const x = p.fork + run.angle(track, time);
      cup.rotation.x = balls.rotation.x = hub.rotation.x = p.roll + x;
      if (shaft) shaft.rotation.x = x;
    });
  }

  function converter(c) {
    const pump = group(c.pump), turbine = group(c.turbine), R = 1.22, r = 0.42, x = -0.62, n = 16;
    const bowl = (side, from, to) => {
      const cx = x + side * 0.02, mid = (R + r) / 2, half = (R - r) / 2, line = [];
      for (let k = 0; k <= n; k++) line.push([cx + side * 0.42 * Math.sin(Math.PI * k / n) * from, mid - half * Math.cos(Math.PI * k / n) * from]);
      for (let k = n; k >= 0; k--) line.push([cx + side * 0.42 * Math.sin(Math.PI * k / n) * to, mid - half * Math.cos(Math.PI * k / n) * to]);
      return side > 0 ? line.reverse() : line;
    };
    const pumpStuff = material(c.pump_colour, QUARTER), turbineStuff = material(c.turbine_colour, QUARTER);
    put(pump, forms.revolved(bowl(1, 1, 0.95)), pumpStuff);
    put(turbine, forms.revolved(bowl(-1, 0.93, 0.88)), turbineStuff);
    put(pump, forms.blades(31, x + 0.03, x + 0.36, r + 0.06, R - 0.06, 0.1), material(c.pump_colour, null, { side: THREE.DoubleSide }));
    put(turbine, forms.blades(29, x - 0.03, x - 0.33, r + 0.09, R - 0.09, -0.12), material(c.turbine_colour, null, { side: THREE.DoubleSide }));
    // cover: from the pump's outside around the turbine to the engine
    put(pump, forms.tube(x - 0.58, x + 0.04, R + 0.02, R + 0.05), pumpStuff);
    for (const g of forms.disc(x - 0.58, 0.04, 0.0, R + 0.05)) put(pump, g, pumpStuff);
    put(pump, forms.tube(x - 0.66, x - 0.57, R + 0.02, R + 0.12, 60), pumpStuff);
    put(pump, forms.tube(left, x - 0.58, 0, 0.09, 24), material(c.pump_colour));
    put(turbine, forms.revolved(forms.box(x - 0.12, 0.08, 0, 0.045), 24), material(c.turbine_colour));
    for (const g of forms.disc(x - 0.1, 0.03, 0.0, r + 0.05)) put(turbine, g, turbineStuff);
    put(machine, forms.tube(x - 0.06, x + 0.06, 0.2, r - 0.04), material(MUTED, QUARTER));
    if (c.lockup) {
      const stuff = [material(COLOURS[3], QUARTER), material(COLOURS[3], QUARTER)];
      packs.set(c.lockup, stuff);
      put(turbine, forms.tube(x - 0.545, x - 0.515, 0.55, R - 0.06), stuff[0]);
      labels.push({ text: c.lockup, kind: "element", element: c.lockup, place: [x - 0.53, R + 0.22, 0] });
    }
    labels.push({ text: c.name, kind: "set", place: [x + 0.15, R + 0.36, 0] });
  }

  function ends() {
    const low = (s) => s.tubes.filter(([r]) => r < 0.05);
    for (const shaft of content.shafts) for (const [, a, b] of low(shaft)) {
      const stuff = material(shaft.colour), where = group(shaft.track);
      if (b > content.length - 0.15) {
        put(where, forms.tube(content.length - 0.1, right, 0, 0.07, 24), stuff);
        put(where, forms.tube(right - 0.05, right, 0.07, 0.24), stuff);
      }
      if (a < 0.15 && !content.converter) put(where, forms.tube(left, 0.1, 0, 0.07, 24), stuff);
    }
  }

  function housing() {
    const r = content.housing, stuff = material("#9fb0c4", HALF, { transparent: true, opacity: 0.2, depthWrite: false });
    put(machine, forms.revolved(forms.box(-0.05, content.inside + 0.05, r, r + 0.02), 64, 0), stuff);
    put(machine, forms.revolved(forms.box(content.inside + 0.03, content.inside + 0.06, 0.12, r), 64, 0), stuff);
  }

  /** Pads that stand, and arms of the body that lean on them: by these its turn is seen. Sides and order along the axis are
   * those of the mounts (x along the shafts, y to the right seen from behind, z up), distances are not. */
  function mounts() {
    const list = content.body ? content.body.mounts : [], far = content.housing;
    const low = Math.min(...list.map((m) => m[1])), high = Math.max(...list.map((m) => m[1]));
    const arms = list.length ? list : content.body ? [["", 0, 0.5, 0], ["", 0, -0.5, 0]] : [];
    for (const [name, x, y] of arms) {
      const along = name ? 0.4 + (content.inside - 0.8) * (high > low ? (x - low) / (high - low) : 0.5) : middle;
      const side = Math.sign(y), foot = side ? [along, -0.55 * far, -side * (far + 0.45)] : [along, -far - 0.4, 0];
      const root_ = side ? [along, -0.35 * far, -side * 0.86 * far] : [along, -far + 0.1, 0];
      machine.add(rod(root_, foot, 0.09, material("#9fb0c4")));
      if (!name) continue;
      const pad = new THREE.Group(), drop = 0.17;
      put(pad, forms.revolved(forms.box(-0.11, 0.11, 0, 0.19), 24, 0), material("#3f4854"));
      pad.rotation.z = Math.PI / 2;
      pad.position.set(foot[0], foot[1] - drop, foot[2]);
      root.add(pad);
      labels.push({ text: name, kind: "set", place: [foot[0], foot[1] - drop - 0.5, foot[2]] });
    }
  }
  function rod(from, to, radius, stuff) {
    const way = new THREE.Vector3(...to).sub(new THREE.Vector3(...from));
    const mesh = new THREE.Mesh(forms.revolved(forms.box(0, way.length(), 0, radius), 12, 0), stuff);
    mesh.position.set(...from);
    mesh.quaternion.setFromUnitVectors(new THREE.Vector3(1, 0, 0), way.normalize());
    return mesh;
  }

  root.add(new THREE.HemisphereLight(0xffffff, 0x8a93a0, 2.0));
  const light = new THREE.DirectionalLight(0xffffff, 2.0);
  light.position.set(-2, 6, 6);
  root.add(light);
  bend();
  shafts();
  content.sets.forEach(wheelSet);
  content.couplings.forEach(coupling);
  if (content.converter) {
    before = hidden;
    converter(content.converter);
    before = null;
  }
  if (!bent.size) {
    ends();
    housing();
  }
  // the body turns about a point on its axis
  const body = new THREE.Group();
  machine.position.x = -middle;
  body.position.x = middle;
  body.add(machine);
  root.add(body);
  // (a housing stays as it is, what is behind it hangs down)
  if (bent.size && content.inside === content.length) level();
  mounts();

  /** Everything as it stands at a time. */
  function pose(time) {
    for (const x of turning) {
      const a = run.angle(x.track, time);
      if (!x.planet) x.group.rotation.x = a;
      else {
        const c = x.carrier < 0 ? 0 : run.angle(x.carrier, time);
        for (const p of x.all) {
          p.holder.position.set(0, p.r * Math.cos(p.a + c), p.r * Math.sin(p.a + c));
          p.mesh.rotation.x = p.phase + a;
        }
      }
    }
    for (const one of posed) one(time);
    for (const [name, stuff] of packs) {
      const colour = COLOURS[run.state(name, time)];
      stuff[0].color.set(colour);
      stuff[1].color.set(colour).multiplyScalar(0.72);
    }
    const turned = run.turned(time);
    // axes of the body (x back, y right, z up) in those of the picture (x right, y up, z to the viewer)
    if (turned) body.quaternion.set(turned.q.x, turned.q.z, -turned.q.y, turned.q.w);
    return turned ? turned.angle : null;
  }
  const open = (on) => hidden.forEach((mesh) => (mesh.visible = !on));
  return { root, pose, open, labels, left, right, middle, turning };
})();
