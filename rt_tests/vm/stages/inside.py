"""Helpers inside the machine: participants without another start of Python, programs, results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torqueloop
from torqueloop.hil.can.bus import CanBusConfig
from torqueloop.hil.ecu.control_unit import Bus, EcuSetup, setup_to_json
from torqueloop.hil.results.run import RunStats
from torqueloop.hil.rig.resolve.plan import RigPlan
from torqueloop.hil.rig.resolve.setups import ecu_setup
from torqueloop.hil.rig.run import participants
from torqueloop.hil.rig.run.session import RunSpec, run_rig

CONFIGS = Path(torqueloop.__file__).parent / "configs"
TCU = CONFIGS / "tcu" / "soft_4hp22.toml"


def say(*words: object) -> None:
    """Progress, with the machine's uptime."""
    print(f"[{time.clock_gettime(time.CLOCK_BOOTTIME):8.2f}]", *words, flush=True)


@contextmanager
def forked(body: Callable[[], Any], log: Path) -> Iterator[int]:
    """Run `body` in a child process that shares what is imported already; ended by SIGTERM."""
    pid = os.fork()
    if pid == 0:
        # nothing of the parent may run in the child, whatever happens
        status = 1
        try:
            out = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            body()
            sys.stdout.flush()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


def tcu_process(folder: Path, priority: int = 50) -> Any:
    """The soft control unit on vcan0 in a process of its own."""
    bus = Bus("powertrain", CONFIGS / "can" / "tcu_4hp22.dbc", "TCU", CanBusConfig("socketcan", "vcan0"))
    return _unit("soft_tcu", EcuSetup("tcu", 1e-3, TCU, (bus,)), folder, priority)


def unit_process(folder: Path, plan: RigPlan, priority: int = 50) -> Any:
    """The control unit of a rig in a process of its own."""
    (unit,) = plan.started_units()
    return _unit(unit.config.kind, ecu_setup(plan, unit, folder), folder, priority)


def _unit(kind: str, setup: EcuSetup, folder: Path, priority: int) -> Any:
    words = ["ecu", kind, "--setup", setup_to_json(setup), "--priority", str(priority), "--lock"]
    return forked(lambda: participants.main(words), folder / "tcu.log")


def tcu_stats(folder: Path) -> dict[str, Any]:
    """Counts of an ended control unit."""
    for line in (folder / "tcu.log").read_text().splitlines():
        if line.startswith("#stats "):
            return dict(json.loads(line.removeprefix("#stats ")))
    return {}


def run(rig: Path, seconds: float, out: Path, beside: Callable[[], object] | None = None, **more: Any) -> RunStats:
    """A run on the real clock with what is on the bus; its statistics. beside: called once it has been armed. more: of
    RunSpec."""
    thread = None
    if beside is not None:
        thread = threading.Thread(target=lambda: (armed(out), beside()))
        thread.start()
    stats = run_rig(rig, RunSpec("real", seconds, out, **{"participants": "none", **more})).stats
    if thread is not None:
        thread.join()
    return stats


def armed(out: Path) -> None:
    """Wait until the run in this folder has been armed."""
    file = out / "run.json"
    while not (file.exists() and '"running"' in file.read_text()):
        time.sleep(0.02)


def program(*words: object, timeout: float = 120.0) -> str:
    """Run a program to its end and return what it printed."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        raise RuntimeError(f"{words}: status {done.returncode}: {done.stderr.strip()}")
    return done.stdout
