"""Tables of a rig file for what is around the tick: plant, buses, control units, vehicle, control channel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from torqueloop.core.describe.ranges import RANGES
from torqueloop.hil.can.table import CanTable
from torqueloop.hil.common.conditions import readable
from torqueloop.hil.common.config_file import BadValue, ConfigTable, InFile
from torqueloop.hil.common.locate import find
from torqueloop.hil.link.carriers import MAX_CARRIERS
from torqueloop.hil.link.endpoints import CurveKeys, PeerError, check_endpoint
from torqueloop.hil.link.keys import server_keys

#: no time in a rig file is longer: in nanoseconds it would not fit into 64 bits [s]
LONGEST_S = 1e6
#: times [s]
Positive = Annotated[float, Field(gt=0, le=LONGEST_S)]
NotNegative = Annotated[float, Field(ge=0, le=LONGEST_S)]
#: how long a silence is borne, and a reaction to it lasts [s]
ReactionTime = Annotated[float, Field(ge=0, le=RANGES["reaction_time"].high)]

#: kind of a control unit that nobody starts: a real one on the bus, or a program started by hand
HARDWARE = "hardware"


class Plant(ConfigTable):
    """[plant]: what is integrated in the tick."""

    #: driveline file, relative to the rig file, or the bare name of an installed one
    powertrain: Annotated[str, InFile("powertrains")]
    #: other values than that file's: dotted key of it -> value, as "components.car.m_kg" = 1600.0
    set: dict[str, Any] = {}


class Sending(ConfigTable):
    """[bus.NAME.sending.MESSAGE]: when the rig sends a message, instead of what the database says."""

    #: by the clock, with its cycle time; when a signal of it changes; when `when` comes true; by the clock and on a
    #: change
    type: Literal["cyclic", "on_change", "on_event", "cyclic_and_on_change"]
    #: signals whose change sends it; default: all of the message
    signals: list[str] = []
    #: condition, as in [[steps]], that sends it each time it comes true
    when: str | None = None
    #: time between two frames that the clock does not send, at least [s]; default: the database's GenMsgDelayTime
    gap_s: NotNegative | None = None
    #: frames more after a change or event; default: the database's GenMsgNrOfRepetition
    repeats: Annotated[int, Field(ge=0, le=1000)] | None = None

    @field_validator("when")
    @classmethod
    def _readable(cls, text: str | None) -> str | None:
        return readable(text, "when")

    @model_validator(mode="after")
    def _fits(self) -> Sending:
        if (self.type == "on_event") != (self.when is not None) and self.type != "cyclic_and_on_change":
            raise BadValue(f"type {self.type} and `when` do not fit", key="when", value=self.when,
                           allowed="`when` with on_event, which needs it, or cyclic_and_on_change")  # fmt: skip
        if self.signals and self.type not in ("on_change", "cyclic_and_on_change"):
            raise BadValue("{key} are for a message that is sent on change", key="signals", value=self.signals)
        return self


class Bus(CanTable):
    """[bus.NAME]: a CAN bus. Its signals are called Message.signal, and NAME.Message.signal where two buses have the
    same."""

    #: the rig's node in the database
    node: str = "HIL"
    #: other nodes of the database whose messages the rig sends as well: the rest of the bus
    nodes: list[str] = []
    #: messages it sends, where the database does not say or not all are wanted; default: those of its nodes
    send: list[str] | None = None
    #: messages it receives besides those the database lists its nodes as receivers of
    receive: list[str] = []
    #: cycle time of messages that have none in the database, or another one [s]
    cycle_s: dict[str, Positive] = {}
    #: signals that [outputs] does not name take the start value of the database, and first sendings that tx_offset_s
    #: does not give are spread so that the load is even
    restbus: bool = False
    #: interface file that says how each message of this bus is known; default: that of the soft TCU on it
    known: Annotated[str, InFile("interfaces")] | None = None
    #: message -> when it is sent, where the database does not say or not so
    sending: dict[str, Sending] = {}
    #: messages whose silence latches the safe state, with their timeouts [s]
    rx_timeout_s: dict[str, Annotated[ReactionTime, Field(gt=0)]] = {}
    #: first sending of a message after arming, also later than its cycle [s]; default: the database's
    #: GenMsgStartDelayTime, else 0, with restbus spread
    tx_offset_s: dict[str, NotNegative] = {}
    #: frames in a row that cannot be sent before the bus counts as dead
    tx_drop_limit: Annotated[int, Field(ge=1, lt=1 << 31)] = 10
    #: socketcan through python-can and its threads instead of the tick's own socket
    gateway: bool = False
    #: the tick's own socket: bus off or interface down for longer latches the safe state [s]
    bus_down_limit_s: ReactionTime = 0.2
    #: the tick's own socket: room for frames that wait [bytes]
    receive_buffer_bytes: Annotated[int, Field(ge=4096, le=1 << 28)] = 1 << 20
    #: the tick's own socket: room for frames that the interface has not taken yet. A small one keeps old states from
    #: queueing up [bytes]
    send_buffer_bytes: Annotated[int, Field(ge=2048, le=1 << 24)] = 1 << 14

    @property
    def native(self) -> bool:
        """The tick itself reads and writes a SocketCAN interface."""
        return self.interface == "socketcan" and not self.gateway

    @model_validator(mode="after")
    def _native_options(self) -> Bus:
        if self.native and (self.options or self.bitrate is not None):
            key = "options" if self.options else "bitrate"
            hint = "socketcan is set up with `ip link`; gateway = true gives it to python-can"
            raise BadValue("{key} is for python-can", key=key, value=getattr(self, key), hint=hint)
        return self


class Ecu(ConfigTable):
    """[ecu.NAME]: a control unit on one or several buses of the rig. On the real clock it is a process of its own, on
    the virtual clock it runs in lockstep in the rig's process."""

    #: kind of the control unit: soft_tcu, recording (a bus log), one that a package adds (entry points
    #: "torqueloop.ecus"), or hardware: nobody starts it, it is on the bus
    kind: str = "soft_tcu"
    #: the unit's own file, whatever its kind needs: configuration, library ...
    start: Annotated[str, InFile("tcu")] | None = None
    #: the bus it is on, or several; default: the rig's only one
    bus: str | list[str] | None = None
    #: its node in the databases of these buses
    node: str = "TCU"
    #: virtual clock: numbers it gets directly, its name -> signal
    sensors: dict[str, str] = {}
    #: virtual clock: numbers it gives directly, its name -> unit. Each is a signal NAME.name, for [inputs]
    actuators: dict[str, str] = {}
    #: keys of the kind's own
    options: dict[str, Any] = {}
    #: on the virtual clock: in the rig's process; false: in a process of its own, where its kind has one
    in_process: bool = True
    #: how long its first frame may take [s]
    start_timeout_s: Positive = 30.0

    @property
    def started(self) -> bool:
        """The rig starts it."""
        return self.kind != HARDWARE

    @model_validator(mode="after")
    def _hardware(self) -> Ecu:
        if not self.started:
            for key in ("start", "options", "sensors", "actuators"):
                if getattr(self, key):
                    raise BadValue(
                        "nobody starts a control unit of kind hardware", key=key, value=getattr(self, key),
                        allowed=f'another kind; inherited from a file: without = ["ecu.NAME.{key}"]',
                    )  # fmt: skip
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


class Vehicle(ConfigTable):
    """[vehicle]: the model that owns the road, in a process over ZeroMQ; on the virtual clock in the rig's process."""

    #: kind of the model: road, or one that a package adds (entry points "torqueloop.vehicles")
    kind: str = "road"
    #: file of the model the rig starts; without it, a process is expected to connect to `endpoint`
    start: Annotated[str, InFile("vehicles")] | None = None
    #: keys of the kind's own
    options: dict[str, Any] = {}
    #: on the virtual clock: in the rig's process; false: in a process of its own, over the link. The same states
    in_process: bool = True
    #: where the rig listens; port 0: any free one
    endpoint: str = "tcp://127.0.0.1:0"
    #: component of the powertrain that is the mass of the car
    car: str = "car"
    #: component of the powertrain that is its RoadLoad
    road: str = "road"
    #: signal sent to the vehicle as brake 0..1
    brake: str = "driver.brake"
    #: components of kind MovingCarrier (with use_z) whose motion the model gives and that it is told the moments on.
    #: Signals vehicle.NAME.w_x .. w_z, z_x .. z_z, a_x .. a_z; inputs of theirs that [inputs] does not name take them
    carriers: Annotated[list[str], Field(max_length=MAX_CARRIERS)] = []
    #: time between two exchanges, a whole number of ticks, for a vehicle that steps more slowly than the rig; 0: every
    #: tick. The wheel force of a message is the mean since the message before [s]
    period_s: Annotated[float, Field(ge=0, le=1)] = 0.0
    #: a value older than this is stale [s]: about 20 periods of the vehicle process on a desktop computer
    age_limit_s: Annotated[ReactionTime, Field(gt=0)] = 0.05
    #: a stale value is held for this long, then its force is ramped to 0 [s]
    hold_s: ReactionTime = 0.1
    #: duration of that ramp; at its end the safe state is latched [s]
    ramp_s: Annotated[ReactionTime, Field(gt=0)] = 0.2
    #: values refused in a row (not finite, against the schema) before the safe state
    refuse_limit: Annotated[int, Field(ge=1, lt=1 << 31)] = 10
    #: how long the process may take to answer for the first time, and in virtual time each time [s]
    start_timeout_s: Positive = 30.0
    #: CURVE: the rig's certificate with its secret key, relative to the rig file. Needed for an endpoint that is not on
    #: loopback
    server_key: Annotated[str, InFile("")] | None = None
    #: CURVE: folder with the public certificates of those who may connect, relative to the rig file
    client_keys: Annotated[str, InFile("")] | None = None

    @property
    def started(self) -> bool:
        """The rig starts it."""
        return self.start is not None or self.kind != "road" or bool(self.options)

    @field_validator("kind")
    @classmethod
    def _kind(cls, value: str) -> str:
        if not value:
            raise BadValue("{key} is empty", value=value, allowed="road, or a kind that a package adds")
        return value

    @model_validator(mode="after")
    def _loopback(self) -> Vehicle:
        check_keys(self.endpoint, self.server_key, self.client_keys)
        if self.started and self.server_key is not None:
            raise BadValue(
                "a vehicle process started by the rig uses no keys: it is on this computer",
                key="server_key",
                value=self.server_key,
                allowed="without start",
            )
        return self


class Control(ConfigTable):
    """[control]: the control channel, see docs/control.md; without this table there is none."""

    #: where it listens; port 0: any free one, printed and written to run.json
    endpoint: str = "tcp://127.0.0.1:0"
    #: CURVE: the rig's certificate with its secret key, as in [vehicle]
    server_key: Annotated[str, InFile("")] | None = None
    #: CURVE: folder with the public certificates of those who may connect
    client_keys: Annotated[str, InFile("")] | None = None

    @model_validator(mode="after")
    def _loopback(self) -> Control:
        check_keys(self.endpoint, self.server_key, self.client_keys)
        return self


class Telemetry(ConfigTable):
    """[telemetry]: signals on a ZeroMQ PUB socket in PlotJuggler's form, see docs/telemetry.md."""

    #: where subscribers connect ("tcp://127.0.0.1:9872" is what PlotJuggler has as default); port 0: any free one;
    #: none: no telemetry
    endpoint: str | None = None
    #: samples a second of simulated time [Hz]
    rate_hz: Annotated[float, Field(gt=0, le=1000)] = 60.0
    #: recorded signals, as patterns ("engine.*", "C*.p")
    signals: Annotated[list[str], Field(min_length=1)] = ["*"]
    #: of the payload
    format: Literal["json", "msgpack"] = "json"
    #: CURVE: the rig's certificate with its secret key, as in [vehicle]
    server_key: Annotated[str, InFile("")] | None = None
    #: CURVE: folder with the public certificates of those who may connect
    client_keys: Annotated[str, InFile("")] | None = None

    @model_validator(mode="after")
    def _loopback(self) -> Telemetry:
        if self.endpoint is not None:
            check_keys(self.endpoint, self.server_key, self.client_keys)
        return self


def curve_keys(path: str | Path, server_key: str | None, client_keys: str | None) -> CurveKeys | None:
    """Keys of a table of the rig file at `path`; None without. PeerError where they are not usable."""
    if server_key is None or client_keys is None:
        return None
    return server_keys(relative(path, server_key), relative(path, client_keys))


def relative(path: str | Path, file: str, folder: str = "") -> Path:
    """`file` as written in the rig file at `path`; folder: of the installed files that a bare name may mean, then the
    file must exist."""
    return find(path, file, folder) if folder else (Path(path).parent / file).resolve()
