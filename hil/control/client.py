"""A client of the control channel: a running rig as a mapping of names to values in SI.

with torqueloop.connect("tcp://127.0.0.1:5571") as rig:
    print(rig["engine.w"])
    rig.set({"car.m": 1600.0, "S12.J": 0.05})
    rig.override({"driver.pedal": 0.3})
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import zmq

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.control.messages import ANSWER_BYTES, Request, RequestError, decode_answer, encode_request
from torqueloop.hil.link.endpoints import CurveKeys
from torqueloop.hil.link.keys import client_keys
from torqueloop.hil.link.link_socket import ConnectedSocket


class ControlError(TorqueloopError):
    """The rig does not answer, or refuses a request; `reason` is "silent" or one of messages.REASONS."""

    def __init__(self, text: str, reason: str = "silent") -> None:
        super().__init__(text)
        self.reason = reason


class Client:
    """One connection. Every call sends one request and waits for its answer; not for more than one thread."""

    def __init__(self, endpoint: str, timeout_s: float = 10.0, curve: CurveKeys | None = None) -> None:
        self.endpoint: str = endpoint
        self.timeout_s: float = timeout_s
        self._curve = curve
        self._socket = self._open()
        self._id = 0

    def _open(self) -> ConnectedSocket:
        return ConnectedSocket(zmq.REQ, self.endpoint, self._curve, max_bytes=ANSWER_BYTES)

    def ask(self, kind: str, **keys: Any) -> dict[str, Any]:
        """Send a request and return what the answer holds; ControlError if it is refused or none comes."""
        self._id += 1
        self._socket.raw.send(encode_request(Request(kind, self._id, **keys)))
        if not self._socket.raw.poll(round(1e3 * self.timeout_s)):
            # a REQ socket that waits for an answer takes no other request
            self._socket.close()
            self._socket = self._open()
            raise ControlError(f"no answer from {self.endpoint} within {self.timeout_s:g} s: is a rig running there?")
        try:
            return decode_answer(self._socket.raw.recv(), self._id)
        except RequestError as error:
            raise ControlError(str(error), error.reason) from None

    # --- reading ----------------------------------------------------------------------------------------------------
    def hello(self) -> dict[str, Any]:
        """Product, version, rig, digest of the model, tick."""
        return self.ask("hello")

    def list(self) -> list[dict[str, Any]]:
        """All names: unit, kind, what may be done, allowed range, value."""
        names: list[dict[str, Any]] = self.ask("list")["names"]
        return names

    def get(self, names: Iterable[str]) -> dict[str, float]:
        """Values of signals and parameters, SI."""
        values: dict[str, float] = self.ask("get", names=tuple(names))["values"]
        return values

    def __getitem__(self, name: str) -> float:
        return self.get([name])[name]

    def status(self) -> dict[str, Any]:
        """Tick, armed, safe state and its cause, what is held, counters."""
        return self.ask("status")

    def stats(self) -> dict[str, Any]:
        """All numbers of the run so far, as run.json has them, with the histograms of lateness and computing time."""
        return dict(self.ask("stats")["stats"])

    def layout(self) -> dict[str, Any]:
        """Gear sets, elements and signals of the rig, for who draws it."""
        return dict(self.ask("layout")["layout"])

    def watch(self, names: Iterable[str], every_s: float = 0.2) -> Iterator[tuple[int, dict[str, float]]]:
        """(simulated tick, values) again and again; without end."""
        wanted = tuple(names)
        while True:
            answer = self.ask("get", names=wanted)
            yield answer["tick"], answer["values"]
            time.sleep(every_s)

    # --- writing ----------------------------------------------------------------------------------------------------
    def set(self, values: Mapping[str, float], at: int = -1) -> int:
        """Set constants and parameters, all in one tick or none; that simulated tick. at: tick to wait for."""
        return int(self.ask("set", values=dict(values), at=at)["tick"])

    def __setitem__(self, name: str, value: float) -> None:
        self.set({name: value})

    def override(self, values: Mapping[str, float], at: int = -1) -> int:
        """Hold signals at values from one tick on; that simulated tick."""
        return int(self.ask("override", values=dict(values), at=at)["tick"])

    def release(self, *names: str, at: int = -1) -> int:
        """Release held signals; none named: all."""
        return int(self.ask("release", names=names, at=at)["tick"])

    def arm(self) -> None:
        """Begin (again)."""
        self.ask("arm")

    def disarm(self) -> None:
        """Go back to waiting, where the rig can."""
        self.ask("disarm")

    def safe(self) -> None:
        """Ask for the safe state."""
        self.ask("safe")

    def stop(self) -> None:
        """End the run."""
        self.ask("stop")

    def checkpoint(self, name: str = "", at: int = -1) -> dict[str, Any]:
        """Save the whole state under a name; returns name, file in the run directory and simulated tick."""
        return self.ask("checkpoint", name=name, at=at)

    def restore(self, name: str, at: int = -1) -> dict[str, Any]:
        """Return to a checkpoint of this run; the tick from which it continues, and the participants that returned."""
        return self.ask("restore", name=name, at=at)

    def record(self, name: str = "", signals: Iterable[str] = ()) -> dict[str, Any]:
        """Begin a recording of its own, recordings/NAME in the run directory; name, folder, number of signals. signals:
        patterns as "engine.*", default: all."""
        return self.ask("record", name=name, names=tuple(signals))

    def stop_recording(self, name: str) -> dict[str, Any]:
        """End it; name, folder, samples, first and last tick."""
        return self.ask("stop_recording", name=name)

    # --- life -------------------------------------------------------------------------------------------------------
    def close(self) -> None:
        """Close the connection. Overrides stay until they are released or the run ends."""
        self._socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(
    endpoint: str, key: str | Path | None = None, server_key: str | Path | None = None, timeout_s: float = 10.0
) -> Client:
    """Connect to the control channel of a rig. key, server_key: own secret and the rig's public certificate, needed
    for an endpoint that is not on loopback (`torqueloop keys`)."""
    return Client(endpoint, timeout_s, client_keys(key, server_key))
