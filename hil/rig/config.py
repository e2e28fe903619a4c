"""The rig file: what is connected to what, at which rate, and what happens when it fails.

Here the file is read and each value checked by itself; `plan` checks it against the driveline and the CAN database.
Both before anything is started. Example: configs/rigs/desk_4hp22.toml.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from torqueloop.core.errors import closest
from torqueloop.core.units import UNITS
from torqueloop.hil.can.table import CanTable
from torqueloop.hil.config_file import BadValue, ConfigTable, load_config
from torqueloop.hil.link.keys import server_keys
from torqueloop.hil.link.sockets import CurveKeys, PeerError, check_endpoint

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]

#: positions of the selector lever, in the order of the value table `Lever` of the CAN database
LEVERS = ("P", "R", "N", "D", "4", "3", "2", "1")


class RigTable(ConfigTable):
    """[rig]"""

    name: str
    #: driveline file, relative to the rig file
    powertrain: str
    #: simulated time of a run unless --duration says otherwise [s]
    duration_s: Annotated[float, Field(gt=0, le=1e6)] = 25.0


class Clock(ConfigTable):
    """[clock]: docs/clock.md has the words and rules."""

    tick_s: Annotated[float, Field(ge=1e-4, le=0.1)] = 1e-3
    #: steps per tick; more cost compute time and gain accuracy
    substeps: Annotated[int, Field(ge=1, le=64)] = 1
    policy: Literal["catch_up", "skip", "stop"] = "catch_up"
    #: late ticks run back to back at most; what is further behind becomes slip
    max_catch_up: Annotated[int, Field(ge=1, le=1000)] = 5
    #: the ticks of this first part of simulated time are counted apart: cold caches and first page faults are no
    #: statement about the rest [s]
    grace_s: Annotated[float, Field(ge=0, le=60)] = 0.0
    #: the last part of the wait looks at the clock instead of sleeping [us]: less lateness for that share of a CPU
    spin_us: Annotated[float, Field(ge=0)] = 0.0
    #: SCHED_FIFO priority of the loop; 0: ordinary scheduling
    fifo_priority: Annotated[int, Field(ge=0, le=99)] = 80
    cpu: Annotated[int, Field(ge=0)] | Literal["auto", "none"] = "auto"
    #: mlockall before arming
    lock_memory: bool = True

    @field_validator("cpu", mode="before")
    @classmethod
    def _cpu(cls, value: Any) -> Any:
        if isinstance(value, bool) or not (value in ("auto", "none") or (isinstance(value, int) and value >= 0)):
            raise BadValue("{key} = {value} is not allowed", value=value, allowed='a CPU number, "auto", "none"')
        return value

    @model_validator(mode="after")
    def _spin(self) -> Clock:
        if self.spin_us * 1e-6 > 0.5 * self.tick_s:
            raise BadValue(
                "spin_us = {value} is more than half a tick",
                key="spin_us",
                value=self.spin_us,
                allowed=f"0 .. {0.5e6 * self.tick_s:g}",
            )
        return self


class Can(CanTable):
    """[can]"""

    #: the rig's node in the database
    node: str = "HIL"
    #: messages whose silence latches the safe state, with their timeouts [s]
    rx_timeout_s: dict[str, Positive] = {}
    #: first sending of a message after arming [s]; default 0
    tx_offset_s: dict[str, NotNegative] = {}
    #: frames in a row that cannot be sent before the bus counts as dead
    tx_drop_limit: Annotated[int, Field(ge=1)] = 10
    #: socketcan through python-can and its threads instead of the tick's own socket
    gateway: bool = False
    #: the tick's own socket: bus off or interface down for longer latches the safe state [s]
    bus_down_limit_s: NotNegative = 0.2
    #: the tick's own socket: room for frames that wait, and for frames that the interface has not taken yet. A small
    #: send buffer keeps old states from queueing up [bytes]
    receive_buffer_bytes: Annotated[int, Field(ge=4096, le=1 << 28)] = 1 << 20
    send_buffer_bytes: Annotated[int, Field(ge=2048, le=1 << 24)] = 1 << 14

    @property
    def native(self) -> bool:
        """The tick itself reads and writes a SocketCAN interface."""
        return self.interface == "socketcan" and not self.gateway

    @model_validator(mode="after")
    def _native_options(self) -> Can:
        if self.native and (self.options or self.bitrate is not None):
            key = "options" if self.options else "bitrate"
            hint = "socketcan is set up with `ip link`; gateway = true gives it to python-can"
            raise BadValue("{key} is for python-can", key=key, value=getattr(self, key), hint=hint)
        return self


class Link(ConfigTable):
    """One entry of [inputs] or [outputs]: where the value comes from."""

    signal: str | None = None
    #: a constant instead of a signal: a number in the unit of the target, or a word of its value table
    value: float | str | None = None
    gain: float = 1.0
    offset: float = 0.0

    @model_validator(mode="after")
    def _one(self) -> Link:
        if (self.signal is None) == (self.value is None):
            raise BadValue("needs either signal or value", key="signal", value=self.signal)
        return self

    @property
    def converts(self) -> bool:
        """A gain or offset of its own was given: units are the author's business."""
        return bool({"gain", "offset"} & self.model_fields_set)


class Output(Link):
    """One entry of [outputs]: where the value comes from, and what it is held to, whatever it is."""

    #: range in the unit of the database; default: the database's
    min: float | None = None
    max: float | None = None
    #: largest change per second, in the unit of the database; the first value is taken as it is
    slew: Annotated[float, Field(gt=0)] | None = None
    #: outside: send the limit, or do so and latch the safe state
    on_limit: Literal["clamp", "safe"] = "clamp"

    @model_validator(mode="after")
    def _order(self) -> Output:
        if self.min is not None and self.max is not None and not self.min <= self.max:
            raise BadValue("max = {value} is below min", key="max", value=self.max, allowed=f">= {self.min}")
        return self


#: what can be done to a signal, and to a frame the rig sends
SIGNAL_KINDS = ("offset", "gain", "stuck", "value", "noise", "nan")
FRAME_KINDS = ("drop", "crc", "counter", "dlc")


class Fault(ConfigTable):
    """One entry of [[faults]]: something made wrong on purpose, see hil/rig/fault_plan.py."""

    signal: str | None = None
    message: str | None = None
    kind: Literal["offset", "gain", "stuck", "value", "noise", "nan", "drop", "crc", "counter", "dlc"]
    value: float | None = None
    from_s: NotNegative = 0.0
    until_s: Positive | None = None
    #: switched by hand under this name instead of by time
    switch: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Fault:
        if (self.signal is None) == (self.message is None):
            raise BadValue("needs either signal or message", key="signal", value=self.signal)
        allowed = SIGNAL_KINDS if self.message is None else FRAME_KINDS
        if self.kind not in allowed:
            what = "signal" if self.message is None else "message"
            raise BadValue(
                f"a {what} has no fault of kind {{value}}", key="kind", value=self.kind, allowed=", ".join(allowed)
            )
        wants = self.kind in ("offset", "gain", "value", "noise")
        if wants and self.value is None:
            raise BadValue("a fault of this kind needs a value", key="value", value=None, allowed="a number")
        if not wants and self.value is not None:
            raise BadValue(f"kind {self.kind} takes no value", key="value", value=self.value)
        if self.until_s is not None and self.until_s <= self.from_s:
            allowed_s = f"> from_s = {self.from_s:g}"
            raise BadValue(
                "until_s = {value} ends before it begins", key="until_s", value=self.until_s, allowed=allowed_s
            )
        if self.switch is not None and {"from_s", "until_s"} & self.model_fields_set:
            raise BadValue("a fault is switched either by hand or by time", key="switch", value=self.switch)
        return self


def check_keys(endpoint: str, server_key: str | None, client_keys: str | None) -> None:
    """BadValue unless the endpoint may be used with these keys: all of them, or none and loopback."""
    if (server_key is None) != (client_keys is None):
        missing = "server_key" if server_key is None else "client_keys"
        raise BadValue("CURVE needs both server_key and client_keys", key=missing, value=None)
    try:
        check_endpoint(endpoint, None if server_key is None else CurveKeys(Path(server_key)))
    except PeerError as error:
        raise BadValue(str(error), key="endpoint", value=endpoint) from None


def _link(value: Any) -> Any:
    # short forms: "engine.w" and 1.0
    if isinstance(value, str):
        return {"signal": value}
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"value": float(value)}
    if isinstance(value, dict):
        numbers = ("value", "gain", "offset", "min", "max", "slew")
        return {k: float(v) if k in numbers and isinstance(v, int) else v for k, v in value.items()}
    return value


class Vehicle(ConfigTable):
    """[vehicle]: the process that owns the road, over ZeroMQ."""

    #: vehicle file to start a process for; without it, one is expected to connect to `endpoint`
    start: str | None = None
    endpoint: str = "tcp://127.0.0.1:0"
    #: components of the powertrain: the car's Mass and the RoadLoad
    car: str = "car"
    road: str = "road"
    #: signal sent to the vehicle as brake 0..1
    brake: str = "driver.brake"
    #: a value older than this is stale [s]: about 20 periods of the vehicle process on a desktop computer
    age_limit_s: Positive = 0.05
    #: a stale value is held for this long, then its force is ramped to 0 [s]
    hold_s: NotNegative = 0.1
    #: duration of that ramp; at its end the safe state is latched [s]
    ramp_s: Positive = 0.2
    #: values refused in a row (not finite, against the schema) before the safe state
    refuse_limit: Annotated[int, Field(ge=1)] = 10
    #: how long the process may take to answer for the first time, and in virtual time each time [s]
    start_timeout_s: Positive = 10.0
    #: CURVE: the rig's certificate with its secret key, folder with the public certificates of those who may connect.
    #: Needed for an endpoint that is not on loopback; relative to the rig file
    server_key: str | None = None
    client_keys: str | None = None

    @model_validator(mode="after")
    def _loopback(self) -> Vehicle:
        check_keys(self.endpoint, self.server_key, self.client_keys)
        if self.start is not None and self.server_key is not None:
            raise BadValue(
                "a vehicle process started by the rig uses no keys: it is on this computer",
                key="server_key",
                value=self.server_key,
                allowed="without start",
            )
        return self


class Control(ConfigTable):
    """[control]: the control channel, see docs/control.md; without this table there is none."""

    #: port 0: any free one, printed and written to run.json
    endpoint: str = "tcp://127.0.0.1:0"
    #: CURVE, as in [vehicle]
    server_key: str | None = None
    client_keys: str | None = None

    @model_validator(mode="after")
    def _loopback(self) -> Control:
        check_keys(self.endpoint, self.server_key, self.client_keys)
        return self


class Tcu(ConfigTable):
    """[tcu]: the soft control unit; without this table a real one is on the bus."""

    start: str
    #: "rig": on the bus of this file, whatever the control unit's own file says; "own": as its file says
    bus: Literal["own", "rig"] = "own"
    #: how long its first frame may take [s]
    start_timeout_s: Positive = 10.0


class Limit(ConfigTable):
    """One entry of [limits]; a signal outside latches the safe state."""

    min: float = float("-inf")
    max: float = float("inf")
    #: unit of min and max, e.g. "rpm", "kmh"; default SI
    unit: str | None = None

    @model_validator(mode="after")
    def _order(self) -> Limit:
        if not self.min < self.max:
            raise BadValue("max = {value} is not above min", key="max", value=self.max, allowed=f"> {self.min}")
        if self.unit is not None and self.unit not in UNITS:
            near = closest(self.unit, UNITS)
            raise BadValue(
                "unit {value} is not known",
                key="unit",
                value=self.unit,
                hint=f"did you mean '{near}'?" if near else None,
            )
        return self


class SafeState(ConfigTable):
    """[safe_state]: when it is latched besides the limits, and the reaction."""

    #: overruns in a row; 0: never. Above max_catch_up, else one long stall from outside is enough
    overrun_limit: Annotated[int, Field(ge=0)] = 50
    #: ticks in a row with a step that only a plain impulse could finish (more than 12 events in it); 0: never.
    #: Full-throttle runs have none
    solver_limit: Annotated[int, Field(ge=0)] = 20
    #: no heartbeat of the loop for this long: it hangs [s]
    watchdog_s: Annotated[float, Field(ge=0.05)] = 0.5
    #: from the value at latching to the target within this time [s]: short enough to open before the driver notices the
    #: fault, long enough not to hit the driveline
    ramp_s: NotNegative = 0.2
    #: the run ends this long after latching [s]; negative: it goes on
    stop_after_s: float = 1.0
    #: every tick is kept in memory from so long before the latching to so long after it, and then written [s]
    first_fault_before_s: Annotated[float, Field(ge=0, le=60)] = 2.0
    first_fault_after_s: Annotated[float, Field(ge=0, le=60)] = 0.5
    #: model input -> target in SI; default: 0 for every input that comes over CAN and for every pedal
    inputs: dict[str, float] | None = None

    @field_validator("inputs", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        return (
            {k: float(v) if isinstance(v, int) else v for k, v in value.items()} if isinstance(value, dict) else value
        )


class Record(ConfigTable):
    """[record]: what goes into the run directory."""

    #: signal names, or "all"
    signals: list[str] | Literal["all"] = "all"
    #: one sample every so many ticks
    every: Annotated[int, Field(ge=1, le=1000)] = 1
    #: what the ticks took in, for replay
    inputs: bool = True
    bus: bool = True


class RigConfig(ConfigTable):
    """One rig file."""

    rig: RigTable
    clock: Clock = Clock()
    can: Can | None = None
    inputs: dict[str, Link] = {}
    outputs: dict[str, Output] = {}
    #: driver: name -> constant, or points [t_s, value] (linear between them; two points at one time are a step)
    driver: dict[str, list[tuple[float, float]]] = {}
    vehicle: Vehicle | None = None
    control: Control | None = None
    tcu: Tcu | None = None
    limits: dict[str, Limit] = {}
    safe_state: SafeState = SafeState()
    #: injected on purpose
    faults: list[Fault] = []
    #: name -> condition, see hil/gates.py
    gates: dict[str, str] = {}
    record: Record = Record()

    @field_validator("inputs", "outputs", mode="before")
    @classmethod
    def _links(cls, table: Any) -> Any:
        return {name: _link(value) for name, value in table.items()} if isinstance(table, dict) else table

    @field_validator("driver", mode="before")
    @classmethod
    def _driver(cls, table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        return {name: driver_points(name, value) for name, value in table.items() if name != "source"}

    @model_validator(mode="after")
    def _together(self) -> RigConfig:
        if self.tcu is not None and self.can is None:
            raise BadValue("[tcu] needs a [can] table", key="tcu", value=self.tcu.start)
        if self.clock.policy == "catch_up" and 0 < self.safe_state.overrun_limit <= self.clock.max_catch_up:
            raise BadValue(
                "overrun_limit = {value} would latch on every stall that catch_up may work off",
                key="overrun_limit",
                value=self.safe_state.overrun_limit,
                allowed=f"0 or > max_catch_up = {self.clock.max_catch_up}",
            )
        return self


def driver_points(name: str, value: Any) -> list[tuple[float, float]]:
    """Points (t_s, y) of a driver table; words are lever positions and change in steps."""
    if isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
        value = [[0.0, value]]
    if not isinstance(value, list) or not value:
        raise BadValue(
            f"driver table {name}",
            key=name,
            value=value,
            allowed="a number, a lever position, or points [[t_s, value], ...]",
        )
    points: list[tuple[float, float]] = []
    for point in value:
        if not isinstance(point, list | tuple) or len(point) != 2 or not _is_number(point[0]):
            raise BadValue(f"driver table {name}: bad point {{value}}", key=name, value=point, allowed="[t_s, value]")
        t, y = float(point[0]), point[1]
        if isinstance(y, str):
            if y not in LEVERS:
                raise BadValue(
                    f"driver table {name}: {{value}} is no lever position", key=name, value=y, allowed=", ".join(LEVERS)
                )
            y = float(LEVERS.index(y))
            if points and points[-1][0] < t:
                points.append((t, points[-1][1]))  # a lever does not pass through the positions between in a line
        elif not _is_number(y):
            raise BadValue(
                f"driver table {name}: bad value {{value}}", key=name, value=y, allowed="a number or a lever position"
            )
        points.append((t, float(y)))
    for (t0, _), (t1, _) in pairwise(points):
        if t1 < t0:
            raise BadValue(f"driver table {name}: time {{value}} goes back", key=name, value=t1, allowed=f">= {t0}")
    return points


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def load_rig_config(path: str | Path) -> RigConfig:
    """Read and check a rig file by itself."""
    return load_config(path, RigConfig)


def curve_keys(path: str | Path, server_key: str | None, client_keys: str | None) -> CurveKeys | None:
    """Keys of a table of the rig file at `path`; None without. PeerError where they are not usable."""
    if server_key is None or client_keys is None:
        return None
    return server_keys(relative(path, server_key), relative(path, client_keys))


def relative(path: str | Path, file: str) -> Path:
    """`file` as written in the rig file at `path`."""
    return (Path(path).parent / file).resolve()
