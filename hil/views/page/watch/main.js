"use strict";
// Puts the parts together: events into pictures, at most one drawing a frame of the screen.
(() => {
  let keys = {}, words = {}, latest = null, drawn = null, gone = false;
  window.torqueloop = { pictures: 0, messages: 0 };   // what tests count

  function begin({ hello, layout, names }) {
    gone = false;
    text("rig", hello.rig);
    document.title = `${hello.rig} – torqueloop`;
    keys = layout.signals;
    words = layout.words;
    const known = new Set(names.map((n) => n.name)), has = (name) => known.has(name);
    gearbox.set(layout, has);
    trace.clear();
    control.set(names);
    drive.set(names, words.lever);
    signals.set(names.filter((n) => n.kind === "signal"));
    live.clear();
    chosen.set(names.filter((n) => n.kind === "signal"));
    const line = (label, name, factor = 1) => ({ label, of: (m) => { const x = value(m, name); return x === undefined ? null : x * factor; } });
    live.add("speeds", [["engine", keys.engine], ["turbine", keys.turbine], ["output", keys.output]]
      .filter(([, name]) => name).map(([label, name]) => line(label, name, RPM)), "rpm");
    live.add("pressures", layout.elements.filter((e) => has(`${e}.p`)).map((e) => line(e, `${e}.p`, 1e-5)), "bar");
    live.add("car", [...(keys.speed ? [line("v [m/s]", keys.speed)] : []), ...(keys.acceleration ? [line("a [m/s²]", keys.acceleration)] : [])], "");
  }

  function status(s) {
    const badge = element("state");
    const said = s.safe ? "safe state" : s.finished ? "ended" : s.state;
    text(badge, said);
    badge.className = `badge ${s.safe ? "safe" : s.state === "armed" ? "run" : "wait"}`;
    const cause = element("cause");
    cause.hidden = !s.safe;
    text(cause, s.safe ? `Safe state: ${s.cause}` : "");
    control.state(s);
    recordings.show(s.recordings);
  }

  function lost(said) {
    gone = true;
    text("state", said);
    element("state").className = "badge wait";
  }

  function digits(message) {
    const of = (key) => (keys[key] ? value(message, keys[key]) : undefined), number = (x, factor, n = 0) => (x === undefined ? "–" : (x * factor).toFixed(n));
    const gear = of("gear"), target = of("target");
    const name = (key, x) => (x === undefined ? "–" : words[key]?.[x] ?? String(x));
    text("gear", name("gear", gear));
    text("target", target !== undefined && target !== gear ? `→ ${name("target", target)}` : "");
    text("speed", number(of("speed"), 3.6, 1));
    text("engine", number(of("engine"), RPM));
    text("lever", name("lever", of("lever")));
    element("pedal").value = of("pedal") ?? 0;
    element("brake").value = of("brake") ?? 0;
    text("time", `${message.t.toFixed(2)} s`);
  }

  function frame() {
    if (latest !== drawn && !gone) {
      drawn = latest;
      digits(latest);
      live.draw();
      gearbox.draw(latest);
      signals.draw(latest);
      window.torqueloop.pictures += 1;
    }
    requestAnimationFrame(frame);
  }
  requestAnimationFrame(frame);

  link.listen({
    hello: begin, status,
    stats: (stats) => clock.show(stats),
    trace: (news) => trace.take(news),
    values: (message) => { latest = message; live.take(message); drive.take(message); window.torqueloop.messages += 1; },
    gone: ({ error }) => lost(`rig gone`) || text("answer", error),
    lost: () => lost("page server gone"),
  });
})();
