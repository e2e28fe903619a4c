"""`torqueloop export`: recorded signals and frames for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.cli.common import FAILED, OK, command, error_console, out_console

#: endings that only frames have; those of .csv and .mf4 need --frames
OF_FRAMES = (".blf", ".asc", ".trc", ".log")


@command
def export(
    run_dir: Annotated[Path, typer.Argument(metavar="DIR", help="Directory of a run, which may still be running.")],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Signals: FILE.parquet, .csv, .mcap (Foxglove), .mf4. Frames: .blf, .asc, .trc, .log (candump). "
            "What was driven, as a scenario: .toml.",
        ),
    ],
    signal: Annotated[
        list[str] | None,
        typer.Option(
            "--signal", metavar="PATTERN", help='Signal or pattern such as "C*.p"; may be repeated. Default: all.'
        ),
    ] = None,
    every: Annotated[int, typer.Option(metavar="N", min=1, help="Every n-th sample only.")] = 1,
    frames: Annotated[bool, typer.Option("--frames", help="The frames of the buses, as .csv or .mf4 too.")] = False,
) -> None:
    """Write the signals, or the frames, of a run as a file that other tools open."""
    from torqueloop.hil.record.bus_log import write_bus_log, write_candump
    from torqueloop.hil.record.driven import save_driven
    from torqueloop.hil.record.export import export as export_run

    if target.suffix.lower() == ".toml":
        if signal or every != 1 or frames:
            raise ConfigError("{key} has no use for a scenario, which has what the driver did, tick by tick",
                              key="--signal, --every, --frames")  # fmt: skip
        driven = save_driven(run_dir, target)
        out_console.print(f"{driven.path}: {driven.changes} changes in {driven.seconds:.3f} s", soft_wrap=True,
                          highlight=False)  # fmt: skip
        raise typer.Exit(OK)
    if frames or target.suffix.lower() in OF_FRAMES:
        if signal or every != 1:
            key, value = ("signal", str(signal)) if signal else ("every", str(every))
            raise ConfigError("{key} = {value}: frames are written whole", key=key, value=value)
        count = (write_candump if target.suffix.lower() == ".log" else write_bus_log)(run_dir, target)
        out_console.print(f"{target}: {count} frames", soft_wrap=True, highlight=False)
        raise typer.Exit(OK)
    made = export_run(run_dir, target, signals=signal or ["*"], every=every)
    out_console.print(f"{made.path}: {made.samples} samples of {made.signals} signals", soft_wrap=True, highlight=False)
    for text in made.damage:
        error_console.print(f"not in it: {text}", soft_wrap=True, highlight=False)
    raise typer.Exit(FAILED if made.damage else OK)
