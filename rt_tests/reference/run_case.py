"""Run reference cases and compare them with their trajectories; one JSON line per case on stdout, a table on stderr.

    python rt_tests/reference/run_case.py rt_tests/reference/msl/*/
    python rt_tests/reference/run_case.py --substeps 8 --json results.json rt_tests/reference/msl/CoupledClutches
    python rt_tests/reference/run_case.py --convergence --out plots rt_tests/reference/msl/*/

A case is a directory with case.yaml and reference.csv (format: rt_tests/reference/msl/README.md). Errors are relative
to each column's range: `raw`; `shifted` (time shift of up to 10 us allowed); `beyond` (shifted, beyond the reference's
own deviation). --convergence: steps of 8 to 0.25 ms, the table of errors, and with --out a plot per case (error over h
at order 2 and 4, beside lines of slope 2 and 4) and one of all, convergence.png. Exit status: 0 all cases compared,
1 a case has unsupported parts or failed, 2 wrong input.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torqueloop.core.reference.case_run import CaseResult, Convergence

#: width of the table where it does not go to a terminal
WIDTH = 160
#: steps of a convergence study, s
STEPS = (8e-3, 4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4)


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", metavar="DIR", help="directories with case.yaml and reference.csv")
    parser.add_argument("--tick", type=float, default=1e-3, help="tick in s (default 1e-3)")
    parser.add_argument("--substeps", type=int, default=1, help="steps per tick (default 1)")
    parser.add_argument(
        "--order", choices=("auto", "2", "4"), default="4", help="order of the integrator (default 4, the accurate one)"
    )
    parser.add_argument("--kernel", default="auto", help='"auto", "generic" or the name of a precompiled kernel')
    parser.add_argument("--convergence", action="store_true", help="errors over step sizes at order 2 and 4 instead")
    parser.add_argument("--out", type=Path, metavar="DIR", help="with --convergence: write <case>.png here")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results into this file, too")
    parser.add_argument("--quiet", action="store_true", help="no progress and no table on stderr")
    given = parser.parse_args(arguments)
    if not (given.tick > 0.0 and math.isfinite(given.tick)) or given.substeps < 1:
        parser.error("--tick must be positive and --substeps at least 1")
    if given.out is not None and not given.convergence:
        parser.error("--out goes with --convergence")
    from torqueloop.core.describe.errors import TorqueloopError
    from torqueloop.core.reference.case_run import run_case

    status, results = 0, []
    studies: dict[str, Any] = {}
    work: Callable[[str], tuple[dict[str, Any], bool, Any]]
    if given.convergence:
        work = lambda directory: study(directory, given.kernel, given.out)  # noqa: E731
    else:

        def work(directory: str) -> tuple[dict[str, Any], bool, Any]:
            result = run_case(directory, given.tick, given.substeps, given.order, given.kernel)
            return result.as_dict(), not (result.unsupported or result.failure), result

    table = Table(given.quiet, given.convergence)
    for number, directory in enumerate(given.directories, 1):
        table.progress(number, len(given.directories), directory)
        try:
            record, good, result = work(directory)
        except TorqueloopError as error:
            table.clear()
            print(f"run_case: {directory}: {error}", file=sys.stderr)
            status = 2
            continue
        table.clear()
        print(json.dumps(record, allow_nan=False), flush=True)
        results.append(record)
        if "plot" in record:
            studies[record["case"]] = result
        table.add(result)
        if not good:
            status = max(status, 1)
    table.show()
    if not given.convergence:
        for line in summary(given.directories, results):
            print(line, file=sys.stderr)
    if studies:
        overview(studies, given.out / "convergence.png")
    if given.json is not None:
        given.json.write_text(json.dumps(results, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return status


def summary(directories: list[str], results: list[dict[str, Any]]) -> list[str]:
    """A line for each folder of cases: how many are compared, how many agree exactly, the worst of the others."""
    folders: dict[str, list[dict[str, Any]]] = {}
    for directory in directories:
        found = [r for r in results if r["case"] == Path(directory).resolve().name]
        folders.setdefault(Path(directory).resolve().parent.name, []).extend(found)
    lines = []
    for folder, cases in folders.items():
        compared = [r for r in cases if not (r["unsupported"] or r["failure"])]
        beyond = sorted(((r["max_error_beyond"], r["case"]) for r in compared if r["max_error_beyond"]), reverse=True)
        worst = ", ".join(f"{error:.1e} in {case}" for error, case in beyond) or "none"
        exact = len(compared) - len(beyond)
        lines.append(f"{folder}: {len(compared)} of {len(cases)} compared, beyond 0 in {exact}; others: {worst}")
    return lines


class Table:
    """Progress and summary on stderr."""

    def __init__(self, quiet: bool, convergence: bool) -> None:
        from rich.console import Console
        from rich.table import Table as RichTable

        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        if not self.console.is_terminal:
            self.console = Console(stderr=True, quiet=quiet, highlight=False, width=WIDTH)
        self.convergence = convergence
        self.rows = 0
        if convergence:
            heads = ["case", "order", "h", "own error", "observed order", "beyond reference"]
        else:
            heads = ["case", "steps", "raw", "shifted", "beyond", "modes", "worst column", "result"]
        self.table = RichTable(box=None, pad_edge=False)
        for head in heads:
            left = head in ("case", "worst column", "result")
            self.table.add_column(head, justify="left" if left else "right", no_wrap=head != "result")

    def progress(self, number: int, count: int, directory: str) -> None:
        if self.console.is_terminal:
            self.console.print(f"{number}/{count} {Path(directory).name}", end="\r", soft_wrap=True)

    def clear(self) -> None:
        if self.console.is_terminal:
            self.console.print(" " * 60, end="\r", soft_wrap=True)

    def add(self, result: CaseResult | dict[int, Convergence]) -> None:
        """A row for a case, or one per step size of a convergence study."""
        self.rows += 1
        if isinstance(result, dict):
            for order, found in result.items():
                self._add_convergence(order, found)
            return
        worst = result.worst("beyond" if result.largest("beyond") else "shifted")
        modes = min(result.modes.values(), default=None)
        text = "; ".join(result.unsupported) or result.failure or "compared"
        errors = [number(result.largest(key)) for key in ("raw", "shifted", "beyond")]
        equal = "" if modes is None else f"{100.0 * modes:.0f} %"
        name = "" if worst is None else worst.name
        self.table.add_row(result.case, str(result.substeps), *errors, equal, name, text)

    def _add_convergence(self, order: int, found: Convergence) -> None:
        for k, r in enumerate(found.results):
            if r.failure or r.unsupported:
                self.table.add_row(r.case, str(order), "", r.failure or "; ".join(r.unsupported), "", "")
                return
            slope = found.observed(k)
            self.table.add_row(
                r.case if k == 0 else "", str(order) if k == 0 else "", f"{1e3 * r.h:g} ms", number(found.own[k]),
                "" if slope is None else f"{slope:.1f}", number(r.largest("beyond")),
            )  # fmt: skip

    def show(self) -> None:
        if self.rows:
            self.console.print(self.table)


def number(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else f"{value:.1e}"


def study(directory: str, kernel: str, out: Path | None) -> tuple[dict[str, Any], bool, dict[int, Any]]:
    """Convergence of a case at order 2 and 4."""
    from torqueloop.core.reference import read_case
    from torqueloop.core.reference.case_run import convergence

    case = read_case(directory)
    found = {order: convergence(case, STEPS, order, kernel) for order in (2, 4)}
    good = all(not (r.unsupported or r.failure) for f in found.values() for r in f.results)
    record = {"case": case.name, "convergence": {str(order): f.as_dict() for order, f in found.items()}}
    if out is not None and good:
        out.mkdir(parents=True, exist_ok=True)
        record["plot"] = str(plot(case.name, found, out / f"{case.name}.png"))
    return record, good, found


def plotter() -> Any:
    """pyplot that draws into files."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def plot(name: str, found: dict[int, Convergence], file: Path) -> Path:
    """Error against our own fine solution over h, with lines of slope 2 and 4."""
    pyplot = plotter()
    figure, axes = pyplot.subplots(figsize=(6.4, 4.8), layout="constrained")
    draw(axes, found)
    axes.set_xlabel("step h / ms")
    axes.set_ylabel("largest error / range of the column")
    axes.set_title(f"{name}: error against the own solution at h = {1e3 * found[4].h_fine:g} ms")
    axes.legend()
    figure.savefig(file, dpi=110)
    pyplot.close(figure)
    return file


def overview(found: dict[str, dict[int, Convergence]], file: Path) -> None:
    """All cases in one picture."""
    pyplot = plotter()
    columns = min(4, len(found))
    rows = -(-len(found) // columns)
    figure, grid = pyplot.subplots(
        rows, columns, figsize=(3.6 * columns, 2.9 * rows), layout="constrained", squeeze=False
    )
    for axes, (name, each) in zip(grid.flat, found.items(), strict=False):
        draw(axes, each)
        axes.set_title(name, fontsize="medium")
    for axes in grid.flat[len(found) :]:
        axes.set_visible(False)
    lines, labels = max((axes.get_legend_handles_labels() for axes in grid.flat[: len(found)]), key=lambda x: len(x[0]))
    figure.legend(lines, labels, loc="outside upper center", ncols=5)
    figure.supxlabel("step h / ms")
    figure.supylabel("largest error / range of the column")
    figure.savefig(file, dpi=100)
    pyplot.close(figure)


def draw(axes: Any, found: dict[int, Convergence]) -> None:
    """Errors of one case at both orders."""
    floor = 1e-15
    for (order, each), colour, marker in zip(found.items(), ("tab:blue", "tab:orange"), "os", strict=True):
        h = [1e3 * r.h for r in each.results]
        own = [max(e, floor) for e in each.own]
        axes.loglog(h, own, marker=marker, color=colour, label=f"order {order}")
        # a line of that slope through the error at 1 ms
        at = h.index(1.0) if 1.0 in h else len(h) // 2
        axes.loglog(h, [own[at] * (x / h[at]) ** order for x in h], linestyle=":", color=colour, label=f"slope {order}")
    beyond = [r.largest("beyond") or 0.0 for r in found[4].results]
    if max(beyond) > 0.0:
        shown = [(1e3 * r.h, b) for r, b in zip(found[4].results, beyond, strict=True) if b > 0.0]
        axes.loglog(*zip(*shown, strict=True), linestyle="none", marker="x", color="grey",
                    label="order 4 beyond the reference's deviation")  # fmt: skip
    axes.axvline(1.0, color="lightgrey", linewidth=0.8, zorder=0)
    axes.set_ylim(bottom=floor)
    steps = sorted({1e3 * r.h for r in found[4].results})
    axes.set_xticks(steps, [f"{h:g}" for h in steps])
    axes.set_xticks([], minor=True)
    axes.grid(True, which="major", alpha=0.3)


if __name__ == "__main__":
    sys.exit(main())
