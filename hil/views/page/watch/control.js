"use strict";
// What may be done with the rig: its states, values by name, faults.
const control = (() => {
  let names = new Map();

  function say(answer, done) {
    text("answer", answer.ok ? done : answer.error);
    element("answer").className = answer.ok ? "" : "bad";
  }

  function sure(question) {
    const dialog = element("sure");
    text("question", question);
    dialog.returnValue = "no";
    dialog.showModal();
    return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
  }

  const QUESTIONS = { stop: "End the run?", safe: "Latch the safe state? It is not left during a run." };
  for (const button of document.querySelectorAll("[data-command]"))
    button.addEventListener("click", async () => {
      const kind = button.dataset.command;
      if (QUESTIONS[kind] && !(await sure(QUESTIONS[kind]))) return;
      say(await link.send({ kind }), `${button.textContent}: done`);
    });

  function set(known) {
    names = new Map(known.filter((n) => n.writable).map((n) => [n.name, n]));
    element("names").replaceChildren(...[...names.values()].filter((n) => n.kind !== "fault").map((n) => {
      const option = document.createElement("option");
      option.value = n.name;
      return option;
    }));
    element("faults").replaceChildren(...[...names.values()].filter((n) => n.kind === "fault").map((n) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = n.name;
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", async () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        const answer = await link.send({ kind: "set", values: { [n.name]: on ? 1 : 0 } });
        if (answer.ok) button.setAttribute("aria-pressed", String(on));
        say(answer, `${n.name} ${on ? "acts" : "is over"} from tick ${answer.tick} on`);
      });
      return button;
    }));
  }

  element("name").addEventListener("input", () => {
    const n = names.get(element("name").value);
    text("allowed", n ? `${n.writable === "override" ? "held until released" : "stays"}; allowed: ${n.allowed} (SI${n.unit && n.unit !== "1" ? `, ${n.unit}` : ""})` : "");
  });
  element("write").addEventListener("submit", async (event) => {
    event.preventDefault();
    const name = element("name").value, number = Number(element("value").value.replace(",", "."));
    const known = names.get(name);
    if (!known) return say({ ok: false, error: `${name} may not be written` });
    if (!Number.isFinite(number)) return say({ ok: false, error: `${element("value").value} is no number` });
    const answer = await link.send({ kind: known.writable, values: { [name]: number } });
    say(answer, `${name} = ${number} from tick ${answer.tick} on`);
  });
  element("release").addEventListener("click", async () => say(await link.send({ kind: "release", names: [] }), "all released"));

  function state(status) {
    const held = Object.entries(status.held || {}).map(([name, x]) => `${name} = ${Number(x.toPrecision(6))}`);
    text("held", held.length ? `held: ${held.join(", ")}` : "");
  }
  return { set, state };
})();
