"""[engine_control] and [sensors.NAME] of a rig file. Equations: cython_kernels/tick/engine_control.pyx, sensors.pyx."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from torqueloop.hil.common.config_file import BadValue, ConfigTable, InFile
from torqueloop.hil.common.levers import LEVERS, words_of

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]


class Scaled(ConfigTable):
    """A signal, or { signal = ..., gain = ..., offset = ... }."""

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("string",)

    #: name of the signal
    signal: str
    #: factor on its value in SI
    gain: float = 1.0
    #: added after the gain
    offset: float = 0.0


class EngineControlTable(ConfigTable):
    """[engine_control]: what makes of the driver's pedal and of torque requests what the engine is given."""

    #: table of the engine: speed_radps, wot_Nm, closed_throttle_Nm
    engine_csv: Annotated[str, InFile("engines")]
    #: signal with the driver's demand, 0..1
    pedal: str = "driver.pedal"
    #: signal with the speed of the engine
    speed: str = "engine.w"
    #: torque a control unit limits the engine to [Nm]: a signal, or { signal = ..., gain = ..., offset = ... }
    limit: Scaled | None = None
    #: signal that says whether the request holds; default: it always does
    active: str | None = None
    #: the value of it that means so, in SI; default: anything but 0
    active_value: NotNegative | None = None
    #: the same request for the slow path (charge); default: the charge follows the driver alone
    slow: Scaled | None = None
    #: the request is void when its message stays away for longer [s]
    timeout_s: Annotated[float, Field(gt=0, le=10)] = 0.1
    #: time constant of the charge [s]
    air_s: Annotated[float, Field(ge=0, le=5)] = 0.1
    #: charge beyond this share of full load comes from a turbocharger; 1: there is none
    boost_from: Annotated[float, Field(gt=0, le=1)] = 1.0
    #: time constant of the pressure of the turbocharger [s]
    boost_s: Annotated[float, Field(ge=0, le=10)] = 0.0
    #: smallest efficiency of the spark angle: share of the torque of the charge that remains
    spark_least: Annotated[float, Field(ge=0, le=1)] = 0.3
    #: no request below this torque
    least_Nm: float = 0.0

    @field_validator("limit", "slow", mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"signal": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _together(self) -> EngineControlTable:
        for key in ("active", "slow"):
            if getattr(self, key) is not None and self.limit is None:
                raise BadValue("{key} belongs to a request: limit is missing", key=key)
        if self.active_value is not None and self.active is None:
            raise BadValue("{key} is the value of a signal: active is missing", key="active_value")
        return self


class Sensor(ConfigTable):
    """[sensors.NAME]: a signal sensor.NAME that is made of another one."""

    #: curve: a table; teeth: a toothed wheel whose edges are counted; moves: a lever with a rest position, which sends
    #: movements instead of positions
    kind: Literal["curve", "teeth", "moves"]
    #: signal it looks at
    signal: str
    #: curve: points [x, y], x in SI, linear between, constant outside
    points: Annotated[list[tuple[float, float]], Field(max_length=200)] = []
    #: curve over a lever or gear instead of points: word -> value
    words: dict[str, float] = {}
    #: curve: unit of y
    unit: Literal["1", "rad/s", "m/s", "Nm", "K", "Pa", "V", "A", "Ohm", "s"] = "1"
    #: moves: position the driver goes to -> what is sent, or position he comes from -> what is sent
    moves: dict[str, float | dict[str, float]] = {}
    #: moves: what is sent at rest
    rest: float = 0.0
    #: moves: a movement is sent for so long, then rest for as long at least [s]
    hold_s: Annotated[float, Field(gt=0, le=5)] = 0.1
    #: teeth: their number
    teeth: Annotated[int, Field(ge=1, le=1000)] = 60
    #: teeth: no edge for longer means standstill [s]
    standstill_s: Positive = 0.1
    #: teeth: an edge is off its place by up to this share of a tooth, at random
    jitter: Annotated[float, Field(ge=0, le=0.4)] = 0.0
    #: teeth: probability that an edge is not seen
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    #: teeth: the sensor knows the direction
    direction: bool = False
    #: teeth: of its random numbers
    seed: Annotated[int, Field(ge=0, lt=1 << 53)] = 0

    @field_validator("points", mode="before")
    @classmethod
    def _as_points(cls, value: Any) -> Any:
        if isinstance(value, list) and all(isinstance(p, list | tuple) and len(p) == 2 for p in value):
            if all(isinstance(x, int | float) and not isinstance(x, bool) for p in value for x in p):
                return [(float(x), float(y)) for x, y in value]
        return value

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
        if self.points and len(self.points) < 2:
            raise BadValue("a curve has two points or more", key="points", value=len(self.points))
        for (a, _), (b, _) in pairwise(self.points):
            if not b > a:
                raise BadValue("points: the first numbers do not rise at {value}", key="points", value=b,
                               allowed="strictly rising")  # fmt: skip
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
        """Points of a curve; those of words stand at their numbers."""
        if not self.words:
            return self.points
        found = sorted((words_of(self.signal)[word], value) for word, value in self.words.items())
        # a single position: the same everywhere
        return found if len(found) > 1 else [*found, (found[0][0] + 1.0, found[0][1])]
