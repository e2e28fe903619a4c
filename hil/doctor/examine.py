"""All looks in order, for this machine or for one rig file."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.doctor import can, latency, rights, system
from torqueloop.hil.doctor.finding import Finding
from torqueloop.hil.realtime.machine import ROOT, choose_cpu
from torqueloop.hil.rig.resolve.plan import RigPlan, load_plan

#: a look gives one finding or several
Look = Callable[[], Finding | list[Finding]]


def chosen_cpus(wanted: str | int) -> list[int | None]:
    """CPUs to measure on: "auto" or a number: one; "all": all this process may use; "none": any."""
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if wanted == "all":
        return list(allowed) or [None]
    if wanted in ("auto", "none"):
        return [choose_cpu(wanted)]
    if not str(wanted).isdigit() or int(wanted) not in allowed:
        usable = ", ".join(map(str, allowed))
        raise ConfigError(
            "{key} = {value} is not allowed", key="cpu", value=wanted, allowed=f"auto, none, all, {usable}"
        )
    return [int(wanted)]


def examine(
    probe_s: float = 2.0, rig: str | Path | None = None, cpu: str | int | None = None, root: Path = ROOT
) -> list[Finding]:
    """All findings, the measured ones last. rig: only what this file needs, with its CPU, priority, period and
    interfaces; cpu: another one than its or than the default. A look that fails itself becomes a note.
    ConfigError: the rig file or the CPU is wrong."""
    plan = load_plan(rig) if rig is not None else None
    config = plan.config if plan is not None else None
    clock = config.clock if config is not None else None
    priority, period_s = (clock.fifo_priority, clock.tick_s) if clock is not None else (80, 1e-3)
    cpus = chosen_cpus(cpu if cpu is not None else clock.cpu if clock is not None else "auto")
    loop_cpu = cpus[0]
    looks: list[Look] = []
    if sys.platform.startswith("linux"):
        looks += [
            lambda: system.kernel(root),
            lambda: rights.fifo(priority),
            rights.memlock,
            lambda: system.throttling(root),
            rights.timer_slack,
            lambda: system.governor(root),
            lambda: system.isolation(loop_cpu, root=root),
            lambda: system.idle(root),
            lambda: rights.cpu_latency(root),
            lambda: system.siblings(loop_cpu, root),
            lambda: system.interrupts(loop_cpu, root),
            lambda: system.clocksource(root),
            lambda: system.huge_pages(root),
            lambda: system.balancing(root),
            lambda: _can(plan, root),
        ]
    if config is None or any(bus.interface == "udp_multicast" for bus in config.bus.values()):
        looks.append(rights.multicast)
    looks.append(rights.compiler)
    if probe_s > 0:
        looks.append(lambda: latency.probe(probe_s, cpus, priority, period_s))
    found: list[Finding] = []
    for look in looks:
        try:
            seen = look()
            found += seen if isinstance(seen, list) else [seen]
        except Exception as error:  # an odd system must not stop the examination
            found.append(Finding("look", "note", f"could not be examined: {type(error).__name__}: {error}"))
    return found


def calibrated(rig: Path, calibration: Path, simulated: bool) -> list[Finding]:
    """What the loops of a rig file's I/O devices give, hil/doctor/loops.py. ConfigError: the rig file is wrong."""
    from torqueloop.hil.doctor.loops import loops

    if calibration.exists() and calibration.resolve() == rig.resolve():
        raise ConfigError("{key} = {value} is the rig file itself", key="calibrate", value=str(calibration))
    plan = load_plan(rig)
    with tempfile.TemporaryDirectory(prefix="torqueloop-doctor-") as folder:
        return loops(plan, Path(folder), simulated, calibration)


def _can(plan: RigPlan | None, root: Path) -> list[Finding]:
    """All interfaces of the system, or the one the rig uses."""
    if plan is None:
        return can.interfaces(root=root)
    used = [bus for bus in plan.buses if bus.config.interface == "socketcan"]
    if not used:
        return can.interfaces([], root=root)
    return [
        finding
        for bus in used
        for finding in can.interfaces([bus.config.channel], bus.config.bitrate, bus.database.has_fd, root)
    ]


def exit_status(findings: list[Finding]) -> int:
    """0: fit (perhaps with notes), 1: something fails."""
    return 1 if any(f.level == "fail" for f in findings) else 0
