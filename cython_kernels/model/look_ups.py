"""Where tables over a speed have breakpoints: elements of the kind `lu`, one per argument, found from all others.

A trial of order 4 follows one piece of each table; where a speed leaves its piece is an event (step/look_ups.pxi). Only
breakpoints at which a slope changes count, so that most tables of most models need none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from torqueloop.cython_kernels.model.choices import LOOK_UPS, SOURCES
from torqueloop.cython_kernels.model.model_arrays import Floats, ModelArrays, Records
from torqueloop.cython_kernels.model.records import KINDS
from torqueloop.cython_kernels.model.steep_ports import curve

#: breakpoints of one argument: more of them stand for a smooth law whose bends are small, and an event at each costs
#: more than it gains (with 64 a full-throttle run of the 4HP22 car has seven times as many events)
MOST = 24
#: of a speed, or of 1 rad/s or m/s: a narrower piece is a jump, which a trial takes whole
NARROW = 1e-3
#: of the largest slope of a table: slopes that differ by less are one slope
SAME_SLOPE = 1e-12

#: hints (model/tables.pxd) of the piece at an argument
Hints = Callable[[float], Sequence[int]]


def look_ups(
    a: ModelArrays, steep: Mapping[str, Mapping[str, Floats]], *, followed: bool
) -> tuple[Records, dict[str, np.ndarray]]:
    """The records, and the breakpoints and hints of pieces (lu_x, lu_hint). steep: the derived fields of steep_ports;
    followed: whether trials follow pieces at all."""
    found: list[tuple[int, ...]] = []
    x: list[float] = []
    hints: list[int] = []
    slot = 0

    def add(of: str, i: int, rows: tuple[int, int], bends: set[float], piece: Hints, least: float = -math.inf) -> None:
        at = sorted(b for b in bends if b > least and math.isfinite(b))
        ends = [max(least, at[0] - 2.0), *at, at[-1] + 2.0] if at else []
        pieces = [
            [0 * h for h in piece(0.5 * (lo + hi))] if hi - lo < NARROW * (1.0 + abs(lo)) else piece(0.5 * (lo + hi))
            for lo, hi in zip(ends, ends[1:], strict=False)
        ]
        if followed and len(at) <= MOST and any(h < 0 for one in pieces for h in one):
            found.append((LOOK_UPS[of], i, *rows, slot, len(pieces[0]), len(at), len(x), len(hints)))
            x.extend(at)
            hints.extend(h for one in pieces for h in one)

    for i, e in enumerate(a.eng):
        of = [_map(a, int(e["map"]))] if e["map"] >= 0 else [_curve(a, int(e[name])) for name in ("drag", "wot")]
        add("OF_ENGINE", i, (int(e["row"]), -1), *_outside(steep["eng"], i, _bends(of), _pieces(of)))
        slot += 2
    for i, t in enumerate(a.tc):
        add("OF_CONVERTER", i, (int(t["row_t"]), int(t["row_p"])), *_converter(a, t))
        slot += 3
    for i, f in enumerate(a.fr):
        if f["src"] < SOURCES["LOSS"] and f["mu"] >= 0:
            of = [_curve(a, int(f["mu"]))]
            add("OF_FRICTION_CURVE", i, (int(f["row"]), -1), _bends(of), _pieces(of), 0.0)
        slot += 1
    for i, c in enumerate(a.cv):
        of = [_map(a, int(c["tab2"])) if c["tab2"] >= 0 else _curve(a, int(c["tab1"]))]
        bends, piece = _bends(of), _pieces(of)
        if c["absolute"]:
            jumps = c["tab2"] >= 0 or np.interp(0.0, *curve(a, int(c["tab1"]))) != 0.0
            bends = {way * b for b in bends for way in (-1.0, 1.0) if b > 0.0} | ({0.0} if jumps else set())
            piece = _both_ways(piece)
        add("OF_CURVE", i, (int(c["row"]), -1), *_outside(steep["cv"], i, bends, piece))
        slot += 2
    for i, one in enumerate(a.ls):
        if one["input"] < 0:
            of = [_curve(a, int(tab)) for tab in one["tab"]]
            add("OF_LOSS", i, (int(a.fr["row"][one["fr"]]), -1), _bends(of), _pieces(of), 0.0)
        slot += 4
    return np.array(found, dtype=KINDS["lu"].dtype), {"lu_x": np.array(x), "lu_hint": np.array(hints, dtype=int)}


#: breakpoints, and the number of the piece at an argument
_Table = tuple[set[float], Callable[[float], int]]


def _changes(x: Floats, slopes: Floats) -> set[float]:
    """Points at which the slope changes; slopes: also below the first point and above the last."""
    size = SAME_SLOPE * np.abs(slopes).max(initial=0.0)
    return {float(at) for at in x[np.abs(np.diff(slopes, axis=0)).reshape(len(x), -1).max(axis=1) > size]}


def _curve(a: ModelArrays, k: int) -> _Table:
    x, y = curve(a, k)
    if len(x) == 1:
        return set(), lambda _: 0
    slopes = np.diff(y) / np.diff(x)
    linear = bool(a.tab1_extrap[k])
    ends = (slopes[:1], slopes[-1:]) if linear else (np.zeros(1), np.zeros(1))
    least, most = (1, len(x) - 1) if linear else (0, len(x))
    return (
        _changes(x, np.concatenate([ends[0], slopes, ends[1]])),
        lambda at: int(np.clip(np.searchsorted(x, at, side="right"), least, most)),
    )


def _map(a: ModelArrays, k: int) -> _Table:
    """Over its first argument."""
    nx, ny = int(a.tab2_nx[k]), int(a.tab2_ny[k])
    x = a.tab2_x[int(a.tab2_xptr[k]) :][:nx]
    z = a.tab2_z[int(a.tab2_zptr[k]) :][: nx * ny].reshape(nx, ny)
    none = np.zeros((1, ny))
    slopes = np.concatenate([none, np.diff(z, axis=0) / np.diff(x)[:, None], none])
    return _changes(x, slopes), lambda at: int(np.searchsorted(x, at, side="right"))


def _bends(of: Sequence[_Table]) -> set[float]:
    return set().union(*(bends for bends, _ in of))


def _pieces(of: Sequence[_Table]) -> Hints:
    return lambda at: [~piece(at) for _, piece in of]


def _both_ways(piece: Hints) -> Hints:
    """Of a curve over |w|: its piece, and 1 where w is negative."""
    return lambda at: [*piece(abs(at)), int(at < 0.0)]


def _outside(steep: Mapping[str, Floats], i: int, bends: set[float], piece: Hints) -> tuple[set[float], Hints]:
    """Where a torque is steep its table is followed as a whole."""
    lo, hi = float(steep["steep_lo"][i]), float(steep["steep_hi"][i])
    if not lo < hi:
        return bends, piece
    return bends | {lo, hi}, lambda at: [0 * h for h in piece(at)] if lo < at < hi else piece(at)


def _converter(a: ModelArrays, t: np.void) -> tuple[set[float], Hints]:
    """Over nu = w_t/w_p in the drive, up to 1, and 2 - w_p/w_t in the overrun; below 0 speed ratios count as 0."""
    mp, mu, coast = (_curve(a, int(t[name])) for name in ("mp", "mu", "coast"))

    def clipped(of: _Table, nu: float) -> int:
        bends, piece = of
        held = nu > 0.0 or (piece(-1.0) == 0 and min(bends, default=0.0) >= 0.0)
        return ~piece(nu) if held else 0

    def piece(at: float) -> list[int]:
        return [clipped(mp, at), clipped(mu, at), 0] if at < 1.0 else [0, 0, clipped(coast, 2.0 - at)]

    drive = {b for b in _bends([mp, mu]) if 0.0 < b < 1.0}
    return drive | {0.0, 1.0, 2.0} | {2.0 - b for b in coast[0] if 0.0 < b < 1.0}, piece
