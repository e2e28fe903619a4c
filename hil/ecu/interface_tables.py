"""What the soft TCU says and hears on a maker's bus: files of configs/interfaces/, option `interface` of soft_tcu.

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

    #: "Message.signal" of the database
    signal: str
    #: factor on its value
    gain: float = 1.0
    #: added after the gain
    offset: float = 0.0
    #: positions of the lever -> value of the signal; other values leave the lever as it is
    words: dict[str, float] = {}
    #: a lever that sends movements: value of the signal -> position, or position it is in -> position; other values
    #: leave the lever as it is. It begins in P
    moves: dict[str, str | dict[str, str]] = {}
    #: signal of the same message that has the value park_value while the park button is pressed
    park: str | None = None
    #: value of that signal
    park_value: float = 1.0


class Sent(ConfigTable):
    """A quantity, or { of = ..., gain = ..., offset = ..., words = ..., inactive = ... }, or { value = ... }."""

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("string",)

    #: quantity of the control unit
    of: str | None = None
    #: a constant instead
    value: float | None = None
    #: factor on a number
    gain: float = 1.0
    #: added after the gain
    offset: float = 0.0
    #: words of the quantity -> value of the signal
    words: dict[str, float] = {}
    #: value for all other words
    otherwise: float = 0.0
    #: value of the signal while no torque is asked for
    inactive: float | None = None
    #: value of the signal in P and N, where there is no ratio
    neutral: float | None = None
    #: 0 and the value in turn, changing so often, while torque is asked for [s]
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
    """[address_claim]: SAE J1939-81, for a control unit that has to claim its source address."""

    #: message of ours that carries the NAME: sent at the start and whenever a node asks for it (PGN 59904)
    claim: str


class InterfaceConfig(ConfigTable):
    """What the soft TCU says and hears on a maker's bus."""

    FOLDER: ClassVar[str] = "interfaces"

    #: name of the interface
    name: str
    #: the maker's network, in words
    network: str = ""
    #: CAN database its signals belong to, relative to this file, or a bare name
    database: Annotated[str, InFile("can")] | None = None
    #: the control unit's node in it
    node: str = "TCU"
    #: quantity of the control unit -> signal it comes from, instead of the rig's own messages
    receive: dict[str, Received] = {}
    #: a message it needs not received for this long is lost: limp-home [s]
    rx_timeout_s: Annotated[float, Field(gt=0, le=5)] = 0.5
    #: "Message.signal" -> what is sent in it; others take the database's start value
    send: dict[str, Sent]
    #: messages that are sent only while torque is asked for
    only_active: list[str] = []
    address_claim: AddressClaim | None = None
    #: message of the bus -> how its layout, period and protection are known
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
