"""[[faults]] of a rig file: what is made wrong on purpose, and when. Rows of the tick: hil/rig/devices/faults.py."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import Field, field_validator, model_validator

from torqueloop.hil.common.conditions import readable
from torqueloop.hil.common.config_file import BadValue, ConfigTable
from torqueloop.hil.rig.schema.participants import NotNegative, Positive

#: what can be done to a signal; to a frame of a message, sent or received; to all frames of a node; to a bus; to a
#: shift element; to the command of a solenoid
SIGNAL_KINDS = (
    "offset", "gain", "stuck", "value", "noise", "nan", "ramp", "lag", "raw", "out_of_range",
    "open", "short_to_ground", "short_to_battery",
)  # fmt: skip
FRAME_KINDS = (
    "drop", "crc", "crc_random", "counter", "counter_random", "counter_offset", "dlc", "delay", "jitter", "duplicate",
)  # fmt: skip
NODE_KINDS = ("silent", "delay", "jitter", "duplicate")
BUS_KINDS = ("bus_off", "load", "babble")
#: electrical ones, of a solenoid with a coil and of a line to a sensor
LINE_KINDS = ("open", "short_to_ground", "short_to_battery")
COIL_KINDS = (*LINE_KINDS, "resistance", "stuck_valve")
SOLENOID_KINDS = ("stuck", "value", "offset", "gain", "noise", "ramp", "lag", *COIL_KINDS)
ELEMENT_KINDS = ("stuck_open", "stuck_closed", "slow_fill", "leak", "worn", "broken")
TARGETS: dict[str, tuple[str, ...]] = {
    "signal": SIGNAL_KINDS,
    "message": FRAME_KINDS,
    "node": NODE_KINDS,
    "bus": BUS_KINDS,
    "element": ELEMENT_KINDS,
    "solenoid": SOLENOID_KINDS,
}
Kind = Literal[
    "offset", "gain", "stuck", "value", "noise", "nan", "ramp", "lag", "raw", "out_of_range",
    "drop", "crc", "crc_random", "counter", "counter_random", "counter_offset", "dlc", "delay", "jitter", "duplicate",
    "silent", "bus_off", "load", "babble", "stuck_open", "stuck_closed", "slow_fill", "leak", "worn", "broken",
    "open", "short_to_ground", "short_to_battery", "resistance", "stuck_valve",
]  # fmt: skip
#: kinds that need a value, with its range and what it is; those that may have one
NEEDED: dict[str, tuple[float | None, float | None]] = {
    "offset": (None, None), "gain": (None, None), "value": (None, None), "noise": (None, None), "ramp": (None, None),
    "lag": (1e-6, 1e4), "raw": (None, None), "counter_offset": (1, 4095), "delay": (0, 10), "jitter": (0, 10),
    "load": (0, 1), "babble": (0, 1), "slow_fill": (1e-6, 1e4), "leak": (0, 1), "worn": (0, 10),
    "resistance": (1e-3, 1e9),
}  # fmt: skip
POSSIBLE: dict[str, tuple[float | None, float | None]] = {
    "crc": (1, (1 << 53) - 1),
    "dlc": (0, 64),
    "duplicate": (1, 100),
    "stuck_closed": (0, 1e8),
}
#: values that are whole numbers
WHOLE = ("raw", "counter_offset", "crc", "dlc", "duplicate")
#: kinds that a signal comes back from in steps
CONTINUOUS = ("offset", "gain", "stuck", "value", "ramp", "lag")


class Fault(ConfigTable):
    """[[faults]]: an injected fault, see docs/disturbances.md."""

    #: Name in reports and in the signals fault.NAME.on and fault.NAME.acts. By default it is the number of the fault.
    name: Annotated[str, Field(pattern=r"^\w{1,60}$")] | None = None
    #: Signal that the fault acts on.
    signal: str | None = None
    #: Message, sent or received by the rig, whose frames the fault acts on.
    message: str | None = None
    #: Node of a database. The fault acts on all of its messages.
    node: str | None = None
    #: Bus that the fault acts on.
    bus: str | None = None
    #: Clutch or brake of the powertrain that has an input p. For kind broken: a BreakableShaft.
    element: str | None = None
    #: Solenoid of the hydraulic unit. The fault acts on its command, its wires, its coil or its valve.
    solenoid: str | None = None
    #: What the fault does to its signal, message, node, bus, element or solenoid, see docs/disturbances.md.
    kind: Kind
    #: Size of the fault, see docs/disturbances.md. It is in the unit of the database for CAN signals, and else in SI.
    value: float | None = None
    #: Simulated time at which the fault begins.
    from_s: NotNegative = 0.0
    #: Simulated time at which the fault ends. By default it does not end.
    until_s: Positive | None = None
    #: Name under which a person or a program switches the fault, instead of a time.
    switch: str | None = None
    #: Condition on signals that begins the fault instead of a time, as in [[steps]].
    when: str | None = None
    #: Condition on signals that ends the fault.
    until: str | None = None
    #: The fault ends this long after its begin.
    lasts_s: Positive | None = None
    #: The fault ends when it has acted this often: on frames, or on a signal in ticks.
    count: Annotated[int, Field(ge=1, le=10**9)] | None = None
    #: With `when`: largest number of times that the fault begins. It begins each time the condition becomes true. 0:
    #: any number.
    times: Annotated[int, Field(ge=0, le=10**9)] = 1
    #: While the fault lasts, it acts on each n-th frame, or in each n-th tick.
    every: Annotated[int, Field(ge=1, le=10**6)] = 1
    #: While the fault lasts, it acts with this probability.
    chance: Annotated[float, Field(gt=0, le=1)] = 1.0
    #: Time in which a signal returns linearly to its true value after the end of the fault [s].
    back_s: NotNegative = 0.0
    #: Seed of the random numbers of the fault.
    seed: Annotated[int, Field(ge=0, lt=1 << 53)] = 0
    #: Kinds load and babble: bit rate by which the load of the frames is computed [bit/s]. By default it is that of the
    #: bus.
    bitrate: Annotated[int, Field(ge=10_000, le=1_000_000)] | None = None
    #: Kinds load and babble: identifier of the frames. By default it is 0x7FF for load and 0 for babble.
    can_id: Annotated[int, Field(ge=0, lt=1 << 29)] | None = None

    @property
    def kind_of_target(self) -> str:
        """Which key names what it acts on."""
        return next(key for key in TARGETS if getattr(self, key) is not None)

    @property
    def target(self) -> str:
        """What it acts on."""
        return str(getattr(self, self.kind_of_target))

    @field_validator("when", "until")
    @classmethod
    def _readable(cls, text: str | None, info: Any) -> str | None:
        return readable(text, str(info.field_name))

    @model_validator(mode="after")
    def _whole(self) -> Fault:
        given = [key for key in TARGETS if getattr(self, key) is not None]
        if len(given) != 1:
            problem = "needs either signal or message, node, bus, element or solenoid"
            raise BadValue(problem, key="signal", value=self.signal)
        what = given[0]
        if self.kind not in TARGETS[what]:
            article = "an" if what == "element" else "a"
            raise BadValue(f"{article} {what} has no fault of kind {{value}}", key="kind", value=self.kind,
                           allowed=", ".join(TARGETS[what]))  # fmt: skip
        self._check_value()
        self._check_times()
        if self.back_s and (what != "signal" or self.kind not in CONTINUOUS):
            raise BadValue("only a signal has a way back", key="back_s", value=self.back_s,
                           allowed=f"kinds {', '.join(CONTINUOUS)}")  # fmt: skip
        if self.kind not in ("load", "babble"):
            for key in ("bitrate", "can_id"):
                if getattr(self, key) is not None:
                    raise BadValue("{key} is of load and babble", key=key, value=getattr(self, key))
        return self

    def _check_value(self) -> None:
        limits = NEEDED.get(self.kind) or POSSIBLE.get(self.kind)
        if self.value is None:
            if self.kind in NEEDED:
                raise BadValue("a fault of this kind needs a value", key="value", value=None, allowed="a number")
            return
        if limits is None:
            raise BadValue(f"kind {self.kind} takes no value", key="value", value=self.value)
        low, high = limits
        if low is not None and high is not None and not low <= self.value <= high:
            raise BadValue("{key} = {value} is out of range", key="value", value=self.value, allowed=f"{low} .. {high}")
        if self.kind in WHOLE and self.value != int(self.value):
            raise BadValue("{key} = {value} is no whole number", key="value", value=self.value)

    def _check_times(self) -> None:
        if self.until_s is not None and self.until_s <= self.from_s:
            raise BadValue("until_s = {value} ends before it begins", key="until_s", value=self.until_s,
                           allowed=f"> from_s = {self.from_s:g}")  # fmt: skip
        timed = {"from_s", "until_s"} & self.model_fields_set
        if self.switch is not None and timed:
            raise BadValue("a fault is switched either by hand or by time", key="switch", value=self.switch)
        if self.when is not None and (timed or self.switch is not None):
            raise BadValue("a fault begins by time, by hand, or by a condition", key="when", value=self.when)
        if "times" in self.model_fields_set and self.when is None:
            raise BadValue("{key} goes with `when`", key="times", value=self.times)


class FaultTables(ConfigTable):
    """What the rig file has of faults."""

    #: Faults that the rig injects.
    faults: list[Fault] = []


def faults_of(config: ConfigTable) -> list[Fault]:
    """The faults in a rig file."""
    return cast(FaultTables, config).faults
