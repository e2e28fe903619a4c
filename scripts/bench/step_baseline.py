"""Instructions per step of the full 4HP22 car and per tick of its rig, against a stored baseline; at most 5 % off.

    python scripts/bench/step_baseline.py         compare; exit status 0: within 5 %, 1: not, 2: cannot be counted here
    python scripts/bench/step_baseline.py --update   write rt_tests/rt/instruction_baseline.json anew

Counted by callgrind (valgrind), so a busy machine changes nothing. Steps, generic and precompiled, of order 2 and 4:

    steady    400 steps in second gear, nothing changes; elements stick, the converter slips
    sliding   a stretch of the shift 1-2 in which clutches slide and nothing changes
    events    300 steps around the end of that shift, with its events
    run       25 s of full throttle through all four gears (precompiled only, first pass: with its factorisations)

and ticks of the desk rig on the virtual clock (frames decoded and checked, step, limits, frames encoded, records):

    tick.start    the first 4 s of the drive: engine started, lever to D, standing start
    tick.shift    the next 4 s, with the shift 1-2
    tick.start.monitors, tick.shift.monitors    of these the ones of the monitors of the gearbox

Numbers belong to a compiler, a Cython version, a processor family and a C library; the baseline says which. With others
the comparison is shown, but does not fail.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from bench_step import H, shift_inputs
from instruction_counts import CountingError, Job, instruction_counts, start_counting, under_callgrind
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components.files import load
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState
from torqueloop.cython_kernels.step import generic

ROOT = Path(__file__).resolve().parents[2]
BASELINE = ROOT / "rt_tests" / "rt" / "instruction_baseline.json"
#: largest deviation from the baseline
LIMIT = 0.05
RIG = ROOT / "configs" / "rigs" / "desk_4hp22.toml"
#: ticks of the drive, and of its first part
DRIVE, START = 8000, 4000
#: in the names of the functions that watch the gearbox (cython_kernels/tick/monitors.pyx)
MONITORS = "monitors_"
SECONDS, SHIFT, AROUND = 25.0, (6000, 8500), 300
Array = NDArray[np.float64]


# --- what is counted ------------------------------------------------------------------------------------------------


def stretches(model: KernelModel, inputs: Array) -> dict[str, tuple[int, int]]:
    """Steps (first, behind last) of the stretches, found in a run of this model: where events are and where none."""
    state = KernelState(model)
    state.warm()
    events = np.zeros(len(inputs) + 1, dtype=np.int64)
    sliding = np.zeros(len(inputs), dtype=np.int64)
    for k in range(len(inputs)):
        model.run(state, inputs[k : k + 1])
        events[k + 1] = state.counters["events"]
        sliding[k] = np.count_nonzero(np.abs(state.modes) == 1)
    inside = [k for k in range(*SHIFT) if events[k + 1] > events[k]]
    if len(inside) < 2:
        raise CountingError(f"no events in steps {SHIFT[0]}..{SHIFT[1]}: the stretches must be chosen anew")
    # the longest part of the shift between two events in which the most elements slide
    gaps = [(int(sliding[a + 1]), b - a - 1, a + 1) for a, b in zip(inside, inside[1:], strict=False) if b - a > 50]
    _, length, first = max(gaps)
    last = inside[-1]
    return {
        "steady": (8500, 8900),
        "sliding": (first, first + min(length, 400)),
        "events": (last - AROUND + 20, last + 20),
        "run": (0, len(inputs)),
    }


def step_jobs() -> dict[str, tuple[Job, int]]:
    """Jobs with their number of steps, by name."""
    compiled = compile_driveline(load(ROOT / "configs" / "powertrains" / "car_4hp22.toml"))
    inputs = shift_inputs(compiled, SECONDS)
    jobs: dict[str, tuple[Job, int]] = {}
    for order in (2, 4):
        arrays = replace(compiled.arrays, order=order)
        model = KernelModel(arrays, H, "zf_4hp22")
        for name, (first, behind) in stretches(model, inputs).items():
            state = KernelState(model)
            state.warm()
            model.run(state, inputs[:first])
            start, part = state.to_bytes(), np.ascontiguousarray(inputs[first:behind])
            for kind, kernel in (("precompiled", "zf_4hp22"), ("generic", "generic")):
                if name == "run" and kind == "generic":
                    continue  # long, and its parts are counted above
                passes = (1,) if name == "run" else (1, 2)
                job = Job(arrays, H, start, part, kernel, passes)
                jobs[f"step.order{order}.{kind}.{name}"] = (job, behind - first)
    return jobs


def count_steps(progress: Callable[[], None]) -> dict[str, float]:
    """Instructions per step. The second pass over a stretch counts: its lock patterns are known by then."""
    jobs = step_jobs()
    counted = instruction_counts([job for job, _ in jobs.values()], progress)
    totals = [[sum(profile.values()) for profile in each] for each in counted]
    return {
        name: (total[-1] - (total[0] if len(total) > 1 else 0.0)) / steps
        for (name, (_, steps)), total in zip(jobs.items(), totals, strict=True)
    }


def record_drive(out: Path) -> None:
    """A drive on the virtual clock with vehicle and control unit in this process; leaves its input records."""
    from torqueloop.hil.ecu.soft_tcu import soft_tcu
    from torqueloop.hil.rig.run.session import RunSpec, run_rig
    from torqueloop.hil.vehicle.model import VehicleModel
    from torqueloop.hil.vehicle.vehicle_tables import load_vehicle_config

    car = VehicleModel(load_vehicle_config(ROOT / "configs" / "vehicles" / "bmw_528i_e28.toml"))
    unit = soft_tcu(ROOT / "configs" / "tcu" / "soft_4hp22.toml", ROOT / "configs" / "can" / "tcu_4hp22.dbc")
    run_rig(RIG, RunSpec("virtual", DRIVE * 1e-3, out, vehicle=car.step, ecus={"tcu": unit}))


def tick_worker(run_dir: Path, switch: str) -> int:
    """Under callgrind: the recorded drive again, each time to another tick, in forked processes."""
    from torqueloop.hil.record.recording import read_stream
    from torqueloop.hil.rig.assemble.parts import build
    from torqueloop.hil.rig.resolve.plan import load_plan
    from torqueloop.hil.rig.run.replay import INPUT_HEAD

    parts = build(load_plan(RIG), DRIVE * 1e-3)
    chunks = read_stream(run_dir / "inputs").chunks
    rings = (parts.samples, parts.inputs, parts.bus_log, parts.modes)
    for number, end in enumerate((START, DRIVE)):
        child = os.fork()
        if child == 0:
            start_counting(switch)
            parts.state.warm()
            parts.rig.begin(INPUT_HEAD.unpack_from(chunks[0])[5])
            for chunk in chunks:
                at = 0
                while at < len(chunk) and parts.rig.tick < end:
                    at = parts.rig.replay(chunk, at)
                    if parts.rig.tick % 500 == 0:
                        for ring in rings:
                            while ring.drain():
                                pass
                        parts.buses[0].tx_ring.pop_all()
            os._exit(0 if parts.rig.tick == end else 1)
        if os.waitpid(child, 0)[1] != 0:
            return 1
        print(f"{number} {child}", flush=True)
    return 0


def count_ticks(progress: Callable[[], None]) -> dict[str, float]:
    """Instructions per tick of the rig."""
    with tempfile.TemporaryDirectory() as folder:
        record_drive(Path(folder) / "run")
        command = [str(Path(__file__).resolve()), "--tick-worker", str(Path(folder) / "run")]
        profiles = under_callgrind(command, "*tick_rig_tick", Path(folder), progress)
    if len(profiles) != 2:
        raise CountingError(f"{len(profiles)} of 2 profiles of the rig were written")
    start, whole = (sum(p.values()) for p in profiles)
    watched, all_watched = (sum(n for name, n in p.items() if MONITORS in name) for p in profiles)
    return {
        "tick.start": start / START,
        "tick.shift": (whole - start) / (DRIVE - START),
        "tick.start.monitors": watched / START,
        "tick.shift.monitors": (all_watched - watched) / (DRIVE - START),
    }


# --- baseline -------------------------------------------------------------------------------------------------------


def made_with() -> dict[str, str]:
    """What the numbers depend on besides the sources."""
    import Cython

    compiler = re.search(rb"GCC: \([^)]*\) [\d.]+|clang version [\d.]+", Path(generic.__file__).read_bytes())
    cpu = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return {
        "machine": platform.machine(),
        # the mathematical library chooses its code by these
        "cpu": " ".join(flag for flag in ("avx2", "fma") if re.search(rf"^flags.*\b{flag}\b", cpu, re.MULTILINE)),
        "compiler": compiler.group(0).decode() if compiler else "unknown",
        "cython": Cython.__version__,
        "libc": " ".join(platform.libc_ver()),
    }


def count(progress: Callable[[], None] = lambda: None) -> dict[str, float]:
    """Everything, by name. Raises CountingError where it cannot be counted."""
    return {name: round(value, 1) for name, value in {**count_steps(progress), **count_ticks(progress)}.items()}


def compare(baseline: dict[str, Any], counted: dict[str, float], here: dict[str, str]) -> dict[str, Any]:
    """Deviations, which of them are beyond LIMIT, and whether the two are comparable at all."""
    stored: dict[str, float] = baseline["instructions"]
    other = [f"{k} {baseline['made_with'].get(k)!r}, here {v!r}" for k, v in here.items()
             if baseline["made_with"].get(k) != v]  # fmt: skip
    rows = {
        name: {
            "baseline": stored.get(name),
            "counted": counted.get(name),
            "deviation": _deviation(stored, counted, name),
        }
        for name in dict.fromkeys([*stored, *counted])
    }
    off = [n for n, row in rows.items() if row["deviation"] is None or abs(row["deviation"]) > LIMIT]
    return {"rows": rows, "off": off, "comparable": not other, "different": other, "limit": LIMIT,
            "passed": not off or bool(other)}  # fmt: skip


def _deviation(stored: dict[str, float], counted: dict[str, float], name: str) -> float | None:
    return counted[name] / stored[name] - 1.0 if name in stored and name in counted else None


def show(result: dict[str, Any], console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("instructions", "baseline", "counted", "deviation"):
        table.add_column(title, justify="left" if title == "instructions" else "right")
    for name, row in result["rows"].items():
        texts = ["-" if row[k] is None else f"{row[k]:.0f}" for k in ("baseline", "counted")]
        deviation = "-" if row["deviation"] is None else f"{row['deviation']:+.1%}"
        table.add_row(name, *texts, f"[bold red]{deviation}[/]" if name in result["off"] else deviation)
    console.print(table)
    for text in result["different"]:
        console.print(f"not gated: the baseline was made with {text}", highlight=False, soft_wrap=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the baseline anew")
    parser.add_argument("--tick-worker", nargs=2, metavar=("RUN", "SWITCH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tick_worker is not None:
        return tick_worker(Path(options.tick_worker[0]), options.tick_worker[1])
    try:
        counted = count()
    except CountingError as error:
        print(f"instructions cannot be counted here: {error}", file=sys.stderr)
        return 2
    here = made_with()
    if options.update:
        BASELINE.write_text(json.dumps({"made_with": here, "instructions": counted}, indent=1) + "\n", encoding="utf-8")
    result = compare(json.loads(BASELINE.read_text(encoding="utf-8")), counted, here)
    show(result, Console(soft_wrap=False))
    if not result["passed"]:
        print(
            f"{len(result['off'])} counts are more than {LIMIT:.0%} off the baseline; if this is meant: --update",
            file=sys.stderr,
        )
    return 0 if result["passed"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
