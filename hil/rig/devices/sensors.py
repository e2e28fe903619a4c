"""[sensors.NAME] of a rig file: signals made of other signals, as an I/O card or a message has them.

Equations: cython_kernels/tick/sensors.pyx.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.can.codec import RxState
from torqueloop.cython_kernels.tick import sensors as kernel
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.common.config_file import BadValue, ConfigTable, Curve
from torqueloop.hil.common.levers import LEVERS, words_of
from torqueloop.hil.rig.devices.device import Device
from torqueloop.hil.rig.devices.signals import DUMMY

#: kinds of sensors that send frames
FRAMES = ("sent", "psi5")
#: last parts of signals that only the next tick of a sensor reads
INTERNAL = frozenset({"quiet", "before", "rest", "begun", "at", "left"})
#: share by which the number of those parts may differ from a whole number: both keys are rounded decimals
WHOLE = 1e-9
#: teeth without `resolution_Hz`: parts of a tooth that its frequency counts in each tick
PARTS = 10_000


class Pulse(ConfigTable):
    """[sensors.NAME.pulse]: an active sensor that gives a pulse for each edge. Its width shows the direction."""

    #: Width of a pulse when the wheel turns forward [s].
    forward_s: Annotated[float, Field(gt=0, le=1)]
    #: Width of a pulse when the wheel turns backward [s].
    backward_s: Annotated[float, Field(gt=0, le=1)]
    #: Width of a pulse without an edge, which shows that the sensor works [s].
    standstill_s: Annotated[float, Field(ge=0, le=1)] = 0.0
    #: Time without an edge after which such a pulse comes [s]. By default there is none.
    every_s: Annotated[float, Field(ge=0, le=100)] = 0.0


class FrameField(ConfigTable):
    """One entry of `data` of a sensor that sends frames: round(gain times signal plus offset) in so many bits."""

    #: Signal of the field.
    signal: str
    #: Counts per unit of the signal in SI.
    gain: float = 1.0
    #: Counts at 0.
    offset: float = 0.0
    #: Length of the field. A value that does not fit is limited.
    bits: Annotated[int, Field(ge=1, le=24)] = 12
    #: sent: whether the lowest nibble comes first, as in the second fast channel of SAE J2716.
    lowest_first: bool = False


class Sensor(ConfigTable):
    """[sensors.NAME]: a signal sensor.NAME that is computed from another signal."""

    #: curve: a table. teeth: a toothed wheel whose edges are counted. moves: a lever with a rest position, which sends
    #: movements instead of positions. sent, psi5: a digital sensor, whose frame is one whole number.
    kind: Literal["curve", "teeth", "moves", "sent", "psi5"]
    #: Signal that the sensor measures. teeth: a speed, or an angle such as "out.phi", whose edges do not drift. sent
    #: and psi5 have `data` instead.
    signal: str = ""
    #: curve: points [x, y] with x in SI. The curve is linear between them and constant outside of them.
    points: Annotated[Curve, Field(max_length=200)] = []
    #: curve of a lever or gear, instead of points: word -> value.
    words: dict[str, float] = {}
    #: curve with y in Ohm: resistance between `reference_V` and the sensor [Ohm]. The signal is then the voltage at
    #: the pin of the control unit.
    pull_up_ohm: Annotated[float, Field(gt=0, le=1e9)] | None = None
    #: With `pull_up_ohm`: voltage of the reference, the largest that the control unit can read [V].
    reference_V: Annotated[float, Field(gt=0, le=100)] = 5.0
    #: curve: unit of y.
    unit: Literal["1", "rad/s", "m/s", "Nm", "K", "Pa", "V", "A", "Ohm", "s"] = "1"
    #: moves: position to which the driver moves the lever -> number that is sent, or position -> { position before =
    #: number }.
    moves: dict[str, float | dict[str, float]] = {}
    #: moves: number that is sent at rest.
    rest: float = 0.0
    #: moves: the sensor sends a movement for this long, and then the number of rest for at least this long [s].
    hold_s: Annotated[float, Field(gt=0, le=5)] = 0.1
    #: teeth: number of teeth.
    teeth: Annotated[int, Field(ge=1, le=1000)] = 60
    #: teeth: the wheel counts as standing when no edge comes for longer than this [s].
    standstill_s: Annotated[float, Field(gt=0)] = 0.1
    #: teeth: number of the teeth that are missing at the end of a turn (reference gap).
    missing: Annotated[int, Field(ge=0, le=999)] = 0
    #: teeth: largest random displacement of an edge, as a share of a tooth.
    jitter: Annotated[float, Field(ge=0, le=0.4)] = 0.0
    #: teeth: largest displacement of an edge by an eccentric wheel, as a share of a tooth. It is a sine over a turn.
    run_out: Annotated[float, Field(ge=0, le=0.4)] = 0.0
    #: teeth: probability that the sensor misses an edge.
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    #: teeth: whether the sensor detects the direction.
    direction: bool = False
    #: teeth: amplitude of the voltage of a coil (variable reluctance) over the speed of the wheel [V s/rad].
    amplitude_Vs: Annotated[float, Field(ge=0)] = 0.0
    #: teeth: share by which the amplitude rises and falls over a turn, as the air gap of an eccentric wheel changes.
    amplitude_run_out: Annotated[float, Field(ge=0, lt=1)] = 0.0
    #: teeth with `amplitude_Vs`: the control unit sees no edge when the amplitude is smaller than this [V].
    threshold_V: Annotated[float, Field(ge=0)] = 0.0
    #: teeth: steps in which a card sets its frequency [Hz]. 1 over the tick must be a whole number of them. By default
    #: the frequency counts ten-thousandths of a tooth in each tick.
    resolution_Hz: Annotated[float, Field(gt=0)] | None = None
    #: teeth: widths of the pulses of an active sensor.
    pulse: Pulse | None = None
    #: sent, psi5: fields in the order in which they are sent. sent: 4 to 24 bits in whole nibbles, psi5: 10 to 28 bits.
    data: Annotated[list[FrameField], Field(max_length=28)] = []
    #: sent: status nibble, or a signal with it.
    status: Annotated[int, Field(ge=0, le=15)] | str = 0
    #: psi5: even parity instead of the 3-bit CRC.
    parity: bool = False
    #: teeth: seed of the random numbers.
    seed: Annotated[int, Field(ge=0, lt=1 << 53)] = 0

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> Sensor:
        if bool(self.signal) == (self.kind in FRAMES) or bool(self.data) != (self.kind in FRAMES):
            problem = "kind = {value}: " + " and ".join(FRAMES) + " have data, all others have a signal"
            raise BadValue(problem, key="kind", value=self.kind)
        lengths = [field.bits for field in self.data]
        if self.kind == "sent" and not (sum(lengths) <= 24 and all(bits % 4 == 0 for bits in lengths)):
            raise BadValue("data has fields of {value} bits", key="data", value=", ".join(map(str, lengths)),
                           allowed="whole nibbles of 4 bits, six at most")  # fmt: skip
        if self.kind == "psi5" and not 10 <= sum(lengths) <= 28:
            raise BadValue("data has {value} bits", key="data", value=sum(lengths), allowed="10 .. 28")
        return self

    @model_validator(mode="after")
    def _fits(self) -> Sensor:
        if self.kind == "curve" and bool(self.points) == bool(self.words):
            raise BadValue("a curve has points or words: one of them", key="points")
        known = words_of(self.signal)
        for name in self.words:
            if name not in known:
                raise BadValue("words: {value} is no word of " + self.signal, key="words", value=name,
                               allowed=", ".join(known))  # fmt: skip
        if (self.kind == "moves") != bool(self.moves):
            raise BadValue("a sensor of kind moves has moves, no other has", key="moves")
        for name, codes in self.moves.items():
            missing = set(self.moves) - {name, *(codes if isinstance(codes, dict) else self.moves)}
            if missing:
                raise BadValue(f"moves: no value on the way to {name} from {', '.join(sorted(missing))}", key="moves",
                               value=name)  # fmt: skip
            for word in (name, *(codes if isinstance(codes, dict) else ())):
                if word not in LEVERS:
                    raise BadValue("moves: {value} is no position of the lever", key="moves", value=word,
                                   allowed=", ".join(LEVERS))  # fmt: skip
        if not self.missing < self.teeth:
            raise BadValue("missing = {value}: no tooth is left", key="missing", value=self.missing,
                           allowed=f"0 .. {self.teeth - 1}")  # fmt: skip
        if not self.jitter + self.run_out < 0.5:
            problem = "run_out = {value}: with the jitter an edge is displaced by half a tooth or more"
            raise BadValue(problem, key="run_out", value=self.run_out, allowed=f"below {0.5 - self.jitter:g}")
        if self.pull_up_ohm is not None and (self.kind != "curve" or self.unit != "Ohm"):
            problem, allowed = "pull_up_ohm = {value}: only a resistance has one", 'kind = "curve" with unit = "Ohm"'
            raise BadValue(problem, key="pull_up_ohm", value=self.pull_up_ohm, allowed=allowed)
        if self.points and len(self.points) < 2:
            raise BadValue("a curve has two points or more", key="points", value=len(self.points))
        return self

    def codes(self) -> list[float]:
        """What a lever sends on the way from each position (rows) to each other (columns); rest where it has no way."""
        found = [self.rest] * len(LEVERS) ** 2
        for to, codes in self.moves.items():
            for start in LEVERS:
                code = codes.get(start, self.rest) if isinstance(codes, dict) else codes
                found[LEVERS.index(start) * len(LEVERS) + LEVERS.index(to)] = code
        return found

    def curve(self) -> list[tuple[float, float]]:
        """Points of a curve as its signal has them; those of words stand at their numbers."""
        found = sorted((words_of(self.signal)[word], value) for word, value in self.words.items()) or self.points
        if self.pull_up_ohm is not None:
            found = [(x, self.reference_V * ohm / (ohm + self.pull_up_ohm)) for x, ohm in found]
        # a single position: the same everywhere
        return found if len(found) > 1 else [*found, (found[0][0] + 1.0, found[0][1])]

    def broken_line(self, kind: str) -> dict[str, float]:
        """Last part of a signal -> what is read with this fault of the line to the sensor; {}: not known."""
        if self.kind == "teeth":
            return {"": 0.0, **{f".{name}": 0.0 for name in ("edges", "pulses", "frequency", "amplitude")}}
        if self.pull_up_ohm is None:
            return {}
        # short to battery: the end of the range of the control unit
        return {"": 0.0 if kind == "short_to_ground" else self.reference_V}


class SensorTables(ConfigTable):
    """What the rig file has of them."""

    #: Sensors by name. Messages and I/O cards use the signals sensor.NAME, see docs/car_side.md.
    sensors: dict[str, Sensor] = {}


class Sensors(Device[SensorTables]):
    """Signals sensor.NAME, and sensor.NAME.count ... of those with a state."""

    TABLES = SensorTables
    GROUPS = ("sensor",)

    def signals(self) -> None:
        for name, sensor in self.given.sensors.items():
            if sensor.kind in FRAMES:
                self.table.add(f"sensor.{name}", "1")
            elif sensor.kind == "curve":
                self.table.add(f"sensor.{name}", sensor.unit if sensor.pull_up_ohm is None else "V")
            else:
                own = kernel.MOVES_SIGNALS if sensor.kind == "moves" else kernel.TEETH_SIGNALS
                self.table.add_all((f"sensor.{name}.{n}".rstrip("."), unit) for n, unit in own)
                self.table.internal.update(f"sensor.{name}.{n}" for n, _ in own if n in INTERNAL)

    def plan(self) -> None:
        #: setter of the kernel's table and its arguments
        # frames may carry what other sensors measure
        known = sorted(self.given.sensors.items(), key=lambda item: item[1].kind in FRAMES)
        self.rows = [self._row(name, sensor) for name, sensor in known]

    def _row(self, name: str, s: Sensor) -> tuple[str, Mapping[str, Any]]:
        out = self.table.slot(f"sensor.{name}")
        if s.kind in FRAMES:
            return "set_frame", self._frame(f"sensors.{name}", s, out)
        source = self.read_slot(s.signal, f"sensors.{name}", "signal")
        ends = {"source": source, "out": out}
        if s.kind == "curve":
            return "set_curve", {**ends, "points": s.curve()}
        if s.kind == "moves":
            return "set_moves", {**ends, "rest": s.rest, "hold_s": s.hold_s, "codes": s.codes()}
        return "set_teeth", {**ends, **self._teeth(f"sensors.{name}", s, self.table.units[source])}

    def _frame(self, table: str, s: Sensor, out: int) -> Mapping[str, Any]:
        fields = [(self.read_slot(f.signal, table, "data"), f.gain, f.offset, f.bits, f.lowest_first) for f in s.data]
        if s.kind == "sent":
            signal = isinstance(s.status, str)
            slot = self.read_slot(str(s.status), table, "status") if signal else DUMMY
            fields.insert(0, (slot, 1.0, 0.0 if signal else float(s.status), 4, False))
        return {"out": out, "check": f"{s.kind}_parity" if s.kind == "psi5" and s.parity else s.kind, "fields": fields}

    def _teeth(self, table: str, s: Sensor, unit: str) -> Mapping[str, Any]:
        if unit not in ("rad/s", "rad"):
            raise ConfigError("{key}: {value} is in " + unit, file=self.file, table=table, key="signal", value=s.signal,
                              allowed="a speed in rad/s or an angle in rad")  # fmt: skip
        parts = PARTS if s.resolution_Hz is None else 1.0 / (s.resolution_Hz * self.tick_s)
        if not 1.0 <= round(parts) <= kernel.MOST_PARTS or abs(parts - round(parts)) > WHOLE * parts:
            low, high = 1.0 / (kernel.MOST_PARTS * self.tick_s), 1.0 / self.tick_s
            problem = "{key} = {value}: a tick of " + f"{self.tick_s:g} s at this frequency is no whole part of a tooth"
            raise ConfigError(problem, file=self.file, table=table, key="resolution_Hz", value=s.resolution_Hz,
                              allowed=f"{high:g} Hz over a whole number, down to {low:.3g} Hz")  # fmt: skip
        p = s.pulse
        widths = (0.0, 0.0, 0.0) if p is None else (p.forward_s, p.backward_s, p.standstill_s)
        keys = ("teeth", "missing", "standstill_s", "jitter", "run_out", "dropout", "amplitude_Vs", "amplitude_run_out",
                "threshold_V", "seed")  # fmt: skip
        return {**{key: getattr(s, key) for key in keys}, "of_angle": unit == "rad", "signed_speed": s.direction,
                "parts": round(parts), "widths_s": widths, "every_s": 0.0 if p is None else p.every_s}  # fmt: skip

    def make(self, tick: Rig, received: Sequence[RxState]) -> None:
        if self.rows:
            made = kernel.Sensors(len(self.table), len(self.rows), self.tick_s)
            for k, (setter, arguments) in enumerate(self.rows):
                getattr(made, setter)(k, **arguments)
            tick.set_sensors(made)
