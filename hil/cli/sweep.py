"""`torqueloop sweep`: a scenario or rig many times, with other values each time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from torqueloop.hil.cli.common import (
    FAILED,
    OK,
    JsonOption,
    after_the_run,
    command,
    error_console,
    out_console,
    print_json,
)
from torqueloop.hil.common.locate import default_folder, locate

#: runs shown in the terminal
SHOWN = 5


@command
def sweep(
    study: Annotated[
        str, typer.Argument(metavar="FILE", help="Study file, or the bare name of one; with --run: folder of a study.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the study; a folder with a part of the study is continued. Default: runs/TIME-NAME.",
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Processes at a time; default: one for each CPU.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler instead, e.g. tcp://host:8786.")
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Replace a value of the study file.")
    ] = None,
    run: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Repeat run N of the study in this folder, and compare.")
    ] = None,
    html: Annotated[bool, typer.Option("--html/--no-html", help="Write report.html.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no tables.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a study: vary any value of a scenario, driveline, rig, control unit or vehicle over a grid, a list, random,
    Sobol or Latin hypercube points, or the points of an optimiser. Writes runs.parquet and a page."""  # fmt: skip
    from torqueloop.hil.common.config_layers import parse_overrides
    from torqueloop.hil.study.result import sweep as run_sweep
    from torqueloop.hil.study.study import read_study

    if run is not None:
        raise typer.Exit(_again(Path(study), run, as_json))
    path = locate(study, "studies")
    overrides = parse_overrides(values or [])
    name = read_study(path, overrides).job.config.study.name
    folder = out or default_folder(name)
    progress = None if quiet or as_json or not sys.stderr.isatty() else _progress
    try:
        result = run_sweep(
            path, out=folder, jobs=jobs, scheduler=scheduler, html=html, progress=progress, values=overrides
        )
    except KeyboardInterrupt:
        error_console.print(f"finished runs are kept; to continue: torqueloop sweep {study} --out {folder}",
                            soft_wrap=True, highlight=False)  # fmt: skip
        raise
    with after_the_run():
        if as_json:
            print_json(_as_dict(result))
        elif not quiet:
            _show(result)
    raise typer.Exit(FAILED if result.failed else OK)


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    from rich import progress as parts
    from rich.console import Console

    columns = (parts.BarColumn(30), parts.MofNCompleteColumn(), parts.TimeElapsedColumn(), parts.TextColumn("left"),
               parts.TimeRemainingColumn(), parts.TextColumn("{task.fields[best]}", markup=False))  # fmt: skip
    with parts.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, best="")

        def tell(done: int, best: Any) -> None:
            text = "" if best is None else f"best: run {best.line.run}"
            bar.update(task, completed=done, best=text)

        yield tell


def _as_dict(result: Any) -> dict[str, Any]:
    timing = result.timing
    return {
        "folder": str(result.path), "runs": len(result), "failed": len(result.failed),
        "not_passed": len(result.not_passed), "unresolved": len(result.unresolved), "made_now": timing.runs,
        "wall_s": timing.wall_s, "at_a_time": timing.at_a_time, "run_s": timing.run_s, "overhead": timing.overhead,
        "best": [{"run": o.line.run, **o.line.values, **o.metrics} for o in _best(result)],
        "files": {k: str(v) for k, v in result.files.items()},
    }  # fmt: skip


def _best(result: Any) -> list[Any]:
    return list(result.best(SHOWN)) if result.study.job.config.objective is not None else list(result.runs[:SHOWN])


def _show(result: Any) -> None:
    job, timing = result.study.job, result.timing
    failed, total = len(result.failed), len(result)
    made = (f"all {total} runs are made", "bold green")
    verdict = (f"{failed} of {total} runs failed", "bold red") if failed else made
    out_console.print(Text.assemble((job.config.study.name, "bold"), ": ", verdict))
    for outcome in result.failed[:SHOWN]:
        out_console.print(f"  run {outcome.line.run}: {outcome.error}", soft_wrap=True, highlight=False)
    for outcome in result.not_passed[:1]:
        text = f"{len(result.not_passed)} of {total} runs did not pass; run {outcome.line.run}: {outcome.failures[0]}"
        out_console.print(text, soft_wrap=True, highlight=False, style="red")
    for outcome in result.unresolved[:1]:
        text = f"steps of {len(result.unresolved)} runs did not resolve what happened; "
        text += f"run {outcome.line.run}: {outcome.remarks[0]}"
        out_console.print(text, soft_wrap=True, highlight=False, style="yellow")
    rows = _best(result)
    if (objective := job.config.objective) is not None:
        goal = f"smallest {objective.minimise}" if objective.minimise else f"largest {objective.maximise}"
        out_console.print(f"best runs, {goal} first:", highlight=False)
    columns = list(rows[0].line.values) if rows else []
    table = Table(box=None, pad_edge=False)
    for name in ("run", *(str(o.line.run) for o in rows)):
        table.add_column(name, justify="right" if name != "run" else "left")
    for name in (*columns, *job.config.metrics):
        numbers = [o.line.values.get(name, o.metrics.get(name)) for o in rows]
        table.add_row(name, *("–" if x is None else f"{x:.5g}" for x in numbers))
    out_console.print(table)
    if timing.runs:
        out_console.print(timing.text, highlight=False, soft_wrap=True)
    for path in result.files.values():
        out_console.print(f"written: {path}", soft_wrap=True, highlight=False)


def _again(folder: Path, run: int, as_json: bool) -> int:
    from torqueloop.hil.study.study import again

    before, now = again(folder, run)
    equal = before.hash == now.hash and before.metrics == now.metrics and before.error == now.error
    if as_json:
        print_json({"run": run, "equal": equal, "hash": now.hash, "values": now.line.values, "metrics": now.metrics})
        return OK if equal else FAILED
    word = ("identical", "bold green") if equal else ("different", "bold red")
    out_console.print(Text.assemble(word, f": run {run}, seed {now.line.seed}, hash {before.hash} and {now.hash}"))
    for name, value in {**now.line.values, **now.metrics}.items():
        out_console.print(f"  {name} = {value}", highlight=False)
    for text in filter(None, (now.error, *now.failures, *now.remarks)):
        out_console.print(f"  {text}", soft_wrap=True, highlight=False)
    return OK if equal else FAILED
