"""What a recording says about a database: message by message what it confirms, contradicts, and does not show.

    judged = judge(log_frames(path), database, nodes)
    judged.messages["Motor_12"].period          Verdict("contradicted", "20.0 ms (19.2 .. 20.9), declared 10")

Times, lengths, counters, checksums by every rule (checksum_fit.py), values outside their range, signals that never
move, error values, bits that move without a signal, undeclared identifiers. Frames are kept in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.can.bits import Field, Split, all_bits, bits, parts, width
from torqueloop.cython_kernels.can.codec_spec import MessageSpec, SignalSpec, counter_range
from torqueloop.cython_kernels.can.protection import E2E_PROFILES, NONE
from torqueloop.hil.can.checksum_fit import Fit, bare, fits, place_text, right
from torqueloop.hil.can.database import CanDatabase, bus_id
from torqueloop.hil.can.frame import ERROR_FLAG, REMOTE_FLAG
from torqueloop.hil.can.load import read_database
from torqueloop.hil.can.scan import IDENTIFIERS_MAX, Frame

#: the median of the times between frames may differ from the cycle time by these factors
PERIOD_FITS = (0.8, 1.25)
#: gaps from which a period is judged
GAPS_MIN = 5
#: right checksums and steps of a counter that confirm a rule; the rest are starting senders and frames lost by the log
RIGHT_MIN, STEPS_MIN = 0.995, 0.95
#: bits of checksum, all different frames together, that confirm a declared rule: by chance once in 2**16
DECLARED_BITS_MIN = 16
#: words of a value table that mean an error
ERROR_WORDS = ("error", "invalid", "fehler", "not available", "not_available", "sna", "defect", "fault")

State = Literal["confirmed", "contradicted", "not seen"]
Bits = NDArray[np.uint8]


@dataclass(frozen=True)
class Verdict:
    """What a recording says about one side of a message."""

    state: State
    text: str = ""


@dataclass
class Judged:
    """One identifier of a recording beside what is declared of it."""

    can_id: int
    name: str = ""
    senders: list[str] = field(default_factory=list)
    frames: int = 0
    lengths: dict[int, int] = field(default_factory=dict)
    #: least, median and most time between two frames [s]
    period_s: tuple[float, float, float] | None = None
    #: declared [s]
    cycle_s: float | None = None
    length: Verdict = Verdict("not seen")
    period: Verdict = Verdict("not seen")
    counter: Verdict = Verdict("not seen")
    checksum: Verdict = Verdict("not seen")
    values: Verdict = Verdict("not seen")
    #: rules that fit its checksum, the best first
    fits: list[Fit] = field(default_factory=list)
    #: signal -> frames with a value outside its range, with an error value
    out_of_range: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    #: signal that never moves -> its value
    still: dict[str, float] = field(default_factory=dict)
    #: bits that move where no signal is
    undeclared_bits: list[int] = field(default_factory=list)

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """All sides of it."""
        return {n: getattr(self, n) for n in ("length", "period", "counter", "checksum", "values")}

    @property
    def state(self) -> State:
        """Of the message as a whole."""
        states = {v.state for v in self.verdicts.values()}
        order: tuple[State, ...] = ("contradicted", "confirmed", "not seen")
        return next(s for s in order if s in states)

    @property
    def summary(self) -> str:
        """In a line, for the interface file."""
        told = [v.text for v in self.verdicts.values() if v.text]
        return f"{self.frames} frames; " + "; ".join(told)


@dataclass
class Judgement:
    """A whole recording beside a database."""

    seconds: float = 0.0
    frames: int = 0
    #: of the bus: error frames, remote frames, frames of identifiers beyond the list
    error_frames: int = 0
    remote_frames: int = 0
    more: int = 0
    #: by name, in the order of the database; those that were not heard have no frames
    messages: dict[str, Judged] = field(default_factory=dict)
    #: identifiers nobody declares
    undeclared: list[Judged] = field(default_factory=list)
    #: messages the codec cannot read -> why
    skipped: dict[str, str] = field(default_factory=dict)

    def of_state(self, state: State) -> list[Judged]:
        """Messages with this verdict."""
        return [m for m in self.messages.values() if m.state == state]


@dataclass
class _Heard:
    times: list[float] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)


def judge(frames: Iterable[Frame], database: Path) -> Judgement:
    """Judge a database by frames. ConfigError for a database that cannot be read."""
    raw = {m.name: m for m in read_database(database).messages}
    node = next((n for m in raw.values() for n in (*m.senders, *m.receivers)), None)
    if node is None:
        raise ConfigError("the database names no node that sends or receives", file=str(database))
    read = CanDatabase.load(database, node, send=(), receive=list(raw), units="database", timeouts_s={"*": 0.0})
    words = {s.full_name: s.choices for s in read.signals}
    found = Judgement(skipped=dict(read.skipped))
    heard = _collect(frames, found)
    for spec in read.messages:
        row = heard.pop(bus_id(spec), _Heard())
        cycle = raw[spec.name].cycle_time
        found.messages[spec.name] = _judged(spec, list(raw[spec.name].senders), cycle / 1e3 if cycle else None, row,
                                            words)  # fmt: skip
    for can_id, row in sorted(heard.items()):
        lengths = Counter(map(len, row.data))
        spec = bare(can_id, lengths.most_common(1)[0][0])
        found.undeclared.append(_heard_only(spec, row, lengths))
    return found


def _collect(frames: Iterable[Frame], found: Judgement) -> dict[int, _Heard]:
    heard: dict[int, _Heard] = {}
    first = last = None
    for t, can_id, data, flags in frames:
        first, last = t if first is None else first, t
        found.frames += 1
        if flags & ERROR_FLAG:
            found.error_frames += 1
        elif flags & REMOTE_FLAG:
            found.remote_frames += 1
        elif can_id not in heard and len(heard) == IDENTIFIERS_MAX:
            found.more += 1
        else:
            row = heard.setdefault(can_id, _Heard())
            row.times.append(t)
            row.data.append(data)
    found.seconds = (last or 0.0) - (first or 0.0)
    return heard


def _heard_only(spec: MessageSpec, row: _Heard, lengths: Mapping[int, int]) -> Judged:
    """Times, lengths and rules that fit, without anything declared."""
    made = Judged(bus_id(spec), frames=len(row.times), lengths=dict(lengths))
    if len(row.times) > 1:
        gaps = np.diff(row.times)
        made.period_s = (float(gaps.min()), float(np.median(gaps)), float(gaps.max()))
    data = [d for d in row.data if len(d) == spec.length]
    made.fits = fits(spec, data) if spec.length else []
    return made


def _judged(
    spec: MessageSpec, senders: list[str], cycle_s: float | None, row: _Heard, words: Mapping[str, Mapping[int, str]]
) -> Judged:
    if not row.times:
        return Judged(bus_id(spec), spec.name, senders, cycle_s=cycle_s)
    lengths = Counter(map(len, row.data))
    made = _heard_only(spec, row, lengths)
    made.name, made.senders, made.cycle_s = spec.name, senders, cycle_s
    wrong = {n: k for n, k in lengths.items() if n != spec.length}
    told = ", ".join(f"{k} frames of {n}" for n, k in wrong.items())
    made.length = Verdict("contradicted", f"{told} bytes, declared {spec.length}") if wrong else Verdict("confirmed")
    made.period = _period(made)
    data = [d for d in row.data if len(d) == spec.length]
    if not data:
        return made
    array = np.frombuffer(b"".join(data), np.uint8).reshape(len(data), spec.length)
    rows: Bits = np.unpackbits(array, axis=1, bitorder="little")
    made.checksum = _checksum(spec, made, data)
    made.counter = _counter(spec, rows)
    _values(spec, rows, words, made)
    return made


def _period(made: Judged) -> Verdict:
    if made.period_s is None or made.cycle_s is None or made.frames <= GAPS_MIN:
        return Verdict("not seen", "" if made.cycle_s is None or made.frames <= 1 else "too few frames for a period")
    least, median, most = (1e3 * t for t in made.period_s)
    fits_ = PERIOD_FITS[0] < made.period_s[1] / made.cycle_s < PERIOD_FITS[1]
    text = f"{median:.1f} ms ({least:.1f} .. {most:.1f})"
    if fits_:
        return Verdict("confirmed", text)
    return Verdict("contradicted", f"{text}, declared {1e3 * made.cycle_s:g}")


def _checksum(spec: MessageSpec, made: Judged, data: Sequence[bytes]) -> Verdict:
    """The declared rule, or that one fits where none is declared."""
    best = made.fits[0] if made.fits else None
    if spec.crc_bits is None or E2E_PROFILES[spec.e2e].kind == NONE:
        if best is None or best.share < RIGHT_MIN:
            return Verdict("not seen")
        return Verdict("contradicted", f"no checksum declared, {best.text}")
    own = Fit(spec.e2e, "", spec.crc_bits, right(spec, data), len(data))
    if own.share >= RIGHT_MIN and (best is None or best.right <= own.right):
        if width(own.place) * len(set(data)) < DECLARED_BITS_MIN:
            return Verdict("not seen", f"{own.text}, too few of them different")
        return Verdict("confirmed", own.text)
    better = best.text if best is not None and best.right > own.right else "no rule fits better"
    declared = f"declared {own.rule} of {place_text(own.place)} is right in {own.right} of {own.frames}"
    return Verdict("contradicted", f"{declared}; {better}")


def _counter(spec: MessageSpec, rows: Bits) -> Verdict:
    """Steps of the declared counter; where it does not count, the half byte that does."""
    counting = _counting(spec, rows)
    where = f"; {', '.join(counting)} count{'s' * (len(counting) == 1)}" if counting else ""
    if spec.counter is None:
        return Verdict("contradicted", f"no counter declared{where}") if counting else Verdict("not seen")
    values = _raw(rows, spec.counter)
    if len(values) <= GAPS_MIN:
        return Verdict("not seen", "too few frames for a counter")
    low, high = counter_range(spec, spec.counter)
    run = [k for k in range(low, high + 1) if k not in spec.counter_skips]
    after = dict(zip(run, [*run[1:], run[0]], strict=True))
    share = float(np.mean([after.get(a) == b for a, b in zip(values.tolist(), values[1:].tolist(), strict=False)]))
    seen = f"counter {values.min()} .. {values.max()}, {100 * share:.1f} % of its steps are the next number"
    if share >= STEPS_MIN:
        return Verdict("confirmed", seen)
    return Verdict("contradicted", f"{seen}, declared {low} .. {high}{where}")


def _counting(spec: MessageSpec, rows: Bits) -> list[str]:
    """Half bytes that count: at least 80 % of their steps are +1, and they turn over."""
    found = []
    for k in range(rows.shape[1] // 4):
        place: Field = (4 * k, 4, False)
        values = _raw(rows, place)
        if len(values) <= 16 or values.max() < 13 or values.min() > 1:
            continue
        step = (values[1:].astype(int) - values[:-1]) % (int(values.max()) + 1)
        if np.mean(step == 1) >= 0.8 and not all_bits(place) & all_bits(spec.crc_bits):
            found.append(f"{place_text(place)} ({values.min()} .. {values.max()})")
    return found


def _raw(rows: Bits, place: Split) -> NDArray[np.uint64]:
    """Raw numbers of a field in all frames, the first part of a split one lowest."""
    value = np.zeros(len(rows), np.uint64)
    at = 0
    for part in parts(place):
        order = list(bits(part))
        for k, bit in enumerate(reversed(order) if part[2] else order):
            value |= rows[:, bit].astype(np.uint64) << np.uint64(at + k)
        at += part[1]
    return value


def _values(spec: MessageSpec, rows: Bits, words: Mapping[str, Mapping[int, str]], made: Judged) -> None:
    """Ranges, error values, signals that stand still, bits without a signal."""
    place = {s.name: (s.start, s.length, s.big_endian) for s in spec.signals}
    # the bits of signals the codec owns (counter, checksum) are theirs
    covered = all_bits(spec.counter) | all_bits(spec.crc_bits)
    for signal in spec.signals:
        covered |= set(bits(place[signal.name]))
        if signal.is_float:
            continue
        inside = _in_frame(spec, signal, rows, place)
        raw = _raw(rows, place[signal.name])[inside]
        if not len(raw):
            continue
        # the sign is the highest bit of a word of 64, and comes back with the shift to the right
        above = 64 - signal.length
        signed = (raw << np.uint64(above)).view(np.int64) >> above
        values = (signed if signal.signed else raw) * signal.scale + signal.offset
        table = words.get(f"{spec.name}.{signal.name}", {})
        bad = np.isin(raw, [k % (1 << signal.length) for k, w in table.items() if _is_error(w)] + list(signal.invalid))
        tolerance = abs(signal.scale) / 2
        low = -np.inf if signal.minimum is None else signal.minimum - tolerance
        high = np.inf if signal.maximum is None else signal.maximum + tolerance
        outside = ((values < low) | (values > high)) & ~bad
        if bad.any():
            made.errors[signal.name] = int(bad.sum())
        if outside.any():
            made.out_of_range[signal.name] = int(outside.sum())
        if len(values) > 1 and (values == values[0]).all():
            made.still[signal.name] = float(values[0])
    moving = {int(k) for k in np.flatnonzero(rows.any(axis=0) & ~rows.all(axis=0))}
    made.undeclared_bits = sorted(moving - covered)
    told = [f"{name} outside its range in {n} frames" for name, n in made.out_of_range.items()]
    moved = len(spec.signals) - len(made.still)
    state: State = "contradicted" if told else "confirmed" if moved else "not seen"
    made.values = Verdict(state, "; ".join([f"{moved} of {len(spec.signals)} signals moved", *told]))


def _in_frame(spec: MessageSpec, signal: SignalSpec, rows: Bits, place: Mapping[str, Field]) -> NDArray[np.bool_]:
    """In which frames a multiplexed signal is."""
    inside = np.ones(len(rows), bool)
    for selector, ranges in signal.when:
        chosen = _raw(rows, place[selector])
        inside &= np.any([(chosen >= low) & (chosen <= high) for low, high in ranges], axis=0)
    return inside


def _is_error(word: str) -> bool:
    return any(w in word.lower() for w in ERROR_WORDS)
