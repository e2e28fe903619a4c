"""Build the report of a run directory: report.json, junit.xml, report.html, modes.csv where it is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torqueloop
from torqueloop.hil.gates import GateResult, evaluate, parse_gates
from torqueloop.hil.record.run_data import write_json_atomic, write_modes
from torqueloop.hil.report.analysis import Band, Shift, gear_bands, shifts
from torqueloop.hil.report.collect import Run, load_run
from torqueloop.hil.report.energy import EnergyBalance, energy_balance
from torqueloop.hil.report.latency import degraded
from torqueloop.hil.report.metrics import build_metrics, complete_stats

#: The energy balance must close to this part of the energy turned over. [1]
ENERGY_RESIDUAL_MAX = 1e-6
#: source of the gates that were not in a file
COMMAND_LINE = "command line"


@dataclass(frozen=True)
class Check:
    """Something every run is held to, gate or not."""

    name: str
    passed: bool
    text: str
    #: False: worth knowing, does not change the exit status
    counts: bool = True


@dataclass
class Report:
    """A finished report."""

    run: Run
    stats: dict[str, Any]
    #: statistics that had to be computed from the recording because the run left none
    rebuilt: list[str]
    metrics: dict[str, Any]
    bands: list[Band]
    shifts: list[Shift]
    energy: EnergyBalance | None
    gates: list[GateResult]
    checks: list[Check]
    #: files written, by kind
    files: dict[str, Path] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return all(g.passed for g in self.gates) and all(c.passed for c in self.checks if c.counts)

    @property
    def exit_status(self) -> int:
        """0: all gates and checks passed; 1: one failed; 2: a gate asked for now names no metric of this run."""
        if any(g.unknown and g.source == COMMAND_LINE for g in self.gates):
            return 2
        return 0 if self.passed else 1

    def as_dict(self) -> dict[str, Any]:
        info = {k: v for k, v in self.run.info.items() if k != "stats"}
        return {
            "format": 1,
            "torqueloop": torqueloop.__version__,
            "passed": self.passed,
            "exit_status": self.exit_status,
            "run": info,
            "incomplete": self.run.incomplete,
            "degraded": degraded(self.stats),
            "gates": [g.as_dict() for g in self.gates],
            "checks": [c.__dict__ for c in self.checks],
            "shifts": [s.as_dict() for s in self.shifts],
            "energy": self.energy.as_dict() if self.energy else None,
            "metrics": self.metrics,
            "stats": self.stats,
            "rebuilt_from_recording": self.rebuilt,
        }


def analyse(run_dir: Path | str, gates: str | Iterable[str] | Mapping[str, str] | None = None) -> Report:
    """Read and judge a run. `gates` are added to those the run itself was started with (run.json)."""
    # Parsed first: a mistake in a gate must not wait for the reading of a long recording.
    extra = parse_gates(gates, COMMAND_LINE) if gates else []
    run = load_run(run_dir)
    own = parse_gates(run.info.get("gates") or [], "rig file")
    asked = [g for g in own if g.text not in {e.text for e in extra}] + extra
    stats, rebuilt = complete_stats(run)
    bands = gear_bands(run.signals, run.gears) if run.signals is not None else []
    found = shifts(bands, run.signals)
    metrics = build_metrics(run, stats, found)
    energy = energy_balance(stats.get("energy"), run.signals)
    metrics["energy_residual_rel"] = abs(energy.residual_rel) if energy else None
    metrics["energy_turned_over_J"] = energy.turned_over_J if energy else None
    # the gates of the run were looked at before it began: what one of them misses was not measured
    results = evaluate(asked, {**{name: None for g in own for name in g.names}, **metrics})
    return Report(run, stats, rebuilt, metrics, bands, found, energy, results, _checks(run, metrics, energy))


def _checks(run: Run, metrics: Mapping[str, Any], energy: EnergyBalance | None) -> list[Check]:
    own_end = run.ended and run.info.get("state") == "ended"
    found = [Check("the run ended by itself", own_end, "" if own_end else _end(run))]
    safe = run.stats.get("safe_state") or {}
    latched = bool(safe.get("latched"))
    text = f"latched at step {safe.get('step')}: {safe.get('cause')}" if latched else ""
    found.append(Check("no safe state", not latched, text))
    if run.signals is None:
        found.append(Check("signals recorded", False, "no signals were recorded"))
    else:
        rest = [line for line in run.incomplete if line.startswith("signals")]
        rest += _lost(run)
        found.append(Check("recording without gaps", not rest, "; ".join(rest)))
        finite = bool(metrics.get("finite"))
        found.append(Check("all recorded numbers finite", finite, "" if finite else "NaN or infinity recorded"))
    found += _bus_checks(run.stats.get("can") or {})
    if energy is not None:
        text = f"residual {energy.residual_rel:.2e} of the energy turned over"
        closes = abs(energy.residual_rel) <= ENERGY_RESIDUAL_MAX
        found.append(Check("energy balance closes", closes, text, counts=False))
    if run.info.get("clock") == "real" and metrics.get("missed") is not None:
        missed = int(metrics["missed"])
        text = f"{missed} of {metrics.get('ticks')} missed, simulated time slipped by {metrics.get('slip_s', 0):g} s"
        found.append(Check("every tick on time", not missed, text if missed else "", counts=False))
    degraded = run.stats.get("degraded") or []
    found.append(Check("real time not degraded", not degraded, "; ".join(map(str, degraded)), counts=False))
    return found


def _end(run: Run) -> str:
    """How a run ended that did not come to its end."""
    if not run.ended:
        return run.incomplete[0]
    planned = run.info.get("duration_s")
    ticks = run.stats.get("ticks")
    text = str(run.info.get("error") or run.info.get("state"))
    return text + (f" after {ticks} ticks of a run of {planned:g} s" if ticks and planned else "")


def _lost(run: Run) -> list[str]:
    """What the recorder could not write, per stream."""
    found = []
    for name, stream in (run.stats.get("recording") or {}).items():
        lost = int(stream.get("lost_records", 0))
        if stream.get("cause"):
            found.append(f"{name}: {stream['cause']}, {stream.get('discarded_bytes', 0)} bytes not recorded")
        if lost:
            found.append(f"{name}: {lost} records lost, the recorder was away for too long")
    return found


def _bus_checks(can: Mapping[str, Any]) -> list[Check]:
    """Others on the bus that send what is ours, and frames that were refused."""
    found = []
    gateway, native = can.get("gateway") or {}, can.get("native") or {}
    if gateway or native:
        # the tick's own socket counts with the other numbers of the bus
        stolen = int(can.get("stolen_ids", 0) if native else gateway.get("stolen_ids", 0))
        first = (gateway or native).get("stolen")
        text = f"{stolen} frames of another sender, first {first}: is a second rig on this bus?"
        found.append(Check("nobody else sends our CAN messages", not stolen, text if stolen else ""))
    if native:
        lost = {k: can.get(k) for k in ("rx_dropped", "tx_enobufs", "tx_again", "tx_down", "tx_failed") if can.get(k)}
        text = ", ".join(f"{k} {n}" for k, n in lost.items())
        found.append(Check("no frame lost between tick and bus", not lost, text, counts=False))
        worst = str(can.get("bus_state_worst", "active"))
        errors = ", ".join(f"{k} {n}" for k, n in (can.get("errors") or {}).items() if n)
        text = f"worst state {worst}; error frames: {errors or 'none'}" if worst != "active" or errors else ""
        found.append(Check("CAN bus without errors", not text, text, counts=False))
    if can.get("rx_bad") is not None:
        whys = ("format", "length", "crc", "repeat", "jump", "range")
        rx = can.get("rx") or {}
        text = ", ".join(f"{name} {why} {n[why]}" for name, n in rx.items() for why in whys if n.get(why))
        found.append(Check("no received frame refused", not can["rx_bad"], text, counts=False))
    return found


def write_report(
    run_dir: Path | str,
    gates: str | Iterable[str] | Mapping[str, str] | None = None,
    *,
    html: bool = True,
) -> Report:
    """Analyse the run and write report.json, junit.xml, report.html (and modes.csv when the run left none)."""
    from torqueloop.hil.report.html import write_html
    from torqueloop.hil.report.junit import write_junit

    report = analyse(run_dir, gates)
    folder = report.run.path
    if report.run.modes and report.run.modes_source != "modes.csv":
        report.files["modes"] = folder / "modes.csv"
        write_modes(report.files["modes"], report.run.modes)
    report.files["json"] = folder / "report.json"
    write_json_atomic(report.files["json"], report.as_dict())
    report.files["junit"] = folder / "junit.xml"
    write_junit(report, report.files["junit"])
    if html:
        report.files["html"] = folder / "report.html"
        write_html(report, report.files["html"])
    return report
