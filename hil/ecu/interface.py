"""A maker's bus of the soft TCU: what comes in becomes quantities, quantities become frames with their cycle times.

Protection (checksums, counters) is the database's, in the same codec as everywhere. With an address claim (J1939-81):
its NAME goes out first and whenever any node asks us or all for it; another node of the same address with a lower NAME
silences us.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, RangeError
from torqueloop.hil.can.database import CanCodec, CanDatabase, bus_id
from torqueloop.hil.can.frame import BRS_FLAG, EXTENDED, FD_FLAG, Frame
from torqueloop.hil.ecu.interface_tables import RECEIVED, InterfaceConfig, Received

#: source address of a node that has lost its own, and the number of the group "address claimed" (J1939-81)
CANNOT_CLAIM, ADDRESS_CLAIMED = 254, 60928
#: PDU format of "request" (J1939-21), and the destination that means all nodes
REQUEST, ALL = 0xEA, 0xFF


def interface_database(config: InterfaceConfig, path: Path, node: str) -> CanDatabase:
    """The maker's database as the control unit's node sees it, with every signal the interface names."""
    needed = [r.signal for r in config.receive.values()] + list(config.send)
    needed += [f"{r.signal.rpartition('.')[0]}.{r.park}" for r in config.receive.values() if r.park is not None]
    return CanDatabase.load(path, node, needed=needed, timeouts_s={"*": 0.0})


@dataclass(frozen=True)
class Cyclic:
    """A message that is sent every so many control steps."""

    name: str
    can_id: int
    flags: int
    every: int
    #: the identifier's place in the spread of the messages
    offset: int
    only_active: bool


class MakerBus:
    """One bus with one interface. real-time: no (Python)."""

    def __init__(self, config: InterfaceConfig, database: CanDatabase, period_s: float, bus: int) -> None:
        self.config: InterfaceConfig = config
        self.database: CanDatabase = database
        self.bus: int = bus
        self.codec: CanCodec = database.codec()
        #: quantities that have come in
        self.values: dict[str, float | str] = {}
        self.refused: dict[str, int] = {}
        self._last_good: dict[str, float] = {}
        #: what the lever sent last
        self._last_move: float = 0.0
        self._wanted: dict[str, list[tuple[str, Received]]] = {}
        for quantity, received in config.receive.items():
            message, _, _ = received.signal.rpartition(".")
            self._wanted.setdefault(message, []).append((quantity, received))
        self._messages = {bus_id(m): m.name for m in database.rx_messages}
        self._claim = config.address_claim
        if self._claim is not None:
            database.message(self._claim.claim)
        self._period_s = period_s
        self._cyclic = self._plan(period_s)
        #: address claim: to be sent at the next step; lost to another node
        self._claim_due = self._claim is not None
        self.address_lost: bool = False

    def _plan(self, period_s: float) -> list[Cyclic]:
        made: list[Cyclic] = []
        names = {m.name for m in self.database.tx_messages}
        for name in self.config.only_active:
            if name not in names:
                raise ConfigError("only_active: {value} is no message of the control unit", value=name,
                                  allowed=", ".join(sorted(names)))  # fmt: skip
        for message in self.database.tx_messages:
            if self._claim is not None and message.name == self._claim.claim:
                continue
            every = message.cycle_ns * 1e-9 / period_s
            if every < 0.5 or abs(every - round(every)) > 1e-6:
                raise RangeError(
                    f"message {message.name}: cycle time {{value}} ms", file=str(self.database.path),
                    value=message.cycle_ns / 1e6, allowed=f"a multiple of the control period of {1e3 * period_s:g} ms",
                )  # fmt: skip
            flags = FD_FLAG | BRS_FLAG if message.fd else 0
            only = message.name in self.config.only_active
            made.append(Cyclic(message.name, bus_id(message), flags, round(every), len(made) % round(every), only))
        return made

    # --- in
    def receive(self, t_s: float, frame: Frame) -> None:
        """Take one frame; what is wrong with it is counted."""
        if self._claim is not None and (self._contended(frame) or self._requested(frame)):
            return
        if frame.can_id not in self._messages:
            return  # of others, for others
        status, values = self.codec.decode(frame.can_id, frame.data, t_s, frame.flags)
        if status != "ok":
            self.refused[status] = self.refused.get(status, 0) + 1
            return
        name = self._messages[frame.can_id]
        self._last_good[name] = t_s
        for quantity, received in self._wanted.get(name, ()):
            number = values[received.signal.rpartition(".")[2]]
            if received.moves:
                self._moved(received, number, values)
            elif quantity == "lever":
                word = next((w for w, v in received.words.items() if abs(v - number) < 1e-9), None)
                if word is not None:
                    self.values[quantity] = word
            else:
                self.values[quantity] = received.gain * number + received.offset

    def _moved(self, received: Received, number: float, values: Mapping[str, float]) -> None:
        """A movement of the lever, or the park button: each begins a new wish."""
        pressed = received.park is not None and values[received.park] == received.park_value
        move = received.moves.get(f"{number:g}")
        at = str(self.values.setdefault("lever", "P"))
        if pressed:
            self.values["lever"] = "P"
        elif move is not None and number != self._last_move:
            self.values["lever"] = move if isinstance(move, str) else move.get(at, at)
        self._last_move = number

    def lost(self, t_s: float) -> set[str]:
        """What is lost by silence: "speeds", "driver"."""
        limit = self.config.rx_timeout_s + 1e-6
        silent = {m for m in self._wanted if t_s - self._last_good.get(m, -1e9) > limit}
        return {RECEIVED[q] for m in silent for q, _ in self._wanted[m]} - {""}

    def _contended(self, frame: Frame) -> bool:
        """Another node claims our address: the lower NAME wins it."""
        assert self._claim is not None
        own = self.codec.can_id(self._claim.claim)
        if frame.can_id != own or len(frame.data) != 8:
            return False
        if int.from_bytes(frame.data, "little") < int.from_bytes(self._name(), "little"):
            self.address_lost = True
        self._claim_due = True
        return True

    def _requested(self, frame: Frame) -> bool:
        """A node asks us or all nodes for something (PGN 59904): for the address claim it is given."""
        assert self._claim is not None
        own, asked = self.codec.can_id(self._claim.claim) & 0xFF, frame.can_id >> 8
        if not frame.can_id & EXTENDED or asked >> 8 & 0xFF != REQUEST or asked & 0xFF not in (own, ALL):
            return False
        self._claim_due |= int.from_bytes(frame.data[:3], "little") == ADDRESS_CLAIMED
        return True

    def _name(self) -> bytes:
        assert self._claim is not None
        return self.codec.encode(self._claim.claim, {})

    # --- out
    def frames(self, step: int, numbers: Mapping[str, float], words: Mapping[str, str]) -> list[Frame]:
        """What is due in this control step, counted from 0."""
        out = []
        if self._claim_due and self._claim is not None:
            can_id = self.codec.can_id(self._claim.claim)
            if self.address_lost:
                can_id = can_id & ~0xFF | CANNOT_CLAIM | EXTENDED
            out.append(Frame(can_id, self._name(), 0, self.bus))
            self._claim_due = False
        if self.address_lost:
            return out
        active = numbers["torque_limit_active"] > 0.0
        for message in self._cyclic:
            if step % message.every == message.offset and (active or not message.only_active):
                values = self._content(message.name, step, numbers, words)
                data = self.codec.encode(message.name, values)
                out.append(Frame(message.can_id, data, message.flags, self.bus))
        return out

    def _content(
        self, message: str, step: int, numbers: Mapping[str, float], words: Mapping[str, str]
    ) -> dict[str, float | str]:
        values: dict[str, float | str] = {}
        active = numbers["torque_limit_active"] > 0.0
        for name, sent in self.config.send.items():
            of_message, _, signal = name.rpartition(".")
            if of_message != message:
                continue
            if sent.of is None:
                number = float(sent.value or 0.0)
            elif sent.words:
                number = sent.words.get(words[sent.of], sent.otherwise)
            elif sent.inactive is not None and not active:
                number = sent.inactive
            elif sent.neutral is not None and words["gear_actual"] in ("P", "N"):
                number = sent.neutral
            else:
                number = sent.gain * numbers[sent.of] + sent.offset
            if sent.toggle_s is not None:
                number *= int((step + 0.5) * self._period_s / sent.toggle_s) % 2
            values[signal] = number
        return values

    # --- state
    def save(self) -> dict[str, Any]:
        """Everything that changes."""
        return {
            "codec": self.codec.save(),
            "values": dict(self.values),
            "refused": dict(self.refused),
            "last_good": dict(self._last_good),
            "claim_due": self._claim_due,
            "address_lost": self.address_lost,
            "last_move": self._last_move,
        }

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save."""
        self.codec.load(data["codec"])
        self.values, self.refused = dict(data["values"]), dict(data["refused"])
        self._last_good, self._last_move = dict(data["last_good"]), float(data["last_move"])
        self._claim_due, self.address_lost = bool(data["claim_due"]), bool(data["address_lost"])
