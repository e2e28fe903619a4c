"""Latency report of this machine for CI: JSON, JUnit and HTML; what is exact is a gate, wall-clock times are shown.

    python scripts/latency_report.py [--out build/latency-report] [--vm build/vm-results/measure.json] [--seconds 10]

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
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import step_baseline
from endurance import write_rig
from instruction_counts import CountingError

from torqueloop.hil.can.multicast import multicast_works
from torqueloop.hil.report.latency_plots import timing
from torqueloop.hil.report.page import STYLE
from torqueloop.hil.report.style import available, css_variables
from torqueloop.hil.rig.replay import replay
from torqueloop.hil.rig.session import run_rig
from torqueloop.hil.tcu.config import load_tcu_config
from torqueloop.hil.tcu.soft_tcu import SoftTcu
from torqueloop.hil.vehicle.config import load_vehicle_config
from torqueloop.hil.vehicle.model import VehicleModel

ROOT = Path(__file__).resolve().parent.parent
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
    figures: list[str] = field(default_factory=list)

    def gate(self, name: str, passed: bool, text: object) -> None:
        self.gates.append(Gate(name, bool(passed), str(text)))


# --- parts ----------------------------------------------------------------------------------------------------------


def lost_records(stats: dict[str, Any]) -> int:
    """Records that found their ring full, of all streams."""
    return sum(int(stream.get("lost", 0)) for stream in stats["recording"].values())


def virtual(folder: Path) -> Part:
    """The same tick without a clock: everything about it is exact."""
    part = Part("virtual", "Virtual clock")
    car = VehicleModel(load_vehicle_config(CONFIGS / "vehicles" / "bmw_528i_e28.toml"))
    unit = SoftTcu(load_tcu_config(CONFIGS / "tcu" / "soft_4hp22.toml"))
    desk = CONFIGS / "rigs" / "desk_4hp22.toml"
    out = folder / "virtual"
    result = run_rig(desk, "virtual", VIRTUAL_S, out, progress=False, html=False, vehicle=car.step, tcu=unit)
    stats = result.stats
    again = replay(out)
    part.gate("ticks done", stats["ticks"] == round(VIRTUAL_S * 1e3), f"{stats['ticks']} of {round(VIRTUAL_S * 1e3)}")
    part.gate("missed ticks in virtual time", stats["missed"] == 0, stats["missed"])
    part.gate("records lost", lost_records(stats) == 0, lost_records(stats))
    part.gate("replay equal bit by bit", again.passed, again.difference or f"hash {again.hash_replayed}")
    part.values = {"ticks": stats["ticks"], "hash": stats["hash"], "compute_us": stats["compute_us"]}
    part.tables["Compute time of a tick [µs]"] = time_rows({"compute": stats["compute_us"]})
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
    result = run_rig(
        write_rig(here, seconds, port), "real", seconds, folder / "real", progress=False, html=False
    )  # fmt: skip
    s, info = result.stats, json.loads((folder / "real" / "run.json").read_text(encoding="utf-8"))
    part.gate(
        "ended by itself",
        result.state == "ended" and not s["safe_state"]["latched"],
        s["safe_state"]["cause"] or result.state,
    )
    text = f"{s['missed']} = {s['late_started']} late + {s['dropped']} dropped"
    part.gate("missed ticks accounted for", s["missed"] == s["late_started"] + s["dropped"], text)
    part.gate(
        "ticks and drops make the grid",
        s["ticks"] + s["dropped"] >= round(seconds * 1e3),
        f"{s['ticks']} + {s['dropped']}",
    )
    part.gate("records lost", lost_records(s) == 0, lost_records(s))
    shown = ("missed", "dropped", "overruns", "slip_s", "minor_faults", "major_faults", "involuntary_switches")
    part.values = {
        "wake_lateness_us": s["wake_lateness_us"],
        "compute_us": s["compute_us"],
        "phase_us": s.get("phase_us"),
        "realtime": info["realtime"],
        "degraded": s["degraded"],
        **{key: s.get(key) for key in ("ticks", *shown)},
    }
    part.tables["Times [µs], shown, not gated"] = time_rows(
        {"wake lateness": s["wake_lateness_us"], "compute": s["compute_us"], **(s.get("phase_us") or {})}
    )
    part.tables["Counts, shown, not gated"] = [["", ""], *([key, str(s.get(key))] for key in ("ticks", *shown))]
    measures = [[m["of"], m["name"], "yes" if m["ok"] else "no", m["in_force"]] for m in info["realtime"]]
    part.tables["Real-time set-up"] = [["of", "measure", "took effect", "in force"], *measures]
    for title, key in (("Wake lateness", "wake_lateness_us"), ("Compute time", "compute_us")):
        figure = timing(title, s[key], 1e3, key) if available() else None
        part.figures += [figure] if figure else []
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
    general: list[list[str]] = [["", ""]]
    for name, values in found.items():
        if not isinstance(values, dict):
            general.append([name, short(values)])
            continue
        if "error" in values:
            part.gate(f"{name} was measured", False, values["error"])
        if "missed" in values:
            of = f" of {values['ticks']}" if "ticks" in values else ""
            part.gate(f"{name}: missed ticks", values["missed"] == 0, f"{values['missed']}{of}")
        times = {k: v for k, v in values.items() if isinstance(v, dict) and "p50" in v}
        times |= {name: values} if "p50" in values else {}
        plain = [[k, short(v)] for k, v in values.items() if k not in times and k != "hist" and not isinstance(v, dict)]
        part.tables[name] = [["", ""], *plain]
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
    plain = [{k: v for k, v in asdict(part).items() if k not in ("figures", "tables")} for part in parts]
    made = {"passed": passed(parts), "machine": machine(), "parts": plain}
    path.write_text(json.dumps(made, indent=1, default=str) + "\n", encoding="utf-8")


def write_junit(parts: list[Part], path: Path) -> None:
    """A suite for each part, a case for each gate; a part that could not be had is a skipped case."""
    root = ElementTree.Element("testsuites", name="torqueloop latency")
    for part in parts:
        failures = sum(not gate.passed for gate in part.gates)
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=part.name,
            tests=str(len(part.gates) + bool(part.skipped)),
            failures=str(failures),
            skipped=str(int(bool(part.skipped))),
            errors="0",
        )
        for gate in part.gates:
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"torqueloop.latency.{part.name}", name=gate.name
            )
            if not gate.passed:
                ElementTree.SubElement(case, "failure", message=gate.text)
        if part.skipped:
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"torqueloop.latency.{part.name}", name=part.title
            )
            ElementTree.SubElement(case, "skipped", message=part.skipped)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def table_html(title: str, rows: list[list[str]]) -> str:
    head, *body = rows
    cells = "".join(f"<th>{escape(text)}</th>" for text in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in body)
    table = f"<table class='numbers'><tr>{cells}</tr>{lines}</table>"
    return f"<p class='sub'>{escape(title)}</p><div class='scroll'>{table}</div>"


def part_html(part: Part) -> str:
    rows = "".join(
        f"<tr><td><span class='{'ok' if g.passed else 'bad'}'>{'passed' if g.passed else 'failed'}</span></td>"
        f"<td>{escape(g.name)}</td><td>{escape(g.text)}</td></tr>"
        for g in part.gates
    )
    gates = f"<table>{rows}</table>" if rows else ""
    skipped = f"<p><span class='warn'>skipped</span> {escape(part.skipped)}</p>" if part.skipped else ""
    tables = "".join(table_html(title, body) for title, body in part.tables.items())
    figures = "".join(f"<figure>{figure}</figure>" for figure in part.figures)
    figures = f"<div class='pair'>{figures}</div>" if figures else ""
    return f"<section id='{part.name}'><h2>{escape(part.title)}</h2>{skipped}{gates}{figures}{tables}</section>"


def write_html(parts: list[Part], path: Path) -> None:
    good = passed(parts)
    word = "passed" if good else "failed"
    where = ", ".join(f"{k} {v}" for k, v in machine().items())
    path.write_text(
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>latency report</title>"
        f"<style>:root{{{css_variables(0)}color-scheme:light}}"
        f"@media (prefers-color-scheme:dark){{:root{{{css_variables(1)}color-scheme:dark}}}}{STYLE}</style></head>"
        f"<body><main><header><div><h1>Latency report <span class='verdict {word}'>{word}</span></h1>"
        f"<p>{escape(where)}</p></div></header>{''.join(part_html(part) for part in parts)}</main></body></html>\n",
        encoding="utf-8",
    )


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
