"""Telemetry: decimated signals of a running rig on one ZeroMQ PUB socket, in the form PlotJuggler reads. real-time: no.

    part 1   topic      name of the rig
    part 2   payload    JSON or MessagePack: {"t": 12.34, "engine": {"w": 210.5, "tau": 90.1}, "car": {"v": 11.0}, ...}
    part 3   time       as text [s]: since the epoch on the real clock, simulated on the virtual clock

A dot in a signal's name opens a group ("/engine/w" in PlotJuggler); numbers that are not finite are left out (JSON has
none). Values and times are those of the record that the tick wrote for the recorder: one tick's, not the moment of
sending. The recorder's thread passes on the records that it has read; the tick does nothing for telemetry. While nobody
subscribes nothing is encoded. A subscriber that stops reading fills its own queue, then loses messages (ZeroMQ drops
them); what this thread cannot keep up with is left out and counted.
"""

from __future__ import annotations

import fnmatch
import json
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np
import zmq
from numpy.typing import NDArray

from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.clock.clock import now_ns, now_wall_ns
from torqueloop.hil.link.endpoints import CurveKeys
from torqueloop.hil.link.front import FrontSocket
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.results.links import TelemetryStats
from torqueloop.hil.rig.devices.device import RigPlan

#: messages that wait for one subscriber: 10 s at 60 Hz
QUEUE = 600
#: drained blocks that wait for this thread, each of one look of the recorder (10 ms to 50 ms)
BLOCKS = 64
#: who subscribes is looked at this often while nothing comes [s]
LOOK_S = 0.1


class Telemetry(threading.Thread):
    """Publishes the recorded signals of a rig until stop(). `endpoint` holds the port that was taken."""

    def __init__(self, plan: RigPlan, endpoint: str, keys: CurveKeys | None, real: bool) -> None:
        super().__init__(name="telemetry", daemon=True)
        c = plan.config.telemetry
        self._columns, self._groups = _chosen([name for name, _ in plan.recorded], c.signals, str(plan.path))
        self._dtype = signal_dtype(len(plan.recorded))
        self._tick_s, self._pack = plan.config.clock.tick_s, _pack_json if c.format == "json" else _pack_msgpack
        self._every = max(1, round(1.0 / (c.rate_hz * self._tick_s)))
        self._epoch_ns = now_wall_ns() - now_ns() if real else None
        self._topic = plan.config.rig.name.encode()
        self._socket = FrontSocket(zmq.XPUB, endpoint, keys, QUEUE, 1024)
        self.endpoint: Any = self._socket.endpoint
        self._blocks: deque[bytes] = deque()
        self._news, self._stop_asked = threading.Event(), threading.Event()
        #: tick of the next sample
        self._next = -1
        self._subscribed: frozenset[bytes] = frozenset()
        #: starts of the socket's process that the subscriptions belong to
        self._starts = self._socket.starts
        self.sent: int = 0
        self.left_out: int = 0
        self.failure: str = ""

    def tap(self, data: bytes) -> None:
        """Whole records, as the recorder has drained them; in its thread."""
        if not self._subscribed:
            return
        if len(self._blocks) >= BLOCKS:
            self.left_out += 1
            return
        self._blocks.append(data)
        self._news.set()

    def run(self) -> None:
        """Until stop(): what was drained, decimated, sent."""
        try:
            while not self._stop_asked.is_set():
                self._news.wait(LOOK_S)
                self._news.clear()
                self.step()
        except Exception as error:  # telemetry that dies costs telemetry, not the run
            self.failure = f"{type(error).__name__}: {error}"
        finally:
            self._subscribed = frozenset()
            self._socket.close()

    def step(self) -> None:
        """Who has come or gone; then what was drained so far."""
        self._look()
        while self._blocks:
            self._send(np.frombuffer(self._blocks.popleft(), self._dtype))

    @property
    def subscribed(self) -> bool:
        """There is a subscriber."""
        return bool(self._subscribed)

    def _look(self) -> None:
        """New and ended subscriptions: XPUB reports each one once, with a byte 1 or 0 in front."""
        self._socket.wait(0)
        if self._starts != self._socket.starts:
            # its subscribers subscribe again
            self._starts, self._subscribed = self._socket.starts, frozenset()
        while (parts := self._socket.receive()) is not None:
            word = parts[0]
            # what is no beginning of the topic subscribes to nothing, and is not stored
            if not self._topic.startswith(word[1:]):
                continue
            self._subscribed = (self._subscribed | {word[1:]}) if word[:1] == b"\x01" else self._subscribed - {word[1:]}

    def _send(self, records: NDArray[Any]) -> None:
        for record in records:
            tick = int(record["tick"])
            # on the grid from the first one on, also behind a checkpoint that the run went back to
            if self._next < 0 or tick < self._next - self._every:
                self._next = -(-tick // self._every) * self._every
            if tick < self._next:
                continue
            self._next = (tick // self._every + 1) * self._every
            t = (tick + 1) * self._tick_s
            stamp = t if self._epoch_ns is None else (int(record["t_wall_ns"]) + self._epoch_ns) * 1e-9
            payload = self._pack(t, record["out"][self._columns], self._groups)
            if self._socket.send([self._topic, payload, f"{stamp:.6f}".encode()]):
                self.sent += 1
            else:
                self.left_out += 1

    def stop(self, timeout_s: float = 2.0) -> None:
        """End the thread, close the socket."""
        self._stop_asked.set()
        self._news.set()
        if self.ident is None:
            self._socket.close()
        else:
            self.join(timeout_s)

    def stats(self) -> TelemetryStats:
        """Counts for the report."""
        rate = 1.0 / (self._every * self._tick_s)
        front = self._socket
        return TelemetryStats(
            self.endpoint, rate, self.sent, self.left_out, front.crowded, front.ends, front.last_end, self.failure
        )


Path = tuple[str, str]


def _chosen(names: Sequence[str], patterns: Sequence[str], file: str) -> tuple[NDArray[np.intp], list[Path]]:
    """Columns of the record, and (group, name in it) of each. ConfigError for a pattern that fits nothing recorded."""
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise ConfigError("no recorded signal is called {value}", file=file, table="telemetry", key="signals",
                              value=pattern, allowed='names as "engine.w", patterns as "C*.p"')  # fmt: skip
    found = [k for k, name in enumerate(names) if any(fnmatch.fnmatchcase(name, p) for p in patterns)]
    split = [names[k].rpartition(".") for k in found]
    return np.array(found, np.intp), [(group.replace(".", "/"), name) for group, _, name in split]


def _grouped(t: float, values: NDArray[np.float64], groups: Sequence[Path]) -> dict[str, Any]:
    message: dict[str, Any] = {"t": round(t, 9)}
    for (group, name), x, good in zip(groups, values.tolist(), np.isfinite(values).tolist(), strict=True):
        if good:
            (message.setdefault(group, {}) if group else message)[name] = x
    return message


def _pack_json(t: float, values: NDArray[np.float64], groups: Sequence[Path]) -> bytes:
    return json.dumps(_grouped(t, values, groups), separators=(",", ":")).encode()


def _pack_msgpack(t: float, values: NDArray[np.float64], groups: Sequence[Path]) -> bytes:
    return bytes(msgpack.packb(_grouped(t, values, groups), use_bin_type=True))
