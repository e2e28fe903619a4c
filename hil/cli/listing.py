"""`torqueloop list`: everything that can be run or used by bare name, with one line each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torqueloop.hil.cli.common import JsonOption, command, out_console, print_json
from torqueloop.hil.common.locate import FOLDERS, installed

#: folder of configurations -> the command that takes one of them
COMMANDS = {
    "rigs": "run",
    "scenarios": "simulate",
    "gearboxes": "gearbox",
    "sketches": "new gearbox",
    "powertrains": "compile",
    "studies": "sweep",
    "tcu": "tcu",
    "vehicles": "vehicle",
}


def first_line(path: Path) -> str:
    """What a file says of itself: the first comment."""
    with path.open(encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if line.startswith("#") and line.strip("# \n"):
                return line.strip("# \n")
            if line.startswith('CM_ "'):
                return line.removeprefix('CM_ "').strip()
    return ""


@command
def list_installed(
    folder: Annotated[str | None, typer.Argument(metavar="[KIND]", help="rigs, gearboxes, ... only.")] = None,
    as_json: JsonOption = False,
) -> None:
    """The configurations that come with the package, used by bare name, and the command for each."""
    chosen = [name for name in FOLDERS if folder is None or name == folder]
    found = {name: {stem: first_line(path) for stem, path in installed(name).items()} for name in chosen}
    if as_json:
        print_json(found)
        return
    for name, files in found.items():
        how = f"   torqueloop {COMMANDS[name]} NAME" if name in COMMANDS else ""
        out_console.print(f"[bold]{name}[/]{how}", highlight=False)
        width = max((len(stem) for stem in files), default=0)
        for stem, text in files.items():
            room = max(20, out_console.width - width - 5)
            short = text if len(text) <= room else f"{text[: room - 1]}…"
            out_console.print(f"  {stem.ljust(width)}  {short}", highlight=False, markup=False, soft_wrap=True)
