"""`torqueloop export`: recorded signals for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torqueloop.hil.cli.common import FAILED, OK, command, error_console, out_console


@command
def export(
    run_dir: Annotated[Path, typer.Argument(metavar="DIR", help="Directory of a run; it may still go on.")],
    target: Annotated[Path, typer.Argument(metavar="FILE", help="FILE.parquet, .csv, .mcap (Foxglove) or .mf4.")],
    signal: Annotated[
        list[str] | None, typer.Option("--signal", metavar="PATTERN", help='E.g. "C*.p"; again for more. Default: all.')
    ] = None,
    every: Annotated[int, typer.Option(metavar="N", min=1, help="Every n-th sample only.")] = 1,
) -> None:
    """Write the signals of a run as a file that other tools open, in little memory whatever its length."""
    from torqueloop.hil.record.export import export as export_run

    made = export_run(run_dir, target, signals=signal or ["*"], every=every)
    out_console.print(f"{made.path}: {made.samples} samples of {made.signals} signals", soft_wrap=True, highlight=False)
    for text in made.damage:
        error_console.print(f"not in it: {text}", soft_wrap=True, highlight=False)
    raise typer.Exit(FAILED if made.damage else OK)
