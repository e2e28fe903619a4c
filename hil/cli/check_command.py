"""`torqueloop check`: files of any kind, and with --physics their numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from torqueloop.hil.cli.common import OK, WRONG_INPUT, command, out_console

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Gearbox, powertrain, rig, TCU, vehicle, scenario, DBC.")
]


@command
def check_files(
    files: Files,
    physics: Annotated[
        bool,
        typer.Option("--physics", help="Also compare the numbers with physics, their ranges and published figures."),
    ] = False,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Write the present names into older files, and `kind` into files without it."),
    ] = False,
) -> None:
    """Validate files of any kind. Errors name file, table, key, value and what is allowed.

    For drivelines, rigs and scenarios the command prints the kernel and the most evaluations of forces that a step or a
    tick can make.
    """
    from torqueloop.hil.cli.file_check import check_file, in_present_names, say_kind, says_kind

    bad = 0
    for file in files:
        present = in_present_names(file)
        if present is not None and fix:
            file.write_text(present, encoding="utf-8")
        checked = check_file(file)
        if checked.ok:
            line = Text.assemble(("ok", "green"), f"    {file}: {checked.kind}, {checked.text}")
        else:
            bad += 1
            line = Text.assemble(("wrong", "bold red"), f" {file}: {checked.error}")
        out_console.print(line, soft_wrap=True, highlight=False)
        if checked.ok and not says_kind(checked.path):
            remark = "does not say of which kind it is; `torqueloop check --fix FILE` writes it"
            if fix:
                say_kind(checked.path, checked.kind)
                remark = "now says of which kind it is"
            out_console.print(f"      {checked.path} {remark}", soft_wrap=True, highlight=False)
        if present is not None:
            remark = (
                "now has the present names" if fix else "has former names; `torqueloop check --fix FILE` writes today's"
            )
            out_console.print(f"      {file} {remark}", soft_wrap=True, highlight=False)
        if physics and checked.ok and checked.path.suffix == ".toml":
            print_physics(checked.path)
    raise typer.Exit(WRONG_INPUT if bad else OK)


def print_physics(path: Path) -> None:
    """A line for each quantity that is not in its range, with the numbers, and one that counts them."""
    from torqueloop.hil.cli.facts import physics

    made, wrong, unlike = physics(path)
    for finding in wrong:
        out_console.print(Text.assemble(("warning", "yellow"), f" {finding}"), soft_wrap=True, highlight=False)
    for s in unlike:
        where = f" {s.file} [{s.table}] {s.key}: {s.problem}"
        out_console.print(Text.assemble(("warning", "yellow"), where), soft_wrap=True, highlight=False)
    bad = len(wrong) + len(unlike)
    out_console.print(f"      physics: {made - bad} of {made} quantities are in their range", highlight=False)
