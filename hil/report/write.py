"""Writing of a report: report.json, junit.xml, report.html, modes.csv where it is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torqueloop
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.record.run_data import write_modes
from torqueloop.hil.report.analysis import Shift
from torqueloop.hil.report.energy import EnergyBalance
from torqueloop.hil.report.monitors import MonitorVerdict
from torqueloop.hil.report.report import Report, analyse
from torqueloop.hil.report.run_checks import Check
from torqueloop.hil.report.shift_quality import ShiftQuality
from torqueloop.hil.results.files import VERSION, write_json_atomic
from torqueloop.hil.results.gates import GateResult
from torqueloop.hil.results.run import RunInfo


class UnwrittenReport(TorqueloopError):
    """The run was read and judged; its files cannot be written (read-only, full)."""

    def __init__(self, report: Report, cause: OSError) -> None:
        where = cause.filename or report.run.path
        super().__init__(f"{where}: {cause.strerror}: the report was made, its files were not written")
        self.report: Report = report
        self.cause: OSError = cause


@dataclass(frozen=True)
class ReportFile:
    """report.json: the judgement of a run, with the run itself."""

    #: version of torqueloop that has judged
    torqueloop: str
    passed: bool
    #: passed, interrupted (somebody ended the run before its time), inconclusive or failed
    verdict: str
    exit_status: int
    #: why a failed run says nothing about its rig; empty: it does
    inconclusive: str
    gates: list[GateResult]
    checks: list[Check]
    #: what the gearbox did, in one sentence
    summary: str
    #: what every drive is held to by itself (docs/monitors.md)
    monitors: list[MonitorVerdict]
    shifts: list[Shift]
    #: criteria of each shift, see docs/shift_quality.md
    shift_quality: list[ShiftQuality]
    energy: EnergyBalance | None
    #: by name, as gates use them
    metrics: dict[str, float | str | None]
    #: with what was completed from the recording, where the run left none
    run: RunInfo
    #: what is missing or damaged, in words
    incomplete: list[str]
    rebuilt_from_recording: list[str]


def report_file(report: Report) -> ReportFile:
    """A report as it is written."""
    return ReportFile(
        torqueloop.__version__,
        report.passed,
        report.verdict,
        report.exit_status,
        report.inconclusive,
        report.gates,
        report.checks,
        report.summary,
        report.monitors,
        report.shifts,
        report.quality,
        report.energy,
        report.metrics,
        replace(report.run.info, stats=report.stats),
        report.run.incomplete,
        report.rebuilt,
    )


def report_json(report: Report) -> dict[str, Any]:
    """The same as a table for `write_json_atomic`."""
    return {"format": VERSION, **vars(report_file(report))}


def write_report(
    run_dir: Path | str,
    gates: str | Iterable[str] | Mapping[str, str] | None = None,
    *,
    html: bool = True,
) -> Report:
    """Analyse the run and write report.json, junit.xml, report.html (and modes.csv when the run left none)."""
    report = analyse(run_dir, gates)
    try:
        _write_files(report, html)
    except OSError as error:
        raise UnwrittenReport(report, error) from None
    return report


def _write_files(report: Report, html: bool) -> None:
    from torqueloop.hil.report.junit import write_junit

    folder = report.run.path
    if report.run.modes and report.run.modes_source != "modes.csv":
        report.files["modes"] = folder / "modes.csv"
        write_modes(report.files["modes"], report.run.modes)
    report.files["json"] = folder / "report.json"
    write_json_atomic(report.files["json"], report_json(report))
    report.files["junit"] = folder / "junit.xml"
    write_junit(report, report.files["junit"])
    if html:
        from torqueloop.hil.report.html import write_html

        report.files["html"] = folder / "report.html"
        write_html(report, report.files["html"])
