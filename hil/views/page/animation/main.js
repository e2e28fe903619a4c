"use strict";
// The page: time, keys, looks, labels. `animation` is what tests and consoles may use.
const animation = (() => {
  const { content } = run;
  const canvas = element("view"), first = run.t[0], last = run.t[run.t.length - 1];
  let time = first, playing = false, stale = true, before = 0, renderer = null, camera = null, orbit = null;
  let frames = 0, spent = 0, between = 16, coarse = 1, slow = false, moving = false, quiet = -1e9;

  // --- picture
  const LOOKS = { oblique: [-0.5, 0.42, 1.0], side: [0, 0.32, 1], front: [-1, 0.16, 0.3] };
  function look(name) {
    if (!camera) return;
    scene.open(name === "front");
    const span = scene.right - scene.left, aspect = canvas.clientWidth / Math.max(1, canvas.clientHeight);
    const wide = name === "front" ? 4.2 : span * (name === "side" ? 1.0 : 0.98), low = content.body ? 0.55 : 0, high = 4.3 + 2.4 * low;
    const far = Math.max(wide / aspect, high) / 2 / Math.tan(camera.fov * Math.PI / 360) + (name === "front" ? 1.2 : 0.6);
    const [x, y, z] = LOOKS[name], l = Math.hypot(x, y, z);
    orbit.target.set(scene.middle, -low, 0);
    camera.position.set(scene.middle + far * x / l, far * y / l - low, far * z / l);
    orbit.update();
    stale = true;
  }
  function begin() {
    renderer = new THREE.WebGLRenderer({ canvas, antialias: !(slow = software()), alpha: true });
    renderer.localClippingEnabled = true;
    camera = new THREE.PerspectiveCamera(30, 1, 0.1, 100);
    orbit = new THREE.OrbitControls(camera, canvas);
    orbit.addEventListener("change", () => (stale = true));
    new ResizeObserver(fit).observe(element("picture"));
    fit();
    look("oblique");
  }
  /** Drawn by the processor: many samples a pixel would cost more than they show. */
  function software() {
    const gl = document.createElement("canvas").getContext("webgl2");
    const info = gl && gl.getExtension("WEBGL_debug_renderer_info");
    return !!info && /swiftshader|llvmpipe|software/i.test(gl.getParameter(info.UNMASKED_RENDERER_WEBGL));
  }
  /** While it plays the picture gets coarser where frames take long; a standing one is always sharp. */
  function pace(took) {
    between = 0.8 * between + 0.2 * took;
    const wanted = between > 45 ? Math.max(0.35, coarse * 0.85) : between < 20 ? Math.min(1, coarse * 1.1) : coarse;
    if (Math.abs(wanted - coarse) > 0.03 || (wanted === 1 && coarse < 1)) {
      coarse = wanted;
      between = 30;
      fit();
    }
  }
  function fit() {
    const { clientWidth: w, clientHeight: h } = element("picture");
    renderer.setPixelRatio(Math.min(window.devicePixelRatio || 1, 2) * (moving ? coarse : slow ? 1.6 : 1));
    renderer.setSize(w, h, false);
    camera.aspect = w / Math.max(1, h);
    camera.updateProjectionMatrix();
    stale = true;
  }
  const spans = scene.labels.map((label) => {
    const span = document.createElement("span");
    span.textContent = label.text;
    span.className = label.kind;
    element("labels").append(span);
    return span;
  });
  function placeLabels() {
    const at = new THREE.Vector3(), { clientWidth: w, clientHeight: h } = canvas;
    scene.labels.forEach((label, k) => {
      at.set(...label.place).project(camera);
      spans[k].style.transform = `translate(${(at.x + 1) * w / 2}px,${(1 - at.y) * h / 2}px) translate(-50%,-100%)`;
      if (label.element) spans[k].className = `element ${run.STATES[run.state(label.element, time)]}`;
    });
  }

  // --- beside it
  const chips = new Map(run.states.map((s) => {
    const chip = document.createElement("li");
    element("elements").append(chip);
    return [s.name, chip];
  }));
  const rows = content.tracks.map((x, k) => {
    if (x.name.includes("/")) return null;
    const tr = document.createElement("tr"), th = document.createElement("th"), td = document.createElement("td"), dot = document.createElement("i");
    dot.style.background = (content.shafts.find((s) => s.track === k) || {}).colour || "#888";
    th.scope = "row";
    th.append(dot, x.name);
    tr.append(th, td);
    element("speeds").tBodies[0].append(tr);
    return td;
  });
  function tell() {
    element("clock").textContent = `${time.toFixed(4)} s`;
    element("time").value = time;
    element("time").setAttribute("aria-valuetext", `${time.toFixed(3)} seconds`);
    element("gear").textContent = run.gear(time);
    element("gear").setAttribute("aria-label", `gear ${run.gear(time)}`);
    for (const [named, chip] of chips) {
      const state = run.STATES[run.state(named, time)];
      if (chip.className !== state) {
        chip.className = state;
        chip.title = state;
        chip.textContent = named;
        chip.setAttribute("aria-label", `${named} ${state}`);
      }
    }
    rows.forEach((td, k) => {
      if (td) td.textContent = `${(run.speed(k, time) * RPM).toFixed(0)} 1/min`;
    });
    strobe();
  }
  /** Where teeth pass faster than frames come they seem to stand, or to go back: said, with the speed that shows them. */
  function strobe() {
    let most = 0;
    for (const set of content.sets) for (const w of set.wheels)
      if (w.track >= 0) most = Math.max(most, Math.abs(run.speed(w.track, time)) * w.teeth / (2 * Math.PI) / 60);
    const slowest = 0.45 / most, hint = element("strobe");
    hint.hidden = !(rate() * most > 0.5);
    if (!hint.hidden) hint.textContent = `teeth pass faster than frames: true motion below ${slowest.toPrecision(1)}×; bright marks show the turning`;
  }

  // --- time
  const rate = () => Number(element("rate").value);
  function seek(to) {
    time = Math.min(last, Math.max(first, to));
    stale = true;
  }
  function play(on) {
    playing = on;
    if (playing && time >= last) time = first;
    element("play").textContent = playing ? "❚❚" : "▶";
    element("play").setAttribute("aria-label", playing ? "pause" : "play");
    before = performance.now();
    stale = true;
  }
  function draw() {
    const turned = scene.pose(time), said = element("turn");
    said.hidden = turned === null;
    if (turned !== null)
      said.textContent = `${content.body.name} turned by ${(turned * 180 / Math.PI).toFixed(3)}°, drawn ${content.body.factor} times`;
    if (renderer) {
      const start = performance.now();
      renderer.render(scene.root, camera);
      frames++;
      spent = 0.9 * spent + 0.1 * (performance.now() - start);
      if (!element("labels").hidden) placeLabels();
    }
    tell();
    charts.show(time);
  }
  function frame(clock) {
    if (playing) {
      // a frame that was late is not caught up: no jumps
      time += Math.min(0.1, Math.max(0, clock - before) / 1000) * rate();
      if (time >= last) {
        time = last;
        play(false);
      }
      stale = true;
    }
    const still = !playing && !stale;
    if (!still) quiet = clock;
    // a picture that is moved, by time or by hand, is as coarse as it must be; one that stands is drawn once more, sharp
    if (renderer && moving !== (clock - quiet < 300)) {
      moving = !moving;
      fit();
    } else if (renderer && moving && !still) pace(clock - before);
    before = clock;
    if (stale) {
      stale = false;
      draw();
    }
    requestAnimationFrame(frame);
  }
  function faster(step) {
    const box = element("rate");
    box.selectedIndex = Math.min(box.length - 1, Math.max(0, box.selectedIndex + step));
    stale = true;
  }
  function next(step) {
    const begins = [first, ...content.shifts.map((s) => s[1]), last];
    const found = step > 0 ? begins.find((t) => t > time + 1e-6) : begins.findLast((t) => t < time - 1e-6);
    if (found !== undefined) seek(found);
  }

  // --- hands
  Object.assign(element("time"), { min: first, max: last });
  element("time").addEventListener("input", () => seek(Number(element("time").value)));
  element("play").addEventListener("click", () => play(!playing));
  element("rate").addEventListener("change", () => (stale = true));
  element("named").addEventListener("change", () => ((element("labels").hidden = !element("named").checked), (stale = true)));
  element("near").addEventListener("change", () => charts.show(time, element("near").checked));
  element("views").addEventListener("click", (e) => e.target.dataset.view && look(e.target.dataset.view));
  content.shifts.forEach(([shift, t]) => element("shift").add(new Option(`${shift} at ${t.toFixed(2)} s`, t)));
  element("shift").addEventListener("change", () => seek(element("shift").value === "" ? first : Number(element("shift").value)));
  charts.onSeek(seek);
  for (const note of content.notes) element("notes").append(Object.assign(document.createElement("li"), { textContent: note }));
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.altKey || e.metaKey || ["SELECT", "TEXTAREA"].includes(e.target.tagName)) return;
    const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (e.key === " ") {
      if (e.target.tagName === "BUTTON" || e.target.type === "checkbox") return;
      play(!playing);
    } else if (step) e.shiftKey ? next(step) : seek(time + step * rate() * 0.1);
    else if (e.key === "+" || e.key === "-") faster(e.key === "+" ? 1 : -1);
    else if ("123".includes(e.key)) look(["oblique", "side", "front"][e.key - 1]);
    else return;
    e.preventDefault();
  });

  try {
    begin();
  } catch (error) {
    renderer = null;
    element("sorry").hidden = false;
    element("sorry").textContent = `This browser draws no WebGL (${error.message}): the plots work, the picture does not.`;
  }
  if (content.shifts.length) seek(content.shifts[content.shifts.length - 1][1] - 0.02);
  requestAnimationFrame(frame);
  return { seek, play, look, get time() { return time; }, get frames() { return frames; }, get spent() { return spent; }, get info() { return renderer.info.render; }, get coarse() { return coarse; }, draw };
})();
