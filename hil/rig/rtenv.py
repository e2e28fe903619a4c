"""Real-time set-up of process and thread.

Every function returns (ok, reason): a run without rights is degraded, and says so.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import gc
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

Result = tuple[bool, str]

_MCL_CURRENT, _MCL_FUTURE = 1, 2
_PR_SET_TIMERSLACK = 29
#: bytes of heap touched before arming so that the loop never takes a page fault for its first use
_STACK_BYTES = 256 * 1024


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(ctypes.util.find_library("c") or None, use_errno=True)


def lock_memory() -> Result:
    """Keep all present and future pages in memory (mlockall): no page fault to disk while running."""
    if not sys.platform.startswith("linux"):
        return False, f"memory not locked: no mlockall on {sys.platform}"
    libc = _libc()
    if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE) == 0:
        return True, "all memory locked"
    cause = os.strerror(ctypes.get_errno())
    # MCL_FUTURE with a small limit would make later allocations fail: nothing stays locked
    libc.munlockall()
    return False, f"memory not locked: {cause}; raise `ulimit -l` or grant CAP_IPC_LOCK"


def unlock_memory() -> None:
    """Undo lock_memory."""
    if sys.platform.startswith("linux"):
        _libc().munlockall()


def set_fifo(priority: int, thread_id: int = 0) -> Result:
    """Schedule a thread (default: the calling one) SCHED_FIFO: once ready it runs before every ordinary thread."""
    if not hasattr(os, "sched_setscheduler"):
        return False, f"ordinary scheduling: no SCHED_FIFO on {sys.platform}"
    try:
        os.sched_setscheduler(thread_id, os.SCHED_FIFO, os.sched_param(priority))
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else error
        return (
            False,
            f"ordinary scheduling: SCHED_FIFO {priority} refused ({what}); grant CAP_SYS_NICE or an rtprio limit",
        )
    return True, f"SCHED_FIFO {priority}"


def set_fifo_threads(priority: int, threads: Iterable[threading.Thread]) -> list[Result]:
    """set_fifo for started Python threads; priority 0 or less: nothing is asked for."""
    return [set_fifo(priority, t.native_id) for t in threads if priority > 0 and t.native_id is not None]


def timer_slack() -> Result:
    """Ask for wake-ups without the usual slack of 50 us (matters without SCHED_FIFO) for the calling thread."""
    if not sys.platform.startswith("linux"):
        return False, f"timer slack unknown on {sys.platform}"
    if _libc().prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0) != 0:
        return False, f"timer slack of 50 us stays: {os.strerror(ctypes.get_errno())}"
    return True, "timer slack 1 ns"


def isolated_cpus() -> set[int]:
    """CPUs the kernel keeps free of ordinary work (boot option isolcpus)."""
    try:
        text = Path("/sys/devices/system/cpu/isolated").read_text().strip()
    except OSError:
        return set()
    cpus: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def choose_cpu(wanted: int | str) -> int | None:
    """CPU for the loop: the wanted one; "auto": an isolated one, else the last of this process; None: any."""
    if not hasattr(os, "sched_getaffinity") or wanted == "none":
        return None
    allowed = os.sched_getaffinity(0)
    if wanted != "auto":
        return int(wanted)
    isolated = isolated_cpus() & set(range(os.cpu_count() or 1))
    if isolated:
        return max(isolated)
    # with one CPU there is nothing to choose; on others CPU 0 usually serves most interrupts
    return max(allowed) if len(allowed) > 1 else None


def set_affinity(cpu: int | None) -> Result:
    """Bind the calling thread to one CPU (its caches stay warm, others keep off when it is isolated)."""
    if cpu is None:
        return False, "loop not bound to a CPU"
    try:
        os.sched_setaffinity(0, {cpu})
    except (OSError, ValueError) as error:
        return False, f"loop not bound to CPU {cpu}: {error}"
    if cpu not in isolated_cpus():
        return True, f"bound to CPU {cpu} (not isolated)"
    return True, f"bound to CPU {cpu}"


def kernel_preemption() -> Result:
    """Is this a kernel that preempts itself (PREEMPT_RT)?"""
    if Path("/sys/kernel/realtime").exists():
        return True, "PREEMPT_RT kernel"
    version = os.uname().version if hasattr(os, "uname") else sys.platform
    return "PREEMPT_RT" in version, f"kernel: {version.split(' ', 1)[-1] if version else 'unknown'}, not PREEMPT_RT"


def fifo_throttling() -> Result:
    """The kernel takes 5 % of each second from SCHED_FIFO threads unless sched_rt_runtime_us is -1."""
    try:
        runtime = int(Path("/proc/sys/kernel/sched_rt_runtime_us").read_text())
    except (OSError, ValueError):
        return True, "no throttling of SCHED_FIFO known"
    if runtime == -1:
        return True, "no throttling of SCHED_FIFO"
    return True, f"SCHED_FIFO limited to {runtime / 1e4:.0f} % of a CPU (sched_rt_runtime_us); the loop uses less"


def warm_stack() -> None:
    """Touch stack pages of the calling thread before the loop does."""
    (ctypes.c_char * _STACK_BYTES)()


@contextmanager
def quiet_gc() -> Iterator[None]:
    """No garbage collection in any thread meanwhile: it holds the GIL for milliseconds, and peers wait for that."""
    was = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was:
            gc.enable()


def prepare_loop_thread(priority: int, cpu: int | str) -> list[Result]:
    """Set up the calling thread as loop thread; one result per measure. priority 0: ordinary scheduling is wanted."""
    warm_stack()
    results = [set_affinity(choose_cpu(cpu))]
    if cpu == "none" or (os.cpu_count() or 1) == 1:
        results[0] = (True, "loop not bound to a CPU, as configured" if cpu == "none" else "one CPU only")
    results.append(timer_slack())
    results.append(
        set_fifo(priority) if priority > 0 else (False, "ordinary scheduling, as configured (fifo_priority = 0)")
    )
    return results


def degraded(results: list[Result]) -> list[str]:
    """Reasons of the measures that did not succeed, for the report."""
    return [reason for ok, reason in results if not ok]
