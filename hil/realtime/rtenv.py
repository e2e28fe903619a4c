"""Real-time set-up of process and thread, measure by measure.

Every function asks the system for one thing and returns a Measure: what was wanted, whether it took effect, what is in
force now, what would help, and how to undo it. A run without rights is degraded, and says so.

    process     memory locked, no memory given back, heap touched, C-states, garbage collection, turns of the GIL
    thread      CPU, priority, timer slack, stack touched, denormal numbers
"""

from __future__ import annotations

import ctypes
import ctypes.util
import gc
import os
import resource
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import field, replace
from pathlib import Path

from torqueloop.core.describe.classes import dataclass
from torqueloop.cython_kernels.clock.rt_thread import denormals_can_be_off, prefault_stack
from torqueloop.hil.realtime.machine import ROOT, choose_cpu, idle_states, isolated_cpus
from torqueloop.hil.results.run import Measure as MeasureRow

_MCL_CURRENT, _MCL_FUTURE = 1, 2
_PR_SET_TIMERSLACK, _PR_GET_TIMERSLACK = 29, 30
#: mallopt of glibc, and the values it starts with
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -3, -4
_TRIM_DEFAULT, _MMAP_DEFAULT, _MMAP_MAX_DEFAULT = 128 << 10, 128 << 10, 65536
#: stack of the loop's thread that is touched before it starts: its deepest calls take some 20 KiB
STACK_BYTES = 256 << 10
#: longest turn of a busy Python thread while others wait for the GIL [s]; shorter ones cost switches
GIL_TURN_S = 0.5e-3
#: heap that is touched and kept: what the Python threads beside the loop take during a run comes from there
HEAP_BYTES = 16 << 20


@dataclass(frozen=True)
class Measure:
    """One thing asked of the system."""

    name: str
    #: what was asked for
    wanted: str
    #: it took effect, or it was not to be had and does not matter here
    ok: bool
    #: what is in force now
    in_force: str
    #: what would make it succeed
    remedy: str = ""
    #: whom it concerns: process, loop, links, tcu, vehicle
    of: str = "process"
    #: puts back what was before; None: nothing to put back
    undo: Callable[[], None] | None = field(default=None, compare=False, repr=False)

    @property
    def reason(self) -> str:
        """In one sentence, with the remedy."""
        return f"{self.in_force}; {self.remedy}" if self.remedy else self.in_force

    def report(self) -> MeasureRow:
        """For run.json."""
        return MeasureRow(self.name, self.wanted, self.ok, self.in_force, self.remedy, self.of)


class Setup:
    """The measures of a run in the order they were taken; undone in reverse when the context ends."""

    def __init__(self) -> None:
        self.measures: list[Measure] = []
        self._undo = ExitStack()

    def take(self, *measures: Measure, of: str = "") -> None:
        """Keep these, for the report and to be undone. `of`: whom they concern."""
        for measure in measures:
            self.measures.append(replace(measure, of=of) if of else measure)
            if measure.undo is not None:
                self._undo.callback(measure.undo)

    def __enter__(self) -> Setup:
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()


def degraded(measures: Iterable[Measure]) -> list[str]:
    """Reasons of the measures that did not succeed, for the report."""
    return [m.reason for m in measures if not m.ok]


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(ctypes.util.find_library("c") or None, use_errno=True)


def _linux() -> bool:
    return sys.platform.startswith("linux")


# --- the process ----------------------------------------------------------------------------------------------------


def lock_memory() -> Measure:
    """Keep all present and future pages in memory (mlockall): no page fault while running, neither to disk nor for the
    first use of a page."""
    wanted = "all pages, present and future, in memory"
    if not _linux():
        return Measure("memory lock", wanted, False, f"memory not locked: no mlockall on {sys.platform}")
    libc = _libc()
    if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE) == 0:
        return Measure("memory lock", wanted, True, "all memory locked", undo=unlock_memory)
    cause = os.strerror(ctypes.get_errno())
    # MCL_FUTURE with a small limit would make later allocations fail: nothing stays locked
    libc.munlockall()
    return Measure(
        "memory lock", wanted, False, f"memory not locked: {cause}", "raise `ulimit -l` or grant CAP_IPC_LOCK"
    )


def unlock_memory() -> None:
    """Undo lock_memory."""
    if _linux():
        _libc().munlockall()


def keep_heap() -> Measure:
    """malloc gives no memory back to the kernel and takes none by mmap: what was touched once stays."""
    wanted = "malloc keeps what it has (no trim, no mmap)"
    libc = _libc()
    if not hasattr(libc, "mallopt"):
        return Measure("malloc", wanted, False, "malloc returns memory to the kernel: no mallopt in this C library")
    # -1 as a size is the largest there is
    asked = ((_M_TRIM_THRESHOLD, -1), (_M_MMAP_MAX, 0))
    if not all(libc.mallopt(what, value) for what, value in asked):
        _restore_heap()
        return Measure("malloc", wanted, False, "malloc returns memory to the kernel: mallopt refused")
    return Measure("malloc", wanted, True, "malloc keeps its memory: trimming and mmap off", undo=_restore_heap)


def _restore_heap() -> None:
    libc = _libc()
    for what, value in (
        (_M_TRIM_THRESHOLD, _TRIM_DEFAULT),
        (_M_MMAP_THRESHOLD, _MMAP_DEFAULT),
        (_M_MMAP_MAX, _MMAP_MAX_DEFAULT),
    ):
        libc.mallopt(what, value)
    libc.malloc_trim(0)


def prefault_heap(n_bytes: int = HEAP_BYTES) -> Measure:
    """Touch n_bytes of heap and free them: they stay with malloc while keep_heap is in force."""
    wanted = f"{n_bytes >> 20} MiB of heap touched"
    libc = _libc()
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    block = libc.malloc(n_bytes)
    if not block:
        return Measure("heap", wanted, False, f"heap not touched: malloc of {n_bytes} bytes refused")
    ctypes.memset(block, 1, n_bytes)
    libc.free(block)
    return Measure("heap", wanted, True, wanted)


def hold_cpu_latency(root: Path = ROOT) -> Measure:
    """Keep CPUs out of idle states that take time to leave: 0 us in /dev/cpu_dma_latency, for as long as it is open."""
    wanted, path = "idle states left within 0 us", root / "dev/cpu_dma_latency"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError as error:
        states = {name: us for name, us in idle_states(root).items() if us > 0}
        if not states:
            return Measure("C-states", wanted, True, "this machine shows no idle states that take time to leave")
        worst = max(states, key=lambda name: states[name])
        return Measure(
            "C-states",
            wanted,
            False,
            f"idle states stay on, {worst} takes {states[worst]} us to leave: {path}: {error.strerror}",
            f"let the user write {path} (udev rule), or boot with cpuidle.off=1",
        )
    try:
        os.write(fd, (0).to_bytes(4, sys.byteorder))
    except OSError as error:
        os.close(fd)
        return Measure("C-states", wanted, False, f"idle states stay on: {path}: {error.strerror}")
    return Measure("C-states", wanted, True, "/dev/cpu_dma_latency held at 0 us", undo=lambda: os.close(fd))


def freeze_gc(collect: bool = True) -> Measure:
    """No garbage collection in any thread meanwhile: it holds the GIL for milliseconds, and participants wait.
    collect: free what is garbage first, which takes 0.02 to 0.2 s; a run without deadlines leaves that for later."""
    was = gc.isenabled()
    if collect:
        gc.collect()
    gc.freeze()
    gc.disable()

    def undo() -> None:
        gc.unfreeze()
        if was:
            gc.enable()

    return Measure("garbage collection", "off, objects frozen", True, "garbage collection off", undo=undo)


def short_gil_turns(turn_s: float = GIL_TURN_S) -> Measure:
    """A Python thread that never waits gives up the GIL after turn_s when another one asks for it (usually 5 ms): the
    links' threads ask some hundred times a second, and each of these turns delays a frame."""
    wanted, before = f"GIL handed over after {turn_s * 1e3:g} ms", sys.getswitchinterval()
    sys.setswitchinterval(turn_s)
    return Measure("GIL", wanted, True, wanted, undo=lambda: sys.setswitchinterval(before))


def collect_young() -> None:
    """Free cycles of objects made since the last call, while freeze_gc is in force: otherwise a run of hours grows.
    Takes some 0.1 ms of the GIL, as only these objects are looked at."""
    gc.collect(0)


# --- a thread -------------------------------------------------------------------------------------------------------


def set_fifo(priority: int, thread_id: int = 0) -> Measure:
    """Schedule a thread (default: the calling one) SCHED_FIFO: once ready it runs before every ordinary thread."""
    wanted = f"SCHED_FIFO {priority}"
    if not hasattr(os, "sched_setscheduler"):
        return Measure("priority", wanted, False, f"ordinary scheduling: no SCHED_FIFO on {sys.platform}")
    try:
        os.sched_setscheduler(thread_id, os.SCHED_FIFO, os.sched_param(priority))
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else error
        return Measure(
            "priority",
            wanted,
            False,
            f"ordinary scheduling: SCHED_FIFO {priority} refused ({what})",
            "grant CAP_SYS_NICE or an rtprio limit",
        )

    def undo() -> None:
        with suppress(OSError):  # the thread may have ended
            os.sched_setscheduler(thread_id, os.SCHED_OTHER, os.sched_param(0))

    return Measure("priority", wanted, True, wanted, undo=undo)


def set_fifo_threads(priority: int, threads: Iterable[threading.Thread]) -> list[Measure]:
    """set_fifo for started Python threads; priority 0 or less: nothing is asked for."""
    return [
        replace(set_fifo(priority, t.native_id), of=f"links ({t.name})", undo=None)
        for t in threads
        if priority > 0 and t.native_id is not None
    ]


def timer_slack() -> Measure:
    """Ask for wake-ups of the calling thread without the usual slack of 50 us (matters without SCHED_FIFO)."""
    wanted = "1 ns"
    if not _linux():
        return Measure("timer slack", wanted, False, f"timer slack unknown on {sys.platform}")
    libc = _libc()
    if libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0) != 0:
        return Measure("timer slack", wanted, False, f"timer slack of 50 us stays: {os.strerror(ctypes.get_errno())}")
    # 0 puts back what the thread was started with
    return Measure(
        "timer slack",
        wanted,
        True,
        f"timer slack {libc.prctl(_PR_GET_TIMERSLACK, 0, 0, 0, 0)} ns",
        undo=lambda: libc.prctl(_PR_SET_TIMERSLACK, 0, 0, 0, 0),
    )


def set_affinity(cpu: int | None, root: Path = ROOT) -> Measure:
    """Bind the calling thread to one CPU (its caches stay warm, others keep off when it is isolated); None: any CPU is
    as good."""
    if cpu is None:
        return Measure(
            "CPU",
            "any",
            True,
            "the loop is not bound to a CPU, because of the configuration or because there is only one",
        )
    wanted = f"CPU {cpu}"
    if not hasattr(os, "sched_setaffinity"):
        return Measure("CPU", wanted, False, f"loop not bound to CPU {cpu}: not possible on {sys.platform}")
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {cpu})
    except (OSError, ValueError, OverflowError) as error:
        usable = ", ".join(map(str, sorted(before)))
        return Measure("CPU", wanted, False, f"loop not bound to CPU {cpu}: {error}", f"[clock] cpu: one of {usable}")
    shared = "" if cpu in isolated_cpus(root) else " (not isolated)"
    return Measure("CPU", wanted, True, f"bound to CPU {cpu}{shared}", undo=lambda: os.sched_setaffinity(0, before))


def warm_stack(n_bytes: int = STACK_BYTES) -> Measure:
    """Touch stack pages of the calling thread before the loop does."""
    prefault_stack(n_bytes)
    text = f"{n_bytes >> 10} KiB of stack touched"
    return Measure("stack", text, True, text)


def denormals() -> Measure:
    """Denormal numbers count as 0 in every step (cython_kernels/clock/denormals.pxd): is it so on this machine?"""
    wanted = "denormal numbers count as 0 in every step"
    if denormals_can_be_off():
        return Measure("denormals", wanted, True, wanted)
    return Measure("denormals", wanted, False, "denormal numbers stay on: no switch known for this processor")


# --- together -------------------------------------------------------------------------------------------------------


def prepare_process(lock: bool = True, root: Path = ROOT) -> list[Measure]:
    """Before the loop's thread starts. lock: lock_memory is wanted. Undo in reverse order."""
    measures = [short_gil_turns(), keep_heap(), prefault_heap(), hold_cpu_latency(root)]
    # last: it locks what the others have touched
    return [*measures, lock_memory()] if lock else measures


def prepare_loop_thread(priority: int, cpu: int | str) -> list[Measure]:
    """Set up the calling thread as loop thread. priority 0: ordinary scheduling, a rig configured so is degraded.
    Nothing to undo: the measures end with the thread."""
    ordinary = "ordinary scheduling, as configured (fifo_priority = 0)"
    measures = [
        warm_stack(),
        denormals(),
        set_affinity(choose_cpu(cpu)),
        timer_slack(),
        set_fifo(priority) if priority > 0 else Measure("priority", "SCHED_FIFO", False, ordinary),
    ]
    return [replace(m, of="loop", undo=None) for m in measures]


def prepare_participant(priority: int, lock: bool = False) -> list[Measure]:
    """Set up a participant process: priority below the loop's, exact timers, memory that stays; for all its life."""
    measures = [timer_slack(), keep_heap()]
    if lock:
        measures.append(lock_memory())
    if priority > 0:
        measures.append(set_fifo(priority))
    return [replace(m, undo=None) for m in measures]


def locked_limit() -> int | None:
    """Bytes this process may lock; None: no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return None if os.geteuid() == 0 or soft == resource.RLIM_INFINITY else soft
