"use strict";
// Driving by hand: pedal, brake, kick-down and lever by mouse and keys, as signals that are held.
const drive = (() => {
  const STEP_S = 0.05, FULL_S = 0.4;         // time between two commands; a key takes a pedal from 0 to 1 in FULL_S
  const KEYS = { w: "pedal", ArrowUp: "pedal", s: "brake", ArrowDown: "brake", k: "kickdown" };
  const place = element("drive"), wheel = element("wheel"), pressed = new Set();
  let known = new Set(), words = [], wanted = {}, sent = {}, active = false, busy = false, now = null;

  const has = (name) => known.has(`driver.${name}`);
  const feet = () => ["pedal", "brake"].filter(has);

  /** What is to be held now; the switches follow the pedals. */
  function want(name, x) {
    if (!active || !has(name)) return;
    wanted[name] = x;
    if (name === "brake" && has("brake_switch")) wanted.brake_switch = Number(x > 0);
    show();
  }

  function show() {
    for (const name of feet()) {
      const field = element(`drive-${name}`), x = wanted[name] ?? 0;
      if (Number(field.value) !== x) field.value = x;
      text(field.nextElementSibling, `${Math.round(100 * x)} %`);
    }
    for (const button of element("drive-lever").children) button.setAttribute("aria-pressed", String(active && Number(button.dataset.value) === wanted.lever));
    element("kickdown").setAttribute("aria-pressed", String(active && wanted.kickdown === 1));
  }

  const answer = (said, bad) => { text("driven", said); element("driven").className = bad ? "bad" : ""; };

  /** Send what has changed; one command on its way at a time, so that a slow link never has old ones waiting. */
  async function tell() {
    const values = Object.fromEntries(Object.entries(wanted).filter(([name, x]) => sent[name] !== x).map(([name, x]) => [`driver.${name}`, x]));
    if (!active || busy || !Object.keys(values).length) return;
    busy = true;
    const before = { ...wanted }, done = await link.send({ kind: "override", values });
    busy = false;
    if (done.ok) sent = before;
    else { give(); answer(done.error, true); }
  }

  function turn() {
    for (const name of feet()) {
      const down = [...pressed].some((key) => KEYS[key] === name);
      // a foot goes down while its key is pressed and comes up when it is released; a slider stays where it is
      if (down || returning.has(name)) {
        const x = Math.min(1, Math.max(0, (wanted[name] ?? 0) + (down ? 1 : -1) * STEP_S / FULL_S));
        want(name, Number(x.toFixed(3)));
        if (!down && x <= 0) returning.delete(name);
      }
    }
    tell();
  }
  const returning = new Set();

  function kick(on) {
    if (!has("kickdown")) return;
    if (on) { returning.delete("pedal"); want("pedal", 1); }
    else returning.add("pedal");
    want("kickdown", Number(on));
  }

  /** Hold all signals of the driver at their values now; the kick-down is off until it is pressed here. */
  function take() {
    if (!now) return answer("no values have come yet", true);
    wanted = {};
    sent = {};
    for (const name of ["pedal", "brake", "brake_switch", "kickdown", "lever"]) {
      const x = value(now, `driver.${name}`);
      if (has(name)) wanted[name] = name === "kickdown" ? 0 : x ?? 0;
    }
    active = true;
    state();
    answer("You drive.");
  }

  async function give() {
    const names = Object.keys(sent).map((name) => `driver.${name}`);
    active = false;
    pressed.clear();
    returning.clear();
    state();
    if (!names.length) return;
    const done = await link.send({ kind: "release", names });
    answer(done.ok ? "The rig's own driver drives again." : done.error, !done.ok);
  }

  function state() {
    wheel.setAttribute("aria-pressed", String(active));
    text(wheel, active ? "Give the wheel back" : "Take the wheel");
    for (const field of place.querySelectorAll("input[type=range], #drive-lever button, #kickdown")) field.disabled = !active;
    show();
  }

  /** names: what may be held. lever: word of each number. */
  function set(names, lever) {
    known = new Set(names.filter((n) => n.writable === "override").map((n) => n.name));
    active = false;
    place.hidden = !has("pedal");
    for (const name of ["pedal", "brake"]) element(`drive-${name}`).closest("label").hidden = !has(name);
    element("kickdown").hidden = !has("kickdown");
    words = has("lever") ? Object.entries(lever || {}) : [];
    element("drive-lever").replaceChildren(...words.map(([number, word]) => {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", textContent: word });
      button.dataset.value = number;
      button.addEventListener("click", () => want("lever", Number(number)));
      return button;
    }));
    state();
  }

  for (const name of ["pedal", "brake"]) element(`drive-${name}`).addEventListener("input", (event) => { returning.delete(name); want(name, Number(event.target.value)); });
  for (const [kind, on] of [["pointerdown", true], ["pointerup", false], ["pointerleave", false], ["pointercancel", false]])
    element("kickdown").addEventListener(kind, () => { if (on || wanted.kickdown === 1) kick(on); });
  wheel.addEventListener("click", () => (active ? give() : take()));

  const typing = (event) => event.target.matches("input:not([type=range]), textarea, select") || event.ctrlKey || event.metaKey || event.altKey;
  const key = (event) => (event.key.length === 1 ? event.key.toLowerCase() : event.key);
  document.addEventListener("keydown", (event) => {
    if (!active || typing(event)) return;
    const name = KEYS[key(event)], word = words.find(([, w]) => w.toLowerCase() === key(event));
    if (!name && !word) return;
    event.preventDefault();
    if (event.repeat) return;
    if (word && !name) return want("lever", Number(word[0]));
    pressed.add(key(event));
    if (name === "kickdown") kick(true);
  });
  document.addEventListener("keyup", (event) => {
    if (!pressed.delete(key(event))) return;
    const name = KEYS[key(event)];
    if (name === "kickdown") kick(false);
    else returning.add(name);
  });
  // a key that is released in another window is never seen: both feet come up
  addEventListener("blur", () => { for (const k of pressed) returning.add(KEYS[k]); if (pressed.has("k")) kick(false); pressed.clear(); });
  setInterval(turn, 1000 * STEP_S);

  element("save-driven").addEventListener("submit", async (event) => {
    event.preventDefault();
    const done = await link.send({ kind: "save_driven", name: element("driven-name").value.trim() });
    answer(done.ok ? `${done.file}: ${done.changes} changes in ${done.seconds.toFixed(1)} s. Drive it again: torqueloop scenario ${done.file}` : done.error, !done.ok);
  });
  return { set, take: (message) => { now = message; } };
})();
