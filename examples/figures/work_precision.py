"""Work and precision: error against compute time per simulated millisecond, for reference cases, beside SciPy.

    python examples/figures/work_precision.py --out plots                  all cases with an independent model
    python examples/figures/work_precision.py --out plots First Backlash --repeats 9

Ours: the generic kernel at order 2 and 4 and several steps h, inputs sampled beforehand; timed is what a tick computes.
SciPy: solve_ivp (RK45, DOP853, Radau, LSODA) at several tolerances with located events, on the same model written
independently (rt_tests/reference/models.py, own_models.py; its right-hand side is Python with numpy, which dominates
SciPy's time: `evaluations_per_ms` in the JSON lets one judge the methods without it). Times are medians of repeats.
The error is the largest of all results at 200 instants away from events, relative to each result's range, against
DOP853 with rtol 1e-12. Writes <case>.png, work_precision.png (an overview) and work_precision.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "rt_tests" / "reference"
#: steps of our kernel, s
STEPS = (8e-3, 4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4)
TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
METHODS = {"RK45": 1e-8, "DOP853": 1e-10, "LSODA": 1e-9, "Radau": 1e-8}
#: longest step of SciPy where there are switchings, s: one must not come and go within a step
MAX_STEP = 5e-3
#: a run of the kernel takes well below 1 ms: timed this many times as often
KERNEL_REPEATS = 8
#: check times are this far from events, s
AWAY = 1e-4


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, measure, plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="names of cases (default: all that have an independent model)")
    parser.add_argument("--out", type=Path, default=Path("build") / "work_precision", help="folder for plots and JSON")
    parser.add_argument("--repeats", type=int, default=5, help="timings per point (default 5)")
    given = parser.parse_args(arguments)
    sys.path.insert(0, str(REFERENCE))
    from models import PUBLISHED
    from own_models import OWN
    from rich.console import Console

    models = {**PUBLISHED, **OWN}
    unknown = [name for name in given.cases if name not in models]
    if unknown:
        parser.error(f"no independent model of {', '.join(unknown)}; known: {', '.join(models)}")
    console = Console(stderr=True, highlight=False)
    given.out.mkdir(parents=True, exist_ok=True)
    records = []
    for name in given.cases or models:
        console.print(f"{name}: kernel", end="", soft_wrap=True)
        records.append(measure(name, models[name](), given.repeats, lambda what: console.print(f" {what}", end="")))
        plot(records[-1], given.out / f"{name}.png")
        console.print(f" -> {given.out / f'{name}.png'}")
    overview(records, given.out / "work_precision.png")
    document = {"machine": platform.processor() or platform.machine(), "python": platform.python_version(),
                "numpy": np.__version__, "repeats": given.repeats, "cases": records}  # fmt: skip
    (given.out / "work_precision.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print_table(records, console)
    return 0


def measure(name: str, system: Any, repeats: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """All points of one case."""
    from independent import simulate

    from torqueloop.core.reference import read_case

    folder = REFERENCE / ("own" if name.startswith("Own") else "msl") / name
    case = read_case(folder)
    best = simulate(system, case.t_stop, 1e-12, 1e-14, "DOP853")
    times, wanted = checks(best, case.t_stop)
    span = np.ptp(wanted, axis=0)
    span[span == 0.0] = 1.0
    series = {f"kernel order {order}": kernel_points(case, system, order, times, wanted, span, repeats)
              for order in (2, 4)}  # fmt: skip
    for method, finest in METHODS.items():
        tell(method)
        tolerances = [r for r in TOLERANCES if r >= finest]
        series[f"SciPy {method}"] = scipy_points(system, case.t_stop, method, tolerances, times, wanted, span, repeats)
    return {"case": name, "stop": case.t_stop, "events": len(best.switchings), "series": series}


def checks(best: Any, stop: float) -> tuple[np.ndarray, np.ndarray]:
    """Check times away from switchings, and all results there."""
    events = np.array([*best.switchings, *best.system.breaks, -1.0])
    times = np.linspace(0.0, stop, 401)[1:]
    times = times[np.abs(times[:, None] - events).min(axis=1) > AWAY][::2]
    count = len(best.system.results)
    return times, np.array([best.values(float(t))[:count] for t in times])


def timed(work: Callable[[], Any], repeats: int) -> float:
    """Median time of some runs, s."""
    work()
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def kernel_points(
    case: Any, system: Any, order: int, times: np.ndarray, wanted: np.ndarray, span: np.ndarray, repeats: int
) -> list[dict[str, float]]:
    """Error and time of our generic kernel at several steps."""
    from torqueloop.core.reference import import_case
    from torqueloop.core.reference.case_trajectory import Trajectory

    imported = import_case(case)
    points = []
    for h in STEPS:
        trajectory = Trajectory(imported, h, order, "generic")
        outputs = [output_of(imported, trajectory, column) for column in system.results]
        compared = [k for k, output in enumerate(outputs) if output is not None]
        rows = trajectory.values(times.tolist())
        ours = np.stack([outputs[k][1] * rows[:, outputs[k][0]] for k in compared], axis=1)
        calls = trajectory.operations(case.t_stop)
        seconds = timed(lambda trajectory=trajectory, calls=calls: trajectory.replay(calls), KERNEL_REPEATS * repeats)
        error = float(np.max(np.abs(ours - wanted[:, compared]) / span[compared]))
        points.append({"h": h, "error": error, "us_per_ms": 1e3 * seconds / case.t_stop,
                       "steps_per_ms": 1e-3 / h})  # fmt: skip
    return points


def output_of(imported: Any, trajectory: Any, column: str) -> tuple[int, float] | None:
    """Output of the driveline for a column name; None for columns of signal blocks."""
    by_name = {c.name: c for c in imported.case.columns}
    c = by_name[column]
    quantity = imported.quantity(c.component, c.quantity, c.index)
    if len(quantity.outputs) != 1 or quantity.outputs[0] not in trajectory.output_index:
        return None
    return trajectory.output_index[quantity.outputs[0]], quantity.factor


def scipy_points(
    system: Any, stop: float, method: str, tolerances: list[float], times: np.ndarray, wanted: np.ndarray,
    span: np.ndarray, repeats: int,
) -> list[dict[str, float]]:  # fmt: skip
    """Error and time of solve_ivp at several tolerances; a tolerance at which it fails is left out."""
    from independent import simulate

    count, points = len(system.results), []
    longest = MAX_STEP if system.elements else np.inf
    for rtol in tolerances:
        try:
            solution = simulate(system, stop, rtol, 1e-2 * rtol, method, longest)
            found = np.array([solution.values(float(t))[:count] for t in times])
        except (RuntimeError, AssertionError):
            continue
        seconds = timed(lambda rtol=rtol: simulate(system, stop, rtol, 1e-2 * rtol, method, longest), repeats)
        points.append({"rtol": rtol, "error": float(np.max(np.abs(found - wanted) / span)),
                       "us_per_ms": 1e3 * seconds / stop,
                       "evaluations_per_ms": 1e-3 * solution.evaluations / stop})  # fmt: skip
    return points


STYLE = {
    "kernel order 2": ("tab:blue", "o", "-"), "kernel order 4": ("tab:orange", "s", "-"),
    "SciPy RK45": ("tab:green", "^", "--"), "SciPy DOP853": ("tab:red", "v", "--"),
    "SciPy LSODA": ("tab:purple", "D", "--"), "SciPy Radau": ("tab:brown", "P", "--"),
}  # fmt: skip


def draw(axes: Any, record: dict[str, Any], legend: bool) -> None:
    """One diagram: time over error."""
    for name, points in record["series"].items():
        colour, marker, line = STYLE[name]
        shown = [p for p in points if p["error"] > 0.0]
        work, error = [p["us_per_ms"] for p in shown], [max(p["error"], 1e-15) for p in shown]
        axes.loglog(work, error, color=colour, marker=marker, linestyle=line, markersize=4, label=name)
        for p in shown:
            if p.get("h") == 1e-3:
                axes.plot(p["us_per_ms"], max(p["error"], 1e-15), marker="o", markersize=11, color="none",
                          markeredgecolor=colour)  # fmt: skip
    axes.grid(True, which="major", alpha=0.3)
    if legend:
        axes.legend(fontsize="small")


def plot(record: dict[str, Any], file: Path) -> None:
    """The diagram of one case."""
    pyplot = plotter()
    figure, axes = pyplot.subplots(figsize=(7.2, 5.0), layout="constrained")
    draw(axes, record, True)
    axes.set_xlabel("compute time per simulated ms / us   (SciPy: right-hand side in Python)")
    axes.set_ylabel("largest error / range")
    axes.set_title(f"{record['case']}: {record['stop']:g} s, {record['events']} switchings; ring: h = 1 ms")
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


def overview(records: list[dict[str, Any]], file: Path) -> None:
    """All diagrams on one page."""
    pyplot = plotter()
    columns = min(4, len(records))
    rows = -(-len(records) // columns)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(3.6 * columns, 2.9 * rows), layout="constrained", squeeze=False
    )
    for k, record in enumerate(records):
        draw(axes.flat[k], record, False)
        axes.flat[k].set_title(record["case"], fontsize="medium")
    for k in range(len(records), rows * columns):
        axes.flat[k].axis("off")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=6, fontsize="small")
    figure.supxlabel("compute time per simulated ms / us   (SciPy: right-hand side in Python)", fontsize="medium")
    figure.supylabel("largest error / range", fontsize="medium")
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


def plotter() -> Any:
    """pyplot without a display."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def print_table(records: list[dict[str, Any]], console: Any) -> None:
    """Per case: our order 4 at 1 ms, and the SciPy point that reaches its error (or 1e-9) with the least time."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for k, head in enumerate(
        ("case", "error at 1 ms", "us/ms", "SciPy, same error or 1e-9", "us/ms", "evaluations/ms")
    ):
        table.add_column(head, justify="left" if k in (0, 3) else "right", no_wrap=True)
    for record in records:
        ours = next(p for p in record["series"]["kernel order 4"] if p["h"] == 1e-3)
        rivals = [(p["us_per_ms"], name, p) for name, points in record["series"].items() if name.startswith("SciPy")
                  for p in points if p["error"] <= max(ours["error"], 1e-9)]  # fmt: skip
        best = min(rivals, key=lambda r: r[0], default=None)
        other = ("-", "", "") if best is None else (
            f"{best[1][6:]} rtol {best[2]['rtol']:g}", f"{best[0]:.0f}", f"{best[2]['evaluations_per_ms']:.1f}"
        )  # fmt: skip
        table.add_row(record["case"], f"{ours['error']:.1e}", f"{ours['us_per_ms']:.2f}", *other)
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
