"""A run read and judged: `Report`. Writing it is the task of `report.write`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.report.analysis import Band, Shift, column, gear_bands, shifts
from torqueloop.hil.report.collect import Run, load_run
from torqueloop.hil.report.drive import drive_of
from torqueloop.hil.report.energy import EnergyBalance, energy_balance
from torqueloop.hil.report.metrics import build_metrics, complete_stats
from torqueloop.hil.report.monitors import FAILED, GearStrip, MonitorVerdict, judge, summary
from torqueloop.hil.report.remarks import resolved, served
from torqueloop.hil.report.run_checks import Check, check_run
from torqueloop.hil.report.scenario_checks import Verdict, verdicts
from torqueloop.hil.report.shift_quality import ShiftQuality, quality_metrics, shift_quality
from torqueloop.hil.results.gates import GateResult, evaluate, parse_gates
from torqueloop.hil.results.run import WITHHELD_S, RunStats

#: source of the gates that were not in a file
COMMAND_LINE = "command line"

#: beginnings of the metrics that show how the machine ran the loop
TIME_METRICS = ("missed", "overruns", "lateness", "compute", "lost_time_s", "margin")
OF_MACHINE = (*TIME_METRICS, "wake_lateness", "late_started", "dropped", "real_time_factor", "safe_state")


@dataclass
class Report:
    """A finished report."""

    run: Run
    stats: RunStats
    #: statistics that had to be computed from the recording because the run left none
    rebuilt: list[str]
    metrics: dict[str, Any]
    bands: list[Band]
    shifts: list[Shift]
    energy: EnergyBalance | None
    gates: list[GateResult]
    checks: list[Check]
    #: what the gearbox did, in one sentence; "": nothing was recorded
    summary: str = ""
    monitors: list[MonitorVerdict] = field(default_factory=list)
    #: gears over time; None: nothing was recorded
    strip: GearStrip | None = None
    #: of the scenario's steps and checks; each is among the checks as well
    verdicts: list[Verdict] = field(default_factory=list)
    #: of each shift, see docs/shift_quality.md
    quality: list[ShiftQuality] = field(default_factory=list)
    #: files written, by kind
    files: dict[str, Path] = field(default_factory=dict)

    @property
    def failures(self) -> dict[str, str]:
        """Gates, checks that count and monitors that failed, each with its reason in words."""
        gates = {g.text: g.cause or f"{g.values}" for g in self.gates if not g.passed}
        checks = {c.name: c.text for c in self.checks if c.counts and not c.passed}
        return {**gates, **checks, **{v.name: v.text for v in self.monitors if not v.passed}}

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def verdict(self) -> str:
        """passed, interrupted (somebody ended the run before its time), inconclusive or failed."""
        if self.passed:
            return "passed"
        if self.run.info.state == "interrupted":
            return "interrupted"
        return "inconclusive" if self.inconclusive else "failed"

    @property
    def exit_status(self) -> int:
        """0: all gates and checks passed; 1: one failed; 2: a gate asked for now names no metric of this run; 3: one
        failed, and the reason may be the machine."""
        if any(g.unknown and g.source == COMMAND_LINE for g in self.gates):
            return 2
        return {"passed": 0, "inconclusive": 3}.get(self.verdict, 1)

    @property
    def inconclusive(self) -> str:
        """Why a failed run says nothing about its rig: the machine did not run it for a time that makes participants
        look silent, and nothing else failed than what that can cause. Empty where the run does say something."""
        withheld_s = self.stats.withheld_s or 0.0
        own = [c for c in self.checks if c.counts and not c.passed and not c.from_machine]
        # a gate that somebody asks for is answered, whatever the reason
        gates = [g for g in self.gates if not g.passed]
        asked = [g for g in gates if g.source == COMMAND_LINE or not all(n.startswith(OF_MACHINE) for n in g.values)]
        if self.passed or withheld_s < WITHHELD_S or own or asked:
            return ""
        return f"the machine did not run the rig for {withheld_s:.1f} s: repeat it, or use --clock virtual"


def analyse(run_dir: Path | str, gates: str | Iterable[str] | Mapping[str, str] | None = None) -> Report:
    """Read and judge a run. `gates` are added to those the run itself was started with (run.json)."""
    # Parsed first: a mistake in a gate must not wait for the reading of a long recording.
    extra = parse_gates(gates, COMMAND_LINE) if gates else []
    run = load_run(run_dir)
    own = parse_gates(run.info.gates, "rig file")
    asked = [g for g in own if g.text not in {e.text for e in extra}] + extra
    stats, rebuilt = complete_stats(run)
    bands = gear_bands(run.signals, run.gears) if run.signals is not None else []
    found = shifts(bands, run.signals)
    quality = shift_quality(run.signals, found, run.gears)
    metrics = build_metrics(run, stats, found) | quality_metrics(quality)
    energy = energy_balance(stats.energy, run.signals)
    metrics["energy_residual_rel"] = abs(energy.residual_rel) if energy else None
    metrics["energy_turned_over_J"] = energy.turned_over_J if energy else None
    # the gates of the run were looked at before it began: what one of them misses was not measured
    results = evaluate(asked, {**{name: None for g in own for name in g.names}, **metrics})
    checks = [*check_run(run, stats, metrics, energy), resolved(run, stats)]
    if stats.control is not None or stats.telemetry is not None:
        checks.append(served(stats))
    judged = verdicts(run.info.scenario, run.signals, quality) if run.info.scenario is not None else []
    checks += [Check(f"{v.kind} {v.name!r}", v.passed, v.text, from_machine=True) for v in judged]
    report = Report(run, stats, rebuilt, metrics, bands, found, energy, results, checks)
    report.verdicts, report.quality = judged, quality
    if run.info.monitors is not None and run.signals is not None and run.signals.n:
        drive = drive_of(run.info.monitors, run.signals, stats, bands, found, quality, run.gears)
        report.monitors, report.strip = judge(run.info.monitors, run.signals, drive)
        s = column(run.signals, "car.s")
        distance = None if s is None else float(s[-1] - s[0])
        report.summary = summary(report.monitors, report.strip, len(found), distance)
        report.summary = _interrupted(report)
    return report


def _interrupted(report: Report) -> str:
    """The summary, with what ended or interrupted the drive: the safe state, the machine."""
    said, safe, tick_s = report.summary, report.stats.safe_state, report.run.info.tick_s
    if safe.latched and tick_s and all(v.state != FAILED for v in report.monitors):
        said = f"The rig went to its safe state at {(safe.step + 1) * tick_s:.2f} s: {safe.cause}."
    withheld_s = report.stats.withheld_s or 0.0
    return (
        f"Inconclusive, the machine did not run the rig for {withheld_s:.1f} s: {said}" if report.inconclusive else said
    )
