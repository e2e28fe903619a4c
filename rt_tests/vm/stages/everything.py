"""Stage of the machine for a long run with everything on: two buses, a control unit in a process of its own, live page,
telemetry, three recordings.

The folder keeps what is known at each minute. rt_tests/judges/everything_run.py judges it on the host.
"""

from __future__ import annotations

import http.client
import json
import mmap
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import zmq

from stages.buses import interface_rig
from stages.inside import armed, forked, run, say, tcu_stats, unit_process
from torqueloop.hil.cli.watch import watch
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.resolve.plan import RigPlan, load_plan

RIG = "desk_bmw_e9x"
CONTROL, TELEMETRY = "tcp://127.0.0.1:9871", "tcp://127.0.0.1:9872"
MINUTE_S = 60.0
#: counts of those who listen, in memory that all processes share
COUNTS = ("telemetry", "telemetry_missing", "page_values", "page_stats", "page_trace", "page_gone")
#: candump's receive buffer [bytes]: frames of two busy buses for more than a second
CANDUMP_BUFFER = 4_000_000


def _subscribe(counts: Any, period_s: float) -> None:
    """Read every message. One that is missing is seen at the next one's time."""
    with zmq.Context() as context, context.socket(zmq.SUB) as socket:
        socket.subscribe(b"")
        socket.connect(TELEMETRY)
        last = None
        while True:
            _, payload, _ = socket.recv_multipart()
            t = float(payload[: payload.index(b",")].partition(b":")[2])
            if last is not None:
                counts[COUNTS.index("telemetry_missing")] += round((t - last) / period_s) - 1
            last = t
            counts[COUNTS.index("telemetry")] += 1


def _page(out: Path) -> None:
    """`torqueloop watch` for this run."""
    armed(out)
    watch(str(out))


def _read_page(counts: Any, log: Path) -> None:
    """A browser's part: the page, then its events."""
    while not (log.exists() and "token=" in log.read_text()):
        time.sleep(0.1)
    url = urlsplit(log.read_text().split()[0])
    assert url.hostname is not None
    connection = http.client.HTTPConnection(url.hostname, url.port)
    for path in ("/", "/events"):
        connection.request("GET", f"{path}?{url.query}")
        answer = connection.getresponse()
        if path == "/":
            print(len(answer.read()), "bytes of page", flush=True)
    while line := answer.readline():
        kind = f"page_{line.partition(b':')[2].strip().decode()}" if line.startswith(b"event:") else ""
        if kind in COUNTS:
            counts[COUNTS.index(kind)] += 1


@contextmanager
def _listener(log: Path) -> Iterator[int]:
    """candump on both buses, in its own text."""
    words = ["candump", "-L", "-d", "-r", str(CANDUMP_BUFFER), "vcan0", "vcan1"]
    with log.open("wb") as file, subprocess.Popen(words, stdout=file) as process:
        try:
            yield process.pid
        finally:
            # what is in its socket is written before it ends
            time.sleep(0.2)
            process.terminate()


def _processes(known: dict[int, str]) -> dict[str, dict[str, float]]:
    """Memory [kB] and time of the processor [s] of each process of the run: this one and its descendants."""
    parents, found = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    for pid in parents:
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above]
        if above != os.getpid():
            continue
        place = Path("/proc", str(pid))
        try:
            words = place.joinpath("cmdline").read_bytes().split(b"\0")
            name = known.get(pid) or next((w.decode() for w in words if w.startswith(b"torqueloop.")), f"pid {pid}")
            status = dict(line.split(":", 1) for line in place.joinpath("status").read_text().splitlines())
            ran = sum(int(p.read_text().split()[0]) for p in place.glob("task/*/schedstat"))
            while name in found:
                name += " (another)"
            found[name] = {"rss_kB": float(status["VmRSS"].split()[0]), "ran_s": ran / 1e9}
        except (OSError, KeyError):
            continue
    return found


def _minute(out: Path, known: dict[int, str], counts: Any) -> dict[str, Any]:
    """What is known now."""
    info = read_run_info(out)
    assert info is not None
    row: dict[str, Any] = {"guest_s": time.clock_gettime(time.CLOCK_BOOTTIME), "state": info.state}
    if info.stats is not None:
        clock, told = info.stats.clock, info.stats.telemetry
        row |= {n: getattr(clock, n) for n in ("ticks", "missed", "overruns", "margin_min_us")}
        row["recording"] = {name: s.lost_records for name, s in info.stats.recording.items()}
        row["telemetry"] = None if told is None else {"sent": told.sent, "left_out": told.left_out}
    row["free_MB"] = int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]) / 1e3
    idle = float(Path("/proc/uptime").read_text().split()[1])
    return row | {"idle_s": idle, "counts": dict(zip(COUNTS, counts.tolist(), strict=True)),
                  "processes": _processes(known)}  # fmt: skip


def _watch(out: Path, known: dict[int, str], counts: Any, seconds: float) -> None:
    """A line each minute, and a last one just before the end."""
    begun = time.monotonic()
    times = [*np.arange(0.0, seconds - 1.0, MINUTE_S), seconds - 0.5]
    for t in times:
        time.sleep(max(0.0, begun + t - time.monotonic()))
        row = _minute(out, known, counts)
        with (out.parent / "minutes.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        say(f"  {t:.0f} s: {row.get('missed')} of {row.get('ticks')} ticks missed, {row['counts']}")
        if row["state"] != "running":
            return


def _rig(folder: Path, seconds: float) -> tuple[Path, RigPlan]:
    """The maker's rig with all that can be on; the drive of its file again and again."""
    rig = interface_rig(folder, RIG)
    plan = load_plan(rig)
    length = plan.config.rig.duration_s
    lines = [
        f'control.endpoint = "{CONTROL}"',
        f'telemetry.endpoint = "{TELEMETRY}"',
        'record.bus_formats = ["blf", "log"]',
    ]
    for name, points in plan.config.driver.items():
        if len(points) > 1:
            again = [[t + k * length, x] for k in range(int(seconds / length) + 1) for t, x in points if t < length]
            lines.append(f"driver.{name} = {again}")
    rig.write_text(rig.read_text(encoding="utf-8") + "\n".join([*lines, ""]), encoding="utf-8")
    return rig, load_plan(rig)


def everything(folder: Path, seconds: float) -> dict[str, Any]:
    """A run with everything on. The folder outlives the machine."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    shutil.rmtree(folder, ignore_errors=True)
    rig, plan = _rig(folder, seconds)
    out, counts = folder / "out", np.frombuffer(mmap.mmap(-1, 8 * len(COUNTS)), np.int64)
    period_s = 1.0 / plan.config.telemetry.rate_hz
    period_s = max(1, round(period_s / plan.config.clock.tick_s)) * plan.config.clock.tick_s
    known = {os.getpid(): "rig"}
    with ExitStack() as beside:
        known[beside.enter_context(_listener(folder / "candump.log"))] = "candump"
        known[beside.enter_context(unit_process(folder, plan))] = "control unit"
        for name, body in {
            "subscriber": lambda: _subscribe(counts, period_s),
            "page": lambda: _page(out),
            "reader of the page": lambda: _read_page(counts, folder / "page.log"),
        }.items():
            log = folder / f"{name.split()[0]}.log"
            known[beside.enter_context(forked(body, log))] = name
        stats = run(rig, seconds, out, lambda: _watch(out, known, counts, seconds))
    compute, told = stats.clock.compute_us, stats.telemetry
    assert compute is not None and told is not None
    unit = tcu_stats(folder)
    return {
        **{n: getattr(stats.clock, n) for n in ("ticks", "missed", "overruns", "margin_min_us")},
        "compute_p50_us": compute.p50,
        "compute_p999_us": compute.p999,
        "telemetry": {"sent": told.sent, "left_out": told.left_out},
        "counts": dict(zip(COUNTS, counts.tolist(), strict=True)),
        "shifts": len(unit["shifts"]),
        "safe_state": stats.safe_state.cause,
        "degraded": stats.degraded,
    }
