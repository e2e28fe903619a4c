"""Shared by the tests of I/O devices: rigs with the card of io_card.c."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rig_help import UNHURRIED, free_port, rig_file
from waiting import wait_for

from torqueloop.hil.rig.run.session import RunResult, RunSpec, run_rig

CARD = Path(__file__).parent / "io_card.c"
#: the speed of the engine goes out as 0.01 V per rad/s and comes back as volts; `time` is the card's own clock
TABLE = """
[io.card]
library = "{library}"
stale_ticks = 3
limit_us = {limit_us}

[io.card.options]
{options}

[io.card.inputs]
volts = {{ pin = "ai0", unit = "V", high = 10.0 }}
time = {{ pin = "clock", unit = "s", high = 1000.0 }}

[io.card.outputs]
speed = {{ pin = "ao0", signal = "engine.w", gain = 0.01, unit = "V", high = 10.0, safe = 0.125 }}
"""
#: the safe value of its output
SAFE = 0.125


def card(folder: Path, *edits: str, library: Path = CARD, limit_us: float = 0.0, add: str = "", **options: str) -> Path:
    """The desk rig with the card on it."""
    keys = "\n".join(f'{key} = "{value}"' for key, value in options.items())
    table = TABLE.format(library=library, limit_us=limit_us, options=keys)
    return rig_file(folder, "record.every = 1", *edits, add=table + add)


def patient_edits(*edits: str) -> tuple[str, ...]:
    """A bus beside other rigs of this machine, and patience for a busy one, but for what the edits set."""
    patient = [*UNHURRIED[:-1], f"bus.powertrain.port = {free_port()}"]
    return (*(p for p in patient if p.split(" = ")[0] not in {e.split(" = ")[0] for e in edits}), *edits)


def on_own_bus(folder: Path, *edits: str, limit_us: float = 0.0, **options: str) -> Path:
    """The rig with the card, for the real clock."""
    return card(folder, *patient_edits(*edits), limit_us=limit_us, file=str(folder / "pins"), **options)


def run(path: Path, seconds: float = 0.5, out: str = "run") -> RunResult:
    """On the virtual clock."""
    return run_rig(path, RunSpec("virtual", seconds, path.parent / out))


def real(path: Path, seconds: float = 1.0) -> RunResult:
    """On the real clock."""
    return run_rig(path, RunSpec("real", seconds, path.parent / "run"))


def written(folder: Path, name: str = "pins") -> list[list[float]]:
    """Process, beats, state of the watch word, time and values of each write."""
    lines = (folder / name).read_text().splitlines(keepends=True)
    return [[float(word) for word in line.split()] for line in lines if line.endswith("\n")]


#: columns of what is written
PROCESS, BEATS, STATE, TIME, VALUE = range(5)


def until_written(folder: Path, rows: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the card has so many rows."""
    wait_for(
        lambda: (folder / "pins").exists() and len(written(folder)) >= rows,
        lambda: process.poll() in (None, -signal.SIGABRT),
        pause_s=0.02,
    )


@contextmanager
def started(path: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The rig as a process of its own."""
    command = [sys.executable, "-m", "torqueloop.hil.cli", "run", str(path), "--out", str(path.parent / "run"),
               "--duration", "60", *arguments]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
