"""What the gearbox did, on the terminal: the strip of gears, shifts with their grade, monitors that failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from torqueloop.hil.report.analysis import Band
from torqueloop.hil.report.console_parts import table
from torqueloop.hil.report.monitors import FAILED, FOLLOWS, NOT_REACHED, PASSED, WAIVED, GearStrip, MonitorVerdict

if TYPE_CHECKING:
    from torqueloop.hil.report.report import Report

#: characters of the strip
WIDTH = 64
#: what a state looks like
MARKS = {FAILED: ("FAIL", "bold red"), FOLLOWS: ("so", "yellow"), WAIVED: ("waived", "yellow")}


def strip(gears: GearStrip | None, end_s: float) -> RenderableType | None:
    """Gears that are requested, reported and engaged, a character for each part of the run; N and ·: none."""
    if gears is None or not gears.true or end_s <= 0.0:
        return None
    times = [(k + 0.5) / WIDTH * end_s for k in range(WIDTH)]
    rows = [(name, [_at(bands, t) for t in times]) for name, bands in
            (("asked", gears.asked), ("reported", gears.reported), ("engaged", gears.true)) if bands]  # fmt: skip
    lines = [Text.assemble((f"{name:9}", "dim"), "".join(cells)) for name, cells in rows]
    scale = f"0 s{f'{end_s:.0f} s':>{WIDTH - 3}}"
    return Group(Text("gears", "bold"), *lines, Text.assemble(" " * 9, (scale, "dim")))


def _at(bands: Sequence[Band], t: float) -> str:
    value = next((str(b.value) for b in bands if b.begin_s <= t <= b.end_s), "")
    return value[:1] if value and value != "nothing" else "·"


def shift_table(report: Report) -> RenderableType | None:
    """Each shift with its grade: comfort of docs/shift_quality.md, 10 nothing to be felt, 1."""
    if not report.shifts:
        return None
    head = ("begins s", "lasts s", "a min m/s²", "a max m/s²", "jerk m/s³", "flare 1/min", "heat kJ", "grade")
    shown = table("shifts", "shift", *head)
    for shift, q in zip(report.shifts, report.quality, strict=True):
        shown.add_row(
            shift.name, f"{shift.begin_s:.3f}", f"{shift.duration_s:.3f}",
            "–" if shift.a_min_mps2 is None else f"{shift.a_min_mps2:+.2f}",
            "–" if shift.a_max_mps2 is None else f"{shift.a_max_mps2:+.2f}",
            "–" if q.jerk is None else f"{q.jerk:.0f}",
            "–" if q.flare is None else f"{q.flare * 9.5492966:.0f}",
            "–" if q.energy is None else f"{q.energy * 1e-3:.1f}",
            "–" if q.comfort is None else f"{q.comfort:.1f}",
        )  # fmt: skip
    return shown


def monitor_lines(verdicts: Sequence[MonitorVerdict]) -> RenderableType | None:
    """Monitors that failed, follow or are waived, a sentence each; the others in one line."""
    if not verdicts:
        return None
    shown = table("monitors", "", "", "")
    shown.show_header = False
    shown.columns[1].justify = shown.columns[2].justify = "left"
    for v in sorted((v for v in verdicts if v.state in MARKS), key=lambda v: (v.state != FAILED, v.first_s or 0.0)):
        mark, style = MARKS[v.state]
        shown.add_row(Text(mark, style), v.name, Text(v.text))
    line = Text(monitors_passed(verdicts), "dim")
    return Group(shown, line) if shown.row_count else line


def monitors_passed(verdicts: Sequence[MonitorVerdict]) -> str:
    """How many passed, and which had nothing to look at."""
    passed = sum(v.state == PASSED for v in verdicts)
    rest = [v.name for v in verdicts if v.state == NOT_REACHED]
    return f"{passed} of {len(verdicts)} monitors passed" + (f"; not reached: {', '.join(rest)}" if rest else "")
