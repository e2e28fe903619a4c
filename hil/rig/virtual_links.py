"""Peers of the virtual clock: run between the ticks, in lockstep, deterministic.

Before tick k (time t = k*T): the vehicle model is advanced exactly to t and its state is in the slot the tick reads; if
a control period of the soft TCU begins at t, it gets the frames sent since the last one and its answers are in the ring
the tick reads. Same frames, same codec, same slots as on the real clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from torqueloop.hil.link.messages import StateMessage, StepMessage
from torqueloop.hil.link.sockets import VEHICLE_SLOT, PeerError
from torqueloop.hil.rig.parts import RigParts
from torqueloop.hil.tcu.saved import load_tcu, save_tcu
from torqueloop.hil.tcu.soft_tcu import SoftTcu

#: a disarmed rig is asked this often whether it is armed again; virtual time stands still meanwhile [s]
DISARMED_S = 0.01
#: a vehicle model in this process: state for a step; None: it does not answer this time (tests)
VehicleStep = Callable[[StepMessage], StateMessage | None]


class TcuStep(Protocol):
    """What the session needs of a soft TCU."""

    def step(self, t_s: float, frames: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]: ...


class VirtualVehicle:
    """Vehicle side of the virtual clock: one exchange before each tick."""

    def __init__(self, parts: RigParts, step: VehicleStep) -> None:
        self._parts, self._step = parts, step
        #: first failure: text for the report; no further exchange after it
        self.failure: str | None = None
        self.exchanges = 0
        self._asked = -1

    def save(self) -> dict[str, Any] | None:
        """State of the model, if it is one in this process that can tell."""
        owner = getattr(self._step, "__self__", self._step)
        return dict(owner.save()) if hasattr(owner, "save") else None

    def load(self, data: dict[str, Any] | None) -> bool:
        """Go back to a saved state; False: the model goes on from the rig's speed and distance instead."""
        self._asked = -1
        owner = getattr(self._step, "__self__", self._step)
        if data is None or not hasattr(owner, "load"):
            return False
        owner.load(data)
        return True

    def before_tick(self, now_ns: int) -> None:
        """Exchange at the present state of the rig."""
        if self.failure is not None:
            return
        _, _, values = self._parts.vehicle_out.read()
        step, *rest = values
        if int(step) == self._asked:
            return  # the session asked for the first state before it armed
        self._asked = int(step)
        try:
            state = self._step(StepMessage(int(step), *rest))
        except PeerError as error:
            self.failure = str(error)
            return
        if state is not None:
            self.exchanges += 1
            self._parts.vehicle_in.write([float(getattr(state, key)) for key in VEHICLE_SLOT], now_ns)


class VirtualTcu:
    """Soft TCU of the virtual clock: one control step every `period_ticks`."""

    def __init__(self, parts: RigParts, tcu: TcuStep, period_ticks: int, tick_s: float) -> None:
        self._parts, self._tcu, self._period, self._tick_s = parts, tcu, period_ticks, tick_s

    def save(self) -> dict[str, Any] | None:
        """State of the control unit, if it can tell."""
        if isinstance(self._tcu, SoftTcu):
            return save_tcu(self._tcu)
        return dict(self._tcu.save()) if hasattr(self._tcu, "save") else None

    def load(self, data: dict[str, Any] | None) -> bool:
        """Go back to a saved state; False: it cannot, and goes on as it is."""
        if data is None:
            return False
        if isinstance(self._tcu, SoftTcu):
            load_tcu(self._tcu, data)
        elif hasattr(self._tcu, "load"):
            self._tcu.load(data)
        else:
            return False
        return True

    def before_tick(self, tick: int, now_ns: int) -> None:
        """Take what was sent, push the answers."""
        if tick % self._period:
            return
        sent = [(can_id, data) for can_id, data, _, _ in self._parts.tx_ring.pop_all()]
        for can_id, data in self._tcu.step(tick * self._tick_s, sent):
            self._parts.rx_ring.push(can_id, data, now_ns)


def run_virtual(
    parts: RigParts,
    n_ticks: int,
    vehicle: VirtualVehicle | None,
    tcu: VirtualTcu | None,
    period_ns: int,
    every: Callable[[], None] = lambda: None,
    every_ticks: int = 200,
    between: Callable[[], int] | None = None,
) -> None:
    """Tick after tick as fast as the computer goes. `every` is called now and then (recorder, progress); `between`
    before the peers of a tick, it tells the simulated tick that comes (checkpoints)."""
    rig = parts.rig
    rig.begin(0)
    for tick in range(n_ticks):
        now_ns = tick * period_ns
        simulated = between() if between is not None else tick
        if vehicle is not None:
            vehicle.before_tick(now_ns)
            if vehicle.failure is not None:
                rig.request_safe("vehicle_data")
        if tcu is not None:
            tcu.before_tick(simulated, now_ns)
        else:
            parts.tx_ring.pop_all()
        while not (done := rig.ticks(1, now_ns)) and rig.state == "disarmed" and not rig.stopped:
            every()
            time.sleep(DISARMED_S)
        if not done:
            break
        if tick % every_ticks == 0:
            every()


def stats_of(peer: Any) -> dict[str, Any]:
    """Counts of an in-process peer, if it keeps any."""
    return dict(peer.stats()) if hasattr(peer, "stats") else {}
