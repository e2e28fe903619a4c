"""Latency report of this machine for CI: JSON, JUnit and HTML; what is exact is a gate, wall-clock times are shown.

    python scripts/bench/latency_report.py [--out DIR] [--vm build/vm-results/measure.json] [--seconds 10]

Parts; one that cannot be had here is shown as skipped, with its reason:

    virtual        12 s of the desk rig on the virtual clock and their replay. Gates: no missed tick, nothing lost,
                   the replay equal to the last bit
    real           the desk rig on the real clock with control unit and vehicle in their processes. Gates: every grid
                   point accounted for, nothing lost; lateness and compute time are shown
    instructions   per step and per tick, counted by callgrind. Gate: within 5 % of the baseline (step_baseline.py)
    vm             what scripts/vm_measure.py left in --vm: PREEMPT_RT and SocketCAN, time counts instructions. Gates:
                   no missed tick, everything was measured; latencies and ratios are shown

Exit status 0: all gates passed; 1: one failed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import step_baseline
from endurance import write_rig
from instruction_counts import CountingError

from torqueloop.hil.can.multicast import multicast_works
from torqueloop.hil.ecu.soft_tcu import soft_tcu
from torqueloop.hil.report.junit import Case, Suite, write_suites
from torqueloop.hil.report.latency_plots import timing
from torqueloop.hil.report.pages import render
from torqueloop.hil.results.files import plain, read_run_info, write_json_atomic
from torqueloop.hil.results.run import RunStats
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig
from torqueloop.hil.vehicle.model import VehicleModel
from torqueloop.hil.vehicle.vehicle_tables import load_vehicle_config
from torqueloop.hil.views.figure import Figure, Figures

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
VIRTUAL_S = 12.0
#: compared in the VM: name, words, whose, against whose, which value
RATIOS = (
    ("wake_p999", "wake-up p99.9 against cyclictest", "rig.wake_lateness_us", "cyclictest", "p999"),
    ("reaction_p50", "reaction p50, socket and codec against a C echo", "reaction_socket", "reaction_echo", "p50_ns"),
    ("reaction_p99", "reaction p99, socket and codec against a C echo", "reaction_socket", "reaction_echo", "p99_ns"),
)
#: percentiles shown of a time
SHOWN = ("p50", "p90", "p99", "p999", "max", "mean")


@dataclass
class Gate:
    """Something exact that must hold."""

    name: str
    passed: bool
    text: str


@dataclass
class Part:
    """One part of the report."""

    name: str
    title: str
    #: why it could not be had here; empty: it was
    skipped: str = ""
    gates: list[Gate] = field(default_factory=list)
    #: tables: title -> rows of cells, the first one is the head
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    #: everything else that was found, for the JSON
    values: dict[str, Any] = field(default_factory=dict)
    drawn: list[Figure] = field(default_factory=list)

    @property
    def figures(self) -> list[str]:
        """Their names."""
        return [figure.name for figure in self.drawn]

    def gate(self, name: str, passed: bool, text: object) -> None:
        self.gates.append(Gate(name, bool(passed), str(text)))


# --- parts ----------------------------------------------------------------------------------------------------------


def recorded(part: Part, stats: RunStats) -> None:
    """The gate that no record was lost and no byte discarded, of no stream."""
    part.gate("records lost", stats.recorded_all, stats.not_recorded or "none")


def virtual(folder: Path) -> Part:
    """The same tick without a clock: everything about it is exact."""
    part = Part("virtual", "Virtual clock")
    car = VehicleModel(load_vehicle_config(CONFIGS / "vehicles" / "bmw_528i_e28.toml"))
    unit = soft_tcu(CONFIGS / "tcu" / "soft_4hp22.toml", CONFIGS / "can" / "tcu_4hp22.dbc")
    desk = CONFIGS / "rigs" / "desk_4hp22.toml"
    out = folder / "virtual"
    result = run_rig(desk, RunSpec("virtual", VIRTUAL_S, out, vehicle=car.step, ecus={"tcu": unit}))
    stats = result.stats
    again = replay(out)
    part.gate(
        "ticks done", stats.clock.ticks == round(VIRTUAL_S * 1e3), f"{stats.clock.ticks} of {round(VIRTUAL_S * 1e3)}"
    )
    part.gate("missed ticks in virtual time", stats.clock.missed == 0, stats.clock.missed)
    recorded(part, stats)
    part.gate("replay equal bit by bit", again.passed, again.difference or f"hash {again.hash_replayed}")
    part.values = {"ticks": stats.clock.ticks, "hash": stats.hash, "compute_us": stats.clock.compute_us}
    part.tables["Compute time of a tick [µs]"] = time_rows(plain({"compute": stats.clock.compute_us}))
    return part


def real(folder: Path, seconds: float, port: int) -> Part:
    """The desk rig as it is, on whatever this machine is."""
    part = Part("real", "Real clock")
    works, reason = multicast_works()
    if not works:
        part.skipped = f"no software bus between processes: {reason}"
        return part
    here = folder / "rig"
    here.mkdir()
    result = run_rig(write_rig(here, seconds, port), RunSpec("real", seconds, folder / "real"))
    stats, clock = result.stats, result.stats.clock
    info = read_run_info(folder / "real")
    assert info is not None and clock.dropped is not None and clock.late_started is not None
    safe = stats.safe_state
    part.gate("ended by itself", result.state == "ended" and not safe.latched, safe.cause or result.state)
    text = f"{clock.missed} = {clock.late_started} late + {clock.dropped} dropped"
    part.gate("missed ticks accounted for", clock.missed == clock.late_started + clock.dropped, text)
    points = round(seconds * 1e3)
    text = f"{clock.ticks} + {clock.dropped} of {points}"
    part.gate("ticks and drops make the grid", clock.ticks + clock.dropped >= points, text)
    recorded(part, stats)
    shown = ("missed", "dropped", "overruns", "lost_time_s", "minor_faults", "major_faults", "involuntary_switches")
    counts = {key: getattr(clock, key) for key in ("ticks", *shown)}
    part.values = {
        "wake_lateness_us": clock.wake_lateness_us,
        "compute_us": clock.compute_us,
        "phase_us": clock.phase_us,
        "realtime": info.realtime,
        "degraded": stats.degraded,
        **counts,
    }
    times = {"wake lateness": clock.wake_lateness_us, "compute": clock.compute_us, **clock.phase_us}
    part.tables["Times [µs], shown, not gated"] = time_rows(plain(times))
    part.tables["Counts, shown, not gated"] = [["", ""], *([key, str(value)] for key, value in counts.items())]
    measures = [[m.of, m.name, "yes" if m.ok else "no", m.in_force] for m in info.realtime]
    part.tables["Real-time set-up"] = [["of", "measure", "took effect", "in force"], *measures]
    for title, name, time in (
        ("Wake lateness", "wake_lateness_us", clock.wake_lateness_us),
        ("Compute time", "compute_us", clock.compute_us),
    ):
        figure = timing(title, time, 1e3, name) if time is not None else None
        part.drawn += [figure] if figure else []
    return part


def instructions() -> Part:
    """Instructions per step and tick against the baseline."""
    part = Part("instructions", "Instructions per step and tick")
    try:
        counted = step_baseline.count()
    except CountingError as error:
        part.skipped = str(error)
        return part
    stored = json.loads(step_baseline.BASELINE.read_text(encoding="utf-8"))
    result = step_baseline.compare(stored, counted, step_baseline.made_with())
    part.values = result
    if not result["comparable"]:
        part.skipped = "not gated, the baseline was made elsewhere: " + "; ".join(result["different"])
    rows = [["", "baseline", "counted", "deviation"]]
    for name, row in result["rows"].items():
        deviation = row["deviation"]
        text = "missing" if deviation is None else f"{deviation:+.2%}"
        rows.append([name, f"{row['baseline'] or 0:.0f}", f"{row['counted'] or 0:.0f}", text])
        if result["comparable"]:
            part.gate(f"{name} within {result['limit']:.0%} of its baseline", name not in result["off"], text)
    part.tables["Instructions"] = rows
    return part


#: what scripts/vm_measure.py measures when nothing is left out
VM_STAGES = ("rig", "cyclictest", "reaction_echo", "reaction_socket", "reaction_full", "rates", "clients")


def vm(path: Path) -> Part:
    """What the measurement in the virtual machine left; its time counts instructions: counts are exact there."""
    part = Part("vm", "PREEMPT_RT in a virtual machine, time counted in instructions")
    if not path.is_file():
        part.skipped = f"{path} is not there: scripts/vm_measure.py makes it"
        return part
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        part.values = dict(found)
    except (OSError, ValueError, TypeError) as error:
        part.gate("results of the VM can be read", False, f"{path}: {error}")
        return part
    absent = [name for name in VM_STAGES if not isinstance(found.get(name), dict)]
    part.gate("every stage was measured", not absent, f"missing: {', '.join(absent)}" if absent else "all")
    general: list[list[str]] = [["", ""]]
    for name, values in found.items():
        if not isinstance(values, dict):
            general.append([name, short(values)])
            continue
        if "error" in values:
            part.gate(f"{name} was measured", False, values["error"])
        # a stage may have a case of this name
        if isinstance(values.get("missed"), int):
            of = f" of {values['ticks']}" if "ticks" in values else ""
            part.gate(f"{name}: missed ticks", values["missed"] == 0, f"{values['missed']}{of}")
        times = {k: v for k, v in values.items() if isinstance(v, dict) and "p50" in v}
        times |= {name: values} if "p50" in values else {}
        plain = [[k, short(v)] for k, v in values.items() if k not in times and k != "hist" and not isinstance(v, dict)]
        said = [[k, v["says"] or "nothing"] for k, v in values.items() if isinstance(v, dict) and "says" in v]
        part.tables[name] = [["", ""], *plain, *said]
        if times:
            part.tables[f"{name} [µs]"] = time_rows(times)
    part.tables = {"Machine": general, **part.tables}
    for name, text, over, under, key in RATIOS:
        try:
            ratio = _at(found, over)[key] / _at(found, under)[key]
        except (KeyError, TypeError, ZeroDivisionError):
            continue
        part.tables.setdefault("Compared", [["", "ratio"]]).append([text, f"{ratio:.2f}"])
        part.values.setdefault("ratios", {})[name] = ratio
    return part


def _at(found: dict[str, Any], place: str) -> Any:
    """found["a"]["b"] for "a.b"."""
    for key in place.split("."):
        found = found[key]
    return found


def short(value: Any) -> str:
    """A value in a cell."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 300 else f"{text[:300]} ..."


def time_rows(times: dict[str, Any]) -> list[list[str]]:
    """Head and a row of percentiles for each time."""
    rows = [["", "count", *SHOWN]]
    for name, summary in times.items():
        cells = (summary.get(key) for key in SHOWN)
        rows.append([name, str(summary.get("count")), *("-" if v is None else f"{v:.1f}" for v in cells)])
    return rows


# --- output ---------------------------------------------------------------------------------------------------------


def passed(parts: list[Part]) -> bool:
    return all(gate.passed for part in parts for gate in part.gates)


def machine() -> dict[str, Any]:
    """Where this was measured."""
    return {
        "system": f"{platform.system()} {platform.release()} {platform.version()}",
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "load": [round(x, 2) for x in os.getloadavg()],
        "python": platform.python_version(),
    }


def write_json(parts: list[Part], path: Path) -> None:
    shown = [{k: v for k, v in plain(part).items() if k not in ("drawn", "tables")} for part in parts]
    write_json_atomic(path, {"passed": passed(parts), "machine": machine(), "parts": shown})


def write_junit(parts: list[Part], path: Path) -> None:
    """A suite for each part, a case for each gate; a part that could not be had is a skipped case."""
    suites = [
        Suite(
            part.name,
            [
                *(Case(gate.name, None if gate.passed else gate.text) for gate in part.gates),
                *([Case(part.title, part.skipped, skipped=True)] if part.skipped else []),
            ],
        )
        for part in parts
    ]
    write_suites(path, "torqueloop latency", suites)


def write_html(parts: list[Part], path: Path) -> None:
    where = ", ".join(f"{k} {v}" for k, v in machine().items())
    figures = Figures()
    for part in parts:
        for figure in part.drawn:
            figures.add(figure)
    text = render("parts_page.html", "Latency report", passed(parts), figures, shown=parts, where=where)
    path.write_text(text, encoding="utf-8")


def write_all(parts: list[Part], out: Path) -> None:
    """report.json, junit.xml and index.html."""
    out.mkdir(parents=True, exist_ok=True)
    write_json(parts, out / "report.json")
    write_junit(parts, out / "junit.xml")
    write_html(parts, out / "index.html")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "latency-report")
    parser.add_argument(
        "--vm", type=Path, default=ROOT / "build" / "vm-results" / "measure.json", help="results of the VM"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="length of the run on the real clock (default 10)")
    parser.add_argument("--port", type=int, default=43179, help="UDP port of the software bus")
    options = parser.parse_args()
    parts = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        steps: list[Callable[[], Part]] = [
            lambda: virtual(folder),
            lambda: real(folder, options.seconds, options.port),
            instructions,
            lambda: vm(options.vm),
        ]
        for step in steps:
            part = step()
            parts.append(part)
            print(
                f"{part.name}: {len(part.gates)} gates" + (f", skipped: {part.skipped}" if part.skipped else ""),
                flush=True,
            )
    write_all(parts, options.out)
    for part in parts:
        for gate in part.gates:
            if not gate.passed:
                print(f"failed: {part.name}: {gate.name}: {gate.text}", file=sys.stderr)
    print(f"{options.out / 'index.html'}: {'passed' if passed(parts) else 'failed'}")
    return 0 if passed(parts) else 1


if __name__ == "__main__":
    raise SystemExit(main())
