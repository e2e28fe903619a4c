"""How the soft TCU carries out a shift: laws per element and phase, run every control step. Pure and deterministic.

    torque of an element -> pressure:  p = p_kiss + x c |T_turbine| / k
                                       c: its torque per Nm turbine torque in its gear, k: torque_per_bar_Nm, x multiple
    way to synchronisation (regulate): w_ref(t) = ((1 - q) r0 + q i_new) w_out, q = t/inertia_s, r0: ratio at its start
    controller:                        T = T_e + c (J |dw_ref/dt| - max(0, -+T0)) +- (kp e + ki int e dt)
                                       e = w_turbine - w_ref; upper signs: the element pulls the turbine down. T_e, T0:
                                       torque of the element, and of the turbine with its sign, at the start; J: inertia
                                       of engine and turbine. T_e balances a turbine torque against the element; one
                                       that moves the turbine the element's way does part of its work: in an upshift
                                       without the pedal the engine's drag. The present estimate is not taken: an engine
                                       that is slowed raises it, that raises T, and T slows the engine more

Several elements may be regulated, ramped and released at once; an element a phase does not name keeps its gear
pressure if both gears press it, stays where it is if only the old gear does, and stays open otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.ecu.adaptation import Learnt, Observed
from torqueloop.hil.ecu.gears import gear_number
from torqueloop.hil.ecu.laws import Law, Phase
from torqueloop.hil.ecu.tcu_tables import TcuConfig, interpolate, read_columns

#: [rad/s per rpm]
RPM = 0.10471975511965977
#: a phase lasts this long before the pedal changes the profile of its shift: the torque may swing about its limit [s]
CHANGE_S = 0.1


@dataclass(frozen=True)
class Measured:
    """What the TCU knows in a control step; speeds in rad/s."""

    w_engine: float = 0.0
    w_turbine: float = 0.0
    w_out: float = 0.0
    pedal: float = 0.0
    brake: float = 0.0
    lever: str = "N"
    #: switch of the manual gate: +1 up, -1 down, 0 neither
    tip: int = 0
    #: oil of the gearbox [K]; shown, not used for control
    T_oil: float = 353.15


class TorqueEstimator:
    """Turbine torque from converter slip, or from the engine map when the lock-up clutch is closed. While it slips
    under power the larger of both: the clutch carries what the converter does not. + drives."""

    def __init__(self, config: TcuConfig) -> None:
        files = config.torque_model
        converter = config.path("converter_csv", "converters")
        drive = read_columns(converter, ("speed_ratio", "pump_capacity_Nms2_per_rad2", "torque_ratio"))
        self._capacity = [(nu, capacity) for nu, capacity, _ in drive]
        self._ratio = [(nu, ratio) for nu, _, ratio in drive]
        converter = config.path("converter_coast_csv", "converters")
        coast = read_columns(converter, ("speed_ratio_p_over_t", "turbine_capacity_Nms2_per_rad2"))
        self._coast = [(x, capacity) for x, capacity in coast]
        engine = read_columns(config.path("engine_csv", "engines"), ("speed_radps", "wot_Nm", "closed_throttle_Nm"))
        self._wot = [(w, torque) for w, torque, _ in engine]
        self._closed = [(w, torque) for w, _, torque in engine]
        self._gain = config.timing.period_s / (files.filter_s + config.timing.period_s)
        self.torque: float = 0.0

    def update(self, now: Measured, lockup: str) -> float:
        """Filtered turbine torque [Nm] with the lock-up clutch in this state."""
        w_p, w_t = max(now.w_engine, 0.0), max(now.w_turbine, 0.0)
        if lockup == "locked":
            torque = self.driver(now)
        elif w_t <= w_p:
            nu = w_t / w_p if w_p > 1.0 else 0.0
            torque = interpolate(self._ratio, nu) * interpolate(self._capacity, nu) * w_p * w_p
            if lockup == "slipping":
                torque = max(torque, self.driver(now))
        else:
            torque = -interpolate(self._coast, w_p / w_t) * w_t * w_t
        self.torque += self._gain * (torque - self.torque)
        return self.torque

    def driver(self, now: Measured) -> float:
        """Engine torque of pedal and speed, without any intervention [Nm]."""
        w = max(now.w_engine, 0.0)
        drag = interpolate(self._closed, w)
        return drag + now.pedal * (interpolate(self._wot, w) - drag)

    def save(self) -> dict[str, Any]:
        """What changes."""
        return {"torque": self.torque}

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save."""
        self.torque = float(data["torque"])


@dataclass
class Ramp:
    start: float
    end: float
    duration: float
    begun: float


class ShiftRunner:
    """One shift from its first phase to its last. `step` returns the pressure of each element in bar."""

    def __init__(
        self,
        config: TcuConfig,
        name: str,
        source: str,
        target: str,
        pressures: dict[str, float],
        learnt: Learnt | None = None,
    ) -> None:
        self.name: str = name
        self.source: str = source
        self.target: str = target
        self._config = config
        self._phases = config.phases(name)
        self._old, self._new = config.gears[source], config.gears[target]
        self._learnt = learnt or Learnt()
        #: what happened, for adaptation
        self.observed: Observed = Observed()
        self._index = 0
        self._time = 0.0
        self._phase_begun = 0.0
        self._pressure = dict(pressures)
        self._ramps: dict[str, Ramp] = {}
        self._integral: dict[str, float] = {}
        self._start_torque = 0.0
        self._start_ratio: float | None = None
        self._old_ratio: float | None = None
        self._entering = True
        self.timeouts: int = 0
        self.done: bool = False

    @property
    def phase(self) -> str:
        """Name of the running phase."""
        return self._phases[min(self._index, len(self._phases) - 1)].name

    @property
    def stage(self) -> str:
        """Stage of the running phase: filling, torque, inertia, closing."""
        return self._phases[min(self._index, len(self._phases) - 1)].stage

    @property
    def elapsed_s(self) -> float:
        """Time since the shift began."""
        return self._time

    def save(self) -> dict[str, Any]:
        """Which shift it is, and what changes in it."""
        return {
            "name": self.name,
            "source": self.source,
            "target": self.target,
            "index": self._index,
            "time": self._time,
            "phase_begun": self._phase_begun,
            "pressure": dict(self._pressure),
            "ramps": {name: asdict(ramp) for name, ramp in self._ramps.items()},
            "integral": dict(self._integral),
            "start_ratio": self._start_ratio,
            "start_torque": self._start_torque,
            "old_ratio": self._old_ratio,
            "entering": self._entering,
            "timeouts": self.timeouts,
            "done": self.done,
            "observed": asdict(self.observed),
        }

    @classmethod
    def from_saved(cls, config: TcuConfig, data: Mapping[str, Any], learnt: Learnt | None = None) -> ShiftRunner:
        """Inverse of save: a running shift; ValueError when the configuration has no such shift."""
        if data["name"] not in config.shifts:
            raise ValueError(f"the control unit knows no shift {data['name']!r}")
        runner = cls(config, data["name"], data["source"], data["target"], data["pressure"], learnt)
        runner._index = int(data["index"])
        runner._time, runner._phase_begun = float(data["time"]), float(data["phase_begun"])
        runner._ramps = {name: Ramp(**ramp) for name, ramp in data["ramps"].items()}
        runner._integral = dict(data["integral"])
        runner._start_ratio, runner._old_ratio = data["start_ratio"], data["old_ratio"]
        runner._start_torque = float(data["start_torque"])
        runner._entering, runner.done = bool(data["entering"]), bool(data["done"])
        runner.timeouts = int(data["timeouts"])
        runner.observed = Observed(**data["observed"])
        runner._bind()
        return runner

    def step(self, now: Measured, torque: float, line: float) -> dict[str, float]:
        """Advance one control period."""
        config = self._config
        signed, torque = torque, max(abs(torque), config.torque_min_Nm)
        if self._old_ratio is None:
            self._old_ratio = now.w_turbine / now.w_out if now.w_out > 5.0 else self._old.ratio
        if not self._entering and self._phase_ended(now):
            self._index += 1
            self._entering = True
        if self._index == len(self._phases):
            self.done = True
            self._pressure = {name: (line if name in self._new.elements else 0.0) for name in config.elements}
            return dict(self._pressure)
        phase = self._phases[self._index]
        if self._entering:
            self._enter(phase, now, torque, signed)
        self._time += config.timing.period_s
        self.observed.see(phase.stage, config.timing.period_s, now.w_turbine - self._old_ratio * now.w_out)
        for name in config.elements:
            law = phase.elements.get(name)
            if law is not None:
                pressure = self._law(name, law, phase, now, torque, line)
            elif name in self._new.elements and name in self._old.elements:
                pressure = line
            elif name in self._old.elements or name in self._new.elements:
                pressure = self._pressure[name]
            else:
                pressure = 0.0
            self._pressure[name] = min(max(pressure, 0.0), config.line_pressure.max_bar)
        return dict(self._pressure)

    def continue_as(self, name: str, torque: float) -> None:
        """The same shift by another profile: the pedal was pressed or released. What is being filled stays so; later it
        continues with the phase of the same stage, CHANGE_S after the last phase began at the earliest."""
        phases = self._config.phases(name)
        here = self._phases[min(self._index, len(self._phases) - 1)]
        same = [k for k, phase in enumerate(phases) if (phase.stage, phase.to_gear) == (here.stage, here.to_gear)]
        filling = here.stage == "filling"
        if name == self.name or not same or here.stage == "closing" or filling and self._index:
            return
        if not filling:
            if self._time - self._phase_begun >= CHANGE_S:
                self._index, self._entering, self.observed.changed = same[0], True, True
                self.name, self._phases = name, phases
            return
        self.name, self._phases = name, phases
        for element, law in phases[same[0]].elements.items():
            if law.law in ("torque", "bar", "open", "line"):
                self._ramps[element] = self._begin_ramp(
                    element, law, phases[same[0]], max(abs(torque), self._config.torque_min_Nm)
                )

    # --- phases -----------------------------------------------------------------------------------------------------
    def _bind(self) -> None:
        """The gears the present phase goes from and to."""
        phase = self._phases[min(self._index, len(self._phases) - 1)]
        self._old = self._config.gears[phase.from_gear or self.source]
        self._new = self._config.gears[phase.to_gear or self.target]

    def _enter(self, phase: Phase, now: Measured, torque: float, signed: float) -> None:
        self._entering = False
        self._phase_begun = self._time
        before = self._new
        self._bind()
        if self._new is not before:  # the second part of a shift through a gear between
            self._old_ratio = now.w_turbine / now.w_out if now.w_out > 5.0 else self._old.ratio
        if any(law.law == "regulate" for law in phase.elements.values()):
            self._start_ratio = now.w_turbine / now.w_out if now.w_out > 5.0 else self._old.ratio
            self._start_torque = signed
        for name, law in phase.elements.items():
            if law.law in ("torque", "bar", "open", "line"):
                self._ramps[name] = self._begin_ramp(name, law, phase, torque)
            elif law.law == "regulate":
                self._integral[name] = self._to_torque(name, self._pressure[name])

    def _begin_ramp(self, name: str, law: Law, phase: Phase, torque: float) -> Ramp:
        duration = phase.duration_s if law.ramp_s is None else law.ramp_s
        start = self._pressure[name]
        if law.law == "torque":
            start = self._to_torque(name, start) / max(self._steady_torque(name, torque), 1e-9)
        if law.start is not None:
            start = law.start
        return Ramp(start, law.end, duration, self._time)

    def _phase_ended(self, now: Measured) -> bool:
        phase = self._phases[self._index]
        spent = self._time - self._phase_begun + 1e-9
        if phase.until == "time":
            return spent >= phase.duration_s
        if phase.until == "filled":
            return spent >= self._filled_after(phase) + phase.duration_s
        if phase.until == "ratio_left":
            reached = (
                abs(now.w_turbine - (self._old_ratio or 0.0) * now.w_out) > self._config.synchronisation.leave_rpm * RPM
            )
        else:
            reached = self._synchronised(now)
        if reached:
            return True
        if spent >= phase.duration_s + phase.timeout_s:
            self.timeouts += phase.timeout_s > 0.0
            return True
        return False

    def _synchronised(self, now: Measured) -> bool:
        """The turbine has the speed of the new gear; between forward gears also when it has passed it on the way."""
        beyond = now.w_turbine - self._new.ratio * now.w_out
        if gear_number(self.source) and gear_number(self.target) and self._new.ratio != self._old.ratio:
            beyond = max(0.0, beyond if self._new.ratio < self._old.ratio else -beyond)
        return abs(beyond) < self._config.synchronisation.tolerance_rpm * RPM

    def _filled_after(self, phase: Phase) -> float:
        """Time [s] after which the last element that is filled is full."""
        return max([self._fill_s(n) for n, law in phase.elements.items() if law.law == "fill"], default=0.0)

    # --- laws -------------------------------------------------------------------------------------------------------
    def _law(self, name: str, law: Law, phase: Phase, now: Measured, torque: float, line: float) -> float:
        element = self._config.elements[name]
        spent = self._time - self._phase_begun
        if law.law == "fill":
            return element.fill_bar if spent <= self._fill_s(name) + 1e-9 else self._kiss_bar(name)
        if law.law == "kiss":
            return self._kiss_bar(name)
        if law.law == "hold":
            return self._pressure[name]
        if law.law == "regulate":
            return self._regulate(name, law, phase, now, torque)
        ramp = self._ramps.get(name)
        if ramp is None:
            return self._pressure[name]
        kind = self._ramp_kind(name, law)
        end = {"line": line, "open": 0.0}.get(kind, ramp.end)
        q = min(1.0, (self._time - ramp.begun) / ramp.duration) if ramp.duration > 0.0 else 1.0
        value = ramp.start + q * (end - ramp.start)
        return self._to_pressure(name, value * self._steady_torque(name, torque)) if kind == "torque" else value

    def _ramp_kind(self, name: str, law: Law) -> str:
        """The law a `continue` goes on with: the last one before that began a ramp."""
        if law.law != "continue":
            return law.law
        for phase in reversed(self._phases[: self._index]):
            before = phase.elements.get(name)
            if before is not None and before.law in ("torque", "bar", "open", "line"):
                return before.law
        return "hold"

    def _regulate(self, name: str, law: Law, phase: Phase, now: Measured, torque: float) -> float:
        spent = self._time - self._phase_begun
        q = min(1.0, spent / phase.inertia_s)
        start_ratio = self._start_ratio if self._start_ratio is not None else self._old.ratio
        w_ref = ((1.0 - q) * start_ratio + q * self._new.ratio) * now.w_out
        error = now.w_turbine - w_ref
        if law.pulls == "up":
            error = -error
        rate = (self._new.ratio - start_ratio) * now.w_out / phase.inertia_s
        way = 1.0 if law.pulls == "up" else -1.0
        ahead = self._config.torque_model.inertia_kgm2 * way * rate - max(0.0, way * self._start_torque)
        steady = self._steady_torque(name, torque)
        low, high = law.min * steady, law.max * steady
        integral = self._integral[name] + law.ki_Nm_per_rad * error * self._config.timing.period_s
        wanted = self._steady_torque(name, ahead) + law.kp_Nm_per_radps * error + integral
        # the integral stops where the element is at a limit (no wind-up)
        if low < wanted < high or (wanted - high) * error < 0.0:
            self._integral[name] = integral
        return self._to_pressure(name, min(max(wanted, low), high))

    def _steady_torque(self, name: str, torque: float) -> float:
        """Torque [Nm] the element carries at this turbine torque: in the new gear, else in the old one."""
        factor = self._new.torque.get(name) or self._old.torque.get(name) or 0.0
        return float(factor) * torque

    def _to_pressure(self, name: str, torque: float) -> float:
        return self._kiss_bar(name) + max(torque, 0.0) / self._config.elements[name].torque_per_bar_Nm

    def _to_torque(self, name: str, pressure: float) -> float:
        return max(pressure - self._kiss_bar(name), 0.0) * self._config.elements[name].torque_per_bar_Nm

    def _fill_s(self, name: str) -> float:
        return self._config.elements[name].fill_s + self._learnt.fill_s.get(name, 0.0)

    def _kiss_bar(self, name: str) -> float:
        return self._config.elements[name].kiss_bar + self._learnt.kiss_bar.get(name, 0.0)
