"""`torqueloop list`: everything that can be run or used by bare name, with one line each; what of one is assumed."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from torqueloop.core.describe.errors import ConfigError, did_you_mean
from torqueloop.hil.cli.common import JsonOption, command, error_console, out_console, print_json
from torqueloop.hil.common.locate import FOLDERS, installed

#: folder of configurations -> the command that takes one of them
COMMANDS = {
    "rigs": "run",
    "scenarios": "scenario",
    "gearboxes": "gearbox",
    "sketches": "new gearbox",
    "powertrains": "compile",
    "studies": "sweep",
    "tcu": "tcu",
    "vehicles": "vehicle",
}


def first_sentence(path: Path) -> str:
    """What a file says of itself: the first sentence of its first comment."""
    said: list[str] = []
    with path.open(encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if line.startswith('CM_ "'):
                said = [line.removeprefix('CM_ "')]
            elif line.startswith(("#", "/*")) and line.strip("/*# \n"):
                said.append(line.strip("/*# \n"))
                continue
            if said:
                break
    text = " ".join(said).strip().strip('";')
    return re.split(r"(?<=[^.\s]{2}[.;])\s", text, maxsplit=1)[0].rstrip(".;")


@command
def list_installed(
    folder: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="List only rigs, gearboxes, vehicles and so on.")
    ] = None,
    assumed: Annotated[
        str | None,
        typer.Option("--assumed", metavar="FILE", help="Every assumed number of this file and the files it uses."),
    ] = None,
    weigh: Annotated[
        bool, typer.Option("--weigh", help="With --assumed RIG: what 10 % more of each number changes.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the installed configurations, which commands use by bare name, and the command for each."""
    if assumed is not None:
        _list_assumed(assumed, weigh, as_json)
        return
    if folder is not None and folder not in FOLDERS:
        raise ConfigError("there is no kind {value} of installed files", key="kind", value=folder,
                          allowed=", ".join(FOLDERS), hint=did_you_mean(folder, FOLDERS))  # fmt: skip
    chosen = [name for name in FOLDERS if folder is None or name == folder]
    found = {name: {stem: first_sentence(path) for stem, path in installed(name).items()} for name in chosen}
    if as_json:
        print_json(found)
        return
    for name, files in found.items():
        how = f"   torqueloop {COMMANDS[name]} NAME" if name in COMMANDS else ""
        out_console.print(Text.assemble((name, "bold"), how), highlight=False)
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        for stem, text in files.items():
            table.add_row(f"  {stem}", Text(text))
        out_console.print(table)


def _list_assumed(name: str, weighed: bool, as_json: bool) -> None:
    """Table of the assumed numbers, by file or, weighed, by what they change."""
    from torqueloop.hil.cli.facts import METRICS, Weight, assumed, facts, weigh
    from torqueloop.hil.cli.file_check import by_name

    path = by_name(name)
    said = facts(path)
    rows = [Weight(s, {}) for s in assumed(path)]
    if weighed:
        with Progress(console=error_console, transient=True) as progress:
            task = progress.add_task("runs")
            rows = weigh(path, lambda done, of: progress.update(task, completed=done, total=of))
    if as_json:
        print_json([{**asdict(row.statement), "changes": row.changes} for row in rows])
        return
    columns = ["file", "table", "number", "range", "reason"]
    table = Table(*columns, *(METRICS.values() if weighed else ()), box=None, pad_edge=False)
    for row in rows:
        s = row.statement
        allowed = "" if s.low is None else f"{s.low:g} .. {s.high:g}"
        changes = [f"{100.0 * row.changes[m]:+.2f} %" if m in row.changes else "" for m in METRICS] if weighed else []
        table.add_row(Path(s.file).name, s.table, f"{s.key} = {s.value:g}", allowed, s.reason, *changes)
    out_console.print(table)
    ranged = sum(row.statement.low is not None for row in rows)
    out_console.print(f"{len(rows)} of {len(said)} numbers are assumed, {ranged} with a range", highlight=False)
