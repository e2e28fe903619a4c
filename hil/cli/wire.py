"""torqueloop wire: the pin list of a rig."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from torqueloop.hil.cli.common import JsonOption, command, error_console, names_of, out_console, print_json
from torqueloop.hil.common.locate import locate


@command
def wire(
    rig: Annotated[str, typer.Argument(help="Rig file, or the bare name of an installed one.",
                                       autocompletion=names_of("rigs"))],
    draw: Annotated[Path | None, typer.Option(help="Write the list as an SVG picture into this file.")] = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """List the pins of I/O devices and of control units that are programs: pin, signal, scaling, range, safe value."""
    from torqueloop.hil.rig.resolve.pin_list import INTO, drawing, pin_list
    from torqueloop.hil.rig.resolve.plan import load_plan

    rows = pin_list(load_plan(locate(rig, "rigs")))
    if draw is not None:
        draw.write_text(drawing(rows), encoding="utf-8")
        error_console.print(f"{draw}", highlight=False)
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    columns = {
        "control unit": [row.plug for row in rows],
        "device": [row.device for row in rows],
        "pin": [row.pin for row in rows],
        "rig": ["reads" if row.direction == INTO else "writes" for row in rows],
        "signal": [row.signal for row in rows],
        "linked to": ["\n".join(row.linked) for row in rows],
        "unit": [row.unit for row in rows],
        "range": ["" if row.low is None or row.high is None else f"{row.low:g} .. {row.high:g}" for row in rows],
        "safe": ["" if row.safe is None else f"{row.safe:g}" for row in rows],
    }
    # a column that is empty everywhere takes no room
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    table = Table(box=None, pad_edge=False)
    for name in shown:
        table.add_column(name, overflow="fold")
    for cells in zip(*shown.values(), strict=True):
        table.add_row(*map(Text, cells))
    out_console.print(table)
    out_console.print(f"{len(rows)} pins", highlight=False)
