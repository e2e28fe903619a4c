"""Disturbances of what a rig receives: this process sends Ask and hears in Told what became of it.

Ask (VW MQB's rule, made by autosar-e2e, looked at by opendbc) carries a serial number and a force every 5 ms. Told, of
every tick, carries the serial number and the force that the rig has, the force its model uses, and the rig's time. What
a right receiver would have in every tick is computed here, tick by tick, from what was sent and what the disturbance is
defined to do (docs/disturbances.md); the rig's own counters, by reason, come from its process at the end.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import can
import cantools
import e2e
from opendbc.can.dbc import Signal, volkswagen_mqb_meb_checksum

from judgetools.lockstep import PLACE, Lockstep, free_ports, message
from judgetools.rules import IDS

ASK, TOLD = 0x0AD, 0x111
#: an Ask every so many ticks of 1 ms; a window holds 20 of them
EVERY, WINDOW, PERIOD = 5, 100, 200
#: behind a window: the first right frame may be refused for its counter
TAIL = EVERY
DATABASE = """VERSION ""
BU_: HIL TCU
BO_ 173 Ask: 8 TCU
 SG_ crc : 0|8@1+ (1,0) [0|255] "" HIL
 SG_ alive : 8|4@1+ (1,0) [0|15] "" HIL
 SG_ serial : 16|16@1+ (1,0) [0|65535] "" HIL
 SG_ force : 32|16@1+ (0.001,0) [0|60] "N" HIL
BO_ 273 Told: 16 HIL
 SG_ serial : 0|16@1+ (1,0) [0|65535] "" TCU
 SG_ force : 16|16@1+ (0.001,0) [0|60] "N" TCU
 SG_ used : 32|32@1- (0.00001,0) [-1000|1000] "N" TCU
 SG_ time : 64|16@1+ (0.001,0) [0|60] "s" TCU
BA_DEF_ BO_ "GenMsgCycleTime" INT 0 65535;
BA_DEF_ BO_ "VFrameFormat" ENUM "StandardCAN","ExtendedCAN","r","J1939PG","r","r","r","r","r","r","r","r","r","r","StandardCAN_FD";
BA_DEF_DEF_ "GenMsgCycleTime" 0;
BA_DEF_DEF_ "VFrameFormat" "StandardCAN";
BA_ "GenMsgCycleTime" BO_ 173 5;
BA_ "GenMsgCycleTime" BO_ 273 1;
BA_ "VFrameFormat" BO_ 273 14;
"""  # noqa: E501


@dataclass(frozen=True)
class Has:
    """What the rig has in a tick; None: Told does not come."""

    serial: int
    force: float
    used: float
    time: float


#: (tick in the window, what an undisturbed rig has in the ticks so far of the window and the 100 before it) -> what a
#: disturbed one has; None: nothing comes
Effect = Callable[[int, Sequence[Has]], "Has | None"]


@dataclass(frozen=True)
class Case:
    """One disturbance and what must be seen of it."""

    fault: dict[str, Any]
    #: Ask in the window, and in the TAIL behind it, by what became of it; None: random
    inside: dict[str, int] | None
    behind: dict[str, int] | None
    effect: Effect
    #: not one answer but any between these ticks late, or so far from the right force
    late: int = 0
    within: float = 0.0

    @property
    def on(self) -> str:
        """What it acts on."""
        return next(str(self.fault[k]) for k in ("message", "signal", "node", "bus") if k in self.fault)


TAKEN = {"ok": WINDOW // EVERY}


def as_ever(k: int, right: Sequence[Has]) -> Has:
    return right[-1]


def stale(k: int, right: Sequence[Has]) -> Has:
    """Nothing is taken: that of before the window, but for the time."""
    return _like(right[-2 - k], right[-1])


def _like(old: Has, now: Has) -> Has:
    return Has(old.serial, old.force, old.used, now.time)


def silent(k: int, right: Sequence[Has]) -> None:
    return None


def late(ticks: int) -> Effect:
    return lambda k, right: _like(right[-1 - min(ticks, k + 1 if k < ticks else ticks)], right[-1])


def after(n: int, then: Effect) -> Effect:
    """The first n ticks of the window otherwise than all others."""
    return lambda k, right: then(k, right) if k < n else as_ever(k, right)


def first_only(k: int, right: Sequence[Has]) -> Has:
    """The first frame of the window is taken, no other."""
    return _like(right[-1 - k], right[-1])


def forced(newton: float) -> Effect:
    """The frame says another force."""
    return lambda k, right: Has(right[-1].serial, newton, newton, right[-1].time)


def used(law: Callable[[int, Sequence[Has]], float]) -> Effect:
    """The frame is taken as it is; the model uses something else."""
    return lambda k, right: Has(right[-1].serial, right[-1].force, law(k, right), right[-1].time)


def lagged(constant_s: float) -> Callable[[int, Sequence[Has]], float]:
    """First order lag, solved exactly between ticks, from the value it begins with."""

    def law(k: int, right: Sequence[Has]) -> float:
        y = right[-1 - k].force
        for n in range(1, k + 1):
            x = right[-1 - k + n].force
            y = x + (y - x) * math.exp(-1e-3 / constant_s)
        return y

    return law


def told_time(law: Callable[[int, float], float]) -> Effect:
    """Only what is sent is disturbed."""
    return lambda k, right: Has(right[-1].serial, right[-1].force, right[-1].used, law(k, right[-1].time))


def lagging_time(k: int, now: float) -> float:
    y = now - 1e-3 * k
    for n in range(1, k + 1):
        x = now - 1e-3 * (k - n)
        y = x + (y - x) * math.exp(-1e-3 / 0.02)
    return y


_ASK, _FORCE, _TIME = {"message": "Ask"}, {"signal": "Ask.force"}, {"signal": "Told.time"}
CASES: list[Case] = [
    Case({**_ASK, "kind": "drop"}, {}, {"jump": 1}, stale),
    Case({**_ASK, "kind": "delay", "value": 0.003}, TAKEN, {"ok": 1}, late(3)),
    Case({**_ASK, "kind": "jitter", "value": 0.004, "seed": 3}, TAKEN, {"ok": 1}, as_ever, late=4),
    Case({**_ASK, "kind": "duplicate"}, {**TAKEN, "repeat": 20}, {"ok": 1}, as_ever),
    Case({**_ASK, "kind": "dlc", "value": 6}, {"length": 20}, {"ok": 1}, stale),
    Case({**_ASK, "kind": "crc"}, {"crc": 20}, {"ok": 1}, stale),
    Case({**_ASK, "kind": "crc", "value": 1}, {"crc": 20}, {"ok": 1}, stale),
    Case({**_ASK, "kind": "crc_random"}, {"crc": 20}, {"ok": 1}, stale),
    Case({**_ASK, "kind": "counter"}, {"ok": 1, "repeat": 19}, {"jump": 1}, first_only),
    Case({**_ASK, "kind": "counter_random", "seed": 1}, None, None, as_ever, late=WINDOW),
    Case({**_ASK, "kind": "counter_offset", "value": 7}, {"jump": 1, "ok": 19}, {"jump": 1}, after(EVERY, stale)),
    Case({"node": "TCU", "kind": "silent"}, {}, {"jump": 1}, stale),
    Case({"bus": "car", "kind": "bus_off"}, {}, {"jump": 1}, silent),
    Case({**_FORCE, "kind": "out_of_range"}, {"range": 20}, {"ok": 1}, stale),
    Case({**_FORCE, "kind": "raw", "value": 50000}, TAKEN, {"ok": 1}, forced(50.0)),
    Case({**_FORCE, "kind": "value", "value": 7.5}, TAKEN, {"ok": 1}, used(lambda k, right: 7.5)),
    Case({**_FORCE, "kind": "offset", "value": 20.0}, TAKEN, {"ok": 1}, used(lambda k, right: right[-1].force + 20.0)),
    Case({**_FORCE, "kind": "gain", "value": 0.5}, TAKEN, {"ok": 1}, used(lambda k, right: 0.5 * right[-1].force)),
    Case({**_FORCE, "kind": "stuck"}, TAKEN, {"ok": 1}, used(lambda k, right: right[-1 - k].force)),
    Case({**_FORCE, "kind": "noise", "value": 5.0}, TAKEN, {"ok": 1}, as_ever, within=5.0),
    Case({**_FORCE, "kind": "ramp", "value": 100.0}, TAKEN, {"ok": 1},
         used(lambda k, right: right[-1].force + 0.1 * k)),
    Case({**_FORCE, "kind": "lag", "value": 0.02}, TAKEN, {"ok": 1}, used(lagged(0.02))),
    # what the maker's messages of judgetools.sent have no signal for
    Case({**_TIME, "kind": "stuck"}, TAKEN, {"ok": 1}, told_time(lambda k, now: now - 1e-3 * k)),
    Case({**_TIME, "kind": "lag", "value": 0.02}, TAKEN, {"ok": 1}, told_time(lagging_time)),
    Case({**_TIME, "kind": "out_of_range"}, TAKEN, {"ok": 1}, told_time(lambda k, now: 60.001)),
]  # fmt: skip


@dataclass
class Seen:
    """What came of a case."""

    case: Case
    inside: dict[str, int]
    behind: dict[str, int]
    #: ticks of the window in which the rig has something else than an undisturbed one; whether all of it is as defined
    other: int
    as_defined: bool
    #: ticks before and behind in which it has, or counts, what an undisturbed one does not
    outside: int

    @property
    def passed(self) -> bool:
        """Seen for what it is, and nothing else."""
        case = self.case
        inside = sum(self.inside.values()) == TAKEN["ok"] if case.inside is None else self.inside == case.inside
        behind = sum(self.behind.values()) == 1 if case.behind is None else self.behind == case.behind
        visible = self.other > 0 or self.inside != TAKEN
        return inside and behind and visible and self.as_defined and not self.outside


class Exchange:
    """The rig and both directions of its bus."""

    def __init__(self, folder: Path, powertrain: Path, cases: Sequence[Case]) -> None:
        self.cases, self.ticks = cases, PERIOD * len(cases)
        (folder / "exchange.dbc").write_text(DATABASE)
        (port,) = free_ports(1)
        lines = [
            '[rig]\nname = "exchange"', f'[plant]\npowertrain = "{powertrain}"',
            '[bus.car]\ndatabase = "exchange.dbc"', PLACE.format(port=port),
            '[bus.car.e2e.Ask]\nprofile = "AUTOSAR_P02"\ncrc_signal = "crc"\ncounter_signal = "alive"',
            f"data_ids = {list(IDS)}",
            '[inputs]\n"u1.f" = "Ask.force"\n"u2.f" = { value = 0.0 }',
            '[outputs]\n"Told.serial" = "Ask.serial"\n"Told.force" = "Ask.force"\n"Told.used" = "input.u1.f"',
            '"Told.time" = "rig.time"',
        ]  # fmt: skip
        for n, case in enumerate(cases):
            begin = self.begin(n) * 1e-3
            table = {**case.fault, "from_s": begin, "until_s": round(begin + WINDOW * 1e-3, 3)}
            lines.append("[[faults]]")
            lines += [f"{k} = {v!r}" if not isinstance(v, str) else f'{k} = "{v}"' for k, v in table.items()]
        self.rig = folder / "exchange.toml"
        self.rig.write_text("\n".join(lines) + "\n")
        self.ports = {"car": port}
        self.database = cantools.database.load_file(folder / "exchange.dbc")
        self.sent: list[Has] = []
        self.told: list[Has | None] = []

    @staticmethod
    def begin(n: int) -> int:
        """First tick of a window."""
        return PERIOD * n + (PERIOD - WINDOW) // 2

    def ask(self, tick: int) -> can.Message:
        """The frame of this tick, by independent code."""
        serial = tick // EVERY
        force = round(10.0 + 8.0 * math.sin(0.37 * serial), 3)
        given = {"crc": 0, "alive": serial % 16, "serial": serial, "force": force}
        data = bytearray(self.database.get_message_by_name("Ask").encode(given))
        e2e.p02.e2e_p02_protect(data, IDS, increment_counter=False)
        checksum = Signal("CHECKSUM", 0, 7, 0, 8, False, 1.0, 0.0, True)
        assert volkswagen_mqb_meb_checksum(ASK, checksum, bytearray(data)) == data[0], "the judges differ"
        self.sent.append(Has(serial, force, force, 0.0))
        return message(ASK, bytes(data))

    def run(self) -> list[Seen]:
        """All windows, one after the other."""
        right: list[Has] = []
        with Lockstep(self.rig, self.ticks, self.ports) as rig:
            for tick in range(self.ticks):
                frames = [self.ask(tick)] if tick % EVERY == 0 else []
                self.told.append(self.heard(rig.tick({"car": frames})["car"]))
                # what is sent in a tick is of its end
                right.append(_like(self.sent[-1], Has(0, 0.0, 0.0, (tick + 1) * 1e-3)))
            counts = rig.counts()
        return [self.seen(n, right, counts) for n in range(len(self.cases))]

    def heard(self, frames: list[can.Message]) -> Has | None:
        """Told of this tick."""
        if not frames:
            return None
        (frame,) = frames
        said = self.database.decode_message(frame.arbitration_id, bytes(frame.data), decode_choices=False)
        assert isinstance(said, dict)
        return Has(int(said["serial"]), *(float(said[k]) for k in ("force", "used", "time")))

    def seen(self, n: int, right: list[Has], counts: list[tuple[int, str, str, str, int]]) -> Seen:
        """One case, looked at from the middle between the windows to the next."""
        case, begin, apart = self.cases[n], self.begin(n), (PERIOD - WINDOW) // 2
        end, first, last = begin + WINDOW, begin - apart, begin + WINDOW + apart
        inside, behind, outside = Counter[str](), Counter[str](), 0
        for tick, _, _, reason, many in counts:
            if begin <= tick < end:
                inside[reason] += many
            elif end <= tick < end + TAIL:
                behind[reason] += many
            elif first <= tick < last and reason != "ok":
                outside += 1
        other, as_defined = 0, True
        for tick in range(first, last):
            plain, has = right[tick], self.told[tick]
            if begin <= tick < end:
                other += not same(has, plain)
                as_defined &= self.defined(case, tick - begin, right[first : tick + 1], has)
            elif not end <= tick < end + TAIL:
                outside += not same(has, plain)
        return Seen(case, dict(inside), dict(behind), other, as_defined, outside)

    @staticmethod
    def defined(case: Case, k: int, right: list[Has], has: Has | None) -> bool:
        """What the rig has is what the disturbance is defined to make of it."""
        if case.late:
            return any(same(has, _like(old, right[-1])) for old in right[-1 - case.late :])
        if case.within:
            now = right[-1]
            return has is not None and same(Has(has.serial, has.force, now.used, has.time), now) and (
                abs(has.used - now.used) <= case.within + 1e-5)  # fmt: skip
        return same(has, case.effect(k, right))


def same(one: Has | None, other: Has | None) -> bool:
    """Equal to the resolution of Told."""
    if one is None or other is None:
        return one is other
    return one.serial == other.serial and all(
        abs(a - b) <= resolution
        for a, b, resolution in ((one.force, other.force, 6e-4), (one.used, other.used, 1.1e-5),
                                 (one.time, other.time, 6e-4))
    )  # fmt: skip
