"""Stick diagram and lever diagrams of a gearbox (matplotlib, extra `report`).

Stick diagram: shafts are horizontal lines; a gear set is a column with its sun, carrier and ring tied to their shafts;
a clutch is a pair of plates between two shafts, a brake a plate pair against the hatched housing. A free wheel is a
triangle that points at the shaft it can push forward (a small one beside plates: a free wheel in series).

Lever diagram of a set: members at x = -ratio (sun), 0 (carrier), 1 (ring), speed per input speed upwards. The gear
equation w_sun + ratio*w_ring = (1 + ratio)*w_carrier puts the three points of every gear on one straight line.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from torqueloop.core.analyse.gear_statics import GearRow, TrainElement
from torqueloop.core.analyse.gearbox_report import GearboxReport
from torqueloop.core.describe.errors import TorqueloopError

HOUSING_Y = -1.0


def plot_gearbox(report: GearboxReport, path: str | Path) -> Path:
    """Draw both diagrams into one figure file (format by its suffix) and return the path."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise TorqueloopError("plots need matplotlib: pip install 'torqueloop[report]'") from None
    sets = [row for row in report.train.rows if row.ratio is not None]
    figure = Figure(figsize=(max(11.0, 3.6 * len(sets)), 9.5), layout="constrained")
    top, bottom = np.asarray(figure.subfigures(2, 1, height_ratios=[1.1, 1.0]))
    _stick(top.subplots(), report)
    axes = bottom.subplots(1, max(len(sets), 1), sharey=True, squeeze=False)[0]
    for axis, row in zip(axes, sets, strict=False):
        _lever(axis, report, row)
    if sets:
        axes[0].set_ylabel("speed / input speed")
        handles, labels = axes[0].get_legend_handles_labels()
        bottom.legend(handles, labels, loc="outside right upper", title="gear", frameon=False)
    out = Path(path)
    figure.savefig(out, dpi=130)
    return out


def _stick(axis: Any, report: GearboxReport) -> None:
    """Gear sets left, elements right, one line per shaft; the line of a shaft spans what is tied to it."""
    train = report.train
    level = {shaft: float(len(train.shafts) - 1 - k) for k, shaft in enumerate(train.shafts)}
    spans: dict[str, list[float]] = {shaft: [] for shaft in train.shafts}

    def tie(x: float, shaft: str | None, colour: str) -> float:
        """Mark a joint of column x with a shaft (None: the housing); returns its height."""
        if shaft is None:
            axis.plot([x - 0.18, x + 0.18], [HOUSING_Y, HOUSING_Y], color="black", lw=1.5)
            for d in (-0.12, -0.02, 0.08):
                axis.plot([x + d, x + d + 0.07], [HOUSING_Y, HOUSING_Y - 0.22], color="black", lw=0.8)
            return HOUSING_Y
        spans[shaft].append(x)
        axis.plot([x], [level[shaft]], "o", ms=4, color=colour, zorder=3)
        return level[shaft]

    x = 0.0
    for row in train.rows:
        _gear_column(axis, row, x, tie)
        x += 1.5
    x += 0.3
    for element in train.elements:
        _element_column(axis, element, x, tie)
        x += 1.0
    for shaft, xs in spans.items():
        right = x - 0.4 if shaft == train.output else max(xs, default=0.0)
        left = -1.2 if shaft == train.input else min(xs, default=0.0)
        axis.plot([left, right], [level[shaft]] * 2, color="tab:blue", lw=2.2, zorder=1)
        axis.text(-1.3, level[shaft], shaft, ha="right", va="center", fontsize=10, color="tab:blue")
        axis.plot([-1.25, left], [level[shaft]] * 2, color="tab:blue", lw=0.5, ls=":", zorder=0)
    axis.annotate("input", (-1.2, level[train.input] + 0.18), fontsize=8, color="tab:blue")
    axis.annotate("output", (x - 0.45, level[train.output] + 0.12), fontsize=8, color="tab:blue", ha="right")
    axis.set_xlim(-2.3, x + 0.2)
    axis.set_ylim(HOUSING_Y - 0.9, len(train.shafts) - 0.1)
    axis.set_title(f"{report.name}: gear sets and elements")
    axis.axis("off")


def _gear_column(axis: Any, row: GearRow, x: float, tie: Callable[[float, str | None, str], float]) -> None:
    """One gear: its members beside each other, joined by the toothing (dashed)."""
    order = ("sun", "carrier", "ring")
    members = sorted(row.members, key=lambda m: order.index(m[0]) if m[0] in order else len(order))
    xs = [x + 0.35 * k for k in range(len(members))]
    ys = [tie(xk, shaft, "tab:red") for xk, (_, shaft, _) in zip(xs, members, strict=True)]
    axis.plot(xs, ys, ls="--", lw=1.2, color="tab:red", zorder=2)
    for xk, yk, (member, _, _) in zip(xs, ys, members, strict=True):
        axis.text(xk + 0.05, yk + 0.14, member, fontsize=7, color="tab:red", rotation=35)
    label = row.component if row.ratio is None else f"{row.component}\n{float(row.ratio):+.4f}"
    axis.text(x + 0.35, HOUSING_Y - 0.3, label, ha="center", va="top", fontsize=8, color="tab:red")


def _element_column(axis: Any, element: TrainElement, x: float, tie: Callable[[float, str | None, str], float]) -> None:
    """One clutch, brake or free wheel between its two shafts."""
    first = tie(x, element.first, "black")
    second = tie(x, element.second, "black")
    low, high = sorted((first, second))
    middle = high - 0.42  # between two shaft lines, whatever shafts are crossed on the way
    axis.plot([x, x], [low, middle - 0.09], color="black", lw=1.1)
    axis.plot([x, x], [middle + 0.09, high], color="black", lw=1.1)
    if element.kind == "FreeWheel":
        pushed = first if element.one_way > 0 else second
        axis.plot([x], [middle], marker="^" if pushed > middle else "v", ms=10, color="tab:orange")
    else:
        for d in (-0.09, 0.09):
            axis.plot([x - 0.17, x + 0.17], [middle + d] * 2, color="black", lw=2.4)
        if element.one_way:
            axis.plot([x + 0.3], [middle], marker="^", ms=7, color="tab:orange")
    axis.text(x, HOUSING_Y - 0.3, element.name, ha="center", va="top", fontsize=9)


def _lever(axis: Any, report: GearboxReport, row: GearRow) -> None:
    """Lever of one planetary set, one line per gear."""
    assert row.ratio is not None
    place = {"sun": -float(row.ratio), "carrier": 0.0, "ring": 1.0}
    members = sorted(row.members, key=lambda m: place[m[0]])
    for gear, state in report.gears.items():
        if "_" in gear:  # variants of a gear (engine braking) have the same speeds
            continue
        xs = [place[member] for member, _, _ in members]
        ys = [0.0 if shaft is None else float(state.speeds[shaft]) for _, shaft, _ in members]
        axis.plot(xs, ys, "o-", ms=4, lw=1.3, label=gear)
    axis.axhline(0.0, color="grey", lw=0.8)
    for member, _, _ in members:
        axis.axvline(place[member], color="grey", lw=0.6, ls=":")
    labels = [f"{member}\n{shaft or 'housing'}" for member, shaft, _ in members]
    axis.set_xticks([place[member] for member, _, _ in members], labels, fontsize=8)
    axis.set_title(f"lever of {row.component}")
