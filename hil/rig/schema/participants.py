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
    """[plant]: what the tick integrates."""

    #: Driveline file, relative to the rig file, or the bare name of an installed one.
    powertrain: Annotated[str, InFile("powertrains")]
    #: Values that replace those of the driveline file: dotted key -> value, such as "components.car.m_kg" = 1600.0.
    set: dict[str, Any] = {}


class Sending(ConfigTable):
    """[bus.NAME.sending.MESSAGE]: when the rig sends a message. This table replaces what the database says."""

    #: What makes the rig send the message. cyclic: its cycle time. on_change: a change of one of its signals. on_event:
    #: `when` becomes true. cyclic_and_on_change: its cycle time and a change.
    type: Literal["cyclic", "on_change", "on_event", "cyclic_and_on_change"]
    #: Signals whose change sends the message. By default these are all of its signals.
    signals: list[str] = []
    #: Condition, as in [[steps]]. The rig sends the message each time the condition becomes true.
    when: str | None = None
    #: Shortest time between two frames that are not cyclic [s]. By default it is GenMsgDelayTime of the database.
    gap_s: NotNegative | None = None
    #: Number of further frames after a change or event. By default it is GenMsgNrOfRepetition of the database.
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
    """[bus.NAME]: a CAN bus. Its signals have the names Message.signal, or NAME.Message.signal if two buses have the
    same message."""

    #: Node of the rig in the database.
    node: str = "HIL"
    #: Other nodes of the database whose messages the rig sends, too: the rest of the bus.
    nodes: list[str] = []
    #: Messages that the rig sends, if the database does not say so or if the rig sends fewer. By default these are the
    #: messages of its nodes.
    send: list[str] | None = None
    #: Messages that the rig receives in addition to those for which the database lists its nodes as receivers.
    receive: list[str] = []
    #: Message -> cycle time that the database does not have, or that replaces the one in the database [s].
    cycle_s: dict[str, Positive] = {}
    #: If true, signals that [outputs] does not name take the start value of the database, and the rig distributes the
    #: first sendings that `tx_offset_s` does not give so that the load is even.
    restbus: bool = False
    #: Interface file that says how each message of this bus is known. By default it is the interface file of the soft
    #: TCU on this bus.
    known: Annotated[str, InFile("interfaces")] | None = None
    #: Message -> when the rig sends it, if the database does not say so or if it differs.
    sending: dict[str, Sending] = {}
    #: Message -> timeout after which its silence latches the safe state [s].
    rx_timeout_s: dict[str, Annotated[ReactionTime, Field(gt=0)]] = {}
    #: Message -> time from arming to its first sending [s], which may exceed its cycle time. By default it is
    #: GenMsgStartDelayTime of the database, or else 0; with `restbus` the rig distributes it.
    tx_offset_s: dict[str, NotNegative] = {}
    #: Number of frames in a row that cannot be sent, after which the bus counts as failed.
    tx_drop_limit: Annotated[int, Field(ge=1, lt=1 << 31)] = 10
    #: If true, the rig uses a SocketCAN interface through python-can and its threads instead of through the socket of
    #: the tick.
    gateway: bool = False
    #: Socket of the tick: the rig latches the safe state when the bus is off or the interface is down for longer than
    #: this [s].
    bus_down_limit_s: ReactionTime = 0.2
    #: Socket of the tick: size of the buffer for received frames that wait [bytes].
    receive_buffer_bytes: Annotated[int, Field(ge=4096, le=1 << 28)] = 1 << 20
    #: Socket of the tick: size of the buffer for frames that the interface has not sent yet [bytes]. In a small buffer
    #: few outdated frames can wait.
    send_buffer_bytes: Annotated[int, Field(ge=2048, le=1 << 24)] = 1 << 14

    @property
    def native(self) -> bool:
        """The tick itself reads and writes a SocketCAN interface."""
        return self.interface == "socketcan" and not self.gateway

    @model_validator(mode="after")
    def _native_options(self) -> Bus:
        if self.native and self.options:
            hint = "socketcan is set up with `ip link`; gateway = true gives it to python-can"
            raise BadValue("{key} is for python-can", key="options", value=self.options, hint=hint)
        return self


class Ecu(ConfigTable):
    """[ecu.NAME]: a control unit on one or several buses of the rig. On the real clock it is a process of its own; on
    the virtual clock it runs in lockstep in the process of the rig."""

    #: Kind of the control unit: soft_tcu, recording (a bus log), or a kind that a package adds (entry points
    #: "torqueloop.ecus"). hardware: the rig does not start it, because it is already on the bus.
    kind: str = "soft_tcu"
    #: File that the kind needs: a configuration, a library, a recording.
    start: Annotated[str, InFile("tcu")] | None = None
    #: Name of its bus, or names of its buses. By default it is the only bus of the rig.
    bus: str | list[str] | None = None
    #: Node of the control unit in the databases of these buses.
    node: str = "TCU"
    #: Numbers that the control unit receives without a bus: its name of the number -> signal.
    sensors: dict[str, str] = {}
    #: Numbers that the control unit sends without a bus: its name of the number -> unit. Each number is a signal
    #: NAME.name, which [inputs] can use.
    actuators: dict[str, str] = {}
    #: Real clock: the safe state latches if there are no new values at its actuators for this long [s].
    pins_timeout_s: Positive = 0.3
    #: Keys that belong to the kind.
    options: dict[str, Any] = {}
    #: If true, the control unit runs in the process of the rig on the virtual clock. If false, it runs in a process of
    #: its own, if its kind can.
    in_process: bool = True
    #: Longest time until its first frame [s].
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
                        "the rig does not start a control unit of kind hardware", key=key, value=getattr(self, key),
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
    """[vehicle]: the model of vehicle and road. It runs in a process that is connected over ZeroMQ, and on the virtual
    clock in the process of the rig."""

    #: Kind of the model: road, or a kind that a package adds (entry points "torqueloop.vehicles").
    kind: str = "road"
    #: File of the model that the rig starts. Without it, the rig expects that a process connects to `endpoint`.
    start: Annotated[str, InFile("vehicles")] | None = None
    #: Keys that belong to the kind.
    options: dict[str, Any] = {}
    #: If true, the model runs in the process of the rig on the virtual clock. If false, it runs in a process of its own
    #: and exchanges messages. The states are the same.
    in_process: bool = True
    #: Address at which the rig listens. Port 0 takes a free port.
    endpoint: str = "tcp://127.0.0.1:0"
    #: Component of the powertrain that is the mass of the car.
    car: str = "car"
    #: Component of the powertrain that is its RoadLoad.
    road: str = "road"
    #: Signal that the rig sends to the vehicle as brake, 0 to 1.
    brake: str = "driver.brake"
    #: Components of kind MovingCarrier (with use_z). The model gives their motion and receives the moments on them. The
    #: motion is in the signals vehicle.NAME.w_x .. w_z, z_x .. z_z, a_x .. a_z; their inputs that [inputs] does not
    #: name take these signals.
    carriers: Annotated[list[str], Field(max_length=MAX_CARRIERS)] = []
    #: Time between two exchanges, a whole number of ticks [s], for a vehicle that steps more slowly than the rig. 0:
    #: every tick. The wheel force of a message is the mean since the previous message.
    period_s: Annotated[float, Field(ge=0, le=1)] = 0.0
    #: A value that is older than this is stale [s]. The default is about 20 periods of the vehicle process on a desktop
    #: computer.
    age_limit_s: Annotated[ReactionTime, Field(gt=0)] = 0.05
    #: The rig holds a stale value for this long [s]. Then it ramps the force to 0.
    hold_s: ReactionTime = 0.1
    #: Duration of the ramp of a stale force to 0 [s]. At its end the rig latches the safe state.
    ramp_s: Annotated[ReactionTime, Field(gt=0)] = 0.2
    #: Number of refused values in a row (not finite, or against the schema) that latches the safe state.
    refuse_limit: Annotated[int, Field(ge=1, lt=1 << 31)] = 10
    #: Longest time until the first answer of the process [s], and on the virtual clock until each answer.
    start_timeout_s: Positive = 30.0
    #: CURVE: certificate of the rig with its secret key, relative to the rig file. An endpoint that is not on loopback
    #: needs it.
    server_key: Annotated[str, InFile("")] | None = None
    #: CURVE: folder with the public certificates of the programs that may connect, relative to the rig file.
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
    """[control]: the control channel, see docs/control.md. Without this table the rig has none."""

    #: Address at which the rig listens. Port 0 takes a free port, which the rig prints and writes to run.json.
    endpoint: str = "tcp://127.0.0.1:0"
    #: CURVE: certificate of the rig with its secret key, relative to the rig file, as in [vehicle].
    server_key: Annotated[str, InFile("")] | None = None
    #: CURVE: folder with the public certificates of the programs that may connect, relative to the rig file.
    client_keys: Annotated[str, InFile("")] | None = None

    @model_validator(mode="after")
    def _loopback(self) -> Control:
        check_keys(self.endpoint, self.server_key, self.client_keys)
        return self


class Telemetry(ConfigTable):
    """[telemetry]: signals on a ZeroMQ PUB socket in the format of PlotJuggler, see docs/telemetry.md."""

    #: Address to which subscribers connect; "tcp://127.0.0.1:9872" is the default of PlotJuggler. Port 0 takes a free
    #: port. Without this key there is no telemetry.
    endpoint: str | None = None
    #: Number of samples per second of simulated time [Hz].
    rate_hz: Annotated[float, Field(gt=0, le=1000)] = 60.0
    #: Patterns of names of recorded signals, such as "engine.*" or "C*.p".
    signals: Annotated[list[str], Field(min_length=1)] = ["*"]
    #: Format of the payload.
    format: Literal["json", "msgpack"] = "json"
    #: CURVE: certificate of the rig with its secret key, relative to the rig file, as in [vehicle].
    server_key: Annotated[str, InFile("")] | None = None
    #: CURVE: folder with the public certificates of the programs that may connect, relative to the rig file.
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
