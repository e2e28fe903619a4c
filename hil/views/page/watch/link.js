"use strict";
// Connection to the server of the page: events in, commands out.
const link = (() => {
  const token = new URLSearchParams(location.search).get("token") || "";
  const where = (path) => `${path}?token=${encodeURIComponent(token)}`;

  /** handlers: event -> function of its data. "lost" when the server itself does not answer. */
  function listen(handlers) {
    const events = new EventSource(where("/events"));
    for (const [kind, handler] of Object.entries(handlers))
      if (kind !== "lost") events.addEventListener(kind, (event) => handler(JSON.parse(event.data)));
    events.onerror = () => handlers.lost();
  }

  /** Do something with the rig; the answer, {ok: false, error} when it is refused. */
  async function send(command) {
    try {
      const answer = await fetch(where("/command"), { method: "POST", body: JSON.stringify(command) });
      return await answer.json();
    } catch (error) {
      return { ok: false, error: `the page's server does not answer (${error.message})` };
    }
  }
  return { listen, send };
})();

/** A signal of a message: "C4.p" is message.C4.p, "a.b.c" message["a/b"].c; undefined when it was not sent. */
function value(message, name) {
  const dot = name.lastIndexOf(".");
  const group = dot < 0 ? message : message[name.slice(0, dot).replaceAll(".", "/")];
  return group === undefined ? undefined : group[name.slice(dot + 1)];
}
