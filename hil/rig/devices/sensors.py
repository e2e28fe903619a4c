"""[sensors.NAME] of a rig file: signals made of other signals, as an I/O card or a message has them.

Equations: cython_kernels/tick/sensors.pyx.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from torqueloop.cython_kernels.can.codec import RxState
from torqueloop.cython_kernels.tick import sensors as kernel
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.common.config_file import BadValue, ConfigTable, Curve
from torqueloop.hil.common.levers import LEVERS, words_of
from torqueloop.hil.rig.devices.device import Device


class Sensor(ConfigTable):
    """[sensors.NAME]: a signal sensor.NAME that is computed from another signal."""

    #: curve: a table. teeth: a toothed wheel whose edges are counted. moves: a lever with a rest position, which sends
    #: movements instead of positions.
    kind: Literal["curve", "teeth", "moves"]
    #: Signal that the sensor measures.
    signal: str
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
    #: teeth: largest random displacement of an edge, as a share of a tooth.
    jitter: Annotated[float, Field(ge=0, le=0.4)] = 0.0
    #: teeth: probability that the sensor misses an edge.
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    #: teeth: whether the sensor detects the direction.
    direction: bool = False
    #: teeth: seed of the random numbers.
    seed: Annotated[int, Field(ge=0, lt=1 << 53)] = 0

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
            return {"": 0.0, ".edges": 0.0}
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
            if sensor.kind == "curve":
                self.table.add(f"sensor.{name}", sensor.unit if sensor.pull_up_ohm is None else "V")
            else:
                own = kernel.MOVES_SIGNALS if sensor.kind == "moves" else kernel.TEETH_SIGNALS
                self.table.add_all((f"sensor.{name}.{n}".rstrip("."), unit) for n, unit in own)

    def plan(self) -> None:
        #: setter of the kernel's table and its arguments
        self.rows = [self._row(name, sensor) for name, sensor in self.given.sensors.items()]

    def _row(self, name: str, s: Sensor) -> tuple[str, Mapping[str, Any]]:
        out = self.table.slot(f"sensor.{name}")
        unit = "rad/s" if s.kind == "teeth" else None
        ends = {"source": self.read_slot(s.signal, f"sensors.{name}", "signal", unit), "out": out}
        if s.kind == "curve":
            return "set_curve", {**ends, "points": s.curve()}
        if s.kind == "moves":
            return "set_moves", {**ends, "rest": s.rest, "hold_s": s.hold_s, "codes": s.codes()}
        keys = ("teeth", "standstill_s", "jitter", "dropout", "seed")
        return "set_teeth", {**ends, "signed_speed": s.direction, **{key: getattr(s, key) for key in keys}}

    def make(self, tick: Rig, received: Sequence[RxState]) -> None:
        if self.rows:
            made = kernel.Sensors(len(self.table), len(self.rows), self.tick_s)
            for k, (setter, arguments) in enumerate(self.rows):
                getattr(made, setter)(k, **arguments)
            tick.set_sensors(made)
