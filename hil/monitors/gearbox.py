"""What the monitors know of a gearbox and its car, from their files: which closed elements are which gear."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.analyse.gear_statics import GearTrain, solve_gear
from torqueloop.core.analyse.gearbox_report import train_of
from torqueloop.core.components.laminar import Laminar
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.core.describe.tables import Table1D
from torqueloop.cython_kernels.tick.monitors import CLOSED
from torqueloop.hil.monitors.catalogue import CLOSED_SHARE
from torqueloop.hil.results.monitors import ElementFacts, GearboxFacts, GearFacts, number_of

#: elements in one gearbox, at most (a table of 2^n sets)
ELEMENTS_MAX = 12
#: capacity from which an element counts as closed whose data do not say how much it can carry [Nm]
CLOSED_NM = 20.0
#: two ratios are the same gear: published ones have three decimals [1]
SAME_RATIO = 2e-3


def gearbox_facts(driveline: Driveline, car: str = "car") -> GearboxFacts:
    """Facts of a driveline with [gearbox] and [gears]; empty where it has none."""
    if driveline.gearbox is None or not driveline.gears:
        return GearboxFacts()
    try:
        train = train_of(driveline)
    except TorqueloopError:
        return GearboxFacts()  # no ideal train: gears of changing ratio, belts
    names = _elements(train, driveline)
    if not names or len(names) > ELEMENTS_MAX:
        return GearboxFacts()
    given = [(name, gear.ratio, gear.engaged) for name, gear in driveline.gears.items()]
    table = tuple((name, float(ratio), tuple(engaged)) for name, ratio, engaged in given if ratio is not None)
    gears, sets = _gears_and_sets(train, tuple(names), table)
    engine = next((c for c in driveline.components.values() if c.kind == "Engine"), None)
    mass = getattr(driveline.components.get(car), "m", 0.0)
    return GearboxFacts(
        Path(driveline.origin.get(names[0]) or driveline.name).stem,
        [_element(driveline, name) for name in names],
        list(gears),
        [closed_as for closed_as, _ in sets],
        [overruns for _, overruns in sets],
        float(mass or 0.0),
        float(getattr(engine, "w_idle", 0.0) or 0.0),
        *_engine_ends(driveline, engine),
    )


@lru_cache(maxsize=32)
def _gears_and_sets(
    train: GearTrain, names: tuple[str, ...], table: tuple[tuple[str, float, tuple[str, ...]], ...]
) -> tuple[tuple[GearFacts, ...], tuple[tuple[int, bool], ...]]:
    """The gears, and what each set of closed elements is: exact statics of every gear, one singular value
    decomposition for each set. Plan and report of a run ask for the same, and so do all runs of a gearbox."""
    gears = tuple(
        GearFacts(name, number_of(name) or (-1 if name.startswith("R") else 0), ratio,
                  [e for e in engaged if e in names], _torques(train, name, engaged, names))
        for name, ratio, engaged in table
    )  # fmt: skip
    one_way = {e.name for e in train.elements if e.one_way}
    speeds = _Speeds(train)
    return gears, tuple(_closed_as(speeds, names, one_way, gears, mask) for mask in range(1 << len(names)))


def _elements(train: GearTrain, driveline: Driveline) -> list[str]:
    """Clutches and brakes between shafts of the gearbox: those of the gears, and what else stands on their shafts."""
    wheels = {e.name for e in train.elements if e.kind == "FreeWheel"}
    engaged = {name for gear in driveline.gears.values() for name in gear.engaged}
    shafts = {shaft for e in train.elements if e.name in engaged for shaft in (e.first, e.second)} | {None}
    return [e.name for e in train.elements
            if e.name not in wheels and (e.name in engaged or {e.first, e.second} <= shafts)]  # fmt: skip


def _element(driveline: Driveline, name: str) -> ElementFacts:
    c = driveline.components[name]
    if not isinstance(c, Laminar) or c.area is None:
        return ElementFacts(name, CLOSED_NM)
    table = driveline.tables.get(c.mue_pos) if isinstance(c.mue_pos, str) else c.mue_pos
    mue = table.y[0] if isinstance(table, Table1D) else 0.1
    full = c.geometry() * mue * c.area * (c.p_max - c.p_return)
    area = 0.0
    if c.faces and c.r_o is not None and c.r_i is not None:
        area = c.faces * math.pi * (c.r_o**2 - c.r_i**2) * 1e6
    return ElementFacts(name, CLOSED_SHARE * full, area, full * c.peak, c.plate * 1e3)


def _torques(train: GearTrain, gear: str, engaged: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """What each element of a gear carries per Nm of the input, by equilibrium; empty where that does not say."""
    try:
        state = solve_gear(train, gear, engaged)
    except ConfigError:
        return {}
    return {e: abs(float(x)) for e, x in state.torques.items() if e in names} if state.determinate else {}


def _engine_ends(driveline: Driveline, engine: object) -> tuple[float, float]:
    """Speed from which on full load gives no torque, or the last one of a curve that does not end so; and the speed at
    which full load is closed throttle, or the same again."""
    wot, drag = (driveline.tables.get(t) if isinstance(t, str) else t
                 for t in (getattr(engine, "wot", None), getattr(engine, "drag", None)))  # fmt: skip
    if not isinstance(wot, Table1D):
        return 0.0, 0.0
    w, full = np.array(wot.x), np.array(wot.y)
    most = next((x for x, y in zip(wot.x, wot.y, strict=True) if y <= 0.0 and x > 100.0), wot.x[-1])
    above = full - np.interp(w, drag.x, drag.y) if isinstance(drag, Table1D) else full
    ends = np.flatnonzero((w >= most) & (above <= 1e-9))
    if not len(ends):
        return most, most
    k = int(ends[0])
    return most, max(most, float(np.interp(0.0, above[[k, k - 1]], w[[k, k - 1]])))


def _closed_as(speeds: _Speeds, names: Sequence[str], one_way: set[str], gears: Sequence[GearFacts],
               mask: int) -> tuple[int, bool]:  # fmt: skip
    """What these closed elements are, and whether a free wheel holds it."""
    closed = {name for k, name in enumerate(names) if mask >> k & 1}
    found, ratio = _ratio(speeds, closed)
    held = False
    if found == CLOSED["blocked"] and closed & one_way:
        # a brake behind a free wheel is overrun where others hold
        found, ratio = _ratio(speeds, closed - one_way)
    elif found is None and closed & one_way:
        held = True
    exact = next((k for k, g in enumerate(gears) if set(g.elements) == closed), None)
    if exact is not None and found != CLOSED["blocked"]:
        return exact, found == CLOSED["neutral"]
    if found is None:
        return next(((k, held) for k, g in enumerate(gears) if abs(ratio / g.ratio - 1.0) < SAME_RATIO),
                    (CLOSED["other"], False))  # fmt: skip
    if found == CLOSED["neutral"]:
        # free wheels do the rest: the largest gear in it
        most = max((k for k, g in enumerate(gears) if g.elements and set(g.elements) <= closed),
                   key=lambda k: len(gears[k].elements), default=None)  # fmt: skip
        return (found, False) if most is None else (most, True)
    return found, False


class _Speeds:
    """What the speeds of the shafts obey: the gears, and each element while it is closed."""

    def __init__(self, train: GearTrain) -> None:
        column = {shaft: k for k, shaft in enumerate(train.shafts)}

        def row(terms: Iterable[tuple[str | None, float]]) -> NDArray[np.float64]:
            found = np.zeros(len(column))
            for shaft, c in terms:
                if shaft is not None:
                    found[column[shaft]] += c
            return found

        self.gears = [row((shaft, float(c)) for _, shaft, c in gear.members) for gear in train.rows]
        self.elements = {e.name: row(((e.first, 1.0), (e.second, -1.0))) for e in train.elements}
        self.ends = [column[train.input], column[train.output]]


def _ratio(speeds: _Speeds, closed: set[str]) -> tuple[int | None, float]:
    """(None, w_in / w_out) where the speeds have one ratio; else a value of CLOSED."""
    rows = np.array([*speeds.gears, *(row for name, row in speeds.elements.items() if name in closed)])
    _, size, basis = np.linalg.svd(rows)
    null = basis[int(np.sum(size > 1e-9)) :]
    motion = null[:, speeds.ends]
    scale = np.linalg.svd(motion, compute_uv=False) if len(motion) else np.zeros(0)
    rank = int(np.sum(scale > 1e-9))
    if rank == 0:
        return CLOSED["blocked"], 0.0
    if rank > 1:
        return CLOSED["neutral"], 0.0
    w_in, w_out = motion[int(np.argmax(np.abs(motion).sum(axis=1)))]
    if abs(w_in) < 1e-9 or abs(w_out) < 1e-9:
        return CLOSED["blocked"], 0.0
    return None, float(w_in / w_out)
