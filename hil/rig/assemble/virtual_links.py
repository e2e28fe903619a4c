"""Participants on the virtual clock: run between the ticks, in lockstep, deterministic.

Before tick k (time t = k*T): the vehicle model is advanced exactly to t and its state is in the slot the tick reads;
each control unit whose period begins at t gets the frames sent since its last step, by the rig or by another unit, and
its answers are in the rings the tick reads. Same frames, same codec, same slots as on the real clock. Units that step
at the same t receive each other's frames at their next step, whatever their order.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import RangeError, TorqueloopError
from torqueloop.cython_kernels.link.lockstep import DONE, UNANSWERED, UNSENT, SlotExchange, StepPeer
from torqueloop.cython_kernels.rings.ring import FrameRing, LatestSlot
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.ecu.control_unit import ControlUnit, EcuInputs, Frame
from torqueloop.hil.link.endpoints import PeerError
from torqueloop.hil.link.lockstep import LockstepClient
from torqueloop.hil.link.mean_force import MeanForce
from torqueloop.hil.link.messages import RIG_SLOT, VEHICLE_SLOT, SchemaError, StateMessage, StepMessage
from torqueloop.hil.link.stats import CouplingResidual
from torqueloop.hil.results.links import LinkStats
from torqueloop.hil.rig.assemble.parts import RigParts

#: a disarmed rig is asked this often whether it is armed again; virtual time stands still meanwhile [s]
DISARMED_S = 0.01
#: a vehicle model in this process: state for a step; None: it does not answer this time (tests)
VehicleStep = Callable[[StepMessage], StateMessage | None]


class VirtualVehicle:
    """Vehicle side of the virtual clock: one exchange before each tick, or before each n-th ([vehicle] period_s)."""

    def __init__(
        self, parts: RigParts, step: VehicleStep, client: LockstepClient | None = None, peer: StepPeer | None = None,
        every: int = 1,
    ) -> None:  # fmt: skip
        """`client`: the model is asked over this link, which counts. `peer`: the same model as it is asked without
        Python, for a rig without carriers. `every`: ticks from one exchange to the next."""
        self._parts, self._step, self._client = parts, step, client
        #: first failure: text for the report; no further exchange after it
        self.failure: str | None = None
        self.exchanges: int = 0
        self.residual: CouplingResidual = CouplingResidual()
        self._asked = -1
        self._every, self._force = every, MeanForce()
        #: last received motion of the carriers
        self._motion: list[float] = []
        if client is not None:
            self.residual, peer = client.residual, client.peer
        self._quick: SlotExchange | None = None
        if peer is not None and not parts.carriers.names and self._every == 1:
            self._quick = SlotExchange(parts.vehicle_out, parts.vehicle_in, peer, self.residual)

    def save(self) -> dict[str, Any] | None:
        """State of the model, if it is in this process and can save it."""
        owner = getattr(self._step, "__self__", self._step)
        data = owner.save() if hasattr(owner, "save") else None
        return None if data is None else dict(data)

    def load(self, data: dict[str, Any] | None) -> bool:
        """Go back to a saved state; False: the model goes on from the rig's speed and distance instead."""
        self._asked = -1
        self._force.forget()
        if self._quick is not None:
            self._quick.forget()
        owner = getattr(self._step, "__self__", self._step)
        if data is None or not hasattr(owner, "load"):
            return False
        owner.load(data)
        return True

    def before_tick(self, now_ns: int) -> None:
        """Exchange at the present state of the rig."""
        if self.failure is not None:
            return
        how = UNSENT if self._quick is None else self._quickly(self._quick, now_ns)
        if how == UNSENT or how == UNANSWERED:
            self._at_length(how, now_ns)

    def _quickly(self, quick: SlotExchange, now_ns: int) -> int:
        try:
            how = quick.run(now_ns)
        except TorqueloopError as error:
            self.failure = str(error)
            return DONE
        if how == DONE:
            self.exchanges += 1
            if self._client is not None:
                self._client.noted(quick.step)
        return how

    def _at_length(self, how: int, now_ns: int) -> None:
        _, _, values = self._parts.vehicle_out.read()
        number, t, force, impulse, speed, s, brake = values[: len(RIG_SLOT)]
        step = int(number)
        if self._quick is None and step == self._asked:
            # the session asked for the first state before it armed; arming forgets what was at the pins
            self._move(now_ns)
            return
        if self._every > 1:
            if step % self._every:
                return
            force = self._force.of(t, impulse, force)
            self._force.sent(t, impulse)
        self._asked = step
        carriers = self._parts.carriers
        moments = carriers.moments(values[len(RIG_SLOT) :]) if carriers.names else {}
        try:
            ask = self._client.wait if self._client is not None and how == UNANSWERED else self._step
            state = ask(StepMessage(step, t, force, impulse, speed, s, brake, moments))
            if state is None:
                return
            self._motion = carriers.motion(state.carrier) if carriers.names else []
        except TorqueloopError as error:
            self.failure = str(error)
            return
        except SchemaError as error:
            self.failure = f"vehicle, step {step}: answer refused: {error}"
            return
        self.exchanges += 1
        if self._client is None:
            self.residual.add(step, speed, impulse, state.speed)
        self._parts.vehicle_in.write(
            (state.step, state.own_step, state.t, state.speed, state.a, state.F, state.F_hold, state.grade), now_ns
        )
        self._move(now_ns)

    def _move(self, now_ns: int) -> None:
        if self._motion and self._parts.carrier_in is not None:
            self._parts.carrier_in.write(self._motion, now_ns)

    def stats(self) -> LinkStats:
        """Counts for the report, of a model in this process."""
        return LinkStats(
            "in process", accepted=self.exchanges, coupling=self.residual.report(), exchanges=self.exchanges
        )


assert VEHICLE_SLOT == ("step", "own_step", "t", "speed", "a", "F", "F_hold", "grade"), "before_tick writes these"


@dataclass(frozen=True)
class VirtualBus:
    """A bus of the rig between two ticks."""

    name: str
    #: what the tick has sent, what it will receive
    sent: FrameRing
    received: FrameRing


class VirtualUnit:
    """A control unit of the virtual clock: one step every `period_ticks`."""

    def __init__(
        self,
        name: str,
        unit: ControlUnit,
        tick_s: float,
        buses: Sequence[str],
        sensors: Sequence[int] = (),
        pins: LatestSlot | None = None,
    ) -> None:
        """`buses`: names of those it is on; Frame.bus counts them. `sensors`: signal slots of EcuSetup.sensors; `pins`:
        where EcuSetup.actuators go."""
        self.name: str = name
        self.unit: ControlUnit = unit
        self.buses: tuple[str, ...] = tuple(buses)
        self.sensors: list[int] = list(sensors)
        self.pins = pins
        period = unit.period_s / tick_s
        if period < 0.5 or abs(period - round(period)) > 1e-6:
            raise RangeError(
                f"control unit {name!r}: control period {{value}} s", value=unit.period_s,
                allowed=f"a whole number of ticks of {tick_s:g} s",
            )  # fmt: skip
        self.period_ticks: int = round(period)
        #: frames that wait for its next step
        self.inbox: list[Frame] = []
        #: what it last gave at its pins
        self.actuators: tuple[float, ...] = ()
        #: first failure: text for the report; no further step after it
        self.failure: str | None = None

    def give(self, actuators: tuple[float, ...]) -> None:
        """What the tick takes from its pins until its next step."""
        self.actuators = actuators
        if self.pins is not None and actuators:
            self.pins.write(actuators)

    def save(self) -> dict[str, Any]:
        """State of the unit (None: it cannot save it), the frames on their way to it, and what it holds at its pins."""
        frames = [[f.can_id, f.data, f.flags, f.bus] for f in self.inbox]
        return {"state": self.unit.save(), "inbox": frames, "actuators": list(self.actuators)}

    def load(self, data: dict[str, Any] | None) -> bool:
        """Go back to a saved state; False: it cannot, and goes on as it is."""
        self.inbox.clear()
        if data is None or data["state"] is None:
            return False
        self.unit.load(data["state"])
        self.give(tuple(float(x) for x in data.get("actuators", ())))
        self.inbox += [Frame(int(i), bytes(d), int(flags), int(bus)) for i, d, flags, bus in data["inbox"]]
        return True


@dataclass
class VirtualUnits:
    """All control units of the virtual clock and the buses between them and the rig."""

    rig: Rig
    tick_s: float
    buses: Sequence[VirtualBus]
    units: Sequence[VirtualUnit] = ()
    #: bus number -> units on it, each with its own number of the bus
    _on: list[list[tuple[VirtualUnit, int]]] = field(init=False)

    def __post_init__(self) -> None:
        self._on = [[(u, u.buses.index(b.name)) for u in self.units if b.name in u.buses] for b in self.buses]
        number = {bus.name: k for k, bus in enumerate(self.buses)}
        self._number = {id(unit): [number[name] for name in unit.buses] for unit in self.units}

    @property
    def failure(self) -> str | None:
        """First failure of a unit."""
        for unit in self.units:
            if unit.failure is not None:
                return f"control unit {unit.name}: {unit.failure}"
        return None

    def before_tick(self, tick: int, now_ns: int) -> None:
        """Step those whose period begins with this tick."""
        if not self.units:
            for bus in self.buses:
                bus.sent.pop_all()
            return
        due = [u for u in self.units if tick % u.period_ticks == 0 and u.failure is None]
        if not due:
            return
        self._deliver()
        answers = [(unit, self._step(unit, tick)) for unit in due]
        for unit, frames in answers:
            numbers = self._number[id(unit)]
            for frame in frames:
                k = numbers[frame.bus]
                self.buses[k].received.push(frame.can_id, frame.data, now_ns, frame.flags)
                for other, number in self._on[k]:
                    if other is not unit:
                        other.inbox.append(Frame(frame.can_id, frame.data, frame.flags, number))

    def _deliver(self) -> None:
        """What the tick has sent goes to all units on the bus."""
        for bus, on in zip(self.buses, self._on, strict=True):
            for can_id, data, _, flags in bus.sent.pop_all():
                for unit, number in on:
                    unit.inbox.append(Frame(can_id, data, flags, number))

    def _step(self, unit: VirtualUnit, tick: int) -> tuple[Frame, ...]:
        frames, unit.inbox = tuple(unit.inbox), []
        sensors = tuple(self.rig.values(unit.sensors)) if unit.sensors else ()
        try:
            answer = unit.unit.step(EcuInputs(tick * self.tick_s, frames, sensors))
            if unit.pins is not None:
                if len(answer.actuators) != unit.pins.n or not all(map(math.isfinite, answer.actuators)):
                    raise PeerError(f"actuators {answer.actuators}; allowed: {unit.pins.n} finite numbers")
                unit.give(answer.actuators)
        except TorqueloopError as error:
            unit.failure = str(error)
            return ()
        return answer.frames

    def save(self) -> dict[str, Any]:
        """State of all units as plain data; what lies in the rings is delivered first. Between two ticks."""
        self._deliver()
        return {unit.name: unit.save() for unit in self.units}

    def load(self, data: dict[str, Any]) -> dict[str, bool]:
        """Back to a saved state; which units went. Between two ticks."""
        for bus in self.buses:
            bus.sent.pop_all()
            bus.received.pop_all()
        return {unit.name: unit.load(data.get(unit.name)) for unit in self.units}


def run_virtual(
    parts: RigParts,
    n_ticks: int,
    vehicle: VirtualVehicle | None,
    units: VirtualUnits,
    period_ns: int,
    every: Callable[[], None] = lambda: None,
    every_ticks: int = 200,
    between: Callable[[], int] | None = None,
) -> None:
    """Tick after tick as fast as the computer goes. `every` is called now and then (recorder, progress); `between`
    is called before the participants of a tick, and returns the simulated tick that comes (checkpoints)."""
    rig = parts.rig
    rig.begin(0)
    failed = False
    for tick in range(n_ticks):
        now_ns = tick * period_ns
        simulated = between() if between is not None else tick
        if vehicle is not None:
            vehicle.before_tick(now_ns)
            if vehicle.failure is not None:
                rig.request_safe("vehicle_data")
        units.before_tick(simulated, now_ns)
        if not failed and units.failure is not None:
            failed = True
            rig.request_safe("thread")
        while not (done := rig.ticks(1, now_ns)) and rig.state == "disarmed" and not rig.stopped:
            every()
            time.sleep(DISARMED_S)
        if not done:
            break
        if tick % every_ticks == 0:
            every()
