"""The page of a study: the best runs, what depends on what, and how long it took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.hil.report.pages import render
from torqueloop.hil.report.style import available, colour, rc, themed
from torqueloop.hil.study import repeats
from torqueloop.hil.study.store import SIGNALS
from torqueloop.hil.study.work import Job, Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from torqueloop.hil.study.study import Study, Timing

Array = NDArray[np.float64]
#: runs in the table of the best, columns and metrics drawn at most
BEST, COLUMNS, METRICS = 12, 8, 6
#: points of a picture at most; more are thinned
DRAWN = 4000
#: runs below this say nothing about a correlation
LEAST = 8


def write_page(path: Path, study: Study, outcomes: Sequence[Outcome], timing: Timing) -> Path:
    """Write report.html of a study."""
    job = study.job
    ranked = _ranked(job, outcomes)
    failed = [o for o in outcomes if o.error]
    shown = _shown_metrics(job, outcomes)
    figures = _responses(job, outcomes, ranked, shown) + _maps(job, outcomes, shown[:1]) + _signals(path, job, ranked)
    repeated = repeats.points(job, outcomes, shown)
    points_head, points = repeats.table(repeated, shown) if repeated else ((), [])
    page = render(
        "study.html",
        job.config.study.name,
        not failed,
        verdict=f"{len(outcomes) - len(failed)} of {len(outcomes)} runs",
        text=job.config.study.text,
        what=f"{job.target.kind} {job.target.path.stem} · design {job.config.study.design} · "
             f"seed {job.config.study.seed} · {_words(timing)}",
        best_head=("run", *_columns(outcomes), *shown),
        best=[(o.line.run, *(o.line.values[c] for c in _columns(outcomes)), *(o.metrics.get(m) for m in shown))
              for o in ranked[:BEST]],
        best_note=_note(job, outcomes, ranked),
        points_head=points_head,
        points=points,
        influence_head=("column", *shown),
        influence=_influence(outcomes, shown),
        figures=figures,
        failed=[(o.line.run, _values(o), o.error) for o in failed[:20]],
    )  # fmt: skip
    path.write_text(page, encoding="utf-8")
    return path


def _words(timing: Timing) -> str:
    if not timing.runs:
        return "nothing was left to run"
    return (f"{timing.runs} runs in {timing.wall_s:.1f} s, {timing.at_a_time} at a time: "
            f"{timing.runs / timing.wall_s:.1f} runs/s, {100 * timing.overhead:.1f} % beside simulating")  # fmt: skip


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


def _figure(width: float, height: float, rows: int, columns: int) -> Any:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def _responses(job: Job, outcomes: Sequence[Outcome], ranked: Sequence[Outcome], shown: Sequence[str]) -> list[str]:
    """Each metric over each column, the best runs marked."""
    columns = _columns(outcomes)
    if not available() or not columns or not shown:
        return []
    import matplotlib as mpl

    thin = outcomes[:: max(1, len(outcomes) // DRAWN)]
    found = []
    with mpl.rc_context(rc()):
        for k, metric in enumerate(shown[:4]):
            figure, axes = _figure(13.4, 2.7, 1, len(columns))
            for ax, column in zip(axes[0], columns, strict=True):
                ax.plot(values_of(thin, column), values_of(thin, metric), ".", markersize=3, color=colour("blue"))
                if job.config.objective is not None:
                    best = ranked[:BEST]
                    ax.plot(values_of(best, column), values_of(best, metric), "o", markersize=5,
                            markerfacecolor="none", color=colour("orange"))  # fmt: skip
                ax.set_xlabel(_short(column))
            axes[0][0].set_ylabel(metric)
            axes[0][0].set_title(metric)
            found.append(themed(figure, f"response{k}"))
    return found


def _short(column: str) -> str:
    return column if len(column) < 28 else f"…{column[-26:]}"


def _maps(job: Job, outcomes: Sequence[Outcome], shown: Sequence[str]) -> list[str]:
    """The objective over the two columns it depends on most."""
    columns = _columns(outcomes)
    if not available() or len(columns) < 2 or not shown or len(outcomes) < LEAST:
        return []
    import matplotlib as mpl

    metric = shown[0]
    x_all = {c: values_of(outcomes, c) for c in columns}
    z = values_of(outcomes, metric)

    def strength(column: str) -> float:
        told = np.isfinite(z)
        return -abs(rank_correlation(x_all[column][told], z[told]) or 0.0)

    first, second = sorted(columns, key=strength)[:2]
    told = np.isfinite(z)
    with mpl.rc_context(rc()):
        figure, axes = _figure(13.4, 4.2, 1, 1)
        ax: Axes = axes[0][0]
        order = np.argsort(-z[told])  # small values on top
        dots = ax.scatter(x_all[first][told][order], x_all[second][told][order], c=z[told][order], s=14, cmap="viridis")
        figure.colorbar(dots, ax=ax, label=metric)
        ax.set_xlabel(first)
        ax.set_ylabel(second)
        ax.set_title(f"{metric} over {_short(first)} and {_short(second)}")
        return [themed(figure, "map")]


def _signals(path: Path, job: Job, ranked: Sequence[Outcome]) -> list[str]:
    """Kept signals of the best, the middle and the worst run."""
    names = job.config.study.signals
    if not available() or not names or not ranked or job.config.objective is None:
        return []
    import matplotlib as mpl
    from pyarrow import parquet

    picked = [("best", ranked[0], "blue"), ("middle", ranked[len(ranked) // 2], "muted"), ("worst", ranked[-1], "red")]
    with mpl.rc_context(rc()):
        figure, axes = _figure(13.4, 0.6 + 1.9 * min(len(names), METRICS), min(len(names), METRICS), 1)
        for label, outcome, role in reversed(picked):
            file = path.parent / SIGNALS / f"{outcome.line.run:06d}.parquet"
            if not file.is_file():
                continue
            read = parquet.read_table(file)
            t = read["t"].to_numpy()
            window = _window(job, t)
            for ax, name in zip(axes[:, 0], names, strict=False):
                ax.plot(t[window], read[name].to_numpy()[window], color=colour(role),
                        label=f"{label}: run {outcome.line.run}")  # fmt: skip
                ax.set_title(name)
        axes[0][0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3)
        axes[-1][0].set_xlabel("time  [s]")
        return [themed(figure, "signals")]


def _window(job: Job, t: Array) -> NDArray[np.bool_]:
    """What the metrics look at, where all of them look at a part."""
    own = [m for m in job.config.metrics.values() if m.signal is not None]
    ends = [m.until_s for m in own if m.until_s is not None]
    if not own or len(ends) < len(own):
        return np.full(len(t), True)
    margin = 0.5 * (max(ends) - min(m.from_s for m in own))
    return np.asarray((t >= min(m.from_s for m in own) - margin) & (t <= max(ends) + margin))
