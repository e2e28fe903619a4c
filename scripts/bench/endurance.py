"""The desk rig at 1 kHz on the real clock for minutes, under load: lateness, compute time, memory, page faults.

    python scripts/bench/endurance.py [--minutes 10] [--out build/endurance] [--no-load] [--no-cyclictest]

Control unit and vehicle run in their processes and drive stop-and-go at full throttle. Beside them, all the time,

    load    a process of its own, nice 0, bound to the other CPU: computes and walks through 64 MiB of memory
    busy    a thread of the rig's own process that never waits: it wants the GIL as often as it can get it

The links' time limits are 2 s instead of 0.1 to 0.3 s: their Python threads share the GIL with the busy one.

Every 10 s: memory of all processes (resident and locked), page faults of the loop's thread, open files, threads.
Where cyclictest is installed it measures the same machine under the same load for 20 s before and after.

Writes endurance.json and endurance.png. The exit status gates what is exact and nothing else:

    memory   the median of the last minute is at most 2 MiB above that of the second one (rig, control unit, vehicle);
             the first minute is for filling rings and first uses
    faults   the loop's thread takes no page fault between the first sample after arming and the last one
    records  none lost; the run ended by itself, without safe state
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.realtime.machine import choose_cpu
from torqueloop.hil.report.metrics import rebinned
from torqueloop.hil.results.clock import ClockStats
from torqueloop.hil.results.files import plain, read_run_info, write_json_atomic
from torqueloop.hil.results.run import RunStats
from torqueloop.hil.rig.run.session import RunSpec, run_rig

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
#: time between two samples [s]
EVERY_S = 10.0
#: the loop's thread, as hil/rig/run/real_clock.py names it
LOOP_THREAD = "torqueloop-tick"
#: growth of memory that is noise: a few allocator pages and what the sampler itself keeps [KiB]
MEMORY_NOISE_KIB = 2048
#: a drive: standstill, full throttle, coasting, braking to standstill [s]
CYCLE_S = 40.0
LOAD = """
import ctypes
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # ends with the process that started it
block = bytearray(64 << 20)
total = 0
while True:
    for k in range(0, len(block), 4096):
        block[k] = total & 255
        total += k
    total = sum(range(200_000))
"""


# --- rig file -------------------------------------------------------------------------------------------------------


def driver_tables(seconds: float) -> str:
    """Pedals and switches of stop-and-go for so long, as the [driver] table of a rig file."""
    pedal: list[list[float]] = []
    brake: list[list[float]] = []
    kick: list[list[float]] = []
    switch: list[list[float]] = []
    for k in range(int(seconds // CYCLE_S) + 1):
        t = k * CYCLE_S
        pedal += [[t, 0.0], [t + 1.5, 0.0], [t + 1.7, 1.0], [t + 16.0, 1.0], [t + 16.3, 0.0]]
        kick += [[t, 0.0], [t + 1.69, 0.0], [t + 1.69, 1.0], [t + 16.01, 1.0], [t + 16.01, 0.0]]
        brake += [[t, 0.3], [t + 1.3, 0.3], [t + 1.5, 0.0], [t + 18.0, 0.0], [t + 19.0, 0.3]]
        switch += [[t, 1.0], [t + 1.5, 1.0], [t + 1.5, 0.0], [t + 18.0, 0.0], [t + 18.0, 1.0]]
    rows = {"pedal": pedal, "kickdown": kick, "brake": brake, "brake_switch": switch}
    lines = [f"{name} = {json.dumps(points)}" for name, points in rows.items()]
    return "\n".join(["[driver]", *lines, 'lever = [[0.0, "N"], [0.5, "D"]]', ""])


def write_rig(folder: Path, seconds: float, port: int) -> Path:
    """The desk rig with this drive on a port of its own, every 5th tick recorded; its control unit beside it."""
    tcu = folder / "tcu.toml"
    tcu.write_text(f'extends = "{CONFIGS / "tcu" / "soft_4hp22.toml"}"\ntiming.rx_timeout_s = 2.0\n', encoding="utf-8")
    # links are Python threads and processes of a loaded machine; here the loop is examined, so they are given time.
    # What passes is asked of the machine by this script, not of the rig file
    text = f"""
extends = "{CONFIGS / "rigs" / "desk_4hp22.toml"}"
without = ["driver", "gates"]
[bus.powertrain]
port = {port}
rx_timeout_s = {{ TCU_Pressure_1 = 2.0, TCU_Pressure_2 = 2.0 }}
[ecu.tcu]
start = "{tcu}"
[vehicle]
age_limit_s = 2.0
[record]
every = 5
"""
    path = folder / "rig.toml"
    path.write_text(text + driver_tables(seconds), encoding="utf-8")
    return path


# --- load and samples -----------------------------------------------------------------------------------------------


@contextmanager
def load(loop_cpu: int | None, wanted: bool) -> Iterator[dict[str, Any]]:
    """The load process on another CPU than the loop's and the busy thread, while the context lasts."""
    told: dict[str, Any] = {"load_cpu": None, "busy_rounds": 0}
    if not wanted:
        yield told
        return
    others = sorted(os.sched_getaffinity(0) - {loop_cpu})
    told["load_cpu"] = others[0] if others else loop_cpu
    process = subprocess.Popen([sys.executable, "-c", LOAD], stdin=subprocess.DEVNULL)
    os.sched_setaffinity(process.pid, {told["load_cpu"]})
    stop = threading.Event()

    def busy() -> None:
        rounds = 0
        while not stop.is_set():
            for _ in range(1000):
                rounds += 1
            told["busy_rounds"] = rounds

    thread = threading.Thread(target=busy, name="busy", daemon=True)
    thread.start()
    try:
        yield told
    finally:
        stop.set()
        thread.join()
        process.kill()
        process.wait()


def status(pid: int | str) -> dict[str, int]:
    """VmRSS, VmLck [KiB] and Threads of a process; {} when it is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return {}
    return {m.group(1): int(m.group(2)) for m in re.finditer(r"^(VmRSS|VmLck|Threads):\s+(\d+)", text, re.MULTILINE)}


def thread_faults(tid: int) -> tuple[int, int]:
    """Minor and major faults of a thread of this process since it began."""
    # fields after the name in parentheses: state is the first, minflt the 8th, majflt the 10th
    fields = Path(f"/proc/self/task/{tid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[7]), int(fields[9])


def participants() -> dict[str, int]:
    """Process numbers of the participants of this process, by name."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_text().split("\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if "--parent" in words and words[words.index("--parent") + 1] == str(os.getpid()):
            found[words[words.index("torqueloop.hil.rig.run.participants") + 1]] = int(entry.name)
    return found


class Sampler(threading.Thread):
    """Looks at the process every EVERY_S from the moment the rig is armed."""

    def __init__(self, run_json: Path, every_s: float) -> None:
        super().__init__(name="sampler", daemon=True)
        self.samples: list[dict[str, Any]] = []
        self._run_json, self._every, self._ended = run_json, every_s, threading.Event()

    def _is_running(self) -> bool:
        try:
            info = read_run_info(self._run_json.parent)
        except TorqueloopError:
            return False
        return info is not None and info.state == "running"

    def run(self) -> None:
        while not self._is_running() and not self._ended.wait(0.2):
            pass
        # the first wake-ups after arming are for what happens once
        self._ended.wait(2.0)
        begin, theirs = time.monotonic(), participants()
        while True:
            loop = next((t.native_id for t in threading.enumerate() if t.name == LOOP_THREAD), None)
            if loop is None:
                return
            try:
                minor, major = thread_faults(loop)
            except OSError:
                return
            own = status("self")
            self.samples.append(
                {
                    "t_s": round(time.monotonic() - begin, 1),
                    "rss_kib": own["VmRSS"],
                    "locked_kib": own["VmLck"],
                    "threads": own["Threads"],
                    "fds": len(os.listdir("/proc/self/fd")),
                    "minor_faults": minor,
                    "major_faults": major,
                    "stolen_s": stolen_s(),
                    **{f"{name}_rss_kib": status(pid).get("VmRSS") for name, pid in theirs.items()},
                }
            )
            if self._ended.wait(self._every):
                return

    def end(self) -> None:
        self._ended.set()
        self.join()


def stolen_s() -> float:
    """Time that the host of a virtual machine gave to others while ours wanted to run, all CPUs, since boot [s]."""
    first = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    return int(first[8]) / os.sysconf("SC_CLK_TCK") if len(first) > 8 else 0.0


def cyclictest(cpu: int | None, seconds: int) -> dict[str, float] | None:
    """Lateness of cyclictest's wake-ups at 1 kHz with the loop's priority and CPU [us]; None: not installed."""
    path = shutil.which("cyclictest")
    if path is None:
        return None
    place = [] if cpu is None else ["-a", str(cpu)]
    command = [path, "-m", "-p", "80", "-t", "1", "-i", "1000", "-q", "-D", str(seconds), "-h", "20000", *place]
    text = subprocess.run(command, capture_output=True, text=True).stdout
    rows = [(int(m.group(1)), int(m.group(2))) for m in re.finditer(r"^(\d{6})\s+(\d+)", text, re.MULTILINE)]
    total = sum(n for _, n in rows)
    worst = re.search(r"Max Latencies:\s*(\d+)", text)
    if not total or worst is None:
        return None
    found = {"count": float(total), "max": float(worst.group(1))}
    for name, p in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
        seen = 0
        for us, n in rows:
            seen += n
            if seen >= p * total:
                found[name] = float(us)
                break
    return found


# --- judgement ------------------------------------------------------------------------------------------------------


def growth(samples: list[dict[str, Any]], key: str) -> float | None:
    """Median of the last minute less that of the second one [KiB]; None: the run was too short."""
    rows = [(s["t_s"], s[key]) for s in samples if s.get(key) is not None]
    if not rows or rows[-1][0] < 150.0:
        return None
    second = [v for t, v in rows if 60.0 <= t < 120.0]
    last = [v for t, v in rows if t >= rows[-1][0] - 60.0]
    return float(statistics.median(last) - statistics.median(second))


def judge(samples: list[dict[str, Any]], stats: RunStats, state: str) -> list[dict[str, Any]]:
    """The exact gates: name, passed, text. passed None: cannot be said of a run this short."""
    gates: list[dict[str, Any]] = []
    for key in ("rss_kib", "locked_kib", "tcu_rss_kib", "vehicle_rss_kib"):
        more = growth(samples, key)
        text = "runs of 3 minutes and more" if more is None else f"{more:+.0f} KiB, noise {MEMORY_NOISE_KIB} KiB"
        gates.append(
            {"name": f"growth of {key}", "passed": None if more is None else more <= MEMORY_NOISE_KIB, "text": text}
        )
    for key in ("minor_faults", "major_faults"):
        taken = samples[-1][key] - samples[0][key] if samples else -1
        gates.append({"name": f"{key} of the loop", "passed": taken == 0, "text": f"{taken} in {len(samples)} samples"})
    gates.append({"name": "records lost", "passed": stats.recorded_all, "text": stats.not_recorded or "none"})
    safe = stats.safe_state
    gates.append(
        {"name": "ended by itself", "passed": state == "ended" and not safe.latched, "text": safe.cause or state}
    )
    return gates


def show(result: dict[str, Any], console: Console) -> None:
    clock: ClockStats = result["stats"].clock
    table = Table(title=f"{clock.ticks} ticks at 1 kHz, kernel {result['kernel']}", box=None)
    for title in ("us", "p50", "p99", "p99.9", "max", "mean"):
        table.add_column(title, justify="left" if title == "us" else "right")
    rows: dict[str, Any] = plain({"lateness": clock.wake_lateness_us, "compute": clock.compute_us})
    rows |= {f"cyclictest {when}": row for when, row in result["cyclictest"].items() if row}
    for name, row in rows.items():
        values = (row.get(k) for k in ("p50", "p99", "p999", "max", "mean"))
        table.add_row(name, *("-" if v is None else f"{v:.1f}" for v in values))
    console.print(table)
    usage = ", ".join(
        f"{k} {getattr(clock, k)}" for k in ("missed", "dropped", "overruns", "minor_faults", "major_faults")
    )
    console.print(f"{usage}, {clock.lost_time_s:.3f} s lost; host load {result['host_load']}", highlight=False)
    if result["samples"]:
        foreign = result["samples"][-1]["stolen_s"] - result["samples"][0]["stolen_s"]
        console.print(f"foreign by the host of this machine meanwhile: {foreign:.2f} s", highlight=False)
    for gate in result["gates"]:
        word = {True: "[green]ok[/]    ", False: "[bold red]failed[/]", None: "-     "}[gate["passed"]]
        console.print(f"{word} {gate['name']}: {gate['text']}", highlight=False, soft_wrap=True)


def plot(result: dict[str, Any], path: Path) -> None:
    """Histograms of lateness and compute time, memory and faults over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.5), layout="tight")
    left, right = figure.subplots(1, 2)
    clock: ClockStats = result["stats"].clock
    for name, measured in (("wake lateness", clock.wake_lateness_us), ("compute time", clock.compute_us)):
        hist = rebinned(measured.hist if measured is not None else [], 40)
        left.step([e for e, _ in hist], [n for _, n in hist], where="post", label=name)
    left.set(xscale="log", yscale="log", xlabel="us", ylabel="ticks", title=f"{clock.ticks} ticks at 1 kHz")
    left.legend()
    samples = result["samples"]
    times = [s["t_s"] for s in samples]
    for key in ("rss_kib", "tcu_rss_kib", "vehicle_rss_kib"):
        if samples and key in samples[0]:
            right.plot(times, [(s[key] or 0) / 1024 for s in samples], label=key.removesuffix("_kib").replace("_", " "))
    right.set(xlabel="s after arming", ylabel="MiB", title="resident memory; faults of the loop")
    right.set_ylim(bottom=0)
    faults = right.twinx()
    faults.plot(times, [s["minor_faults"] - samples[0]["minor_faults"] for s in samples], "k:", label="minor faults")
    faults.set_ylim(-1, 10)
    right.legend(loc="center right")
    faults.legend(loc="lower right")
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="length of the run (default 10)")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "endurance")
    parser.add_argument("--port", type=int, default=43178, help="UDP port of the software bus")
    parser.add_argument(
        "--every", type=float, default=EVERY_S, metavar="S", help="time between two samples (default 10)"
    )
    parser.add_argument("--no-load", action="store_true", help="neither load process nor busy thread")
    parser.add_argument("--no-cyclictest", action="store_true")
    options = parser.parse_args()
    seconds, cpu, console = options.minutes * 60.0, choose_cpu("auto"), Console()
    options.out.mkdir(parents=True, exist_ok=True)
    compared: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name, load(cpu, not options.no_load) as told:
        folder = Path(name)
        rig = write_rig(folder, seconds, options.port)
        measured = 0 if options.no_cyclictest else 20
        if measured:
            compared["before"] = cyclictest(cpu, measured)
        sampler = Sampler(folder / "run" / "run.json", options.every)
        sampler.start()
        try:
            result = run_rig(rig, RunSpec("real", seconds, folder / "run", progress=sys.stderr.isatty()))
        finally:
            sampler.end()
        if measured:
            compared["after"] = cyclictest(cpu, measured)
        info = read_run_info(folder / "run")
    made = {
        "minutes": options.minutes,
        "kernel": f"{os.uname().release} {os.uname().version}",
        "cpus": os.cpu_count(),
        "loop_cpu": cpu,
        **told,
        "host_load": ", ".join(f"{x:.2f}" for x in os.getloadavg()),
        "stats": result.stats,
        "state": result.state,
        "realtime": info.realtime if info is not None else [],
        "samples": sampler.samples,
        "cyclictest": compared,
        "gates": judge(sampler.samples, result.stats, result.state),
    }
    write_json_atomic(options.out / "endurance.json", made)
    show(made, console)
    plot(made, options.out / "endurance.png")
    console.print(f"{options.out}/endurance.json, endurance.png")
    return 1 if any(gate["passed"] is False for gate in made["gates"]) else 0


if __name__ == "__main__":
    raise SystemExit(main())
