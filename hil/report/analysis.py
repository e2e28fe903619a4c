"""What happened in the gearbox: gear over time, shifts, acceleration, state bands; from recorded signals alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.record.run_data import ModeChange
from torqueloop.hil.record.signals import Signals

Array = NDArray[np.float64]

#: A gear is engaged where |w_in - ratio * w_out| is below this part of |w_in| plus W_ABS. Rigid shafts give 0; the rest
#: leaves room for elastic ones. [1]
GEAR_TOLERANCE = 2e-3
#: Absolute part of the same limit, for low speeds. [rad/s]
W_ABS = 0.2
#: Below this output speed every gear fits; the gear is then taken from the next engaged one. [rad/s]
W_OUT_MIN = 1.0
#: A gear must hold this long to count; shorter ones are crossings of the ratio during a shift. [s]
GEAR_HOLD_S = 0.04
#: names of the speed of the gearbox's input shaft: the first that was recorded counts
INPUT_SPEEDS = ("turbine.w", "in.w", "converter.w_t", "tc.w_t")
#: samples that are looked at together
BLOCK = 1 << 16


def column(signals: Signals | None, *names: str) -> Array | None:
    """The first of these columns that was recorded."""
    for name in names:
        if signals is not None and name in signals.names:
            return signals[name]
    return None


def input_speed(signals: Signals) -> Array | None:
    """Speed of the gearbox's input shaft, the turbine [rad/s]."""
    return column(signals, *INPUT_SPEEDS)


def elements(signals: Signals) -> list[str]:
    """Rotational friction elements whose mode was recorded, clutches before free wheels, in order of their number.

    Friction of the road has a mode as well, but a force instead of a torque.
    """
    names = [n.removesuffix(".mode") for n in signals.names if n.endswith(".mode")]
    names = [n for n in names if f"{n}.tau" in signals.names] or names

    def key(name: str) -> tuple[str, int, str]:
        digits = "".join(c for c in name if c.isdigit())
        return (name.rstrip("0123456789"), int(digits) if digits else 0, name)

    return sorted(names, key=key)


@dataclass(frozen=True)
class Band:
    """A stretch of time with one value."""

    begin_s: float
    end_s: float
    value: Any


@dataclass(frozen=True)
class Shift:
    """A change from one engaged gear to the next."""

    gear_from: str
    gear_to: str
    #: last instant with the old ratio [s]
    begin_s: float
    #: first instant with the new ratio [s]
    end_s: float
    #: extremes of the car's acceleration in the shift [m/s2]; None when not recorded
    a_min_mps2: float | None = None
    a_max_mps2: float | None = None

    @property
    def name(self) -> str:
        return f"{self.gear_from}→{self.gear_to}"

    @property
    def duration_s(self) -> float:
        return self.end_s - self.begin_s


def runs_of(value: NDArray[Any]) -> list[tuple[int, int, Any]]:
    """(first, last + 1, value) of each stretch of equal values."""
    if not len(value):
        return []
    cut = np.flatnonzero(value[1:] != value[:-1]) + 1
    edges = [0, *cut.tolist(), len(value)]
    return [(a, b, value[a]) for a, b in zip(edges[:-1], edges[1:], strict=True)]


def gear_bands(signals: Signals, gears: Mapping[str, float]) -> list[Band]:
    """Stretches with an engaged gear, from the speeds alone: w_in = ratio * w_out."""
    w_in, w_out = input_speed(signals), column(signals, "out.w")
    if w_in is None or w_out is None or not gears or not len(w_in):
        return []
    t = signals.t
    names = list(gears)
    ratio = np.array([gears[n] for n in names])
    best = np.concatenate([_engaged(w_in[k : k + BLOCK], w_out[k : k + BLOCK], ratio)
                           for k in range(0, len(t), BLOCK)])  # fmt: skip
    bands = [
        Band(float(t[a]), float(t[b - 1]), names[g])
        for a, b, g in runs_of(best)
        if g >= 0 and t[b - 1] - t[a] >= GEAR_HOLD_S
    ]
    merged: list[Band] = []
    for band in bands:
        if merged and merged[-1].value == band.value:
            merged[-1] = Band(merged[-1].begin_s, band.end_s, band.value)
        else:
            merged.append(band)
    # The first gear was engaged from the beginning unless the run began with a real neutral.
    if merged and np.all(np.abs(w_out[t < merged[0].begin_s]) < W_OUT_MIN * 1.5):
        merged[0] = Band(float(t[0]), merged[0].end_s, merged[0].value)
    return merged


def _engaged(w_in: Array, w_out: Array, ratio: Array) -> NDArray[np.int16]:
    """Number of the gear whose ratio the speeds have; -1: none."""
    error = np.abs(w_in[:, None] - ratio[None, :] * w_out[:, None])
    best = np.argmin(error, axis=1)
    fits = error[np.arange(len(w_in)), best] <= GEAR_TOLERANCE * np.abs(w_in) + W_ABS
    return np.where(fits & (np.abs(w_out) >= W_OUT_MIN), best, -1).astype(np.int16)


def shifts(bands: Sequence[Band], signals: Signals | None = None) -> list[Shift]:
    """The changes between neighbouring gear bands."""
    a = acceleration(signals) if signals is not None else None
    t = signals.t if signals is not None else None
    found = []
    for old, new in zip(bands[:-1], bands[1:], strict=True):
        low = high = None
        if a is not None and t is not None:
            first, last = np.searchsorted(t, old.end_s - 0.2), np.searchsorted(t, new.begin_s + 0.2, "right")
            inside = a[first:last]
            if len(inside):
                low, high = float(inside.min()), float(inside.max())
        found.append(Shift(str(old.value), str(new.value), old.end_s, new.begin_s, low, high))
    return found


def acceleration(signals: Signals) -> Array | None:
    """Acceleration of the car [m/s2]: recorded, or the speed differentiated over the tick."""
    recorded = column(signals, "car.a")
    if recorded is not None:
        return recorded
    v = column(signals, "car.v")
    if v is None or len(v) < 3:
        return None
    return np.gradient(v, signals.t)


def mode_bands(modes: Sequence[ModeChange], element: str, t_end: float, t_begin: float = 0.0) -> list[Band]:
    """Stretches of one element's mode, from the mode log."""
    own = [(c.t_s, c.mode) for c in modes if c.element == element]
    bands = []
    for k, (t, mode) in enumerate(own):
        end = own[k + 1][0] if k + 1 < len(own) else t_end
        if end > t or (k + 1 == len(own) and end >= t):
            bands.append(Band(max(t, t_begin), end, mode))
    return bands


def mode_bands_recorded(signals: Signals, element: str) -> list[Band]:
    """Stretches of one element's mode as recorded at the ends of ticks."""
    value = column(signals, f"{element}.mode")
    if value is None or not len(value):
        return []
    t = signals.t
    stretches = runs_of(np.rint(value).astype(int))
    return [Band(float(t[a]), float(t[min(b, len(t) - 1)]), int(m)) for a, b, m in stretches]


def sign_changes(t: Array, y: Array, dead: float) -> list[float]:
    """Times at which y goes from beyond +dead to beyond -dead or back."""
    side = np.where(y > dead, 1, np.where(y < -dead, -1, 0))
    at = np.flatnonzero(side)
    return [float(t[at[k + 1]]) for k in np.flatnonzero(side[at[1:]] != side[at[:-1]])]


def thin(t: Array, y: Array, points: int = 3000) -> tuple[Array, Array]:
    """At most about `points` samples with the same picture: minimum and maximum of each group, in their order."""
    if len(t) <= points:
        return t, y
    group = int(np.ceil(len(t) / (points / 2)))
    n = len(t) // group
    block = y[: n * group].reshape(n, group)
    low, high = np.argmin(block, axis=1), np.argmax(block, axis=1)
    at = np.sort(np.stack([low, high], 1), axis=1) + (np.arange(n) * group)[:, None]
    index = np.unique(np.concatenate([[0], at.ravel(), np.arange(n * group, len(t)), [len(t) - 1]]))
    return t[index], y[index]
