"""The golden runs: one rig of each kind, on the virtual clock, each run once for all tests that look at it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from page_figures import PageFigures
from rig_help import CONFIGS

from torqueloop.hil.report.console import print_report
from torqueloop.hil.report.report import Report
from torqueloop.hil.report.write import write_report
from torqueloop.hil.rig.run.session import RunSpec, run_rig

#: rig -> duration [s]: a rig of each kind, long enough for a shift
KINDS = {
    "desk_4hp22": 12.5,
    "desk_4hp22_mounts": 8.0,
    "desk_vw_mlb": 9.0,
    # beside those that every test run looks at
    "desk_4hp22_solenoids": 8.0,
    "desk_6hp26": 9.0,
    "desk_mb_egs52": 8.0,
    "desk_j1939": 8.0,
    "two_buses_4hp22": 8.0,
}
#: how many of them are looked at after every change; the others are proofs
ALWAYS = 3
#: a run with faults and a safe state, with a rig file of its own beside this one
FAULTS = "golden_faults"
#: what is looked at on the buses of every other shipped rig [s]
OTHERS_S = 8.0


def chosen(others: Sequence[str] = ()) -> list[Any]:
    """The kinds, and others, as parameters of a test."""
    names = [*KINDS, *others]
    return [pytest.param(name, marks=[pytest.mark.proof] * (k >= ALWAYS)) for k, name in enumerate(names)]


class Run:
    """A run, its report, and everything that its page draws."""

    def __init__(self, rig: str, duration_s: float | None) -> None:
        self._folder = TemporaryDirectory(prefix=f"golden_{rig}_")  # goes with the process
        self.path = Path(self._folder.name) / "run"
        folder = Path(__file__).parent if rig == FAULTS else CONFIGS / "rigs"
        run_rig(folder / f"{rig}.toml", RunSpec("virtual", duration_s, self.path))
        self.report: Report = write_report(self.path)
        self.console = _printed(self.report)
        self.html = (self.path / "report.html").read_text()
        #: what the page draws
        self.drawn = PageFigures(self.html)


def _printed(report: Report) -> str:
    from rich.console import Console

    console = Console(width=240, record=True, color_system=None, file=open("/dev/null", "w"))
    print_report(report, console)
    return re.sub(r"[│╭╮╰╯─]", "", console.export_text())


@cache
def golden_run(rig: str) -> Run:
    """The run of a rig; made when it is first asked for."""
    return Run(rig, None if rig == FAULTS else KINDS.get(rig, OTHERS_S))
