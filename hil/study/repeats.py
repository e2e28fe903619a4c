"""Runs that repeat one point with other drawn numbers, taken together: what a choice stands of its scatter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.study.work import Job, Outcome

#: between them nine of ten runs lie [%]
LOW, HIGH = 5.0, 95.0


@dataclass(frozen=True)
class Spread:
    """One metric over the runs of a point."""

    mean: float
    #: quantiles of LOW and HIGH percent
    low: float
    high: float
    least: float
    most: float


@dataclass(frozen=True)
class Point:
    """Runs with the same varied values."""

    values: dict[str, float]
    #: metric -> its spread over the runs that have it
    metrics: dict[str, Spread]
    runs: int
    #: of them, without metrics
    failed: int


def points(job: Job, outcomes: Sequence[Outcome], metrics: Sequence[str]) -> list[Point]:
    """Every point of a study with repeats, in the order of the design; none where nothing is repeated."""
    repeats = job.config.study.repeats
    if repeats < 2:
        return []
    found: dict[int, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.line.run // repeats, []).append(outcome)
    return [_point(job, runs, metrics) for _, runs in sorted(found.items())]


def _point(job: Job, runs: Sequence[Outcome], metrics: Sequence[str]) -> Point:
    values = {name: runs[0].line.values[name] for name in job.config.vary}
    spreads = {
        name: _spread(told) for name in metrics if (told := [v for o in runs if (v := o.metrics.get(name)) is not None])
    }
    return Point(values, spreads, len(runs), sum(bool(o.error) for o in runs))


def _spread(values: Sequence[float]) -> Spread:
    low, high = np.percentile(values, (LOW, HIGH))
    return Spread(float(np.mean(values)), float(low), float(high), min(values), max(values))


def table(found: Sequence[Point], metrics: Sequence[str]) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Head and rows: the point, its runs, and of each metric mean, where nine of ten lie, and the extremes."""
    head = (*found[0].values, "runs", *(m for name in metrics for m in (f"{name}: mean", "5 … 95 %", "least … most")))
    rows: list[tuple[object, ...]] = []
    for point in found:
        cells: list[object] = []
        for name in metrics:
            spread = point.metrics.get(name)
            if spread is None:
                cells += ["–"] * 3
                continue
            inner, outer = (spread.low, spread.high), (spread.least, spread.most)
            cells += [f"{spread.mean:.4g}", *(f"{low:.4g} … {high:.4g}" for low, high in (inner, outer))]
        runs = str(point.runs) if not point.failed else f"{point.runs}, {point.failed} failed"
        rows.append((*point.values.values(), runs, *cells))
    return head, rows
