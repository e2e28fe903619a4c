"""`torqueloop bus scan --check`: what a recording, or a bus that is listened to, says about an interface file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from rich.table import Table

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.judge import RIGHT_MIN, Judged, Judgement, judge
from torqueloop.hil.can.known import WORDS, Known
from torqueloop.hil.can.scan import Frame
from torqueloop.hil.cli.common import out_console, print_json
from torqueloop.hil.common.locate import find, locate
from torqueloop.hil.ecu.interface_tables import InterfaceConfig, load_interface

#: signals and identifiers listed in a line
LISTED = 12


def check(frames: Iterable[Frame], name: str, dbc: str | None, write: Path | None, told: str, json: bool) -> bool:
    """Judge the interface file `name` by frames, show the result, write it. told: source of the frames. True if
    nothing is contradicted."""
    path = locate(name, "interfaces")
    interface = load_interface(path)
    if dbc is not None:
        database = locate(dbc, "can")
    elif interface.database is None:
        raise ConfigError("the interface file names no database: give --dbc, or {key} in it", file=str(path),
                          key="database")  # fmt: skip
    else:
        database = find(path, interface.database, "can")
    if write is not None and os.path.exists(write):
        raise ConfigError("{value} is there already: nothing is overwritten", key="write", value=str(write))
    found = judge(frames, database)
    if json:
        print_json(_plain(found))
    else:
        _show(found, interface)
    if write is not None:
        write.write_text(written(found, path, interface, told, write), encoding="utf-8")
        out_console.print(f"written: {write}, which extends {path.stem}", soft_wrap=True, highlight=False)
    return not found.of_state("contradicted")


def _plain(found: Judgement) -> dict[str, Any]:
    made = asdict(found)
    for name, row in found.messages.items():
        made["messages"][name]["state"] = row.state
    return made


def _id(row: Judged) -> str:
    return f"{row.can_id & 0x1FFFFFFF:0{8 if row.can_id >> 31 else 3}X}"


def _show(found: Judgement, interface: InterfaceConfig) -> None:
    table = Table(
        "id", "message", "frames", "least ms", "median", "most", "declared", "verdict", box=None, pad_edge=False
    )
    for row in found.messages.values():
        cycle = "" if row.cycle_s is None else f"{1e3 * row.cycle_s:g}"
        times = ("", "", "") if row.period_s is None else (f"{1e3 * t:.1f}" for t in row.period_s)
        table.add_row(_id(row), row.name, str(row.frames), *times, cycle, row.state)
    out_console.print(table, soft_wrap=True, highlight=False)
    _say("")
    for row in found.messages.values():
        if row.frames:
            _say(f"{row.name}: {'; '.join(_remarks(row))}")
    _say("")
    if found.undeclared:
        _say(f"{len(found.undeclared)} identifiers that no database declares:")
        for row in found.undeclared:
            fit = f", {row.fits[0].text}" if row.fits and row.fits[0].share >= RIGHT_MIN else ""
            period = "" if row.period_s is None else f", every {1e3 * row.period_s[1]:.1f} ms"
            _say(f"  {_id(row)}: {row.frames} frames of {', '.join(map(str, row.lengths))} bytes{period}{fit}")
    for name, why in found.skipped.items():
        _say(f"{name} cannot be judged: {why}")
    text = f"{found.frames} frames in {found.seconds:.1f} s"
    for n, what in ((found.error_frames, "error frames"), (found.remote_frames, "remote frames"),
                    (found.more, "frames of more identifiers than are kept")):  # fmt: skip
        text += f", {n} {what}" if n else ""
    _say(text)
    _say(f"interface {interface.name}:")
    for state in ("confirmed", "contradicted", "not seen"):
        rows = found.of_state(state)
        if rows:
            _say(f"  {state}: {', '.join(row.name for row in rows)}")
    for row in found.of_state("contradicted"):
        wrong = [f"{what} {v.text}" for what, v in row.verdicts.items() if v.state == "contradicted"]
        how = interface.known.get(row.name, Known())
        _say(f"  {row.name} (layout {WORDS[how.layout]}, period {WORDS[how.period]}): {'; '.join(wrong)}")


def _remarks(row: Judged) -> list[str]:
    shown = [f"{what}: {v.text}" if v.state == "contradicted" else v.text for what, v in row.verdicts.items()
             if v.text and (what != "period" or v.state == "contradicted")]  # fmt: skip
    if row.still and row.values.state != "not seen":
        shown.append(f"never moved: {_some(list(row.still))}")
    if row.errors:
        shown.append("error values: " + _some([f"{n} in {k} frames" for n, k in row.errors.items()]))
    if row.undeclared_bits:
        shown.append(f"bits that move without a signal: {_some([str(b) for b in row.undeclared_bits])}")
    return shown


def _some(words: list[str]) -> str:
    more = f" and {len(words) - LISTED} more" if len(words) > LISTED else ""
    return ", ".join(words[:LISTED]) + more


def _say(text: str) -> None:
    out_console.print(text, soft_wrap=True, highlight=False)


def written(found: Judgement, path: Path, interface: InterfaceConfig, told: str, out: Path) -> str:
    """An interface file that extends the judged one, with what the recording says of each message in [known].

    A recording proves periods, counters and checksums; that a layout has the right length and values within their
    ranges does not prove what they mean, so `layout` changes only when it is contradicted."""
    base = (
        path.stem if locate(path.stem, "interfaces").resolve() == path.resolve() else os.path.relpath(path, out.parent)
    )
    lines = [f"# What {told} says of {path.name}, written by `torqueloop bus scan --check`, {date.today()}.",
             'kind = "interface"', f'extends = "{base}"']  # fmt: skip
    for name, row in found.messages.items():
        if not row.frames:
            continue
        before = interface.known.get(name, Known())
        layout = "contradicted" if "contradicted" in (row.length.state, row.values.state) else before.layout
        period = {"confirmed": "recorded", "contradicted": "contradicted"}.get(row.period.state, before.period)
        states = (row.counter.state, row.checksum.state)
        protection = before.protection
        if "contradicted" in states:
            protection = "contradicted"
        elif "confirmed" in states:
            protection = "recorded"
        lines += ["", f"[known.{name}]", f'layout = "{layout}"', f'period = "{period}"', f'protection = "{protection}"',
                  f'log = "{told}: {_quoted(row.summary)}"']  # fmt: skip
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', "'")
