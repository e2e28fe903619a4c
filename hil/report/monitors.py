"""Monitors: what every drive is held to, computed from the recorded signals alone, of rigs and offline runs alike.

    gears          engaged gears (w_in = i w_out, analysis.gear_bands) are those the shift schedule asks for
    shifts         from the old ratio to the new one, and any time under power without a gear, in time
    moves off      lever in a gear, pedal pressed, brake released: the car moves that way
    acceleration   within the grip of tyres; in a shift not far beyond its levels before and behind
    fallbacks      no step that only a plain impulse could finish

A monitor is a function of (MonitorSpec, Drive) that gives a Check, or None where what it looks at was not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torqueloop.hil.common.levers import LEVERS
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report.analysis import (
    W_OUT_MIN,
    Array,
    Band,
    Shift,
    acceleration,
    column,
    input_speed,
    runs_of,
)
from torqueloop.hil.report.checks import Check
from torqueloop.hil.report.shift_quality import LEVEL_S, ShiftQuality
from torqueloop.hil.results.monitors import Line, MonitorSpec, ShiftSchedule, number_of
from torqueloop.hil.results.run import RunStats

#: a shift line counts as crossed beyond it by this part and this much: the control unit's speed is some samples old
LINE_REL, LINE_ABS_RADPS = 0.02, 1.5
#: from a speed beyond a line to the begin of the shift, beside the time a gear is kept: messages, filling [s]
REACTION_S = 2.0
#: the pedal is pressed from here on, the brake released below
PEDAL_MIN, BRAKE_MAX = 0.05, 0.02
#: the car moves from here on [m/s]
V_MOVES_MPS = 0.2
#: acceleration behind a shift is taken from this time behind its end on: the oscillation of the driveline is over [s]
SETTLED_S = 0.3

Mask = NDArray[np.bool_]


@dataclass
class Drive:
    """What the monitors look at: columns of the recording (None: not recorded), gears and shifts found in it."""

    t: Array
    w_in: Array | None
    w_out: Array | None
    v: Array | None
    a: Array | None
    pedal: Array | None
    brake: Array | None
    lever: Array | None
    bands: Sequence[Band]
    shifts: Sequence[Shift]
    quality: Sequence[ShiftQuality]
    #: ratio by name of the gear
    ratios: dict[str, float]
    stats: RunStats
    #: the run was shorter than the rig file's
    cut_short: bool

    @property
    def forward(self) -> Mask:
        """The lever lets the control unit choose any forward gear; everywhere where there is no lever."""
        return np.ones(len(self.t), bool) if self.lever is None else self.lever == LEVERS.index("D")

    def inside(self, begin_s: float, end_s: float) -> slice:
        """Samples of a time."""
        first, last = np.searchsorted(self.t, (begin_s - 1e-9, end_s + 1e-9))
        return slice(int(first), int(last))


def drive_of(spec: MonitorSpec, signals: Signals, stats: RunStats, bands: Sequence[Band], shifts: Sequence[Shift],
             quality: Sequence[ShiftQuality], ratios: dict[str, float]) -> Drive:  # fmt: skip
    """The columns the monitors of a run look at."""
    t = signals.t
    return Drive(
        t, input_speed(signals), column(signals, "out.w"), column(signals, "car.v"), acceleration(signals),
        column(signals, spec.pedal), column(signals, spec.brake), column(signals, spec.lever), bands, shifts, quality,
        ratios, stats, cut_short=len(t) > 0 and float(t[-1]) < spec.duration_s - 1.5 * signals.tick_s,
    )  # fmt: skip


def monitor_checks(spec: MonitorSpec, drive: Drive) -> list[Check]:
    """What the monitors found."""
    return [check for monitor in MONITORS if (check := monitor(spec, drive)) is not None]


# --- gears ------------------------------------------------------------------------------------------------------------


def gears_in_order(spec: MonitorSpec, drive: Drive) -> Check | None:
    """Every change of gear is one the control unit has and the schedule asks for; none is overdue; the drive comes to
    the gear it is made for."""
    if not spec.gears or drive.w_out is None or drive.w_in is None or not drive.ratios:
        return None
    wrong = [text for s in drive.shifts if (text := _unasked(spec, drive, s))]
    if spec.schedule is not None and drive.pedal is not None:
        wrong += [text for band in drive.bands if (text := _overdue(spec.schedule, drive, band))]
    seen = [number_of(str(b.value)) for b in drive.bands]
    if spec.reaches and not drive.cut_short and max(seen, default=0) < spec.reaches:
        wrong.append(f"gear {spec.reaches} is not reached")
    missing = sorted({number_of(g) for g in drive.ratios} - {0, *seen})
    text = "engaged " + (" ".join(str(b.value) for b in drive.bands) or "none")
    if missing:
        text += f"; not reached: {', '.join(map(str, missing))}"
        text += ", the run was cut short" if drive.cut_short else ""
    return Check("gears as the schedule asks for", not wrong, "; ".join([*wrong, text]))


def _unasked(spec: MonitorSpec, drive: Drive, shift: Shift) -> str:
    """What is wrong with a change of gear; "": nothing, or the lever has a say in it."""
    old, new = number_of(shift.gear_from), number_of(shift.gear_to)
    inside = drive.inside(shift.begin_s - REACTION_S, shift.end_s)
    if not old or not new or old == new or not drive.forward[inside].all():
        return ""
    assert drive.w_out is not None
    if np.abs(drive.w_out[drive.inside(shift.begin_s, shift.end_s)]).min(initial=np.inf) < 2 * W_OUT_MIN:
        return ""  # standing: every ratio fits
    at = f"{shift.name} at {shift.begin_s:.2f} s"
    schedule = spec.schedule
    if schedule is None:
        return f"{at} leaves out a gear" if new > old + 1 else ""
    if f"{old}-{new}" not in schedule.shifts:
        return f"{at} is no shift of the control unit"
    if drive.pedal is None:
        return ""
    before = drive.inside(shift.begin_s - REACTION_S, shift.begin_s)
    w, pedal = np.abs(drive.w_out[before]), drive.pedal[before]
    if new > old:
        asked = w > _at(schedule.up[f"{new - 1}-{new}"], pedal) * (1 - LINE_REL) - LINE_ABS_RADPS
        asked |= w * drive.ratios[shift.gear_from] > schedule.turbine_force_up_radps
    else:
        asked = w < _down_line(schedule, new + 1, pedal, schedule.kick_down_off) * (1 + LINE_REL) + LINE_ABS_RADPS
    return "" if asked.any() else f"{at} is not asked for by the schedule"


def _overdue(schedule: ShiftSchedule, drive: Drive, band: Band) -> str:
    """A gear that is kept although the schedule asks for another one all the time."""
    gear = number_of(str(band.value))
    assert drive.w_out is not None and drive.pedal is not None
    if not gear:
        return ""
    inside = drive.inside(band.begin_s, band.end_s)
    w, pedal, t = np.abs(drive.w_out[inside]), drive.pedal[inside], drive.t[inside]
    free = drive.forward[inside] & (w > 2 * W_OUT_MIN)
    allowed = schedule.gear_time_s + REACTION_S
    up, down = f"{gear}-{gear + 1}", f"{gear}-{gear - 1}"
    asked: list[tuple[str, Mask]] = []
    if up in schedule.up:
        asked.append((up, w > _at(schedule.up[up], pedal) * (1 + LINE_REL) + LINE_ABS_RADPS))
    if down in schedule.down and (lower := _ratio(drive, gear - 1)):
        line = _down_line(schedule, gear, pedal, schedule.kick_down_on)
        fits = w * lower * (1 + LINE_REL) < schedule.turbine_max_radps
        asked.append((down, fits & (w < line * (1 - LINE_REL) - LINE_ABS_RADPS)))
    for name, wanted in asked:
        for a, b, on in runs_of(wanted & free):
            if on and t[b - 1] - t[a] > allowed:
                due = f"{name.replace('-', '→')} is due from {t[a]:.2f} s on"
                return f"{due}, gear {band.value} stays to {t[b - 1]:.2f} s"
    return ""


def _down_line(schedule: ShiftSchedule, gear: int, pedal: Array, kick_down_from: float) -> Array:
    """Output speed below which `gear` is left downwards, with kick-down from this pedal on [rad/s]."""
    name = f"{gear}-{gear - 1}"
    line = _at(schedule.down[name], pedal)
    return np.where(pedal >= kick_down_from, np.maximum(line, schedule.kick_down.get(name, 0.0)), line)


def _at(line: Line, pedal: Array) -> Array:
    return np.interp(pedal, [x for x, _ in line], [y for _, y in line])


def _ratio(drive: Drive, gear: int) -> float:
    return next((r for name, r in drive.ratios.items() if number_of(name) == gear), 0.0)


# --- shifts -----------------------------------------------------------------------------------------------------------


def shifts_in_time(spec: MonitorSpec, drive: Drive) -> Check | None:
    """No change of ratio lasts too long, and there is always a gear under power."""
    if not spec.shift_s or drive.w_out is None or drive.w_in is None or not drive.ratios:
        return None
    gaps = [(s.name, s.begin_s, s.end_s) for s in drive.shifts]
    if drive.bands and len(drive.t):
        gaps.append((f"no gear after {drive.bands[-1].value}", drive.bands[-1].end_s, float(drive.t[-1])))
    late, longest = [], ("", 0.0)
    for name, begin, end in gaps:
        pair = name.replace("→", "-")
        lasts = _without_gear(drive, begin, end, powered=pair not in spec.shift_each_s or pair in spec.overrun)
        allowed = min(spec.shift_s, spec.shift_each_s.get(pair, spec.shift_s))
        if lasts > longest[1] and "→" in name:
            longest = (name, lasts)
        if lasts > allowed:
            late.append(f"{name} from {begin:.2f} s lasts {lasts:.2f} s, allowed {allowed:.2f} s")
    text = f"longest {longest[0]}: {longest[1]:.2f} s" if longest[0] else "no shift reached"
    return Check("shifts in time", not late, "; ".join([*late, text]))


def _without_gear(drive: Drive, begin_s: float, end_s: float, powered: bool) -> float:
    """Longest stretch of this time in which the car drives forwards without a gear that should have one [s]. powered:
    only with the pedal pressed, because a free wheel holds the gear, and it is overrun while coasting."""
    inside = drive.inside(begin_s, end_s)
    assert drive.w_out is not None
    missing = drive.forward[inside] & (drive.w_out[inside] > 2 * W_OUT_MIN)
    if drive.pedal is not None and powered:
        missing &= drive.pedal[inside] > PEDAL_MIN
    t = drive.t[inside]
    return max((float(t[b - 1] - t[a]) for a, b, on in runs_of(missing) if on), default=0.0)


# --- motion -----------------------------------------------------------------------------------------------------------


def moves_off(spec: MonitorSpec, drive: Drive) -> Check | None:
    """With lever, pedal and brake asking for it, the car moves the way the lever says."""
    if not spec.moves_off_s or drive.v is None or drive.pedal is None or drive.lever is None:
        return None
    asks = drive.pedal > PEDAL_MIN
    if drive.brake is not None:
        asks &= drive.brake < BRAKE_MAX
    backwards = drive.lever == LEVERS.index("R")
    asks &= backwards | (drive.lever >= LEVERS.index("D"))
    ahead = np.where(backwards, -drive.v, drive.v)
    for a, b, on in runs_of(asks):
        late = a + int(np.searchsorted(drive.t[a:b] - drive.t[a], spec.moves_off_s))
        if on and late < b and not (ahead[late:b] > V_MOVES_MPS).all():
            text = f"{ahead[late:b].min():.2f} m/s after {spec.moves_off_s:g} s of pedal from {drive.t[a]:.2f} s on"
            return Check("car moves off", False, text)
    return Check("car moves off", True, "" if asks.any() else "not reached: no pedal in a gear")


def acceleration_in_range(spec: MonitorSpec, drive: Drive) -> Check | None:
    """The car's acceleration is one of tyres, and a shift adds little to its levels before and behind."""
    a = drive.a
    if a is None or not len(a):
        return None
    wrong, most = [], int(np.argmax(np.abs(a)))
    if spec.acceleration_mps2 and abs(a[most]) > spec.acceleration_mps2:
        wrong.append(f"{a[most]:+.2f} m/s² at {drive.t[most]:.3f} s, allowed {spec.acceleration_mps2:g}")
    peaks = [(s.name, s.begin_s, _beyond_levels(drive, s)) for s in drive.quality]
    for name, begin, beyond in peaks if spec.shift_peak_mps2 else ():
        if beyond > spec.shift_peak_mps2:
            wrong.append(f"{name} at {begin:.2f} s: {beyond:.2f} m/s² beyond its levels, "
                         f"allowed {spec.shift_peak_mps2:g}")  # fmt: skip
    text = f"peak {a[most]:+.2f} m/s²" + (f", in a shift {max(p for *_, p in peaks):.2f} beyond" if peaks else "")
    return Check("acceleration in range", not wrong, "; ".join([*wrong, text]))


def _beyond_levels(drive: Drive, shift: ShiftQuality) -> float:
    """Peak of the acceleration from the command to SETTLED_S behind the shift, beyond both levels; 0 where the driver
    brakes or changes the pedal meanwhile, or the run ends [m/s2]."""
    a = drive.a
    assert a is not None
    before = a[drive.inside(shift.begin_s - LEVEL_S, shift.begin_s)]
    inside = drive.inside(shift.begin_s, shift.end_s + SETTLED_S)
    behind = a[drive.inside(shift.end_s + SETTLED_S, shift.end_s + 2 * SETTLED_S)]
    around = drive.inside(shift.begin_s - LEVEL_S, shift.end_s + 2 * SETTLED_S)
    for told in (drive.brake, drive.pedal):
        if told is not None and len(told[around]) and np.ptp(told[around]) > BRAKE_MAX:
            return 0.0
    if not len(before) or not len(behind) or not len(a[inside]):
        return 0.0
    levels = (float(before.mean()), float(behind.mean()))
    return float(max(0.0, a[inside].max() - max(levels), min(levels) - a[inside].min()))


def no_fallbacks(spec: MonitorSpec, drive: Drive) -> Check | None:
    """No step ended with a plain impulse."""
    solver = drive.stats.solver
    if solver is None or spec.fallbacks < 0:
        return None
    text = f"{solver.fallbacks} steps ended with a plain impulse" if solver.fallbacks else ""
    return Check("no fallback of the step", solver.fallbacks <= spec.fallbacks, text)


#: in the order they are told
MONITORS: tuple[Callable[[MonitorSpec, Drive], Check | None], ...] = (
    gears_in_order, shifts_in_time, moves_off, acceleration_in_range, no_fallbacks,
)  # fmt: skip
