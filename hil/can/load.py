"""Reading a CAN database for one node with cantools: every check of it, and the specs of the codec tables.

Used through `database.CanDatabase.load`. Mistakes are ConfigErrors that name file, message and signal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import cantools

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, closest, repr_short
from torqueloop.core.describe.ranges import RANGES
from torqueloop.core.describe.reading import DATABASE_BYTES, read_bytes
from torqueloop.core.describe.units import SYMBOLS
from torqueloop.cython_kernels.can.codec_spec import MessageSpec, SignalSpec, message_fields, signal_fields
from torqueloop.hil.can.multiplex import conditions, pages
from torqueloop.hil.can.protect import E2ESettings, owned_signals, protection, settings_of
from torqueloop.hil.can.sending import SendTiming, timing_of
from torqueloop.hil.can.traffic import Traffic
from torqueloop.hil.can.units import SiUnit, known_units, si_unit, to_si

#: A received message is silent after this many of its cycles, unless a timeout is given. Ten: a desktop computer may
#: hold up the other process for some milliseconds; a real control unit is usually watched with 5 to 10 cycles.
TIMEOUT_CYCLES = 10
#: endings of CAN databases, and formats of cantools
FORMATS = ("dbc", "arxml", "kcd", "sym")
#: a database of up to this length stays in memory; the longest of ours has 20 kB [characters]
KEPT_CHARACTERS = 1 << 19


@dataclass(frozen=True)
class SignalInfo:
    """A signal with its slot in the signal table. Limits and start value in the table's unit."""

    name: str
    message: str
    slot: int
    receive: bool
    #: unit in the database and in the table
    unit: str
    si_unit: str
    minimum: float | None
    maximum: float | None
    start: float
    #: raw number -> word
    choices: Mapping[int, str]
    #: value of raw number 0 and of one raw step
    offset: float
    scale: float

    @property
    def full_name(self) -> str:
        """Name with its message: "TCU_Pressure_1.p_C4"."""
        return f"{self.message}.{self.name}"

    @cached_property
    def _values(self) -> dict[str, float]:
        """Word -> value; of a word that stands twice the first."""
        return {word: raw * self.scale + self.offset for raw, word in reversed(list(self.choices.items()))}

    def value_of(self, word: str) -> float:
        """Value of a word of the value table ("D" of a lever); ConfigError if there is none."""
        if word in self._values:
            return self._values[word]
        allowed = ", ".join(self.choices.values()) or "numbers"
        raise ConfigError(f"signal {self.full_name} has no value '{word}'", value=word, allowed=allowed)

    def in_si(self, value: float, *, with_offset: bool = True) -> float:
        """A value in the unit of the database as SI; without offset for differences and rates."""
        unit = si_unit(self.unit)
        assert unit is not None, "the database refuses needed signals with unknown units"
        return to_si(value, unit, with_offset=with_offset)

    def range_text(self, low: float | None, high: float | None) -> str:
        """A range in SI (None, infinite: no limit) in the unit of the database: "0 .. 16000 rpm"."""
        unit = si_unit(self.unit) or SiUnit("1")
        offset, factor = float(unit.offset), float(unit.factor)
        ends = ["any" if x is None or math.isinf(x) else f"{(x - offset) / factor:.10g}" for x in (low, high)]
        return f"{' .. '.join(ends)} {self.unit}".strip()

    def word_of(self, value: float) -> str | None:
        """Word of a value, None if the value table has none for it."""
        return self.choices.get(round((value - self.offset) / self.scale))


def message_names(path: Path) -> set[str]:
    """Names of all messages of a database. ConfigError where it cannot be read."""
    return {m.name for m in read_database(path).messages}


def read_database(path: Path, strict: bool = False) -> Any:
    """The CAN database of a file, as cantools has it; ConfigError for anything else, whatever is in the file. `strict`:
    for signals that overlap or leave their message as well."""
    form = path.suffix.removeprefix(".").lower()
    # encodings as cantools chooses them; in DBC files of other countries single characters are wrong, nothing else
    data = read_bytes(path, DATABASE_BYTES)
    text = data.decode("cp1252" if form in ("dbc", "sym") else "utf-8", errors="replace")
    try:
        # not strict: databases of real cars often have a fault in a message we do not use; ours are checked below
        read = _parsed if len(text) <= KEPT_CHARACTERS else _parsed.__wrapped__
        database = read(text, form if form in FORMATS else None, strict)
    except Exception as error:  # cantools raises many kinds for broken files
        if (doubled := doubled_id(text) if form == "dbc" else None) is not None:
            raise ConfigError(doubled, file=str(path)) from None
        why = str(error) or type(error).__name__
        raise ConfigError(f"CAN database cannot be read: {repr_short(why, 300)}", file=str(path)) from None
    if not isinstance(database, cantools.database.can.Database):
        raise ConfigError("this is a diagnostics database, not one of CAN messages", file=str(path))
    return database


@lru_cache(maxsize=16)
def _parsed(text: str, form: str | None, strict: bool) -> Any:
    """A database as cantools has it, which nobody changes: rig, control unit and checks of a run read the same."""
    return cantools.database.load_string(text, form, strict=strict)


def doubled_id(text: str) -> str | None:
    """An identifier given twice in a DBC that cantools gave up: its other lines then lack their message."""
    seen: dict[str, str] = {}
    for number, name, node in re.findall(r"^BO_\s+(\d+)\s+(\w+)\s*:\s*\d+\s+(\w+)", text, re.MULTILINE):
        if number in seen:
            return f"CAN identifier 0x{int(number) & 0x1FFFFFFF:X} has two owners: {seen[number]} and {name} ({node})"
        seen[number] = f"{name} ({node})"
    return None


def lacking_switch(path: Path) -> dict[str, list[str]]:
    """Messages of a DBC with signals marked m0, m1 ... and none marked M -> these (cantools drops them)."""
    text = read_bytes(path, DATABASE_BYTES).decode("utf-8", "replace") if path.suffix.lower() == ".dbc" else ""
    found = {}
    for name, body in re.findall(r"^BO_\s+\d+\s+(\w+)\s*:[^\n]*\n((?:[ \t]*SG_[^\n]*\n?)*)", text, re.MULTILINE):
        marks = re.findall(r"SG_\s+(\w+)\s+(m\d+M?|M)\s*:", body)
        if marks and not any(mark == "M" for _, mark in marks):
            found[name] = [signal for signal, _ in marks]
    return found


def is_fd(message: Any) -> bool:
    """A CAN FD message: attribute VFrameFormat of a DBC (or the like of other formats), or too long for classic CAN."""
    return bool(message.is_fd) or message.length > 8


def uses_second_rate(message: Any) -> bool:
    """Attribute CANFD_BRS of a DBC: the data go at the second bit rate (default)."""
    given = message.dbc.attributes if message.dbc is not None else {}
    return "CANFD_BRS" not in given or str(given["CANFD_BRS"].value) not in ("0", "no", "False")


class Loader:
    """One reading of a database file."""

    def __init__(
        self, path: Path, traffic: Traffic, needed: list[str], timeouts_s: dict[str, float],
        e2e: dict[str, E2ESettings], si: bool, check_limits: bool,
    ) -> None:  # fmt: skip
        self.path: Path = path
        self.traffic: Traffic = traffic
        self.needed: list[str] = needed
        self.timeouts_s: dict[str, float] = timeouts_s
        self.e2e: dict[str, E2ESettings] = e2e
        self.si: bool = si
        self.check_limits: bool = check_limits
        self.signals: list[SignalInfo] = []

    def error(self, problem: str, **place: Any) -> ConfigError:
        return ConfigError(problem, file=str(self.path), **place)

    def load(self) -> tuple[list[MessageSpec], list[SignalInfo], dict[str, str]]:
        """(messages in table order, signals in slot order, messages left out with the reason)."""
        self.db: Any = read_database(self.path)
        nodes = [n.name for n in self.db.nodes]
        for node in self.traffic.nodes:
            if node not in nodes:
                near = closest(node, nodes)
                raise self.error(f"there is no node '{node}'", key="node", value=node, allowed=", ".join(nodes),
                                 hint=f"did you mean '{near}'?" if near else None)  # fmt: skip
        self.no_switch: dict[str, list[str]] = lacking_switch(self.path)
        self.check_ids()
        needed = self.check_needed()
        self.check_names("e2e", self.e2e)
        self.check_names("send", self.traffic.send or ())
        self.check_names("receive", self.traffic.receive)
        self.check_names("cycle_s", self.traffic.cycles_s)
        self.check_names("timeouts_s", [k for k in self.timeouts_s if k != "*"])

        named = {*self.traffic.named, *self.e2e, *self.timeouts_s}
        messages, skipped = [], {}
        for message in self.db.messages:
            sent = self.traffic.sends(message)
            wanted = {s for m, s in needed if m == message.name}
            if not sent and not wanted and not self.traffic.receives(message):
                continue
            asked = bool(wanted) or message.name in named or (sent and self.traffic.whole)
            way = "'send' of the bus names the messages that are sent" if sent and not wanted else None
            reason = self.unsupported(message)
            if reason and asked:
                signal = f" (signal {sorted(wanted)[0]})" if wanted else ""
                raise self.error(f"message {message.name} is needed{signal}, but {reason}", hint=way)
            if reason:
                skipped[message.name] = reason
                continue
            if sent and self.traffic.others(message):
                owners = ", ".join(message.senders)
                what = f"message {message.name} (0x{message.frame_id:X})"
                raise self.error(f"{what} has several owners: {owners}; one must send it")
            n_signals = len(self.signals)
            try:
                spec = self.message(message, not sent, wanted)
                message_fields(spec)
                for part in spec.signals:
                    signal_fields(spec, part)
            except ValueError as error:
                if asked:
                    raise self.error(str(error), hint=way) from error
                # a fault of the database in a message that nobody asked for
                skipped[message.name] = str(error)
                del self.signals[n_signals:]
                continue
            messages.append(spec)
        return messages, self.signals, skipped

    def check_ids(self) -> None:
        # cantools keeps both messages and only logs it
        seen: dict[tuple[int, bool], Any] = {}
        names: dict[str, Any] = {}
        for message in self.db.messages:
            same = names.setdefault(message.name, message)
            if same is not message:
                ids = f"0x{same.frame_id:X} and 0x{message.frame_id:X}"
                raise self.error(f"two messages are called {message.name}, identifiers {ids}")
            other = seen.setdefault((message.frame_id, message.is_extended_frame), message)
            if other is not message:
                who = f"{other.name} ({', '.join(other.senders)}) and {message.name} ({', '.join(message.senders)})"
                raise self.error(f"CAN identifier 0x{message.frame_id:X} has two owners: {who}")

    def check_needed(self) -> set[tuple[str, str]]:
        """The needed names as (message, signal) pairs, each of which exists."""
        by_name = {m.name: m for m in self.db.messages}
        found = set()
        for name in self.needed:
            message, dot, signal = name.partition(".")
            if not dot:
                raise self.error(f"CAN signal '{name}': write it as Message.signal")
            if message not in by_name:
                # the right signal in the wrong message is the likeliest slip
                near = closest(message, by_name) or next((m for m in by_name if signal in by_name[m].signal_tree), None)
                hint = f"did you mean '{near}'?" if near else None
                raise self.error(f"there is no message '{message}' (needed: {name})", hint=hint)
            signals = [s.name for s in by_name[message].signals]
            if signal not in signals:
                near = closest(signal, signals)
                elsewhere = [m.name for m in self.db.messages if signal in (s.name for s in m.signals)]
                hint = f"did you mean '{near}'?" if near else None
                hint = f"it is in message {elsewhere[0]}" if elsewhere else hint
                raise self.error(f"message {message} has no signal '{signal}'", hint=hint,
                                 allowed=None if hint else ", ".join(signals))  # fmt: skip
            found.add((message, signal))
        return found

    def check_names(self, table: str, names: Iterable[str]) -> None:
        known = [m.name for m in self.db.messages]
        for name in names:
            if name not in known:
                near = closest(name, known)
                raise ConfigError(f"{{key}}: there is no message {{value}} in {self.path}", key=table, value=name,
                                  hint=f"did you mean '{near}'?" if near else None)  # fmt: skip

    def unsupported(self, message: Any) -> str | None:
        if message.name in self.no_switch:
            lost = self.no_switch[message.name]
            free = [s.name for s in message.signals if s.name not in lost]
            switch = f"one of {', '.join(free)} must be marked M" if free else "it has no other"
            return f"its signal {lost[0]} is multiplexed, but no signal is its multiplexer ({switch})"
        if getattr(message, "is_container", False):
            return "it is a container message, which the codec does not support"
        return None

    def message(self, message: Any, receive: bool, wanted: set[str]) -> MessageSpec:
        settings = self.e2e[message.name] if message.name in self.e2e else settings_of(message, self.path)
        given = protection(message, settings, self.path, own=message.name in self.e2e)
        owned = owned_signals(message, settings)
        for name in sorted(wanted & owned):
            what = f"signal {message.name}.{name}"
            raise self.error(f"{what} is checksum or alive counter: the codec owns it, it has no value")
        free = [s for s in message.signals if s.name not in owned]
        when = {s.name: conditions(message, s) for s in free}
        signals = tuple(
            replace(self.signal(message.name, s, receive, s.name in wanted), when=when[s.name]) for s in free
        )
        held = {selector for w in when.values() for selector, _ in w} & wanted
        turns = () if receive or held else pages(message.name, when)
        given_s = self.traffic.cycles_s.get(message.name)
        cycle_ns = round((message.cycle_time or 0) * 1e6) if given_s is None else round(given_s * 1e9)
        timeout_s = self.timeouts_s.get(message.name, self.timeouts_s.get("*"))
        if timeout_s is not None and not 0 <= timeout_s < 1e6:
            allowed = "0 (off) .. 1e6 s"
            raise self.error("timeout", table="timeouts_s", key=message.name, value=timeout_s, allowed=allowed)
        timeout_ns = TIMEOUT_CYCLES * cycle_ns if timeout_s is None else round(timeout_s * 1e9)
        timing = SendTiming() if receive else timing_of(message, str(self.path))
        return MessageSpec(
            name=message.name, can_id=message.frame_id, extended=message.is_extended_frame, length=message.length,
            receive=receive, signals=signals, timeout_ns=timeout_ns if receive else 0, cycle_ns=cycle_ns,
            fd=is_fd(message), brs=uses_second_rate(message), pages=turns,
            senders=tuple(message.senders), send_kind=timing.kind, start_ns=timing.start_ns, gap_ns=timing.gap_ns,
            repeats=timing.repeats, **given,
        )  # fmt: skip

    def signal(self, message: str, signal: Any, receive: bool, wanted: bool) -> SignalSpec:
        """Spec of a signal with the next free slot; its SignalInfo is appended to `signals`."""
        unit = si_unit(signal.unit) if self.si else SiUnit(signal.unit or "1")
        if unit is None:
            if wanted:
                what = f"signal {message}.{signal.name}"
                raise self.error(f"{what}: unit '{signal.unit}' is not known", allowed=known_units())
            # nobody asked for it: keep the database's value and say so in the unit
            unit = SiUnit(signal.unit)

        def limit(value: Any) -> float | None:
            return None if value is None else to_si(value, unit, with_offset=True)

        scale = to_si(signal.scale, unit, with_offset=False)
        offset = to_si(signal.offset, unit, with_offset=True)
        quantity = next((RANGES[d] for d, symbol in SYMBOLS.items() if symbol == unit.symbol and d != "1"), RANGES["1"])
        what = f"signal {message}.{signal.name}"
        if signal.scale == 0.0:
            raise self.error(f"{what}: factor 0, so all its raw numbers are one value", allowed="anything but 0")
        wrong = [x for x in (scale, offset) if not abs(x) <= quantity.high - min(0.0, quantity.low)]
        if wrong and (wanted or receive):
            raise self.error(
                f"{what}: factor or offset {wrong[0]:g} {unit.symbol} is out of range", allowed=str(quantity)
            )
        minimum, maximum = limit(signal.minimum), limit(signal.maximum)
        raw_start = signal.raw_initial if isinstance(signal.raw_initial, int | float) else None
        start = raw_start * scale + offset if raw_start is not None else 0.0
        if raw_start is None:
            start = max(start, minimum) if minimum is not None else start
            start = min(start, maximum) if maximum is not None else start
        choices = {int(raw): str(word) for raw, word in (signal.choices or {}).items()}
        # words for raw numbers outside the limits: "invalid", "error", "not available"
        lo, hi = (-math.inf if signal.minimum is None else signal.minimum,
                  math.inf if signal.maximum is None else signal.maximum)  # fmt: skip
        outside = [raw for raw in choices if not lo <= raw * signal.scale + signal.offset <= hi]
        invalid = () if signal.is_float else tuple(raw % (1 << signal.length) for raw in outside)
        slot = len(self.signals)
        self.signals.append(
            SignalInfo(signal.name, message, slot, receive, signal.unit or "", unit.symbol, minimum, maximum, start,
                       choices, offset, scale)
        )  # fmt: skip
        return SignalSpec(
            name=signal.name, start=signal.start, length=signal.length, big_endian=signal.byte_order == "big_endian",
            signed=signal.is_signed, is_float=signal.is_float, scale=scale, offset=offset, minimum=minimum,
            maximum=maximum, slot=slot, check=self.check_limits,
            invalid=invalid if self.check_limits and receive else (),
        )  # fmt: skip


def no_such(what: str, name: str, known: Iterable[str], path: Path) -> ConfigError:
    """Error of an unknown name, with the closest known one."""
    near = closest(name, known)
    return ConfigError(f"there is no {what} '{name}'", file=str(path), hint=f"did you mean '{near}'?" if near else None)
