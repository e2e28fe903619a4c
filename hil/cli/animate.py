"""`torqueloop animate`: a run as a picture that turns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torqueloop.hil.cli.common import command, out_console


@command
def animate(
    run_dir: Annotated[Path, typer.Argument(metavar="DIR", help="Directory of a run.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The page; default: DIR/animation.html.")
    ] = None,
    from_s: Annotated[float | None, typer.Option("--from", metavar="S", help="From this time of the run on.")] = None,
    until_s: Annotated[float | None, typer.Option("--until", metavar="S", help="Up to this time of the run.")] = None,
    driveline: Annotated[
        Path | None,
        typer.Option("--driveline", metavar="FILE", help="Driveline file, if config/ of the run does not name it."),
    ] = None,
) -> None:
    """Draw a run in three dimensions beside its plots, on one page that needs no network."""
    from torqueloop.hil.animate.animate import animate as write

    page = write(run_dir, out or run_dir / "animation.html", driveline, from_s=from_s, until_s=until_s)
    out_console.print(f"{page}: {page.stat().st_size / 1e6:.1f} MB", soft_wrap=True, highlight=False)
