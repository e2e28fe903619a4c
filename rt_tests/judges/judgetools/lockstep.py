"""A rig in another process, tick by tick: frames go to it and come from it over software buses, by python-can alone.

The rig's side is lockstep_rig.py. Both sides wait for each other in every tick, so ticks are numbers that the
load of the machine does not change.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import can

RIG_SIDE = Path(__file__).resolve().parents[1] / "lockstep_rig.py"
#: as there
GO, SYNC = 0x7FD, 0x7FE
GROUP = "239.74.163.2"
#: the rig is gone [s]
PATIENCE_S = 30.0
#: frames of one tick at most: a socket of python-can holds some 200 and hears its own
BATCH = 64
#: a line of [bus.NAME] in the rig's file: where python-can is, and no further
PLACE = 'local_address = "0.0.0.0"\nhop_limit = 0\nport = {port}\n'


def free_ports(n: int) -> list[int]:
    """UDP ports that nobody uses now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(n)]
        for one in sockets:
            one.bind(("", 0))
        return [int(one.getsockname()[1]) for one in sockets]


class NoBus(Exception):
    """python-can cannot open the software bus here."""


class Lockstep:
    """The rig's process and its buses, by name in the order of the rig's file."""

    def __init__(self, rig: Path, ticks: int, ports: Mapping[str, int]) -> None:
        self.rig, self.ticks, self.ports = rig, ticks, ports
        self.now = 0
        self._stack = ExitStack()
        self._out = rig.with_suffix(".counts.json")

    def __enter__(self) -> Lockstep:
        try:
            self.buses = {
                name: self._stack.enter_context(
                    can.Bus(interface="udp_multicast", channel=GROUP, port=port, hop_limit=0)  # type: ignore[abstract]
                )
                for name, port in self.ports.items()
            }
        except (can.CanError, OSError) as error:
            self._stack.close()
            raise NoBus(f"python-can's udp_multicast: {error}") from error
        command = [sys.executable, str(RIG_SIDE), str(self.rig), str(self.ticks), str(self._out)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._stack.callback(self._process.kill)
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "ready":
            self._stack.close()
            raise RuntimeError(f"{' '.join(command)} ended with status {self._process.wait()}")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()
        self._process.wait()

    def tick(self, frames: Mapping[str, Sequence[can.Message]]) -> dict[str, list[can.Message]]:
        """One tick of the rig with these frames; what it has sent, by bus. What we send comes back to us: left out."""
        go = can.Message(arbitration_id=GO, is_extended_id=False)
        heard: dict[str, list[can.Message]] = {}
        for name, bus in self.buses.items():
            own = frames.get(name, ())
            assert len(own) <= BATCH, "more than a socket holds"
            for frame in (*own, go):
                bus.send(frame)
        for name, bus in self.buses.items():
            own_ids = {(f.arbitration_id, f.is_extended_id) for f in frames.get(name, ())}
            got: list[can.Message] = []
            while True:
                frame = bus.recv(PATIENCE_S)
                if frame is None:
                    raise RuntimeError(f"bus {name}: the rig is silent in tick {self.now}")
                if frame.arbitration_id == SYNC:
                    assert int.from_bytes(frame.data, "little") == self.now, "out of step"
                    break
                if frame.arbitration_id != GO and (frame.arbitration_id, frame.is_extended_id) not in own_ids:
                    got.append(frame)
            heard[name] = got
        self.now += 1
        return heard

    def counts(self) -> list[tuple[int, str, str, str, int]]:
        """(tick, bus, message, reason, n): what the rig counted, after its last tick."""
        assert self.now == self.ticks, "not at its end"
        status = self._process.wait(PATIENCE_S)
        if status:
            raise RuntimeError(f"the rig ended with status {status}")
        return [(t, bus, message, reason, n) for t, bus, message, reason, n in json.loads(self._out.read_text())]


def message(can_id: int, data: bytes, *, fd: bool = False) -> can.Message:
    """A data frame; identifiers beyond 11 bits are extended."""
    return can.Message(arbitration_id=can_id, is_extended_id=can_id > 0x7FF, data=data, is_fd=fd)
