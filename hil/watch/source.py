"""A rig as the page sees it: telemetry and control channel of the rig -> events for browsers.

Two threads: one passes telemetry on as it comes, at most RATE_HZ a second; the other asks the control channel for state
and numbers. A browser that does not keep up misses events and delays no one else.
"""

from __future__ import annotations

import json
import queue
import re
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgpack
import zmq

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.control.client import Client, ControlError
from torqueloop.hil.link.endpoints import CurveKeys
from torqueloop.hil.link.keys import client_keys
from torqueloop.hil.link.link_socket import ConnectedSocket
from torqueloop.hil.record.driven import save_driven
from torqueloop.hil.watch.trace import Trace

#: pictures a second, at most
RATE_HZ = 60.0
#: state of the rig, and its numbers with histograms, are asked for this often [s]
STATUS_S, STATS_S = 0.2, 0.5
#: without telemetry: values are asked for this often [s]
ASKED_S = 0.1
#: a rig that does not answer within this is gone; it is tried again this often [s]
TIMEOUT_S, AGAIN_S = 5.0, 1.0
#: of a scenario that is saved
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
#: events that wait for one browser
WAITING = 32
#: what a browser may ask for; reading goes by events
COMMANDS = frozenset({"arm", "disarm", "safe", "stop", "set", "override", "release", "checkpoint", "restore", "record",
                      "stop_recording"})  # fmt: skip
#: what the page does itself, from the run directory on this computer: write what was driven as a scenario
SAVE = "save_driven"
#: keys of those that have any
_KEYS = {
    "set": ["values"], "override": ["values"], "release": ["names"], "checkpoint": ["name"], "restore": ["name"],
    "record": ["name", "names"], "stop_recording": ["name"],
}  # fmt: skip

Event = tuple[str, bytes]


class Pace:
    """Lets at most so many a second through, on a grid of its own, so that 60 of 62 a second do not become 31."""

    def __init__(self, rate_hz: float) -> None:
        self._period_s, self._next_s = 1.0 / rate_hz, 0.0

    def due(self, now_s: float) -> bool:
        """One more may go now; after a pause the grid begins anew."""
        if now_s < self._next_s:
            return False
        self._next_s = max(self._next_s, now_s - self._period_s) + self._period_s
        return True


class Source:
    """Connection to one rig. `subscribe` gives a queue of events: hello, values, status, stats, gone."""

    def __init__(self, endpoint: str, key: Path | None = None, server_key: Path | None = None) -> None:
        self.endpoint = endpoint
        self._keys: CurveKeys | None = client_keys(key, server_key)
        self._lock = threading.Lock()
        self._client = Client(endpoint, TIMEOUT_S, self._keys)
        self._stop = threading.Event()
        self._queues: list[queue.Queue[Event]] = []
        self._known: dict[str, bytes] = {}
        self._telemetry = ""
        self._shown: list[str] = []
        self.hello: dict[str, Any] = {}
        self._trace: Trace | None = None
        #: rows of the CAN trace as they were last, for a browser that comes later
        self._rows: dict[tuple[str, str, bool], dict[str, Any]] = {}
        #: events that some browser has missed
        self.missed: int = 0
        self._threads = [threading.Thread(target=body, name=f"watch-{body.__name__.strip('_')}", daemon=True)
                         for body in (self._ask, self._pass_on)]  # fmt: skip

    def start(self) -> None:
        """Connect; ControlError when there is no rig."""
        self._greet()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End both threads."""
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(2 * TIMEOUT_S)
        self._client.close()

    # --- browsers ---------------------------------------------------------------------------------------------------
    def subscribe(self) -> queue.Queue[Event]:
        """Events from now on, the last of each kind first."""
        events: queue.Queue[Event] = queue.Queue(WAITING)
        for kind in ("hello", "status", "stats", "values", "trace", "gone"):
            if kind in self._known:
                events.put_nowait((kind, self._known[kind]))
        self._queues = [*self._queues, events]
        return events

    def leave(self, events: queue.Queue[Event]) -> None:
        """No more events for this queue."""
        self._queues = [q for q in self._queues if q is not events]

    def command(self, kind: str, names: tuple[str, ...], values: Mapping[str, float], name: str) -> dict[str, Any]:
        """Do what a browser asks for, through the control channel and its checks; ControlError when refused."""
        if kind == SAVE:
            return self._save(name)
        if kind not in COMMANDS:
            allowed = ", ".join(sorted(COMMANDS | {SAVE}))
            raise ControlError(f"{kind[:40]!r} is no command; allowed: {allowed}", "kind")
        given: dict[str, Any] = {"names": names, "values": dict(values), "name": name}
        return self._asked(kind, **{key: given[key] for key in _KEYS.get(kind, ())})

    def _save(self, name: str) -> dict[str, Any]:
        """What was driven so far, as a scenario file of this name in the run directory."""
        folder = Path(self.hello.get("folder", ""))
        if not NAME.fullmatch(name):
            raise ControlError(f"{name[:40]!r} is no name of a file; allowed: letters, digits, _ and -", "name")
        if not (folder / "run.json").is_file():
            raise ControlError("the rig runs on another computer: use `torqueloop export DIR drive.toml` there")
        target = folder / f"{name}.toml"
        if target.exists():
            raise ControlError(f"{target} exists; choose another name", "name")
        driven = save_driven(folder, target)
        return {"file": str(target), "seconds": driven.seconds, "changes": driven.changes}

    # --- threads ----------------------------------------------------------------------------------------------------
    def _asked(self, kind: str, **keys: Any) -> dict[str, Any]:
        with self._lock:
            return self._client.ask(kind, **keys)

    def _greet(self) -> None:
        self.hello = self._asked("hello")
        layout = self._asked("layout")["layout"]
        keys = ("name", "unit", "kind", "writable", "allowed")
        names = [{key: n[key] for key in keys} for n in self._asked("list")["names"]]
        self._telemetry = self.hello.get("telemetry", "")
        mine = [s for s in layout["signals"].values() if s]
        known = {n["name"] for n in names}
        mine += [f"{e}.{part}" for e in layout["elements"] for part in ("mode", "p", "w_rel", "tau")]
        mine += [m["signal"] for lever in layout["levers"] for m in lever["members"] if m["signal"]]
        self._shown = [name for name in dict.fromkeys(mine) if name in known]
        self._tell("hello", json.dumps({"hello": self.hello, "layout": layout, "names": names}).encode())
        self._known.pop("gone", None)
        self._open_trace(layout["databases"])

    def _open_trace(self, databases: Mapping[str, str]) -> None:
        self._trace, self._rows = None, {}
        folder = Path(self.hello.get("folder", ""))
        error = "" if databases else "this rig has no bus"
        if databases and not (folder / "bus").is_dir():
            error = f"the trace is read from {folder / 'bus'}, which is not on this computer or not recorded"
        try:
            self._trace = None if error else Trace(folder, databases)
        except (TorqueloopError, OSError) as failed:
            error = str(failed)
        self._tell("trace", json.dumps({"rows": [], "left_out": 0, "error": error}).encode())

    def _look_at_buses(self) -> None:
        trace = self._trace
        if trace is None or not self._queues:
            return
        rows, error = [], ""
        try:
            rows = trace.rows()
        except (TorqueloopError, OSError) as failed:
            self._trace, error = None, str(failed)
        self._rows |= {(row["bus"], row["id"], row["sent"]): row for row in rows}
        rest = {"left_out": trace.left_out, "error": error}
        self._tell("trace", json.dumps({"rows": rows, **rest}).encode())
        self._known["trace"] = json.dumps({"rows": list(self._rows.values()), **rest}).encode()

    def _ask(self) -> None:
        """State, numbers; and values where the rig has no telemetry."""
        next_status = next_stats = 0.0
        while not self._stop.wait(0.02):
            now = time.monotonic()
            try:
                if "gone" in self._known:
                    self._greet()
                if now >= next_status:
                    next_status = now + STATUS_S
                    self._tell("status", json.dumps(self._asked("status")).encode())
                if now >= next_stats:
                    next_stats = now + STATS_S
                    self._look_at_buses()
                    self._tell("stats", json.dumps(self._asked("stats")["stats"]).encode())
            except (TorqueloopError, zmq.ZMQError) as error:
                self._tell("gone", json.dumps({"error": str(error)}).encode())
                self._stop.wait(AGAIN_S)

    def _pass_on(self) -> None:
        """Telemetry, newest first when there is more than a browser can show."""
        while not self._stop.is_set():
            try:
                if self._telemetry:
                    self._subscribed(self._telemetry)
                elif "gone" not in self._known:
                    answer = self._asked("get", names=tuple(self._shown))
                    self._values(answer["tick"] * float(self.hello["tick_s"]), answer["values"])
                    self._stop.wait(ASKED_S)
                else:
                    self._stop.wait(ASKED_S)
            except (TorqueloopError, zmq.ZMQError):
                self._stop.wait(AGAIN_S)

    def _subscribed(self, endpoint: str) -> None:
        socket = ConnectedSocket(zmq.SUB, endpoint, self._keys, max_bytes=1 << 20)
        try:
            socket.raw.subscribe(b"")
            pace = Pace(RATE_HZ)
            while not self._stop.is_set() and self._telemetry == endpoint:
                if not socket.raw.poll(100):
                    continue
                parts = socket.raw.recv_multipart()
                if len(parts) == 3 and pace.due(time.monotonic()):
                    self._tell("values", parts[1] if parts[1][:1] == b"{" else _as_json(parts[1]))
        finally:
            socket.close()

    def _values(self, t: float, values: Mapping[str, float]) -> None:
        message: dict[str, Any] = {"t": t}
        for name, x in values.items():
            group, _, last = name.rpartition(".")
            message.setdefault(group.replace(".", "/"), {})[last] = x
        self._tell("values", json.dumps(message).encode())

    def _tell(self, kind: str, data: bytes) -> None:
        self._known[kind] = data
        for events in self._queues:
            try:
                events.put_nowait((kind, data))
            except queue.Full:
                self.missed += 1


def _as_json(payload: bytes) -> bytes:
    return json.dumps(msgpack.unpackb(payload)).encode()
