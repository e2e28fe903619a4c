"""What the soft TCU decides: which gear, when, lock-up, line pressure. Pure and deterministic.

lever, pedal, output speed -> GearSelector -> target gear -> ShiftRunner -> element pressures
gear, output speed, pedal, slip -> LockUpControl -> lock-up pressure
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.ecu.adaptation import Learnt, learn
from torqueloop.hil.ecu.gears import gear_number, lever_limits, neighbours
from torqueloop.hil.ecu.shift import RPM, Measured, ShiftRunner, TorqueEstimator
from torqueloop.hil.ecu.tcu_tables import TcuConfig, interpolate
from torqueloop.hil.ecu.torque_request import TorqueRequest

#: end of the name of a shift while coasting
COAST = ".coast"


class GearSelector:
    """Shift lines with hysteresis, kick-down, minimum gear time, lever limits, over-speed, reverse inhibit."""

    def __init__(self, config: TcuConfig) -> None:
        self._config = config
        #: forward positions of the lever -> highest gear
        self.levers: dict[str, int] = lever_limits(config.gears)
        self._in_gear_s = 1e9
        #: gear asked for in the manual gate; 0: not there
        self._manual = 0
        self._tip = 0
        self.kick_down: bool = False
        self.reverse_inhibited: bool = False

    def save(self) -> dict[str, Any]:
        """What changes."""
        return {
            "in_gear_s": self._in_gear_s,
            "kick_down": self.kick_down,
            "reverse_inhibited": self.reverse_inhibited,
            "manual": self._manual,
            "tip": self._tip,
        }

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save."""
        self._in_gear_s = float(data["in_gear_s"])
        self.kick_down, self.reverse_inhibited = bool(data["kick_down"]), bool(data["reverse_inhibited"])
        self._manual, self._tip = int(data["manual"]), int(data["tip"])

    def entered(self) -> None:
        """A shift has just ended: the minimum gear time starts."""
        self._in_gear_s = 0.0

    def select(self, gear: str, now: Measured) -> str:
        """The gear wanted next: `gear` itself, another forward gear, or N/P/R by the lever. Not called in a shift."""
        schedule = self._config.schedule
        self._in_gear_s += self._config.timing.period_s
        percent = 100.0 * now.pedal
        if percent >= schedule.kick_down_on_percent:
            self.kick_down = True
        elif percent < schedule.kick_down_off_percent:
            self.kick_down = False
        kmh = now.w_out / RPM / self._config.garage.output_rpm_per_kmh
        limit = self._config.garage.reverse_max_kmh
        self.reverse_inhibited = False
        self._gate(gear, now)
        if now.lever in ("P", "N"):
            return now.lever if gear in ("P", "N") else "N"
        if now.lever == "R":
            if gear == "R":
                return "R"
            if abs(kmh) > limit:
                self.reverse_inhibited = True
                return "N"
            return self._unless_too_fast("R", gear, now) if gear in ("P", "N") else "N"
        if now.lever not in self.levers:
            return gear
        if not gear_number(gear):
            # rolling backwards fast: drive would be a violent brake
            if gear not in ("P", "N") or kmh <= -limit:
                return "N"
            return self._unless_too_fast(self._engaged(gear, now, percent), gear, now)
        return self._forward(gear, now, percent)

    def _gate(self, gear: str, now: Measured) -> None:
        """The manual gate: one gear up or down each time the switch closes."""
        tipped, self._tip = (now.tip if now.tip != self._tip else 0), now.tip
        if now.lever != "M":
            self._manual = 0
            return
        here = self._manual or gear_number(gear) or 1
        self._manual = min(max(here + tipped, 1), self.levers["M"])

    def _unless_too_fast(self, wanted: str, gear: str, now: Measured) -> str:
        """The gear wanted out of P or N; these while the engine is too fast for it."""
        above = now.w_engine - (self._config.gears[wanted].ratio or 0.0) * now.w_out
        return gear if above > self._config.garage.engine_above_rpm * RPM else wanted

    def _engaged(self, gear: str, now: Measured, percent: float) -> str:
        """From N or P: 1st, or the gear that fits the speed where there is a shift into it. A position of the lever
        that forbids it counts as far as the turbine does not turn too fast."""
        config, out_rpm, fitting = self._config, now.w_out / RPM, "1"
        for low, high in neighbours(config.gears):
            if out_rpm > interpolate(config.schedule.up[f"{low}-{high}"], percent):
                fitting = high
        wanted = min(int(fitting), self.levers[now.lever])
        while str(wanted + 1) in config.gears and self._too_fast(out_rpm, wanted):
            wanted += 1
        return str(wanted) if f"N-{wanted}" in config.shifts else "1"

    def _forward(self, gear: str, now: Measured, percent: float) -> str:
        config, schedule = self._config, self._config.schedule
        number = gear_number(gear)
        most = self._manual or self.levers[now.lever]
        out_rpm = now.w_out / RPM
        turbine_rpm = out_rpm * config.gears[gear].ratio
        upper = str(number + 1) if str(number + 1) in config.gears else None
        # turbine too fast: up, whatever the lever says
        if upper and turbine_rpm > schedule.turbine_force_up_rpm:
            return upper
        if number > most:
            lower = most if self._skips(number, most) else number - 1
            return self._down(gear, out_rpm, lower, now) or self._down(gear, out_rpm, number - 1, now) or gear
        # a position of the lever that forbids higher gears asks for engine braking
        plain, braking = gear.removesuffix("E"), now.lever in (str(number), "M")
        if f"{plain}E" in config.gears and braking != (gear != plain):
            return f"{plain}E" if braking else plain
        if self._manual:
            return upper if upper and self._manual > number else self._stalling(gear, out_rpm, now)
        dwell = schedule.kick_down_gear_time_s if self.kick_down else schedule.min_gear_time_s
        if self._in_gear_s < dwell:
            return gear
        # a car that is braked is below the line soon: the shift would be given up, or followed by one back
        line = interpolate(schedule.up[f"{number}-{upper}"], percent) if upper and number < most else out_rpm
        if upper and out_rpm > line and 100.0 * now.brake <= schedule.upshift_brake_percent:
            return upper
        if number > 1 and out_rpm < self._down_line(number, percent):
            lower = number - 1
            # several gears at once where there is a shift for it
            while lower > 1 and out_rpm < self._down_line(lower, percent) and self._skips(number, lower - 1):
                lower -= 1
            return self._down(gear, out_rpm, lower, now) or gear
        return gear

    def _down_line(self, number: int, percent: float) -> float:
        pair = f"{number}-{number - 1}"
        line = interpolate(self._config.schedule.down[pair], percent)
        return max(line, self._config.schedule.kick_down[pair]) if self.kick_down else line

    def _skips(self, number: int, lower: int) -> bool:
        return f"{number}-{lower}" in self._config.shifts

    def _too_fast(self, out_rpm: float, gear: int) -> bool:
        """The turbine would turn too fast in this gear."""
        return out_rpm * self._config.gears[str(gear)].ratio > self._config.schedule.turbine_max_rpm

    def _stalling(self, gear: str, out_rpm: float, now: Measured) -> str:
        """In the manual gate: down where the gear would be too high to go on."""
        number = gear_number(gear)
        if number > 1 and out_rpm < 0.7 * self._down_line(number, 0.0):
            self._manual = number - 1
            return self._down(gear, out_rpm, number - 1, now) or gear
        return gear

    def _down(self, gear: str, out_rpm: float, lower: int, now: Measured) -> str | None:
        """A lower gear, unless the turbine would turn too fast in it; with engine braking where the lever asks so."""
        if not lower or self._too_fast(out_rpm, lower):
            return None
        braking = f"{lower}E"
        if now.lever == str(lower) and f"{gear}-{braking}" in self._config.shifts:
            return braking
        return str(lower)


class LockUpControl:
    """Converter clutch: open -> fill -> slip control along a falling reference -> ramp -> locked -> release -> open."""

    STATES = ("open", "filling", "slipping", "locked", "releasing")

    def __init__(self, config: TcuConfig) -> None:
        self._config = config.lockup
        self._dt = config.timing.period_s
        self.state: str = "open"
        self.pressure: float = 0.0
        self._spent = 0.0
        self._slip_ref = 0.0
        self._integral = 0.0

    def step(self, gear: str, shifting: bool, now: Measured) -> float:
        """Lock-up pressure [bar]."""
        c, dt = self._config, self._dt
        out_rpm, percent = now.w_out / RPM, 100.0 * now.pedal
        # in overrun the turbine is the faster side, and the clutch works the same way
        slip = abs(now.w_engine - now.w_turbine) / RPM
        closing = gear in c.gears and not shifting and out_rpm > c.close_rpm and percent < c.close_pedal_percent
        opening = gear not in c.gears or shifting or out_rpm < c.open_rpm or percent > c.open_pedal_percent
        self._spent += dt
        if self.state in ("filling", "slipping", "locked") and opening:
            self._go("releasing")
        if self.state in ("open", "releasing") and closing:
            self._go("filling")
        if self.state == "open":
            self.pressure = 0.0
        elif self.state == "filling":
            self.pressure = c.fill_bar if self._spent <= c.fill_s else c.kiss_bar
            if self._spent > c.fill_s:
                self._go("slipping")
                self._slip_ref, self._integral = slip, 0.0
        elif self.state == "slipping":
            # a slip that falls faster by itself (pedal released) takes the reference along: the clutch does not wait
            self._slip_ref = max(c.slip_rpm, min(self._slip_ref, slip) - c.slip_rate_rpm_per_s * dt)
            error = 0.01 * (slip - self._slip_ref)
            self._integral = min(max(self._integral + c.slip_ki_bar_per_100rpm_s * error * dt, 0.0), c.locked_bar)
            self.pressure = min(max(c.kiss_bar + c.slip_kp_bar_per_100rpm * error + self._integral, 0.0), c.locked_bar)
            if slip < c.lock_slip_rpm and self._slip_ref == 0.0:
                self._go("locked")
        elif self.state == "locked":
            self.pressure = min(c.locked_bar, self.pressure + c.ramp_bar_per_s * dt)
        else:
            self.pressure = max(0.0, self.pressure - c.ramp_bar_per_s * dt)
            if self.pressure == 0.0:
                self._go("open")
        return self.pressure

    def release(self) -> None:
        """Open at once (limp-home)."""
        self._go("open")
        self.pressure = 0.0

    def save(self) -> dict[str, Any]:
        """What changes."""
        return {
            "state": self.state,
            "pressure": self.pressure,
            "spent": self._spent,
            "slip_ref": self._slip_ref,
            "integral": self._integral,
        }

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save."""
        if data["state"] not in self.STATES:
            raise ValueError(f"lock-up state {data['state']!r}; allowed: {', '.join(self.STATES)}")
        self.state, self.pressure = data["state"], float(data["pressure"])
        self._spent, self._slip_ref = float(data["spent"]), float(data["slip_ref"])
        self._integral = float(data["integral"])

    def _go(self, state: str) -> None:
        self.state, self._spent = state, 0.0


@dataclass
class Commands:
    """What the TCU wants in a control step; pressures in bar."""

    pressures: dict[str, float] = field(default_factory=dict)
    lockup: float = 0.0
    line: float = 0.0
    gear_actual: str = "N"
    gear_target: str = "N"
    shifting: bool = False
    phase: str = ""


class Transmission:
    """Gear, running shift, lock-up, line pressure: everything of the TCU that is not communication."""

    def __init__(self, config: TcuConfig) -> None:
        self.config = config
        self.torque: TorqueEstimator = TorqueEstimator(config)
        self.request: TorqueRequest = TorqueRequest(config.torque_reduction, config.timing.period_s)
        self.selector: GearSelector = GearSelector(config)
        self.lockup: LockUpControl = LockUpControl(config)
        self.gear: str = "N"
        self.runner: ShiftRunner | None = None
        self.learnt: Learnt = Learnt()
        self.commands: Commands = Commands(dict.fromkeys(config.elements, 0.0))
        self._line = config.line_pressure.min_bar
        self.shift_log: list[tuple[int, str, float, int]] = []
        self._steps = 0

    def step(self, now: Measured) -> Commands:
        """One control period with valid measurements."""
        self._steps += 1
        torque = self.torque.update(now, self.lockup.state)
        line = self._line_pressure(torque, now.pedal)
        if self.runner is None:
            wanted = self.selector.select(self.gear, now)
            if wanted != self.gear:
                self._begin(wanted, torque, now)
        elif now.lever in ("N", "P") or (now.lever == "R") != ("R" in (self.runner.source, self.runner.target)):
            self._abort(now)
        elif (
            self.runner.stage == "filling"
            and self.config.cancel_in_filling
            and self.selector.select(self.runner.source, now) == self.runner.source
        ):
            self._cancel()
        else:
            # behind the filling the elements change the torque of the turbine: the pedal alone tells the wish
            wish = torque if self.runner.stage == "filling" else self.torque.driver(now)
            self.runner.continue_as(self._profile(self.runner.name.removesuffix(COAST), wish), torque)
        if self.runner is not None:
            pressures = self.runner.step(now, torque, line)
            if self.runner.done:
                self._end()
        else:
            pressures = self._steady(line)
        shifting = self.runner is not None
        self._ask_engine(now)
        self.commands = Commands(
            pressures=pressures,
            lockup=min(self.lockup.step(self.gear, shifting, now), line),
            line=line,
            gear_actual=self.gear,
            gear_target=self.runner.target if self.runner is not None else self.gear,
            shifting=shifting,
            phase=self.runner.phase if self.runner is not None else "",
        )
        return self.commands

    def save(self) -> dict[str, Any]:
        """Everything that changes."""
        return {
            "torque": self.torque.save(),
            "request": self.request.save(),
            "selector": self.selector.save(),
            "lockup": self.lockup.save(),
            "gear": self.gear,
            "runner": None if self.runner is None else self.runner.save(),
            "commands": asdict(self.commands),
            "line": self._line,
            "shifts": [list(entry) for entry in self.shift_log],
            "steps": self._steps,
            "learnt": self.learnt.save(),
        }

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save, on a transmission of the same configuration."""
        self.learnt.load(data["learnt"])
        saved = data["runner"]
        runner = None if saved is None else ShiftRunner.from_saved(self.config, saved, self.learnt)
        self.torque.load(data["torque"])
        self.request.load(data["request"])
        self.selector.load(data["selector"])
        self.lockup.load(data["lockup"])
        self.gear, self.runner, self.commands = str(data["gear"]), runner, Commands(**data["commands"])
        self._line, self._steps = float(data["line"]), int(data["steps"])
        self.shift_log[:] = [(int(k), str(n), float(s), int(late)) for k, n, s, late in data["shifts"]]

    def _ask_engine(self, now: Measured) -> None:
        """The torque request of this step."""
        if self.config.torque_reduction is None:
            return
        r = self.runner
        upward = r is not None and gear_number(r.target) > gear_number(r.source) > 0
        self.request.step(upward, None if r is None else r.stage, self.torque.driver(now))

    def limp(self, gear: str) -> Commands:
        """Safe state without measurements: elements of `gear` at a fixed pressure, no lock-up."""
        self.runner = None
        self.request.active = False
        self.gear = gear
        self.lockup.release()
        pressure = self.config.limp_home.pressure_bar
        elements = self.config.gears[gear].elements if gear != "N" else []
        self.commands = Commands(
            pressures={name: (pressure if name in elements else 0.0) for name in self.config.elements},
            line=pressure,
            gear_actual=gear,
            gear_target=gear,
        )
        return self.commands

    def _steady(self, line: float) -> dict[str, float]:
        elements = self.config.gears[self.gear].elements
        return {name: (line if name in elements else 0.0) for name in self.config.elements}

    def _line_pressure(self, torque: float, pedal: float) -> float:
        c = self.config.line_pressure
        factor = c.reverse_factor if self.gear == "R" or (self.runner and self.runner.target == "R") else 1.0
        wanted = c.base_bar + factor * c.per_torque_bar_per_Nm * abs(torque) + c.pedal_gain_bar * pedal
        change = c.rate_bar_per_s * self.config.timing.period_s
        self._line = min(max(wanted, self._line - change), self._line + change)
        self._line = min(max(self._line, c.min_bar), c.max_bar)
        return self._line

    def _begin(self, target: str, torque: float, now: Measured) -> None:
        shifts = self.config.shifts
        # P and N press nothing that drives: profiles are written for N
        names = [
            f"{self.gear}-{target}",
            f"{'N' if self.gear == 'P' else self.gear}-{'N' if target == 'P' else target}",
        ]
        name = next((n for n in names if n in shifts), None)
        if name is None and target == "N" and gear_number(self.gear):
            name = "1-N"
        if name is None:
            # between P and N: no torque path opens or closes, nothing to profile
            self.gear = target
            return
        name = self._profile(name, torque)
        self.runner = ShiftRunner(self.config, name, self.gear, target, self.commands.pressures, self.learnt)

    def _profile(self, name: str, torque: float) -> str:
        """The shift of this name as the engine drives or coasts now."""
        coasts = torque < self.config.power_on_torque_Nm and name + COAST in self.config.shifts
        return name + COAST if coasts else name

    def _end(self) -> None:
        assert self.runner is not None
        self.shift_log.append((self._steps, self.runner.name, self.runner.elapsed_s, self.runner.timeouts))
        if not self.runner.timeouts:
            learn(self.config, self.learnt, self.runner.name, self.gear, self.runner.target, self.runner.observed)
        self.gear = self.runner.target
        self.runner = None
        self.selector.entered()

    def _cancel(self) -> None:
        """Another wish before anything has taken hold: the elements of the old gear hold all the time."""
        self.runner = None
        self.selector.entered()

    def _abort(self, now: Measured) -> None:
        """The lever has left the direction of the running shift: open the torque path at once, N from here."""
        if self.runner is not None and self.runner.target != "N":
            self.gear, self.runner = "N", None
