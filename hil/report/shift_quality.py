"""How good the shifts of a run were: the criteria of docs/shift_quality.md, from recorded signals alone.

    command   the control unit changes its target gear (NAME.gear_target); not recorded: the old ratio ends
    sync      the new ratio holds for the first time
    window    from the command to AFTER_S behind sync, at most to the next command

Acceleration is that of the car, its jerk that of hil/report/jerk.py, its vibration dose the fourth power mean of
ISO 2631-1 with the weighting W_d (fore-and-aft, seated).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np
from numpy import fft
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report.analysis import Shift, acceleration, column, elements, input_speed
from torqueloop.hil.report.jerk import jerk

Array = NDArray[np.float64]

#: what happens so long behind sync belongs to the shift: the oscillation of the driveline at 3 to 8 Hz [s]
AFTER_S = 0.5
#: a target gear is looked for so long before the old ratio ends: filling takes 0.1 to 0.4 s [s]
COMMAND_S = 2.0
#: level of acceleration before the command and behind sync is the mean over this time [s]
LEVEL_S = 0.1
#: the on-coming element is stuck so long behind sync [s]
STUCK_S = 0.1
#: it carries torque from this part of its largest torque in the shift on
CARRIES = 0.05
#: vibration dose that the comfort index counts as 10, and its points per decade
DOSE_10, POINTS = 0.05, 3.0
#: the weighting is taken over so much more of the run on either side [s]
AROUND_S = 3.0
#: times of ticks are rounded products: a window takes its samples with this tolerance, far below any tick [s]
EDGE_S = 1e-7


@dataclass(frozen=True)
class ShiftQuality:
    """One shift; None: not recorded, or there is no such thing in it."""

    gear_from: str
    gear_to: str
    #: command, sync [s]
    begin_s: float
    end_s: float
    #: from command to sync [s]
    time: float
    #: from command until the on-coming element carries torque [s]
    fill: float | None
    #: input speed above the higher of the two synchronous speeds [rad/s]
    flare: float | None
    #: acceleration below the lower of the levels before and behind [m/s2]
    tie_up: float | None
    #: largest amount of jerk [m/s3]
    jerk: float | None
    #: vibration dose value [m/s1.75]
    vdv: float | None
    #: heat of all friction elements, of the element with the most [J]
    energy: float | None
    energy_max: float | None
    #: 10 (nothing to be felt) .. 1
    comfort: float | None

    @property
    def name(self) -> str:
        """ "3-2" """
        return f"{self.gear_from}-{self.gear_to}"


#: criterion -> SI unit
CRITERIA = {
    "time": "s", "fill": "s", "flare": "rad/s", "tie_up": "m/s2", "jerk": "m/s3", "vdv": "m/s1.75", "energy": "J",
    "energy_max": "J", "comfort": "1",
}  # fmt: skip
assert set(CRITERIA) < {f.name for f in fields(ShiftQuality)}
#: end of its metric's name, as metrics have units
_METRIC = {"time": "s", "fill": "s", "flare": "radps", "tie_up": "mps2", "jerk": "mps3", "vdv": "mps175",
           "energy": "J", "energy_max": "J", "comfort": ""}  # fmt: skip
METRICS = {k: f"shift_quality_{k}_{'min' if k == 'comfort' else 'worst'}{f'_{u}' if u else ''}"
           for k, u in _METRIC.items()}  # fmt: skip


def shift_quality(signals: Signals | None, shifts: Sequence[Shift], ratios: Mapping[str, float]) -> list[ShiftQuality]:
    """The criteria of every shift, in their order. ratios: of the gears, by name."""
    if signals is None or not shifts:
        return []
    t, a = signals.t, acceleration(signals)
    tick_s = signals.tick_s * int(signals.header.get("every", 1))
    j = None if a is None else jerk(a, tick_s)
    commands = _commands(signals)
    begins = [_command(commands, s) for s in shifts]
    made = []
    for k, shift in enumerate(shifts):
        end = shift.end_s + AFTER_S
        if k + 1 < len(shifts):
            end = max(shift.end_s, min(end, begins[k + 1]))
        window = slice(*np.searchsorted(t, (begins[k] - EDGE_S, end + EDGE_S)).tolist())
        made.append(_one(signals, shift, begins[k], window, ratios, a, j, tick_s))
    return made


def quality_metrics(found: Sequence[ShiftQuality]) -> dict[str, float | None]:
    """The worst of each criterion over all shifts, by its name as a metric; None: no shift, or not recorded."""
    flat: dict[str, float | None] = {}
    for criterion, name in METRICS.items():
        values = [x for x in (getattr(q, criterion) for q in found) if x is not None]
        flat[name] = (min if criterion == "comfort" else max)(values) if values else None
    return flat


def _one(signals: Signals, shift: Shift, begin_s: float, window: slice, ratios: Mapping[str, float], a: Array | None,
         j: Array | None, tick_s: float) -> ShiftQuality:  # fmt: skip
    during = signals.between(begin_s - EDGE_S, shift.end_s + STUCK_S + EDGE_S)
    heat = _heat(signals.part(window.start, window.stop))
    dose = None if a is None else _dose(a, window, tick_s)
    return ShiftQuality(
        shift.gear_from,
        shift.gear_to,
        begin_s,
        shift.end_s,
        time=shift.end_s - begin_s,
        fill=_fill(during),
        flare=_flare(during, shift, ratios),
        tie_up=None if a is None else _tie_up(a, signals.t, shift, begin_s),
        jerk=None if j is None or not len(j[window]) else float(np.abs(j[window]).max()),
        vdv=dose,
        energy=sum(heat.values()) if heat else None,
        energy_max=max(heat.values()) if heat else None,
        comfort=None if dose is None else comfort(dose),
    )


def comfort(dose: float) -> float:
    """10 - 3 log10(VDV / 0.05), between 1 and 10: a scale for comparing shifts, no one's rating."""
    return float(np.clip(10.0 - POINTS * np.log10(max(dose, 1e-12) / DOSE_10), 1.0, 10.0))


# --- instants ---------------------------------------------------------------------------------------------------------


def _commands(signals: Signals) -> Array:
    """Times at which the target gear changes."""
    names = [n for n in signals.names if n.endswith(".gear_target")]
    if len(names) != 1:
        return np.zeros(0)
    return np.asarray(signals.t[1:][np.diff(signals[names[0]]) != 0.0])


def _command(commands: Array, shift: Shift) -> float:
    """The last command that can have begun a shift; none: the end of the old ratio."""
    fits = commands[(commands >= shift.begin_s - COMMAND_S) & (commands <= shift.end_s)]
    before = fits[fits <= shift.begin_s + 1e-9]
    return float(before[-1] if len(before) else fits[0] if len(fits) else shift.begin_s)


# --- criteria ---------------------------------------------------------------------------------------------------------


def _fill(signals: Signals) -> float | None:
    """From the command on, with which these signals begin; they end STUCK_S behind sync. The on-coming element is the
    pressed one that is stuck then and was not when the shift was commanded; of several the one that has got hot: the
    others close without slip once the shift is over."""
    work, found = 0.0, None
    for name in elements(signals):
        tau = column(signals, f"{name}.tau")
        mode = signals[f"{name}.mode"]
        if tau is None or f"{name}.p" not in signals.names or mode[-1] != 0.0 or mode[0] == 0.0:
            continue
        carried = np.abs(tau)
        heat = float(np.sum(carried * np.abs(signals[f"{name}.w_rel"])))
        if heat > work:
            work = heat
            found = float(signals.t[np.argmax(carried >= CARRIES * carried.max())] - signals.t[0])
    return found


def _flare(signals: Signals, shift: Shift, ratios: Mapping[str, float]) -> float | None:
    """max(|w_in| - max(|i_old|, |i_new|) |w_out|, 0) from the command, with which these signals begin, to sync."""
    w_in, w_out = input_speed(signals), column(signals, "out.w")
    known = [abs(ratios[g]) for g in (shift.gear_from, shift.gear_to) if g in ratios]
    if w_in is None or w_out is None or len(known) < 2:
        return None
    over = (np.abs(w_in) - max(known) * np.abs(w_out))[signals.t <= shift.end_s]
    return float(max(0.0, over.max())) if len(over) else None


def _tie_up(a: Array, t: Array, shift: Shift, begin_s: float) -> float | None:
    """Two elements that hold against each other take torque from the output: acceleration below both levels."""
    first, begin = np.searchsorted(t, (begin_s - LEVEL_S - EDGE_S, begin_s - EDGE_S))
    end, last = np.searchsorted(t, (shift.end_s + EDGE_S, shift.end_s + LEVEL_S + EDGE_S))
    before, inside, behind = a[first:begin], a[begin:end], a[end:last]
    if not len(before) or not len(behind) or not len(inside):
        return None
    return float(max(0.0, min(before.mean(), behind.mean()) - inside.min()))


def _heat(signals: Signals) -> dict[str, float]:
    """Change of NAME.heat of each friction element over these signals [J]."""
    found = {}
    for name in elements(signals):
        heat = column(signals, f"{name}.heat")
        if heat is not None and len(heat):
            found[name] = float(heat[-1] - heat[0])
    return found


def _dose(a: Array, window: slice, tick_s: float) -> float | None:
    """(integral of a_w^4 dt)^(1/4) over the window [m/s1.75]."""
    if window.stop - window.start < 2:
        return None
    around = round(AROUND_S / tick_s)
    first = max(0, window.start - around)
    near = a[first : window.stop + around]
    weighted = weighted_fore_and_aft(near, tick_s)[window.start - first : window.stop - first]
    return float((np.sum(weighted**4) * tick_s) ** 0.25)


def weighted_fore_and_aft(a: Array, tick_s: float) -> Array:
    """Acceleration weighted with W_d of ISO 2631-1:1997 (Annex A): band limits at 0.4 and 100 Hz (Q 0.71), transition
    from acceleration to velocity at 2 Hz (Q 0.63), as ISO 8041 has them (docs/shift_quality.md). Through the spectrum;
    the ends are mirrored."""
    n = len(a)
    mirrored = np.concatenate([2 * a[0] - a[:0:-1], a, 2 * a[-1] - a[-2::-1]])
    p = 2j * np.pi * fft.rfftfreq(len(mirrored), tick_s)
    w1, w2, w3, w4 = (2 * np.pi * f for f in (0.4, 100.0, 2.0, 2.0))
    high = p**2 / (p**2 + np.sqrt(2) * w1 * p + w1**2)
    low = w2**2 / (p**2 + np.sqrt(2) * w2 * p + w2**2)
    transition = (1 + p / w3) / (1 + p / (0.63 * w4) + (p / w4) ** 2)
    return np.asarray(fft.irfft(fft.rfft(mirrored) * high * low * transition, len(mirrored))[n - 1 : 2 * n - 1])
