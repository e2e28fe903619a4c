"use strict";
// Recordings of their own: begun and ended here, kept in the run directory.
const recordings = (() => {
  const list = element("recordings");
  let drawn = "";

  function say(answer, done) {
    text("recorded", answer.ok ? done(answer) : answer.error);
    element("recorded").className = answer.ok ? "" : "bad";
  }

  async function stop(name) {
    say(await link.send({ kind: "stop_recording", name }), (a) => `${a.folder}: ${a.samples} samples, ticks ${a.first_tick} to ${a.last_tick}`);
  }

  element("record").addEventListener("submit", async (event) => {
    event.preventDefault();
    const names = element("record-signals").value.split(/[\s,]+/).filter(Boolean);
    const answer = await link.send({ kind: "record", name: element("record-name").value.trim(), names });
    say(answer, (a) => `${a.folder}: ${a.signals} signals from now on`);
    if (answer.ok) element("record-name").value = "";
  });

  function show(known) {
    const entries = Object.entries(known || {});
    const key = JSON.stringify(entries.map(([name, r]) => [name, r.running]));
    if (key !== drawn) {
      drawn = key;
      const focused = document.activeElement?.dataset?.recording;
      list.replaceChildren(...entries.reverse().map(([name, r]) => {
        const line = document.createElement("li"), words = document.createElement("span");
        line.dataset.name = name;
        line.append(words);
        if (r.running) {
          const button = document.createElement("button");
          button.type = "button";
          button.dataset.recording = name;
          button.textContent = `Stop ${name}`;
          button.addEventListener("click", () => stop(name));
          line.append(button);
        }
        return line;
      }));
      if (focused) list.querySelector(`[data-recording="${focused}"]`)?.focus();
    }
    for (const line of list.children) {
      const r = known[line.dataset.name];
      text(line.firstChild, `${line.dataset.name}: ${r.samples} samples, ${(r.bytes / 1e6).toFixed(1)} MB${r.running ? "" : ", closed"}${r.cause ? ` – ${r.cause}` : ""}`);
      line.className = r.cause ? "bad" : r.running ? "going" : "";
    }
  }
  return { show };
})();
