"""Commands on run directories that are there: compare two, list a folder of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torqueloop.hil.cli.common import FAILED, OK, JsonOption, command, error_console, out_console, print_json


@command
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="Directory of a run.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Directory of another one.")],
    tolerance: Annotated[
        float, typer.Option(metavar="REL", help="Largest difference, relative to a signal's range.")
    ] = 1e-6,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="A page (.html) or a picture (.png, .svg, .pdf).")
    ] = None,
    signal: Annotated[
        list[str] | None, typer.Option("--signal", metavar="NAME", help="Draw this signal; again for more.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs: signals in one plot, metrics side by side, differences beyond a tolerance (exit status 1)."""
    from torqueloop.hil.runs.compare import compare as compare_runs
    from torqueloop.hil.runs.compare_page import as_json as comparison_json
    from torqueloop.hil.runs.compare_page import print_comparison

    found = compare_runs(a, b, tolerance)
    # before the tables: a reader that closes the pipe must not cost the file
    if out is not None:
        written = found.write_html(out, signal) if out.suffix == ".html" else found.plot(out, signal)
    if as_json:
        print_json(comparison_json(found))
    else:
        print_comparison(found, out_console)
    if out is not None:
        error_console.print(f"written: {written}", soft_wrap=True, highlight=False)
    raise typer.Exit(OK if found.equal else FAILED)


@command
def runs(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Where the run directories are.")] = Path("runs"),
    sort: Annotated[str, typer.Option(metavar="COLUMN", help="Any column, by its name in --json.")] = "started",
    reverse: Annotated[bool, typer.Option("--reverse", "-r", help="Show the largest, or the latest, first.")] = False,
    metric: Annotated[
        str | None, typer.Option("--trend", metavar="METRIC", help="Show this metric over the last judged runs.")
    ] = None,
    last: Annotated[int, typer.Option(metavar="N", min=1, help="With --trend and --page: number of runs.")] = 50,
    rig: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --trend and --page: runs of this rig only.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page: latency, overruns, shift quality over the runs.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the run directories in a folder with their verdicts, or a metric over time (with an index in the folder)."""
    from torqueloop.hil.results.files import plain
    from torqueloop.hil.runs.listing import list_runs, print_runs

    if page is not None:
        from torqueloop.hil.runs.history_page import write_page

        count = write_page(folder, page, last, rig)
        out_console.print(f"{page}: {count} runs", soft_wrap=True, highlight=False)
    if metric is not None:
        from torqueloop.hil.runs.history import history, trend
        from torqueloop.hil.runs.history_page import print_trend

        points = trend(folder, metric, last, rig)
        if as_json:
            print_json(plain({"metric": metric, "points": points, "unread": history(folder).unread}))
        else:
            print_trend(metric, points, out_console)
    if page is not None or metric is not None:
        return
    rows = list_runs(folder, sort, reverse)
    if as_json:
        print_json(plain(rows))
    else:
        print_runs(rows, out_console)
