"""The page of a study: the best runs, what depends on what, and how long it took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.hil.report.analysis import thin
from torqueloop.hil.report.pages import render
from torqueloop.hil.study import repeats
from torqueloop.hil.study.store import SIGNALS
from torqueloop.hil.study.work import Job, Outcome
from torqueloop.hil.views.figure import Figure, Figures, Line, Panel

if TYPE_CHECKING:
    from torqueloop.hil.study.study import Study, Timing

Array = NDArray[np.float64]
#: runs in the table of the best, columns and metrics drawn at most
BEST, COLUMNS, METRICS = 12, 8, 6
#: points of a picture at most; more are thinned
DRAWN = 4000
#: colours of the fifths of a metric, smallest first
FIFTHS = ("blue", "teal", "green", "gold", "red")
#: runs below this say nothing about a correlation
LEAST = 8


def write_page(path: Path, study: Study, outcomes: Sequence[Outcome], timing: Timing) -> Path:
    """Write report.html of a study."""
    job = study.job
    ranked = _ranked(job, outcomes)
    failed = [o for o in outcomes if o.error]
    shown = _shown_metrics(job, outcomes)
    figures = Figures()
    made = [*_responses(job, outcomes, ranked, shown), *_maps(outcomes, shown[:1]), *_signals(path, job, ranked)]
    repeated = repeats.points(job, outcomes, shown)
    points_head, points = repeats.table(repeated, shown) if repeated else ((), [])
    page = render(
        "study.html",
        job.config.study.name,
        not failed,
        figures,
        verdict=f"{len(outcomes) - len(failed)} of {len(outcomes)} runs",
        text=job.config.study.text,
        what=f"{job.target.kind} {job.target.path.stem} · design {job.config.study.design} · "
             f"seed {job.config.study.seed} · {timing.text}",
        best_head=("run", *_columns(outcomes), *shown),
        best=[(o.line.run, *(o.line.values[c] for c in _columns(outcomes)), *(o.metrics.get(m) for m in shown))
              for o in ranked[:BEST]],
        best_note=_note(job, outcomes, ranked),
        points_head=points_head,
        points=points,
        influence_head=("column", *shown),
        influence=_influence(outcomes, shown),
        figures=[figures.add(figure) for figure in made],
        failed=[(o.line.run, _values(o), o.error) for o in failed[:20]],
        not_passed=[(o.line.run, _values(o), "; ".join(o.failures)) for o in outcomes if o.failures][:20],
        not_passed_count=sum(1 for o in outcomes if o.failures),
        unresolved=[(o.line.run, _values(o), "; ".join(o.remarks)) for o in outcomes if o.remarks][:20],
        unresolved_count=sum(1 for o in outcomes if o.remarks),
    )  # fmt: skip
    path.write_text(page, encoding="utf-8")
    return path


def _values(outcome: Outcome) -> str:
    return ", ".join(f"{k} = {v:g}" for k, v in outcome.line.values.items())


def _columns(outcomes: Sequence[Outcome]) -> list[str]:
    return list(outcomes[0].line.values)[:COLUMNS] if outcomes else []


def _objective(job: Job) -> str | None:
    objective = job.config.objective
    return None if objective is None else objective.minimise or objective.maximise


def _shown_metrics(job: Job, outcomes: Sequence[Outcome]) -> list[str]:
    """The objective first, then the study's own metrics."""
    own = [name for name in job.config.metrics if any(name in o.metrics for o in outcomes)]
    goal = _objective(job)
    return list(dict.fromkeys([*([goal] if goal else []), *own]))[:METRICS]


def _ranked(job: Job, outcomes: Sequence[Outcome]) -> list[Outcome]:
    if job.config.objective is None:
        return [o for o in outcomes if not o.error]
    return sorted((o for o in outcomes if job.cost(o) < math.inf), key=job.cost)


def _note(job: Job, outcomes: Sequence[Outcome], ranked: Sequence[Outcome]) -> str:
    if job.config.objective is None:
        return "Without an objective: the first runs."
    goal = "smallest" if job.config.objective.minimise else "largest"
    condition = " and ".join(job.config.objective.subject_to)
    return f"{goal} {_objective(job)} first" + (
        f"; {len(ranked)} of {len(outcomes)} runs meet {condition}." if condition else "."
    )


def values_of(outcomes: Sequence[Outcome], name: str) -> Array:
    """A column or metric of all runs, NaN where there is none."""
    found = [o.line.values.get(name, o.metrics.get(name)) for o in outcomes]
    return np.array([math.nan if v is None else v for v in found])


def _influence(outcomes: Sequence[Outcome], shown: Sequence[str]) -> list[tuple[Any, ...]]:
    """Rank correlation of each column with each metric (Spearman)."""
    rows = []
    for column in _columns(outcomes):
        cells: list[Any] = []
        for metric in shown:
            x, y = values_of(outcomes, column), values_of(outcomes, metric)
            told = np.isfinite(x) & np.isfinite(y)
            cells.append(rank_correlation(x[told], y[told]))
        rows.append((column, *("–" if c is None else f"{c:+.2f}" for c in cells)))
    return rows


def rank_correlation(x: Array, y: Array) -> float | None:
    """Spearman's: the correlation of ranks, equal values sharing theirs; None where one of both does not change."""
    if len(x) < LEAST:
        return None
    a, b = _ranks(x), _ranks(y)
    if not np.ptp(a) or not np.ptp(b):
        return None
    return float(np.corrcoef(a, b)[0, 1])


def _ranks(values: Array) -> Array:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - 0.5 * (counts - 1))[place], dtype=np.float64)


def _responses(job: Job, outcomes: Sequence[Outcome], ranked: Sequence[Outcome], shown: Sequence[str]) -> list[Figure]:
    """Each metric over each column, the best runs marked."""
    thin = outcomes[:: max(1, len(outcomes) // DRAWN)]
    best = ranked[:BEST] if job.config.objective is not None else []
    found = []
    for k, column in enumerate(_columns(outcomes) if shown else []):
        panels = []
        for metric in shown[:4]:
            lines = [_dots(metric, values_of(thin, column), values_of(thin, metric), "blue")]
            if best:
                lines.append(_dots("best", values_of(best, column), values_of(best, metric), "orange", "rings"))
            panels.append(Panel("", lines, title=metric, height=140))
        found.append(Figure(f"response{k}", panels, x=column, gears=False))
    return found


def _dots(label: str, x: Array, y: Array, role: str, style: str = "dots") -> Line:
    told = np.isfinite(x) & np.isfinite(y)
    order = np.argsort(x[told], kind="stable")
    return Line(label, y[told][order].tolist(), role, style, x=x[told][order].tolist())


def _maps(outcomes: Sequence[Outcome], shown: Sequence[str]) -> list[Figure]:
    """The column the objective depends on second most over that it depends on most: fifths of the objective."""
    columns = _columns(outcomes)
    if len(columns) < 2 or not shown or len(outcomes) < LEAST:
        return []
    metric = shown[0]
    x_all = {c: values_of(outcomes, c) for c in columns}
    z = values_of(outcomes, metric)
    told = np.isfinite(z)
    if not told.any():
        return []

    def strength(column: str) -> float:
        return -abs(rank_correlation(x_all[column][told], z[told]) or 0.0)

    first, second = sorted(columns, key=strength)[:2]
    ends = np.quantile(z[told], np.linspace(0.0, 1.0, len(FIFTHS) + 1))
    lines = []
    for k, role in enumerate(FIFTHS):
        inside = told & (z >= ends[k]) & ((z < ends[k + 1]) | (k == len(FIFTHS) - 1))
        lines.append(
            _dots(f"{metric} {ends[k]:.3g} .. {ends[k + 1]:.3g}", x_all[first][inside], x_all[second][inside], role)
        )
    panel = Panel("", lines, title=f"{_short(second)} over {_short(first)}, coloured by {metric}", height=300)
    return [Figure("map", [panel], x=first, gears=False)]


def _short(column: str) -> str:
    return column if len(column) < 28 else f"…{column[-26:]}"


def _signals(path: Path, job: Job, ranked: Sequence[Outcome]) -> list[Figure]:
    """Kept signals of the best, the middle and the worst run."""
    names = job.config.study.signals
    if not names or not ranked or job.config.objective is None:
        return []
    from pyarrow import parquet

    picked = [("best", ranked[0], "blue"), ("middle", ranked[len(ranked) // 2], "muted"), ("worst", ranked[-1], "red")]
    lines: dict[str, list[Line]] = {name: [] for name in list(names)[:METRICS]}
    for label, outcome, role in reversed(picked):
        file = path.parent / SIGNALS / f"{outcome.line.run:06d}.parquet"
        if not file.is_file():
            continue
        read = parquet.read_table(file)
        t = read["t"].to_numpy()
        window = _window(job, t)
        for name, drawn in lines.items():
            x, y = thin(t[window], read[name].to_numpy()[window])
            drawn.append(Line(f"{label}: run {outcome.line.run}", y.tolist(), role, x=x.tolist()))
    panels = [Panel("", drawn, title=name, height=150) for name, drawn in lines.items() if drawn]
    ends = [x for drawn in lines.values() for line in drawn for x in (line.x[0], line.x[-1])]
    return [Figure("signals", panels, begin=min(ends), end=max(ends), gears=False)] if ends else []


def _window(job: Job, t: Array) -> NDArray[np.bool_]:
    """What the metrics look at, where all of them look at a part."""
    own = [m for m in job.config.metrics.values() if m.signal is not None]
    ends = [m.until_s for m in own if m.until_s is not None]
    if not own or len(ends) < len(own):
        return np.full(len(t), True)
    margin = 0.5 * (max(ends) - min(m.from_s for m in own))
    return np.asarray((t >= min(m.from_s for m in own) - margin) & (t <= max(ends) + margin))
