"""The verdict of each monitor on a run, with its sentence, from the recorded signals; what the gearbox did, in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from torqueloop.core.describe.classes import dataclass
from torqueloop.cython_kernels.tick.monitors import UNKNOWN
from torqueloop.hil.common.levers import LEVERS
from torqueloop.hil.monitors.catalogue import BY_NAME, MONITORS, Monitor
from torqueloop.hil.monitors.reading import Finding, Reading, read_recording
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report.analysis import Array, Band, column, runs_of
from torqueloop.hil.report.drive import Drive
from torqueloop.hil.report.drive_monitors import JUDGES
from torqueloop.hil.results.monitors import MonitorSpec

#: what becomes of a monitor. follows: it failed, and another failure that began before explains it
PASSED, FAILED, FOLLOWS, WAIVED, NOT_REACHED = "passed", "failed", "follows", "waived", "not reached"
#: two failures of one cause begin within this time [s]
TOGETHER_S = 0.5
#: what is found of a whole shift, or of the shift lines, begins up to this time before its cause is seen [s]
SHIFT_S = 2.0
RPM = 30.0 / np.pi


@dataclass(frozen=True)
class MonitorVerdict:
    """What became of a monitor."""

    name: str
    #: one of passed, failed, follows, waived, not reached
    state: str
    #: what happened, in a sentence; why it is waived, explained or was not reached
    text: str
    #: what is compared, its unit, its limit
    value: str
    unit: str
    limit: float
    #: when the failure began, how long it lasted [s]; None: it did not fail
    first_s: float | None = None
    lasts_s: float | None = None
    #: largest value seen; None: not looked at
    worst: float | None = None

    @property
    def passed(self) -> bool:
        """It does not make the run fail."""
        return self.state != FAILED


@dataclass(frozen=True)
class GearStrip:
    """Gears over time: asked for, said to be engaged, engaged by the speeds; numbers, -1: reverse, 0: none."""

    asked: list[Band]
    reported: list[Band]
    true: list[Band]


def judge(spec: MonitorSpec, signals: Signals, drive: Drive) -> tuple[list[MonitorVerdict], GearStrip]:
    """All monitors of a run in the order of the catalogue, and the strip of gears."""

    def recorded(name: str) -> Array | None:
        return column(signals, name, name.partition(".")[2])  # a bus in front, where it is not needed

    tick = signals.tick_s
    reading = read_recording(spec, recorded, np.asarray(signals.tick, dtype=float), tick)
    words = _Words(spec, signals)
    raw = [_verdict(m, spec, drive, reading, words, tick) for m in MONITORS]
    return _explained(raw), _strip(spec, signals, reading, recorded)


def _verdict(m: Monitor, spec: MonitorSpec, drive: Drive, reading: Reading | None, words: _Words,
             tick_s: float) -> MonitorVerdict:  # fmt: skip
    limit = spec.limits.get(m.name, m.limit)

    def made(state: str, text: str, first_s: float | None = None, lasts_s: float | None = None,
             worst: float | None = None) -> MonitorVerdict:  # fmt: skip
        if state == FAILED and m.name in spec.waived:
            state, text = WAIVED, f"{text} Waived: {spec.waived[m.name]}"
        return MonitorVerdict(m.name, state, text, m.value, m.unit, limit, first_s, lasts_s, worst)

    if not m.online:
        seen = JUDGES[m.name](spec, drive, limit)
        if seen is None:
            return made(NOT_REACHED, "nothing of it in this run")
        state, first_s = (FAILED, seen.first_s) if seen.failed else (PASSED, None)
        return made(state, seen.text, first_s, None, seen.worst)
    if reading is None:
        return made(NOT_REACHED, "the run has no gearbox with gears, or its signals were not recorded")
    found = reading.findings[m.name]
    if not found.reached:
        return made(NOT_REACHED, "nothing of it in this run")
    if not found.failed:
        return made(PASSED, "", None, None, found.seen)
    return made(FAILED, words.sentence(m, found), words.since(m, found), found.ticks * tick_s, found.worst)


def _explained(raw: Sequence[MonitorVerdict]) -> list[MonitorVerdict]:
    """Failures that follow from another one say so."""
    order = {m.name: k for k, m in enumerate(MONITORS)}
    began = {v.name: v.first_s for v in raw if v.state == FAILED and v.first_s is not None}
    # a time limit is exceeded when it has passed: what has begun until then may be why
    limit_s = {v.name: v.limit if v.unit == "s" else 0.0 for v in raw}

    def causes(name: str) -> list[str]:
        """Failures that explain this one; of two that explain each other the first, of two at one time the first of the
        catalogue stays."""
        first = began.get(name, np.inf)
        latest = first + limit_s[name] + (TOGETHER_S if BY_NAME[name].online else SHIFT_S)
        found = [c for c in BY_NAME[name].follows if c in began and began[c] <= latest]
        before = {c for c in found if began[c] < first - TOGETHER_S or order[c] < order[name]}
        return [c for c in found if c in before or name not in BY_NAME[c].follows]

    made = []
    for v in raw:
        found = causes(v.name) if v.state == FAILED else []
        if found:
            cause = min(found, key=lambda name: (len(causes(name)), began[name]))
            v = replace(v, state=FOLLOWS, text=f"{v.text} It follows from {cause}.")
        made.append(v)
    return made


# --- words ------------------------------------------------------------------------------------------------------------


class _Words:
    """The words of the sentences of one run."""

    def __init__(self, spec: MonitorSpec, signals: Signals) -> None:
        self.spec, self.signals = spec, signals

    def sentence(self, m: Monitor, f: Finding) -> str:
        """What happened."""
        box, tick = self.spec.gearbox, self.signals.tick_s
        names = [e.name for k, e in enumerate(box.elements) if f.closed >> k & 1]
        closed_as = box.closed_as[f.closed]
        lever = LEVERS[int(f.lever)] if 0 <= f.lever < len(LEVERS) else "D"
        closed, are = "+".join(names) or "no element", "are" if len(names) > 1 else "is"
        gear_name = "gear " + _gear(f.gear) if f.gear else "neutral"
        what = box.gears[closed_as].name.partition("_")[0] if closed_as >= 0 else "no gear"
        said = _gear(f.reported if f.reported != UNKNOWN else f.asked)
        before, after = _gear(f.last), _gear(f.asked) if f.asked not in (UNKNOWN, f.last) else ""
        engine_limit = box.engine_max_radps if f.gear else max(box.engine_max_radps, box.engine_cut_radps)
        text = m.sentence.format(
            lever=lever, motion=self._motion(f, lever), gearbox=box.name,
            first=f"{(f.first + 1) * tick:.2f}", since=f"{self.since(m, f):.2f}", worst=f"{f.worst:.3g}", closed=closed,
            are=are, closed_gear=what, gear=_gear(f.gear), gear_name=gear_name, asked=_gear(f.asked), last=before,
            reported=said, shift=f"the shift {before}→{after}" if after else f"after gear {before}",
            engine_max=f"{engine_limit * RPM:.0f}", slipping=self._slipping(f, names),
            closed_all=self._closed_all(f, f"{closed} {are} closed", names, closed_as), pairs=self._pairs(f),
        )  # fmt: skip
        return text[0].upper() + text[1:]

    def _motion(self, f: Finding, lever: str) -> str:
        """What the car does against the lever, or the gearbox against the car."""
        v = column(self.signals, self.spec.signals.get("v", ""))
        k = int(np.searchsorted(self.signals.tick, f.worst_tick))
        way = "forwards" if lever == "R" else "backwards"
        against = v is not None and k < len(v) and (v[k] > 0.0) == (lever == "R")
        return f"the car drove {way}" if against else f"the gearbox drives {way}"

    def since(self, m: Monitor, f: Finding) -> float:
        """Begin of what a time limit was exceeded by."""
        begin = (f.first + 1) * self.signals.tick_s
        return max(0.0, begin - self.spec.limits.get(m.name, m.limit)) if m.unit == "s" else begin

    def _closed_all(self, f: Finding, closed: str, names: Sequence[str], closed_as: int) -> str:
        if closed_as >= 0:
            return f"{closed}, which is {self.spec.gearbox.gears[closed_as].name.partition('_')[0]}"
        if closed_as == -1:
            wanted = next((g for g in self.spec.gearbox.gears if g.number == f.asked), None)
            open_ = [e for e in wanted.elements if e not in names] if wanted else []
            are = "are" if len(open_) > 1 else "is"
            missing = f"; {'+'.join(open_)} {are} open, which {_gear(f.asked)} needs" if open_ else ""
            return (f"{closed}, which drives nothing" if names else closed) + missing
        return f"{closed}, which is no gear"

    def _slipping(self, f: Finding, names: Sequence[str]) -> str:
        """Which of the closed elements slips, and at what pressure."""
        k = int(np.searchsorted(self.signals.tick, f.worst_tick))
        for name in names:
            w, p = column(self.signals, f"{name}.w_rel"), column(self.signals, f"{name}.p")
            if w is not None and k < len(w) and abs(w[k]) > 1.0:
                at = f" at {p[k] * 1e-5:.1f} bar" if p is not None else ""
                return f"; {name} slips by {abs(w[k]):.0f} rad/s{at}"
        return ""

    def _pairs(self, f: Finding) -> str:
        k = int(np.searchsorted(self.signals.tick, f.worst_tick))
        said = []
        for pair in self.spec.pairs:
            reported, source = pair.reported, pair.source
            a, b = column(self.signals, reported, reported.partition(".")[2]), column(self.signals, source)
            if a is not None and b is not None and k < len(a) and abs(a[k] - b[k]) > 0.05 * abs(b[k]) + 1.0:
                said.append(f"{reported} {a[k] * RPM:.0f} 1/min, {source} {b[k] * RPM:.0f} 1/min")
        return ", ".join(said)


def _gear(number: float) -> str:
    special = {-1.0: "R", 0.0: "N", -2.0: "P", float(UNKNOWN): "nothing"}
    return special.get(float(number), f"{number:.0f}")


# --- the strip --------------------------------------------------------------------------------------------------------


def _strip(spec: MonitorSpec, signals: Signals, reading: Reading | None,
           recorded: Callable[[str], Array | None]) -> GearStrip:  # fmt: skip
    t = signals.t

    def bands(values: Array | None, words: Sequence[tuple[float, float]] | None = None) -> list[Band]:
        if values is None or not len(values):
            return []
        meaning = dict(words) if words is not None else None
        return [Band(float(t[a]), float(t[b - 1]), _gear(v if meaning is None else meaning.get(float(v), UNKNOWN)))
                for a, b, v in runs_of(values)]  # fmt: skip

    said = {fact: recorded(spec.signals[fact]) if fact in spec.signals else None for fact in ("asked", "reported")}
    true = bands(reading.gears if reading is not None else None)
    return GearStrip(bands(said["asked"], spec.asked), bands(said["reported"], spec.reported), true)


def summary(verdicts: Sequence[MonitorVerdict], strip: GearStrip, shifts: int, distance_m: float | None) -> str:
    """What the gearbox did, in one sentence: the first failure, else its drive."""
    failed = [v for v in verdicts if v.state == FAILED]
    if failed:
        return min(failed, key=lambda v: np.inf if v.first_s is None else v.first_s).text
    gears = [b.value for b in strip.true if b.value != "N"]
    way = [g for k, g in enumerate(gears) if k == 0 or g != gears[k - 1]]
    if not way:
        return "No gear was engaged in this run."
    far = f" over {distance_m:.0f} m" if distance_m is not None else ""
    if len(way) == 1:
        return f"The gearbox stayed in {way[0]}{far}."
    return f"The gearbox went {' '.join(way)}: {shifts} shifts{far}, each as asked for and in time."
