#!/usr/bin/env python
"""A long run with all signals on the virtual clock, and what it takes to read it: seconds, peak memory, disk.

scripts/bench/hour_recording.py [--seconds 3600] [--rig desk_4hp22] [--out DIR]

The car goes up to a speed and stops again, for the whole time. Each command is a process of its own; its peak is that
of wait4 (as /usr/bin/time -v has it). Exit status 1 where a command fails or takes more than --limit-mb (the rig too).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: from one start to the next [s]
PERIOD_S = 40.0
SCENARIO = """
[scenario]
name = "long"
text = "Up to a speed and to a stop, again and again."
rig = "{rig}"
duration_s = {seconds}

[driver]
pedal = {pedal}
kickdown = 0.0
brake = {brake}
brake_switch = {switch}
lever = "N"

[[steps]]
name = "engage"
at_s = 0.5
set = {{ lever = "D" }}
# the run ends when its steps are over
hold_s = {hold}

[[checks]]
name = "the engine stays below 6500 rpm"
always = "engine.w < 6500 rpm"
"""
READ = """
import sys, torqueloop as tl
run = tl.read_run(sys.argv[1])
print(len(run.t), float(run["car.v"].max()))
"""
OPEN = """
import sys
from torqueloop.hil.record.run_data import read_signals
signals = read_signals(sys.argv[1])
print(signals.n, float(signals["car.v"].max()))
"""


def scenario(rig: str, seconds: float) -> str:
    """Every PERIOD_S: pedal until the car is fast, then brake until it stands."""
    pedal, brake, switch = [[0.0, 0.0]], [[0.0, 0.3]], [[0.0, 1.0]]
    for k in range(int(seconds / PERIOD_S) + 1):
        go, stop = 2.0 + PERIOD_S * k, 20.0 + PERIOD_S * k
        pedal += [[go, 0.0], [go + 0.5, 0.7], [stop, 0.7], [stop + 0.5, 0.0]]
        brake += [[go, 0.3], [go + 0.1, 0.0], [stop, 0.0], [stop + 0.5, 0.3]]
        switch += [[go, 1.0], [go + 0.001, 0.0], [stop, 0.0], [stop + 0.001, 1.0]]
    return SCENARIO.format(rig=rig, seconds=seconds + 1.0, hold=seconds, pedal=pedal, brake=brake, switch=switch)


def measured(name: str, command: list[str]) -> tuple[float, float, int]:
    """(seconds, peak MB, exit status) of a command; its output goes to a file beside."""
    begun = time.monotonic()
    with open(f"{name}.txt", "w", encoding="utf-8") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return time.monotonic() - begun, usage.ru_maxrss / 1024, process.returncode


def main() -> int:
    """Run, read, print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--rig", default="desk_4hp22")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--limit-mb", type=float, default=500.0)
    arguments = parser.parse_args()
    out = arguments.out or Path(tempfile.mkdtemp(prefix="torqueloop-hour-"))
    out.mkdir(parents=True, exist_ok=True)
    os.chdir(out)
    Path("long.toml").write_text(scenario(arguments.rig, arguments.seconds), encoding="utf-8")
    cli = [sys.executable, "-m", "torqueloop.hil.cli"]
    run = Path("runs") / "long"
    commands = {
        "rig": [*cli, "scenario", "long.toml", "--out", "runs", "--jobs", "1", "--no-html"],
        "open": [sys.executable, "-c", OPEN, str(run)],
        "read_run": [sys.executable, "-c", READ, str(run)],
        "report": [*cli, "report", str(run)],
        "replay": [*cli, "replay", str(run)],
        "compare": [*cli, "compare", str(run), str(run)],
        "export_mf4": [*cli, "export", str(run), "signals.mf4"],
        "export_parquet": [*cli, "export", str(run), "signals.parquet"],
    }
    good = True
    for name, command in commands.items():
        seconds, peak, status = measured(name, command)
        good = good and status == 0 and peak <= arguments.limit_mb
        print(f"{name:15} {seconds:8.1f} s {peak:8.0f} MB  exit status {status}", flush=True)
        if name == "rig":
            ticks = json.loads((run / "run.json").read_text(encoding="utf-8"))["stats"]["clock"]["ticks"]
            print(f"  {ticks} ticks", flush=True)
            if ticks < 1000 * arguments.seconds:
                print(f"the run ended early: {ticks} ticks of {arguments.seconds:g} s", file=sys.stderr)
                return 1
            for stream in ("signals", "inputs", "bus"):
                size = sum(file.stat().st_size for file in (run / stream).glob("*"))
                print(f"  {stream:13} {size / 1e6:8.0f} MB on disk", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
