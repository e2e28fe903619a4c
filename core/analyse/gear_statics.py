"""Speeds and torques of an ideal gear train in a gear, in exact rational numbers.

Shafts k = 1..n have speeds w_k. Gear sets give rows C (C w = 0), engaged elements rows B (w_first - w_second = 0).

    speeds     [C; B_engaged] w = 0,  w_in = 1                        (one solution: the gear exists)
    torques    C^T l + B_engaged^T tau + e_in * 1 + e_out * T_out = 0  (equilibrium of every shaft, 1 Nm at the input)

`tau` is the torque an element exerts on its FIRST shaft; the opposite acts on the second (or on the housing).
T_out is the torque the load exerts on the output, so power balance reads w_in * 1 + w_out * T_out = 0.
Where more elements are engaged than equilibrium determines (a redundant brake), the split with the least sum of squares
of element torques is given, and `determinate` is False.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction

from torqueloop.core.compile.exact import reduce, solve_least_norm
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError

#: coefficient per shaft (or per unknown)
Row = dict[str, Fraction]
ZERO = Fraction(0)
ONE = Fraction(1)


@dataclass(frozen=True)
class GearRow:
    """One ideal gear condition: sum of coefficient * speed = 0."""

    #: component it comes from
    component: str
    #: (member name, shaft or None for the housing, coefficient)
    members: tuple[tuple[str, str | None, Fraction], ...]
    #: ratio z_ring/z_sun of a planetary set (negative: plus set), None for other gears
    ratio: Fraction | None = None


@dataclass(frozen=True)
class TrainElement:
    """A clutch, brake or free wheel between two shafts; None is the housing."""

    name: str
    kind: str
    first: str | None
    second: str | None
    #: sign of the torque on the first shaft a free wheel can carry (-1), 0 for elements that carry both signs
    one_way: int = 0


@dataclass(frozen=True)
class GearTrain:
    """What an ideal gearbox is: shafts, gear rows, elements."""

    name: str
    shafts: tuple[str, ...]
    rows: tuple[GearRow, ...]
    elements: tuple[TrainElement, ...]
    input: str
    output: str


@dataclass(frozen=True)
class GearState:
    """One gear: everything per 1 rad/s and per 1 Nm at the input."""

    gear: str
    engaged: tuple[str, ...]
    #: w_in / w_out; None when the output stands still
    ratio: Fraction | None
    #: ratio as published, for comparison
    published: float | None
    speeds: dict[str, Fraction]
    #: engaged element -> torque on its first shaft
    torques: dict[str, Fraction]
    #: open element -> w_first - w_second, where the gear determines both
    slips: dict[str, Fraction]
    #: torque of each gear member on its shaft: (component, member) -> torque
    member_torques: dict[tuple[str, str], Fraction]
    #: torque of the load on the output shaft
    output_torque: Fraction
    determinate: bool
    #: remarks: a free wheel that would have to pull the wrong way
    remarks: tuple[str, ...] = field(default=())


def _solutions(rows: Sequence[Row], rhs: Sequence[Fraction], columns: Sequence[str]) -> tuple[Row, list[Row]] | None:
    """One solution of rows.x = rhs and a basis of the null space; None when there is no solution."""
    reduced = reduce(rows, rhs, columns)
    if any(residual != 0 for _, _, residual in reduced.dependent):
        return None
    particular = {c: reduced.pivots[c][1] if c in reduced.pivots else ZERO for c in columns}
    basis = []
    for free in (c for c in columns if c not in reduced.pivots):
        vector = {c: ZERO for c in columns} | {free: ONE}
        vector |= {pivot: -row.get(free, ZERO) for pivot, (row, _) in reduced.pivots.items()}
        basis.append(vector)
    return particular, basis


def solve_gear(train: GearTrain, gear: str, engaged: Sequence[str], published: float | None = None) -> GearState:
    """Speeds, torques and slips with the given elements engaged; ConfigError when that is no gear."""
    by_name = {e.name: e for e in train.elements}
    for name in engaged:
        if name not in by_name:
            raise ConfigError(
                "{value} is no element of the gearbox", table=f"gears.{gear}", key="engaged", value=name,
                allowed=" | ".join(by_name),
            )  # fmt: skip
    gear_rows = [_row([(shaft, c) for _, shaft, c in row.members]) for row in train.rows]
    locks = {name: _row([(by_name[name].first, ONE), (by_name[name].second, -ONE)]) for name in engaged}
    speeds, loose = _speeds(train, gear, [*gear_rows, *locks.values()])
    w_out = speeds[train.output]
    multipliers, taus, output_torque, determinate = _torques(train, gear, gear_rows, locks)
    members = {
        (row.component, member): coefficient * multipliers[i]
        for i, row in enumerate(train.rows)
        for member, _, coefficient in row.members
    }
    slips = {
        e.name: speeds.get(e.first or "", ZERO) - speeds.get(e.second or "", ZERO)
        for e in train.elements
        if e.name not in engaged and not loose & {e.first, e.second}
    }
    remarks = [
        f"{name} would have to carry {float(taus[name]):+.4f} Nm per Nm, against its free direction"
        for name in engaged
        if by_name[name].one_way * taus[name] < 0
    ]
    remarks += [
        f"{e.name} blocks the slip {float(slips[e.name]):+.4f} this gear needs"
        for e in train.elements
        if e.name in slips and e.one_way and e.kind == "FreeWheel" and e.one_way * slips[e.name] < 0
    ]
    return GearState(
        gear=gear, engaged=tuple(engaged), ratio=None if w_out == 0 else ONE / w_out, published=published,
        speeds=speeds, torques=taus, slips=slips, member_torques=members, output_torque=output_torque,
        determinate=determinate, remarks=tuple(remarks),
    )  # fmt: skip


def _row(entries: Sequence[tuple[str | None, Fraction]]) -> Row:
    """Coefficients per shaft; the housing (None) drops out."""
    row: Row = {}
    for shaft, value in entries:
        if shaft is not None:
            row[shaft] = row.get(shaft, ZERO) + value
    return {shaft: value for shaft, value in row.items() if value != 0}


def _speeds(train: GearTrain, gear: str, rows: list[Row]) -> tuple[Row, set[str]]:
    """Speeds of all shafts for w_in = 1, and which of them the gear does not determine (an idle shaft between two open
    elements, say): those are 0."""
    found = _solutions([*rows, {train.input: ONE}], [ZERO] * len(rows) + [ONE], train.shafts)
    if found is None:
        raise ConfigError(f"gear {gear} of {train.name}: the engaged elements block the input shaft {train.input}")
    speeds, basis = found
    loose = {shaft for v in basis for shaft, value in v.items() if value != 0}
    if train.output in loose:
        raise ConfigError(
            f"gear {gear} of {train.name}: too few elements engaged, the output is not driven "
            f"(undetermined: {', '.join(sorted(loose))})"
        )
    return speeds, loose


def _torques(
    train: GearTrain, gear: str, gear_rows: list[Row], locks: dict[str, Row]
) -> tuple[list[Fraction], dict[str, Fraction], Fraction, bool]:
    """Multipliers of the gear rows, element torques, output torque; whether equilibrium alone determines them."""
    gears = [f"gear {i}" for i in range(len(gear_rows))]
    taus = [f"tau {name}" for name in locks]
    columns = [*gears, *taus, "output"]
    unknowns = dict(zip(columns, [*gear_rows, *locks.values(), {train.output: ONE}], strict=True))
    equilibrium = [{c: row[shaft] for c, row in unknowns.items() if shaft in row} for shaft in train.shafts]
    found = _solutions(equilibrium, [-ONE if shaft == train.input else ZERO for shaft in train.shafts], columns)
    if found is None:
        raise ConfigError(f"gear {gear} of {train.name}: no equilibrium, a shaft is not supported")
    x, basis = found
    if basis:
        # least sum of squares of the element torques over the free directions: (N'N) t = -N'x on their entries
        normal = [{j: sum((a[c] * b[c] for c in taus), ZERO) for j, b in enumerate(basis)} for a in basis]
        step = solve_least_norm(normal, [-sum((a[c] * x[c] for c in taus), ZERO) for a in basis], range(len(basis)))
        assert step is not None  # normal equations always have a solution
        x = {c: v + sum((step[j] * b[c] for j, b in enumerate(basis)), ZERO) for c, v in x.items()}
    return [x[c] for c in gears], {n: x[f"tau {n}"] for n in locks}, x["output"], not basis
