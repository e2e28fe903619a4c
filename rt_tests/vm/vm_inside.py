"""The measurements, inside the machine; started by scripts/vm_measure.py.

vm_inside.py RESULT_FILE FOLDER_OF_C_PROGRAMS [--seconds S] [--only NAME,...]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "judges"))

import numpy as np
from stages.buses import RIGS, interfaces, restbus
from stages.detectors import detectors
from stages.electrical import io_drive, io_faults
from stages.everything import everything
from stages.host import setup_host
from stages.inside import CONFIGS, program, run, say, subprocess, tcu_process, tcu_stats
from stages.rigs import PING_ID, PONG_ID, write_rig
from stages.subscribers import telemetry

from torqueloop.cython_kernels.probes.reaction import answer_frames
from torqueloop.hil.can.database import bus_id
from torqueloop.hil.can.raw_socket import open_raw
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.results.run import RunStats
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.runs.recorded_run import read_run

WORK = Path("/run/torqueloop")
PRIORITY = 80
#: ticks that are looked at by themselves, as the beginning of a run
START_TICKS = 200
#: runs for how late the rig wakes, beside the long one [s]
AGAIN_S = 10.0
#: highest first: the first rate without a missed tick is the result
RATES_HZ = (16_000, 12_500, 10_000, 8_000, 5_000, 4_000, 2_000, 1_000)


def _kept(stats: RunStats) -> dict[str, Any]:
    names = (
        "ticks",
        "missed",
        "late_started",
        "dropped",
        "overruns",
        "lost_time_s",
        "margin_min_us",
        "minor_faults",
        "major_faults",
    )
    kept: dict[str, Any] = {name: getattr(stats.clock, name) for name in names}
    kept |= {"degraded": stats.degraded, "safe_state": asdict(stats.safe_state)}
    for name in ("wake_lateness_us", "compute_us"):
        kept[name] = {k: v for k, v in asdict(getattr(stats.clock, name)).items() if k != "hist"}
    bus = stats.buses["powertrain"]
    kept["can"] = {n: getattr(bus, n) for n in ("rx_frames", "rx_bad", "tx_frames")}
    kept["can"] |= {n: getattr(bus.native, n) for n in ("tx_lost", "rx_dropped", "bus_state")}
    return kept


def rig_60_s(seconds: float) -> dict[str, Any]:
    """The car at 1 kHz, the control unit in another process over vcan0.

    The unit's 5 ms begin when its process does, and no clock of the machine drifts against another: where they lie in
    the millisecond of the rig is chance, but then the same for a whole run. Where its timer meets the tick's, every
    fifth tick wakes later. So there are three runs for how late it wakes, each with a unit started anew.
    """
    folder = WORK / "rig"
    rig = write_rig(folder, CONFIGS)
    with tcu_process(folder):
        stats = run(rig, seconds, folder / "out")
    tcu = tcu_stats(folder)
    found = {**_kept(stats), "shifts": [s["shift"] for s in tcu["shifts"]], "tcu_lateness": tcu["lateness"]}
    found["start_p99_us"] = start_p99(folder / "out")
    wakes = [stats.clock.wake_lateness_us.p999]
    for k in range(2):
        again = WORK / f"rig_again_{k}"
        rig = write_rig(again, CONFIGS)
        with tcu_process(again):
            wakes.append(run(rig, AGAIN_S, again / "out").clock.wake_lateness_us.p999)
    return {**found, "wake_p999_us": wakes}


def start_p99(out: Path) -> dict[str, tuple[float, float]]:
    """Of lateness and computing: p99 of the first START_TICKS ticks and of the others [us]."""
    recorded = read_signals(out)
    return {
        name: (float(np.quantile(us[:START_TICKS], 0.99)), float(np.quantile(us[START_TICKS:], 0.99)))
        for name, us in (("wake_lateness", recorded.wake_lateness_us), ("compute", recorded.compute_us))
    }


def mounts(seconds: float) -> dict[str, Any]:
    """The same with engine and gearbox on three mounts, and with the block held: what the body costs the loop."""
    found: dict[str, Any] = {}
    for block, powertrain in (("mounted", "car_4hp22_mounts"), ("held", "car_4hp22")):
        folder = WORK / f"mounts_{block}"
        rig = write_rig(folder, CONFIGS, powertrain=powertrain)
        with tcu_process(folder):
            stats = run(rig, seconds, folder / "out")
        found[block] = {**_kept(stats), "shifts": [s["shift"] for s in tcu_stats(folder)["shifts"]]}
        if block == "mounted":
            recorded = read_run(folder / "out")
            # the angle about the crankshaft and the largest force of a mount, of every tick
            roll = np.degrees(2.0 * np.arctan2(recorded["block.q1"], recorded["block.q0"]))
            force = max(float(np.abs(recorded[f"{name}.f_z"]).max()) for name in ("left", "right"))
            found[block] |= {"roll_deg": [float(roll.min()), float(roll.max())], "f_z_N": force}
        shutil.rmtree(folder / "out")
    return found


def cyclictest(seconds: float) -> dict[str, Any]:
    """cyclictest at the rig's priority and period; beside it the same rig, lower, and its control unit."""
    folder = WORK / "cyclic"
    rig = write_rig(folder, CONFIGS, priority=PRIORITY - 10)
    text: list[str] = []
    loops = round(1000 * seconds)

    def measure() -> None:
        text.append(program("cyclictest", "-q", "-m", "-N", "-p", PRIORITY, "-i", 1000, "-l", loops, "-h", 100_000))

    with tcu_process(folder):
        beside = run(rig, seconds + 2.0, folder / "out", measure)
    counts = {}
    for line in text[0].splitlines():
        words = line.split()
        if len(words) == 2 and not line.startswith("#") and int(words[1]):
            counts[int(words[0])] = int(words[1])
    overflow = [line for line in text[0].splitlines() if "Overflows" in line]
    total = sum(counts.values())

    def quantile(q: float) -> float:
        at = 0
        for ns, n in sorted(counts.items()):
            at += n
            if at >= q * total:
                return ns / 1e3
        return float("nan")

    found = {f"p{name}": quantile(q) for name, q in (("50", 0.5), ("99", 0.99), ("999", 0.999))}
    ran = beside.clock.ticks
    return {"count": total, **found, "max": max(counts) / 1e3, "overflows": overflow, "load_ticks": ran}


def _probe(programs: Path, count: int, pause_us: int) -> dict[str, Any]:
    words = (programs / "can_probe", "vcan0", f"{PING_ID:X}", f"{PONG_ID:X}", count, PRIORITY - 1, pause_us)
    return dict(json.loads(program(*words)))


def reaction_echo(programs: Path, count: int) -> dict[str, Any]:
    """A C program that reads and writes."""
    words = (programs / "can_echo", "vcan0", f"{PING_ID:X}", f"{PONG_ID:X}", count, PRIORITY)
    with subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE, text=True) as echo:
        assert echo.stdout is not None and echo.stdout.readline().strip() == "ready"
        return _probe(programs, count, 1000)


def reaction_socket(programs: Path, count: int) -> dict[str, Any]:
    """The rig's port and codec, answering at once."""
    rig = write_rig(WORK / "socket", CONFIGS)
    plan = load_plan(rig)
    parts = build(plan, 1.0)
    bus, database = parts.buses[0], plan.buses[0].database
    assert bus.port is not None
    received = [bus_id(m) for m in database.rx_messages]
    with ExitStack() as stack:
        raw = open_raw("vcan0", received, database.own_ids)
        stack.callback(raw.close)
        stack.callback(bus.port.close)
        bus.port.open(raw.sock.fileno(), raw.fd_frames)
        table = bytearray(8 * len(plan.table))
        slots = [plan.table.slot(n) for n in ("Ping.ping_value", "Pong.pong_value")]
        message = bus.tx.tables.index("Pong")
        sent: list[int] = []

        def answer() -> None:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
            values = memoryview(table).cast("d")
            sent.append(answer_frames(bus.port, bus.rx, bus.tx, values, message, *slots, count, 5000))

        thread = threading.Thread(target=answer)
        thread.start()
        result = _probe(programs, count, 1000)
        thread.join()
    return {**result, "sent": sent[0]}


def reaction_full(programs: Path, count: int) -> dict[str, Any]:
    """Through whole ticks of the running rig."""
    folder = WORK / "full"
    rig = write_rig(folder, CONFIGS)
    result: list[dict[str, Any]] = []
    # a request takes up to 2 pauses and a tick
    seconds = 1.0 + count * 0.0045
    with tcu_process(folder):
        stats = run(rig, seconds, folder / "out", lambda: result.append(_probe(programs, count, 1500)))
    return {**result[0], "missed": stats.clock.missed, "tick_us": 1000.0}


def rates(seconds: float) -> dict[str, Any]:
    """The highest rate at which no tick is missed."""
    tried = []
    with tcu_process_once():
        for rate in RATES_HZ:
            folder = WORK / f"rate{rate}"
            # 2 ms: a multiple of the tick at each of the rates
            rig = write_rig(folder, CONFIGS, tick_s=1.0 / rate, record='["engine.w"]', pong_ms=2)
            stats = run(rig, seconds, folder / "out")
            tried.append({"rate_Hz": rate, **_kept(stats)})
            say(f"  {rate} Hz: missed {stats.clock.missed} of {stats.clock.ticks}")
            if stats.clock.missed == 0 and not stats.safe_state.latched:
                break
    passed = [t["rate_Hz"] for t in tried if t["missed"] == 0]
    return {"highest_Hz": passed[0] if passed else 0, "tried": tried}


def tcu_process_once() -> Any:
    (WORK / "rates").mkdir(parents=True, exist_ok=True)
    return tcu_process(WORK / "rates")


def clients(xml: Path) -> dict[str, Any]:
    """rt_tests/vm, with the programs of others on the bus."""
    import pytest

    os.environ["TORQUELOOP_IN_VM"] = "1"
    tests = Path(__file__).resolve().parent
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-c", "/dev/null", "--rootdir", str(tests))
    status = pytest.main([*options, "--basetemp", str(WORK / "pytest"), f"--junitxml={xml}", str(tests)])
    return {"status": int(status)}


def main() -> int:
    """Entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", type=Path)
    parser.add_argument("programs", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", default="")
    WORK.mkdir(parents=True, exist_ok=True)
    given = parser.parse_args()
    stages: dict[str, Callable[[], dict[str, Any]]] = {
        "rig": lambda: rig_60_s(given.seconds),
        "cyclictest": lambda: cyclictest(min(10.0, given.seconds)),
        "reaction_echo": lambda: reaction_echo(given.programs, 1000),
        "reaction_socket": lambda: reaction_socket(given.programs, 1000),
        "reaction_full": lambda: reaction_full(given.programs, 400),
        "rates": lambda: rates(1.0),
        "restbus": lambda: restbus(WORK / "restbus", given.seconds if given.only else min(10.0, given.seconds)),
        "io": lambda: io_drive(WORK / "io", given.programs, given.seconds, 400),
        "io_faults": lambda: io_faults(WORK / "io_faults", given.programs, 6 if given.seconds >= 60.0 else 1),
        "detectors": lambda: detectors(WORK / "detectors", given.programs),
        "setup_host": lambda: setup_host(WORK / "setup_host"),
        "clients": lambda: clients(given.result.parent / "clients.xml"),
    }
    more: dict[str, Callable[[], dict[str, Any]]] = {
        "interfaces": lambda: interfaces(WORK / "interfaces", RIGS),
        "mounts": lambda: mounts(min(30.0, given.seconds)),
        "everything": lambda: everything(given.result.parent / "everything", given.seconds),
        "telemetry": lambda: telemetry(WORK / "telemetry", min(20.0, given.seconds)),
    }
    more |= {rig: lambda rig=rig: interfaces(WORK / rig, (rig,))[rig] for rig in RIGS}  # type: ignore[misc]
    wanted = given.only.split(",") if given.only else list(stages)
    results: dict[str, Any] = {"kernel": os.uname().release, "version": os.uname().version}
    failed = False
    if unknown := set(wanted) - set(stages | more):
        raise SystemExit(f"{', '.join(unknown)}: none of {', '.join(stages | more)}")
    for name in wanted:
        say(f"{name} ...")
        try:
            results[name] = (stages | more)[name]()
        except Exception as error:  # the others are worth having all the same
            failed = True
            results[name] = {"error": f"{type(error).__name__}: {error}"}
            traceback.print_exc()
        say(f"{name}: {json.dumps(results[name])[:600]}")
        given.result.write_text(json.dumps(results, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
