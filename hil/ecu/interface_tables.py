"""What the soft TCU sends and receives on a maker's bus: files of configs/interfaces/, option `interface` of soft_tcu.

    [receive]                                           quantity of the control unit = signal of the bus
    pedal = "AccPedal.AcceleratorPedalPercentage"
    lever = { signal = "EWM_230.lever", words = { P = 8, R = 7, N = 6, D = 5 } }

    [send]                                              signal of the bus = quantity of the control unit
    "TransmissionData.OutputShaftSpeed" = "w_out"
    "TransmissionData.GearTar" = { of = "gear_target", words = { "1" = 1, "2" = 2 }, otherwise = 0 }

    [known.TransmissionData]                            how each message is known (hil/can/known.py)
    layout = "recorded"
    period = "recorded"
    protection = "recorded"
    source = "..."

Numbers are SI where the database has a unit (rad/s, Nm, K, 1 for %), else the database's own; gain and offset come on
top.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator, model_validator

from torqueloop.core.describe.errors import ConfigError, did_you_mean
from torqueloop.hil.can.known import Known
from torqueloop.hil.can.load import read_database
from torqueloop.hil.common.config_file import BadValue, ConfigTable, InFile
from torqueloop.hil.common.config_layers import load_config
from torqueloop.hil.common.locate import find

#: quantities of the control unit that may come over the bus -> what is lost with them
RECEIVED = {
    "w_engine": "speeds", "w_turbine": "speeds", "w_out": "speeds",
    "pedal": "driver", "brake": "driver", "lever": "driver", "T_oil": "",
}  # fmt: skip
#: numbers it can send
NUMBERS = (
    "w_engine", "w_turbine", "w_out", "slip", "pedal", "T_oil", "ratio", "torque_limit", "torque_limit_active",
    "torque_driver", "torque_turbine", "pressure", "shifting", "lockup_closed", "limp_home", "v_vehicle", "w_synchron",
)  # fmt: skip
#: words it can send
WORDS = ("gear_actual", "gear_target", "lever", "lockup", "mode")


class Received(ConfigTable):
    """A signal, or { signal = ..., gain = ..., offset = ..., words = { P = 8 } }."""

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("string",)

    #: "Message.signal" of the database.
    signal: str
    #: Factor on the value of the signal.
    gain: float = 1.0
    #: Number that is added after the gain.
    offset: float = 0.0
    #: Position of the lever -> value of the signal. Other values do not change the lever.
    words: dict[str, float] = {}
    #: For a lever that sends movements: value of the signal -> new position, or value -> { present position = new
    #: position }. Other values do not change the lever. It begins in P.
    moves: dict[str, str | dict[str, str]] = {}
    #: Signal of the same message that has the value `park_value` while the park button is pressed.
    park: str | None = None
    #: Value of the signal `park` while the park button is pressed.
    park_value: float = 1.0


class Sent(ConfigTable):
    """A quantity, or { of = ..., gain = ..., offset = ..., words = ..., inactive = ... }, or { value = ... }."""

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("string",)

    #: Quantity of the control unit that is sent.
    of: str | None = None
    #: Constant that is sent instead of a quantity.
    value: float | None = None
    #: Factor on the number.
    gain: float = 1.0
    #: Number that is added after the gain.
    offset: float = 0.0
    #: Word of the quantity -> value of the signal.
    words: dict[str, float] = {}
    #: Value of the signal for all other words.
    otherwise: float = 0.0
    #: Value of the signal while the control unit asks for no torque.
    inactive: float | None = None
    #: Value of the signal in P and N, where there is no ratio.
    neutral: float | None = None
    #: The signal alternates between 0 and its value. It changes each time this has passed [s].
    toggle_s: Annotated[float, Field(gt=0, le=10)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Sent:
        if (self.of is None) == (self.value is None):
            raise BadValue("a quantity (of) or a constant (value): one of them", key="of", value=self.of)
        if self.of is not None and self.of not in (*NUMBERS, *WORDS):
            raise BadValue("{key} = {value} is no quantity of the control unit", key="of", value=self.of,
                           allowed=", ".join((*NUMBERS, *WORDS)))  # fmt: skip
        if (self.of in WORDS) != bool(self.words):
            raise BadValue("words belong to a quantity that has them, and it needs them", key="words", value=self.of,
                           allowed=", ".join(WORDS))  # fmt: skip
        return self


class AddressClaim(ConfigTable):
    """[address_claim]: address claim of SAE J1939-81, for a control unit that must claim its source address."""

    #: Message of the control unit that carries the NAME. The control unit sends it at the start and whenever a node
    #: asks for it (PGN 59904).
    claim: str


class InterfaceConfig(ConfigTable):
    """What the soft TCU receives and sends on the bus of a maker."""

    FOLDER: ClassVar[str] = "interfaces"

    #: Name of the interface.
    name: str
    #: Description of the maker's network.
    network: str = ""
    #: CAN database that defines the signals: a file relative to this file, or the bare name of an installed one.
    database: Annotated[str, InFile("can")] | None = None
    #: Node of the control unit in the database.
    node: str = "TCU"
    #: Quantity of the control unit -> signal that gives it. The signal replaces the message of the rig.
    receive: dict[str, Received] = {}
    #: A message that the control unit needs counts as lost when it has not been received for this long [s]. The control
    #: unit then goes to limp-home.
    rx_timeout_s: Annotated[float, Field(gt=0, le=5)] = 0.5
    #: "Message.signal" -> what the control unit sends in it. Other signals have the start value of the database.
    send: dict[str, Sent]
    #: Messages that are sent only while the control unit asks for torque.
    only_active: list[str] = []
    address_claim: AddressClaim | None = None
    #: Message of the bus -> how its layout, period and protection are known.
    known: dict[str, Known] = {}

    @field_validator("receive", "send", mode="before")
    @classmethod
    def _short(cls, table: Any, info: Any) -> Any:
        key = "signal" if info.field_name == "receive" else "of"
        if not isinstance(table, dict):
            return table
        return {name: {key: value} if isinstance(value, str) else value for name, value in table.items()}

    @field_validator("receive")
    @classmethod
    def _quantities(cls, table: dict[str, Received]) -> dict[str, Received]:
        for name, received in table.items():
            if name not in RECEIVED:
                raise BadValue("[receive]: {value} is no quantity the control unit takes", value=name,
                               allowed=", ".join(RECEIVED))  # fmt: skip
            if (name == "lever") != (bool(received.words) != bool(received.moves)):
                problem = "[receive] {value}: words or moves belong to the lever, and it needs one of them"
                raise BadValue(problem, value=name)
            if received.park is not None and not received.moves:
                raise BadValue("[receive] {value}: park belongs to a lever with moves", value=name)
        return table


def load_interface(path: str | Path, overrides: Mapping[str, Any] | None = None) -> InterfaceConfig:
    """Read and check the file of an interface; overrides: dotted key -> value."""
    return load_config(path, InterfaceConfig, overrides)


def interface_messages(path: Path, interface: InterfaceConfig) -> list[str]:
    """Messages of the interface's database; those it names where it names no database. ConfigError for a message in
    [known] that the database does not have."""
    if interface.database is None:
        return list(interface.known)
    try:
        names = [m.name for m in read_database(find(path, interface.database, "can")).messages]
    except ConfigError as error:
        raise error if error.file else error.located(file=str(path), table="", key="database") from None
    for name in interface.known:
        if name not in names:
            raise ConfigError("[known]: {value} is no message of the database", file=str(path), table="known",
                              value=name, hint=did_you_mean(name, names))  # fmt: skip
    return names
