"""What can be read of a machine that matters for real time. `root`: root of /sys and /proc, tests bring their own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path("/")


def read(path: str, root: Path = ROOT) -> str | None:
    """Text of a file below root, without the newline at its end; None when there is none or it may not be read."""
    try:
        return (root / path.lstrip("/")).read_text(encoding="utf-8", errors="replace").strip("\n\0 ")
    except OSError:
        return None


def cpu_list(text: str | None) -> set[int]:
    """CPUs of a kernel list such as "0-2,5"."""
    cpus: set[int] = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def isolated_cpus(root: Path = ROOT) -> set[int]:
    """CPUs the kernel keeps free of ordinary work (boot option isolcpus)."""
    return cpu_list(read("/sys/devices/system/cpu/isolated", root))


def choose_cpu(wanted: int | str, root: Path = ROOT) -> int | None:
    """CPU for the loop: the wanted one; "auto": an isolated one, else the last of this process; None: any."""
    if not hasattr(os, "sched_getaffinity") or wanted == "none":
        return None
    if wanted != "auto":
        return int(wanted)
    isolated = isolated_cpus(root) & set(range(os.cpu_count() or 1))
    if isolated:
        return max(isolated)
    # with one CPU there is nothing to choose; on others CPU 0 usually serves most interrupts
    allowed = os.sched_getaffinity(0)
    return max(allowed) if len(allowed) > 1 else None


def kernel_preemption(root: Path = ROOT) -> tuple[bool, str]:
    """Is this a kernel that preempts itself (PREEMPT_RT)? With its version in words."""
    version = read("/proc/sys/kernel/version", root) or sys.platform
    if read("/sys/kernel/realtime", root) == "1" or "PREEMPT_RT" in version:
        return True, "PREEMPT_RT kernel"
    return False, f"kernel: {version.split(' ', 1)[-1]}, not PREEMPT_RT"


def idle_states(root: Path = ROOT) -> dict[str, int]:
    """C-states of CPU 0 that are not disabled, by name, with the time it takes to leave them [us]."""
    found: dict[str, int] = {}
    for state in sorted((root / "sys/devices/system/cpu/cpu0/cpuidle").glob("state[0-9]*")):
        here = str(state.relative_to(root))
        latency = read(f"{here}/latency", root)
        if latency is not None and latency.isdigit() and read(f"{here}/disable", root) in (None, "0"):
            found[read(f"{here}/name", root) or state.name] = int(latency)
    return found
