"""CAN database of one node: which messages it sends and receives, their protection, and the codec tables of the tick.

    db = CanDatabase.load("configs/can/tcu_4hp22.dbc", node="HIL", needed=["TCU_Pressure_1.p_C4"])
    db.tables, db.slot("TCU_Pressure_1.p_C4"), db.initial_table()       for the tick (cython_kernels/codec)
    codec = db.codec()                                                  for Python: stateful counters
    codec.encode("HIL_Speeds", {"n_engine": 83.8}) -> bytes
    codec.decode(0x210, data, t_s) -> ("ok", {"p_C4": 8.0e5, ...})

Values are SI (rad/s, Pa, K, 1 for %), converted by the database's unit strings; `units="database"` leaves them alone.

Protection comes from message attributes (or from `e2e`, for databases that have none): E2EProfile (name in
cython_kernels.can.protection.E2E_PROFILES), E2EDataID, E2EDataIDList (16 hexadecimal bytes), E2ECrcSignal,
E2ECounterSignal, E2ECounterMin, E2ECounterMax, E2ECounterSkips, E2EMaxDelta, E2EOffset, E2EInit, E2EXorOut.
Checksum and alive counter are no signals of the table: the codec owns them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.can.codec import NAN, STATUS_NAMES, CodecTables, RxState, TxState
from torqueloop.cython_kernels.can.codec_spec import MessageSpec
from torqueloop.hil.can.frame import EXTENDED
from torqueloop.hil.can.load import Loader, SignalInfo, no_such
from torqueloop.hil.can.protect import E2ESettings
from torqueloop.hil.can.traffic import Traffic

__all__ = ["EXTENDED", "CanCodec", "CanDatabase", "E2ESettings", "SignalInfo", "bus_id", "check_owners"]


class CanDatabase:
    """Messages of a database as one node sends and receives them. Immutable after `load`."""

    def __init__(
        self, path: Path, node: str, messages: Sequence[MessageSpec], signals: Sequence[SignalInfo],
        skipped: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.path = path
        self.node = node
        #: messages in table order, received and sent
        self.messages: tuple[MessageSpec, ...] = tuple(messages)
        #: signals in slot order
        self.signals: tuple[SignalInfo, ...] = tuple(signals)
        #: messages of this node that the codec leaves out (no signal of them is needed), with the reason
        self.skipped: dict[str, str] = dict(skipped)
        self._by_name = {s.full_name: s for s in signals}
        self._message = {m.name: m for m in messages}
        try:
            self.tables: CodecTables = CodecTables(messages, len(signals))
        except ValueError as error:
            raise ConfigError(str(error), file=str(path)) from error

    @classmethod
    def load(
        cls,
        path: str | Path,
        node: str | Iterable[str],
        *,
        needed: Iterable[str] = (),
        timeouts_s: Mapping[str, float] | None = None,
        e2e: Mapping[str, E2ESettings] | None = None,
        units: str = "SI",
        check_limits: bool = True,
        send: Iterable[str] | None = None,
        receive: Iterable[str] = (),
        cycles_s: Mapping[str, float] | None = None,
        whole: bool = False,
    ) -> CanDatabase:
        """Read a DBC (any format of cantools: ARXML, KCD, SYM) for one node or several.

        needed: "Message.signal" names that must be there; a received one is taken even if the database does not list
            the node as its receiver.
        timeouts_s: seconds of silence after which a received message is timed out, 0 = not watched; "*" for all others.
            Default: TIMEOUT_CYCLES cycles, not watched if the database gives no cycle time.
        check_limits: refuse received frames with a value outside [minimum|maximum] of the database.
        send: names of the messages that are sent; default: all that the database gives to these nodes.
        receive: names of messages that are received besides those it lists them as receivers of.
        cycles_s: message -> cycle time [s], instead of the database's.
        whole: a faulty message that is to be sent is an error also where nothing names it; else it is in `skipped`, as
            faulty ones that are received are.
        """
        path = Path(path)
        if units not in ("SI", "database"):
            raise ConfigError("units of the CAN signals", key="units", value=units, allowed="SI, database")
        nodes = (node,) if isinstance(node, str) else tuple(node)
        sent = None if send is None else tuple(send)
        traffic = Traffic(nodes, sent, tuple(receive), dict(cycles_s or {}), whole)
        loader = Loader(
            path, traffic, list(needed), dict(timeouts_s or {}), dict(e2e or {}), units == "SI", check_limits
        )
        return cls(path, traffic.name, *loader.load())

    def signal(self, name: str) -> SignalInfo:
        """Signal by "Message.signal"; ConfigError with the closest name if there is none."""
        if name not in self._by_name:
            raise no_such("signal", name, self._by_name, self.path)
        return self._by_name[name]

    def slot(self, name: str) -> int:
        """Index of "Message.signal" in the signal table."""
        return self.signal(name).slot

    def message(self, name: str) -> MessageSpec:
        """Message by name; ConfigError with the closest name if there is none."""
        if name not in self._message:
            raise no_such("message", name, self._message, self.path)
        return self._message[name]

    def message_index(self, name: str) -> int:
        """Index of a message in the codec tables."""
        return self.messages.index(self.message(name))

    @property
    def rx_messages(self) -> tuple[MessageSpec, ...]:
        """Messages we receive."""
        return tuple(m for m in self.messages if m.receive)

    @property
    def tx_messages(self) -> tuple[MessageSpec, ...]:
        """Messages we send."""
        return tuple(m for m in self.messages if not m.receive)

    @property
    def own_ids(self) -> frozenset[int]:
        """Identifiers we send, bit 31 set for 29-bit ones: no other node may use them."""
        return frozenset(bus_id(m) for m in self.tx_messages)

    @property
    def has_fd(self) -> bool:
        """Some message is CAN FD."""
        return any(m.fd for m in self.messages)

    def initial_table(self) -> NDArray[np.float64]:
        """Signal table with the database's start values (0, limited, where there are none)."""
        return np.array([s.start for s in self.signals], dtype=np.float64)

    def codec(self) -> CanCodec:
        """A new encoder and decoder for Python with its own counters."""
        return CanCodec(self)


class CanCodec:
    """Stateful encoder and decoder of one node for Python code (the tick has its own state on the same tables)."""

    def __init__(self, database: CanDatabase) -> None:
        self.database = database
        self.rx: RxState = RxState(database.tables)
        self.tx: TxState = TxState(database.tables)
        #: latest values of all signals, received and sent
        self.table: NDArray[np.float64] = database.initial_table()
        # an element of an array costs three times that of its memory
        self._values = self.table.data.cast("B").cast("d")
        self._index = {m.name: i for i, m in enumerate(database.messages)}
        self._slots = {m.name: {s.name: database.signals[s.slot] for s in m.signals} for m in database.messages}
        #: by number of the message
        self._reads = [[(s.name, s.slot) for s in m.signals] for m in database.messages]

    def encode(self, message: str, values: Mapping[str, float | str]) -> bytes:
        """Data of the next frame of `message`; signals not in `values` keep their last value. Words ("D") are allowed.

        Values outside the limits are limited and counted. ValueError on NaN, ConfigError on unknown names.
        """
        spec = self.database.message(message)
        if spec.receive:
            problem = f"message {message} is received by {self.database.node}, not sent"
            raise ConfigError(problem, file=str(self.database.path))
        known = self._slots[message]
        selectors = [selector for selector, _ in spec.pages[0]] if spec.pages else ()
        for name, value in values.items():
            if (info := known.get(name)) is None:
                raise no_such(f"signal of message {message}", name, known, self.database.path)
            if name in selectors:
                problem = f"message {message} goes through its pages by itself"
                allowed = f'needed=["{message}.{name}"]: the multiplexer is a signal then'
                raise ConfigError(problem, file=str(self.database.path), key=name, value=value, allowed=allowed)
            self._values[info.slot] = info.value_of(value) if isinstance(value, str) else value
        status, _, data = self.tx.encode(self.table, self._index[message])
        if status == NAN:
            bad = [n for n, info in known.items() if self.table[info.slot] != self.table[info.slot]]
            raise ValueError(f"CAN message {message}: NaN in {', '.join(bad)}; no frame is sent")
        return data

    def decode(self, can_id: int, data: bytes, t_s: float = 0.0, flags: int = 0) -> tuple[str, dict[str, float]]:
        """(status, values): the values of the message if the status is "ok", else {}; see STATUS_NAMES.

        `can_id` with bit 31 set for 29-bit identifiers. `t_s`: time of reception, for timeouts. `flags`: FD_FLAG of
        multicast.py for a CAN FD frame.
        """
        status = self.rx.decode(self.table, can_id, data, round(t_s * 1e9), flags)
        if status:
            return STATUS_NAMES[status], {}
        values = self._values
        return "ok", {name: values[slot] for name, slot in self._reads[self.rx.last_index]}

    def save(self) -> dict[str, Any]:
        """Counters and latest values, for `load` of a codec of the same database."""
        return {"rx": self.rx.to_bytes(), "tx": self.tx.to_bytes(), "table": [float(x) for x in self.table]}

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save; ValueError when it does not fit."""
        if len(data["table"]) != len(self.table):
            raise ValueError(f"{len(data['table'])} signals, this database has {len(self.table)}")
        self.rx.from_bytes(data["rx"])
        self.tx.from_bytes(data["tx"])
        self.table[:] = data["table"]

    def message_of(self, can_id: int) -> str | None:
        """Name of the received message with this identifier."""
        return next((m.name for m in self.database.rx_messages if bus_id(m) == can_id), None)

    def can_id(self, message: str) -> int:
        """Identifier of a message, bit 31 set for 29-bit ones."""
        return bus_id(self.database.message(message))

    def arm(self, t_s: float) -> None:
        """Start of communication: ages count from now, counters are zero."""
        self.rx.arm(round(t_s * 1e9))

    def silent(self, t_s: float) -> list[str]:
        """Names of the watched messages that have timed out."""
        if not self.rx.check_timeouts(round(t_s * 1e9)):
            return []
        return [name for name, counts in self.rx.counters().items() if counts["timed_out"]]

    def counters(self) -> dict[str, dict[str, int]]:
        """Counters of all messages, received and sent."""
        return self.rx.counters() | self.tx.counters()


def bus_id(message: MessageSpec) -> int:
    """Identifier of a message, bit 31 set for 29-bit ones."""
    return message.can_id | (EXTENDED if message.extended else 0)


def check_owners(databases: Iterable[CanDatabase]) -> None:
    """ConfigError if two nodes (rig, rest-bus, soft control units) send the same identifier on one bus."""
    owners: dict[int, tuple[CanDatabase, MessageSpec]] = {}
    for database in databases:
        for message in database.tx_messages:
            other = owners.setdefault(bus_id(message), (database, message))
            if other[0] is not database:
                raise ConfigError(
                    f"CAN identifier 0x{message.can_id:X} has two owners: {other[1].name} of node {other[0].node} "
                    f"({other[0].path}) and {message.name} of node {database.node}",
                    file=str(database.path),
                )
