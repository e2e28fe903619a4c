"""Monitors of the recording: what needs the whole drive, or what no test step reacts to.

    schedule, reaches         engaged gears (w_in = i w_out, analysis.gear_bands) are those the shift lines ask for
    shift_length, shift_hard  from the old ratio to the new one; acceleration beyond the levels before and after
    reported_pedal                the pedal that is sent is the driver's
    acceleration              within the grip of tyres
    heat ... overload         what elements bear: element_monitors.py
    actuator_still            actuators of control units that never move
    fallbacks                 no step that only a plain impulse could finish

A monitor is a function of (MonitorSpec, Drive, limit) that gives a Seen, or None where what it looks at was not
recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from torqueloop.hil.monitors.catalogue import BY_NAME, SETTLE_S
from torqueloop.hil.report.analysis import W_OUT_MIN, Array, Band, Shift, runs_of
from torqueloop.hil.report.drive import Drive, Mask, Seen
from torqueloop.hil.report.element_monitors import LEVER_S, LININGS, overload
from torqueloop.hil.report.jerk import HALF_S
from torqueloop.hil.report.shift_quality import LEVEL_S, ShiftQuality
from torqueloop.hil.results.monitors import Line, MonitorSpec, ShiftSchedule, number_of

#: a shift line counts as crossed beyond it by this part and this much: the control unit's speed is some samples old
LINE_REL, LINE_ABS_RADPS = 0.02, 1.5
#: from a speed beyond a line to the begin of the shift, beside the time a gear is kept: messages, filling [s]
REACTION_S = 2.0
#: speeds that are further from the ratio of a gear do not have it: part of the input speed, and absolute [rad/s]
OFF_REL, OFF_RADPS = 0.01, 1.0
#: the pedal is pressed from here on; a pedal that varies by less than this rests
PEDAL_MIN, RESTS_MAX = 0.05, 0.02
#: the output moves: below this speed every ratio fits [rad/s]
MOVES_RADPS = 2.0
#: a smaller step of the turbine speed is not felt [rad/s]
STEP_RADPS = 15.0
#: a gear that is engaged is seen by the monitors of the tick within this time: GEAR_S and a period of theirs [s]
SEEN_S = 0.2
#: texts of one monitor that are reported
TEXTS = 3
#: the driveline's answer to a pedal is over after this time: two periods of its oscillation [s]
PEDAL_S = 0.5
#: pedal positions, and which share of the limit of `shift_hard` holds there: linear between
HARD_SHARE = ((0.0, 0.2), (0.4, 1.0))
#: jerk of a step of the acceleration, over the step: slope of the line of hil/report/jerk.py through it [1/s]
STEP_PER_S = 0.75 / HALF_S
#: acceleration behind a shift is taken from this time behind its end on: the oscillation of the driveline is over [s]
SETTLED_S = 0.3


# --- gears ------------------------------------------------------------------------------------------------------------


def schedule(spec: MonitorSpec, drive: Drive, limit: float) -> Seen | None:
    """Every change of gear is one the control unit has and its shift lines ask for; none is overdue."""
    if drive.w_out is None or drive.w_in is None or not drive.ratios:
        return None
    wrong = [(s.begin_s, text) for s in drive.shifts if (text := _unasked(spec, drive, s))]
    if spec.schedule is not None and drive.pedal is not None:
        wrong += [found for band in drive.bands if (found := _overdue(spec.schedule, drive, band))]
    wrong.sort()
    text = "; ".join(t for _, t in wrong[:TEXTS]) + (f"; {len(wrong) - TEXTS} more" if len(wrong) > TEXTS else "")
    if not wrong:
        text = "engaged " + (" ".join(str(b.value) for b in drive.bands) or "none")
    return Seen(len(wrong) > limit, text, wrong[0][0] if wrong else None, float(len(wrong)))


def reaches(spec: MonitorSpec, drive: Drive, limit: float) -> Seen | None:
    """The whole drive comes to the gear it is made for."""
    if not spec.reaches or not drive.ratios or drive.w_in is None or drive.w_out is None or drive.cut_short:
        return None
    most = max((number_of(str(b.value)) for b in drive.bands), default=0)
    if most >= spec.reaches:
        return Seen(False, f"gear {most}", worst=0.0)
    text = f"The drive does not come to gear {spec.reaches}: the highest is {most or 'none'}."
    return Seen(spec.reaches - most > limit, text, float(drive.t[-1]), float(spec.reaches - most))


def _unasked(spec: MonitorSpec, drive: Drive, shift: Shift) -> str:
    """What is wrong with a change of gear; "": nothing, or the lever has a say in it."""
    old, new = number_of(shift.gear_from), number_of(shift.gear_to)
    inside = _around(drive, shift)
    if not old or not new or old == new or not drive.forward[inside].all():
        return ""
    assert drive.w_out is not None
    if np.abs(drive.w_out[drive.inside(shift.begin_s, shift.end_s)]).min(initial=np.inf) < MOVES_RADPS:
        return ""
    held = _held(drive, old, shift.begin_s - SEEN_S, shift.begin_s)
    if not held or not _held(drive, new, shift.end_s, shift.end_s + SEEN_S):
        return ""  # the speeds cross a ratio while a free wheel is overrun
    at = f"{shift.name} at {shift.begin_s:.2f} s"
    schedule = spec.schedule
    if schedule is None:
        return f"{at} leaves out a gear" if new > old + 1 else ""
    if any(f"{a}-{b}" not in schedule.shifts for a, b in pairwise(_way(spec, drive, shift, old, new))):
        return f"{at} is not a shift of the control unit"
    if drive.pedal is None:
        return ""
    w, pedal = np.abs(drive.w_out[inside]), drive.pedal[inside]
    if new > old:
        asked = w > _at(schedule.up[f"{new - 1}-{new}"], pedal) * (1 - LINE_REL) - LINE_ABS_RADPS
        asked |= w * drive.ratios[shift.gear_from] > schedule.turbine_force_up_radps
    else:
        asked = w < _down_line(schedule, new + 1, pedal, schedule.kick_down_off) * (1 + LINE_REL) + LINE_ABS_RADPS
    return "" if asked.any() else f"{at} is not required by the schedule"


def _held(drive: Drive, gear: int, begin_s: float, end_s: float) -> bool:
    """The monitors have seen this gear engaged in this time, or their gear was not recorded."""
    gears = drive.column("monitor.gear")
    return gears is None or bool((gears[drive.inside(begin_s, end_s)] == gear).any())


def _way(spec: MonitorSpec, drive: Drive, shift: Shift, old: int, new: int) -> list[int]:
    """Gears from the old one to the new one: those between that the control unit has asked for meanwhile, each by its
    own shift; one whose free wheel is overrun has no ratio of its own."""
    asked, meant = drive.column(spec.signals.get("asked", "")), dict(spec.asked)
    reported = [] if asked is None else [int(meant.get(x, 0.0)) for *_, x in runs_of(asked[_around(drive, shift)])]
    way = [old, *(g for g in reported if min(old, new) < g < max(old, new)), new]
    return [g for k, g in enumerate(way) if k == 0 or g != way[k - 1]]


def _around(drive: Drive, shift: Shift) -> slice:
    """A shift with what led to it. To its end: where a free wheel overruns, the old ratio is left before the shift is
    asked for."""
    return drive.inside(shift.begin_s - REACTION_S, shift.end_s)


def _overdue(schedule: ShiftSchedule, drive: Drive, band: Band) -> tuple[float, str] | None:
    """Begin and text of a gear that is kept although the schedule asks for another one all the time."""
    gear = number_of(str(band.value))
    assert drive.w_out is not None and drive.pedal is not None
    if not gear:
        return None
    inside = drive.inside(band.begin_s, band.end_s)
    w, pedal, t = np.abs(drive.w_out[inside]), drive.pedal[inside], drive.t[inside]
    free = drive.forward[inside] & (w > MOVES_RADPS)
    if drive.w_in is not None:
        # a stretch with the same gear before and behind is one: without it between, the unit is on its way
        w_in = drive.w_in[inside]
        free &= np.abs(w_in - drive.ratios[str(band.value)] * drive.w_out[inside]) <= OFF_REL * np.abs(w_in) + OFF_RADPS
    allowed = schedule.gear_time_s + REACTION_S
    up, down = f"{gear}-{gear + 1}", f"{gear}-{gear - 1}"
    asked: list[tuple[str, Mask]] = []
    if up in schedule.up:
        # behind a pressed brake the unit waits with a shift up
        free_up = True if drive.brake is None else drive.brake[inside] <= schedule.upshift_brake
        asked.append((up, free_up & (w > _at(schedule.up[up], pedal) * (1 + LINE_REL) + LINE_ABS_RADPS)))
    if down in schedule.down and (lower := _ratio(drive, gear - 1)):
        line = _down_line(schedule, gear, pedal, schedule.kick_down_on)
        fits = w * lower * (1 + LINE_REL) < schedule.turbine_max_radps
        asked.append((down, fits & (w < line * (1 - LINE_REL) - LINE_ABS_RADPS)))
    for name, wanted in asked:
        for a, b, on in runs_of(wanted & free):
            if on and t[b - 1] - t[a] > allowed:
                due = f"{name.replace('-', '→')} is due from {t[a]:.2f} s on"
                return float(t[a]), f"{due}, gear {band.value} stays to {t[b - 1]:.2f} s"
    return None


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


def shift_length(spec: MonitorSpec, drive: Drive, limit: float) -> Seen | None:
    """No change of ratio lasts longer than the phases of the control unit's shift."""
    if not spec.shift_each_s or not drive.shifts:
        return None
    late: list[tuple[float, float, str]] = []
    longest = ("", 0.0)
    for s in drive.shifts:
        pair = s.name.replace("→", "-")
        if pair not in spec.shift_each_s:
            continue
        lasts, allowed = _without_gear(drive, s.begin_s, s.end_s), spec.shift_each_s[pair]
        longest = max(longest, (s.name, lasts), key=lambda x: x[1])
        if lasts - allowed > limit:
            late.append((s.begin_s, lasts - allowed, f"{s.name} at {s.begin_s:.2f} s lasts {lasts:.2f} s, its phases "
                                                     f"{allowed:.2f} s"))  # fmt: skip
    text = "; ".join(text for *_, text in late[:TEXTS]) or f"longest {longest[0]}: {longest[1]:.2f} s"
    worst = max((x for _, x, _ in late), default=0.0)
    return Seen(bool(late), text, late[0][0] if late else None, worst)


def _without_gear(drive: Drive, begin_s: float, end_s: float) -> float:
    """Longest stretch of this time in which the car drives forwards with the pedal pressed and without a gear [s]."""
    inside = drive.inside(begin_s, end_s)
    assert drive.w_out is not None
    missing = drive.forward[inside] & (drive.w_out[inside] > MOVES_RADPS)
    gears = drive.column("monitor.gear")
    if gears is not None:
        missing &= gears[inside] == 0.0  # a gear whose free wheel is overrun is engaged
    if drive.pedal is not None:
        missing &= drive.pedal[inside] > PEDAL_MIN
    t = drive.t[inside]
    return max((float(t[b - 1] - t[a]) for a, b, on in runs_of(missing) if on), default=0.0)


# --- messages ---------------------------------------------------------------------------------------------------------


def reported_pedal(spec: MonitorSpec, drive: Drive, limit: float) -> Seen | None:
    """Control unit and engine get the pedal of the driver."""
    worst, failed = -1.0, []
    for reported, source in spec.pedals:
        sent, pedal = drive.column(reported), drive.column(source)
        if sent is None or pedal is None or not len(sent):
            continue
        beyond = np.abs(sent - pedal)
        worst = max(worst, float(beyond.max()))
        for a, b, over in runs_of(beyond > limit):
            if over and drive.t[b - 1] - drive.t[a] > BY_NAME["reported_pedal"].hold_s:
                k = a + int(np.argmax(beyond[a:b]))
                to = "engine" if reported.startswith("input.") else "control unit"
                failed.append((float(drive.t[a]), to, f"{reported} {sent[k]:.0%}, {source} {pedal[k]:.0%}"))
                break
    if worst < 0.0:
        return None
    if not failed:
        return Seen(False, "", worst=worst)
    first_s, to, pair = min(failed)
    text = f"From {first_s:.2f} s on, the rig sends the {to} another pedal than the driver's: {pair}."
    return Seen(True, text, first_s, worst)


# --- motion -----------------------------------------------------------------------------------------------------------


def acceleration_in_range(spec: MonitorSpec, drive: Drive, limit: float) -> Seen | None:
    """Tyres can transmit the acceleration of the car."""
    a = drive.a
    if a is None or not len(a):
        return None
    # a lever moved under power is the driver's: without slip of the tyres the model is thrown forwards
    driven = drive.lever_at_rest(LEVER_S)
    most = int(np.argmax(np.abs(a) * driven))
    text = f"The car accelerates by {a[most]:+.2f} m/s² at {drive.t[most]:.3f} s, more than tyres can transmit."
    failed = bool(driven[most]) and abs(a[most]) > limit
    return Seen(failed, text if failed else f"peak {a[most]:+.2f} m/s²", float(drive.t[most]), float(abs(a[most])))


def shift_hard(spec: MonitorSpec, drive: Drive, limit: float) -> Seen | None:
    """The acceleration in a shift exceeds the levels before and after it by little. The limit rises with the pedal:
    with the pedal released, the elements alone cause the peak. In a gear that the driver requests, which may turn the
    engine up at any speed, the whole limit holds."""
    if drive.a is None or not drive.quality:
        return None
    rests = drive.lever_at_rest(SETTLE_S)
    found = [(_beyond_levels(drive, q, rests), _share_of_limit(drive, q), q) for q in drive.quality]
    beyond, share, shift = max(found, key=lambda x: x[0] / x[1])
    if beyond <= limit * share:
        return Seen(False, f"{shift.name}: {beyond:.2f} m/s²", worst=beyond / share)
    text = (f"{_arrow(shift)} at {shift.begin_s:.2f} s is hard: {beyond:.2f} m/s² beyond the levels before and after "
            f"it; the limit at this pedal is {limit * share:.1f} m/s².")  # fmt: skip
    return Seen(True, text, shift.end_s, beyond / share)


def shift_jerk(spec: MonitorSpec, drive: Drive, limit: float) -> Seen | None:
    """The jerk in a shift exceeds that of a step between the levels of its acceleration by little. A shift in which the
    driver moves a pedal, or shortly after a change of the lever, is not judged."""
    rests = drive.lever_at_rest(SETTLE_S)
    found = [(max(0.0, q.jerk - STEP_PER_S * _step(drive, q)), q)
             for q in drive.quality if q.jerk is not None and _driver_rests(drive, q, rests)]  # fmt: skip
    if not found:
        return None
    worst, shift = max(found, key=lambda x: x[0])
    if worst <= limit:
        return Seen(False, f"{shift.name}: {worst:.0f} m/s³", worst=worst)
    text = (f"{_arrow(shift)} at {shift.begin_s:.2f} s shakes the car: the jerk reaches {shift.jerk:.0f} m/s³, "
            f"{worst:.0f} m/s³ more than a step from the old acceleration to the new one gives.")  # fmt: skip
    return Seen(True, text, shift.end_s, worst)


def shift_abrupt(spec: MonitorSpec, drive: Drive, limit: float) -> Seen | None:
    """The turbine reaches the speed of the new gear no faster than an element can bring it there. Shortly after a
    change of the lever, the driver has opened and closed the torque path."""
    w, rests = drive.w_in, drive.lever_at_rest(SETTLE_S)
    shifts = [s for s in drive.shifts if rests[drive.inside(s.begin_s, s.end_s)].all()]
    if w is None or not shifts:
        return None

    def rate(s: Shift) -> float:
        inside = w[drive.inside(s.begin_s, s.end_s)]
        return float(np.ptp(inside) / max(s.duration_s, 1e-3)) if len(inside) and np.ptp(inside) > STEP_RADPS else 0.0

    most, s = max(((rate(s), s) for s in shifts), key=lambda x: x[0])
    if most <= limit:
        return Seen(False, f"{s.name}: {most:.0f} rad/s²", worst=most)
    text = f"{s.name} at {s.begin_s:.2f} s takes {s.duration_s * 1e3:.0f} ms: the turbine jumps with {most:.0f} rad/s²."
    return Seen(True, text, s.begin_s, most)


def _share_of_limit(drive: Drive, shift: ShiftQuality) -> float:
    """Share of the limit of `shift_hard` that holds for a shift, by the largest pedal around it."""
    around = drive.inside(shift.begin_s - PEDAL_S, shift.end_s + SETTLED_S)
    if drive.pedal is None or not drive.forward[around].all():
        return 1.0
    return float(np.interp(drive.pedal[around].max(initial=0.0), *HARD_SHARE))


def _arrow(shift: ShiftQuality) -> str:
    return f"{shift.gear_from}→{shift.gear_to}"


def _beyond_levels(drive: Drive, shift: ShiftQuality, rests: Mask) -> float:
    """Peak of the acceleration from the command to SETTLED_S behind the shift, beyond both levels; 0 where the driver
    brakes or moves pedal or lever meanwhile (rests: he does not move it), or the run ends [m/s2]. The level before is
    the one of the last PEDAL_S that is nearest to the peak: the governor may have taken the engine's torque away."""
    a, (before, behind) = drive.a, _levels_around(drive, shift)
    assert a is not None
    inside = drive.inside(shift.begin_s, shift.end_s + SETTLED_S)
    if not len(before) or not len(behind) or not len(a[inside]) or not _driver_rests(drive, shift, rests):
        return 0.0
    level = float(behind.mean())
    return float(max(0.0, a[inside].max() - max(before.max(), level), min(before.min(), level) - a[inside].min()))


def _levels_around(drive: Drive, shift: ShiftQuality) -> tuple[Array, Array]:
    """Levels of the acceleration in the last PEDAL_S before a shift, and what it is once the shift is over [m/s2]."""
    assert drive.a is not None
    before = _levels(drive.a[drive.inside(shift.begin_s - PEDAL_S, shift.begin_s)], drive.t)
    return before, drive.a[drive.inside(shift.end_s + SETTLED_S, shift.end_s + 2 * SETTLED_S)]


def _step(drive: Drive, shift: ShiftQuality) -> float:
    """From the level before a shift to that behind it [m/s2]."""
    if drive.a is None:
        return 0.0
    before, behind = _levels_around(drive, shift)
    return float(np.abs(behind.mean() - before).max()) if len(before) and len(behind) else 0.0


def _driver_rests(drive: Drive, shift: ShiftQuality, rests: Mask) -> bool:
    """The driver moves neither pedals nor, rests, the lever around a shift, and does not brake the car to a stop."""
    around = drive.inside(shift.begin_s - PEDAL_S, shift.end_s + 2 * SETTLED_S)
    pedals = [x[around] for x in (drive.brake, drive.pedal) if x is not None and len(x[around])]
    rolls = drive.w_out is None or np.abs(drive.w_out[around]).min(initial=np.inf) > W_OUT_MIN
    return all(np.ptp(x) <= RESTS_MAX for x in pedals) and bool(rests[around].all()) and bool(rolls)


def _levels(a: Array, t: Array) -> Array:
    """Means over LEVEL_S [m/s2]."""
    n = max(1, round(LEVEL_S / (t[1] - t[0])))
    return np.convolve(a, np.full(n, 1.0 / n), "valid") if len(a) >= n else a[:0]


# --- actuators -------------------------------------------------------------------------------------------


def actuator_still(spec: MonitorSpec, drive: Drive, limit: float) -> Seen | None:
    """Every actuator of a control unit moves once."""
    columns = {name: x for name in spec.actuators if (x := drive.column(name)) is not None and len(x)}
    if not columns or drive.cut_short or drive.w_out is None or np.abs(drive.w_out).max(initial=0.0) < MOVES_RADPS:
        return None
    still = [name for name, x in columns.items() if np.ptp(x) == 0.0]
    text = f"{', '.join(still)} never moved in the run." if still else f"each actuator moved: {', '.join(columns)}"
    # known at the end of the run: what has failed before may be why
    return Seen(len(still) > limit, text, float(drive.t[-1]) if still else None, float(len(still)))


def no_fallbacks(spec: MonitorSpec, drive: Drive, limit: float) -> Seen | None:
    """No step ended with a plain impulse, and the torques of all were found."""
    solver = drive.stats.solver
    if solver is None or not len(drive.t):
        return None
    counted = {"{} steps ended with a plain impulse": solver.fallbacks,
               "in {} steps torques were not found to 1e-9": solver.steep_unsolved}  # fmt: skip
    text = "; ".join(text.format(k) for text, k in counted.items() if k)
    rate = sum(counted.values()) / max(1.0, float(drive.t[-1] - drive.t[0]))
    if not text:
        return Seen(False, "", worst=0.0)
    return Seen(
        rate > limit, f"{text}, {rate:.2g} in a second; more substeps of the clock may resolve them", worst=rate
    )


#: by the name of the monitor
JUDGES: dict[str, Callable[[MonitorSpec, Drive, float], Seen | None]] = {
    "reported_pedal": reported_pedal,
    "schedule": schedule,
    "reaches": reaches,
    "shift_length": shift_length,
    "shift_hard": shift_hard,
    "shift_jerk": shift_jerk,
    "shift_abrupt": shift_abrupt,
    "acceleration": acceleration_in_range,
    **{name: lining.judge for name, lining in LININGS.items()},
    "overload": overload,
    "actuator_still": actuator_still,
    "fallbacks": no_fallbacks,
}
