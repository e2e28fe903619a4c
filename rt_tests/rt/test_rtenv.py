"""Each real-time measure says what is in force, is in force, and can be undone; a run keeps the list."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rig_help import Car, Unit, rig_file, run

from torqueloop.cython_kernels.clock.rt_thread import denormals_can_be_off, denormals_kept, prefault_stack, thread_usage
from torqueloop.cython_kernels.rings.ring import DataRing
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.realtime import rtenv
from torqueloop.hil.realtime.machine import choose_cpu, cpu_list, idle_states, kernel_preemption


def in_thread(body: Callable[[], Any]) -> Any:
    """The result of body in a thread that is thrown away, with everything set up in it."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(body()))
    thread.start()
    thread.join()
    assert found, "the thread failed"
    return found[0]


def status_kb(key: str) -> int:
    """A line of /proc/self/status in KiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1])
    raise AssertionError(key)


def allowed(measure: rtenv.Measure) -> rtenv.Measure:
    if not measure.ok:
        pytest.skip(measure.reason)
    return measure


def undo(measure: rtenv.Measure) -> None:
    assert measure.undo is not None
    measure.undo()


def test_locked_memory_is_locked_until_undone() -> None:
    measure = allowed(rtenv.lock_memory())
    assert status_kb("VmLck") > 1000
    undo(measure)
    assert status_kb("VmLck") == 0


def test_priority_and_slack_and_cpu_are_in_force_and_undone() -> None:
    def body() -> list[Any]:
        slack, fifo, cpu = rtenv.timer_slack(), rtenv.set_fifo(41), rtenv.set_affinity(min(os.sched_getaffinity(0)))
        if not fifo.ok:
            return [fifo]
        during = (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority, len(os.sched_getaffinity(0)))
        for measure in (cpu, fifo, slack):
            undo(measure)
        after = (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority, len(os.sched_getaffinity(0)))
        return [fifo, slack, during, after]

    before = len(os.sched_getaffinity(0))
    found = in_thread(body)
    allowed(found[0])
    assert found[2] == (os.SCHED_FIFO, 41, 1)
    assert found[3] == (os.SCHED_OTHER, 0, before)
    assert found[1].ok and found[1].in_force == "timer slack 1 ns"


def test_heap_keeps_what_was_touched() -> None:
    """16 MiB touched and freed stay with the process; after undoing, malloc gives them back."""
    if not hasattr(ctypes.CDLL(None), "mallopt"):
        pytest.skip("this C library has no mallopt")
    with rtenv.Setup() as setup:
        setup.take(rtenv.keep_heap(), rtenv.prefault_heap())
        assert all(m.ok for m in setup.measures)
        held = status_kb("VmRSS")
        rtenv.prefault_heap()
        # the second time the same pages serve: nothing was given back, nothing new is taken
        assert abs(status_kb("VmRSS") - held) < 1024
    assert held - status_kb("VmRSS") > 8 * 1024


def test_stack_is_touched_once() -> None:
    """The pages that were touched are there: touching them again takes no fault."""

    def body() -> tuple[int, int]:
        before = thread_usage()["minor_faults"]
        prefault_stack(rtenv.STACK_BYTES)
        first = thread_usage()["minor_faults"]
        prefault_stack(rtenv.STACK_BYTES)
        return first - before, thread_usage()["minor_faults"] - first

    first, again = in_thread(body)
    assert first > 20 and again <= 1, (first, again)
    with pytest.raises(ValueError, match="allowed"):
        prefault_stack(0)


def test_cpu_latency_is_held_while_open(tmp_path: Path) -> None:
    """A file stands for the device: 32-bit 0 is written, the file stays open until undone."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "cpu_dma_latency").write_bytes(b"")
    fds = len(os.listdir("/proc/self/fd"))
    measure = rtenv.hold_cpu_latency(tmp_path)
    assert measure.ok and (tmp_path / "dev" / "cpu_dma_latency").read_bytes() == b"\0\0\0\0"
    assert len(os.listdir("/proc/self/fd")) == fds + 1
    undo(measure)
    assert len(os.listdir("/proc/self/fd")) == fds


def test_missing_cpu_latency_matters_only_with_idle_states(tmp_path: Path) -> None:
    assert rtenv.hold_cpu_latency(tmp_path).ok
    for k, (name, latency, disable) in enumerate([("POLL", 0, 0), ("C1", 2, 0), ("C6", 133, 0), ("C10", 890, 1)]):
        state = tmp_path / f"sys/devices/system/cpu/cpu0/cpuidle/state{k}"
        state.mkdir(parents=True)
        for key, value in (("name", name), ("latency", latency), ("disable", disable)):
            (state / key).write_text(f"{value}\n")
    assert idle_states(tmp_path) == {"POLL": 0, "C1": 2, "C6": 133}
    measure = rtenv.hold_cpu_latency(tmp_path)
    assert not measure.ok and "C6 takes 133 us" in measure.in_force and "udev" in measure.remedy


def test_gc_is_off_and_comes_back() -> None:
    assert gc.isenabled()
    with rtenv.Setup() as setup:
        setup.take(rtenv.freeze_gc())
        assert not gc.isenabled() and gc.get_freeze_count() > 0
    assert gc.isenabled() and gc.get_freeze_count() == 0


def test_turns_of_the_gil_are_short_until_undone() -> None:
    before = sys.getswitchinterval()
    with rtenv.Setup() as setup:
        setup.take(rtenv.short_gil_turns())
        assert sys.getswitchinterval() == pytest.approx(rtenv.GIL_TURN_S)
    assert sys.getswitchinterval() == before


def test_cycles_are_freed_while_the_collector_is_off() -> None:
    class Node:
        pass

    with rtenv.Setup() as setup:
        setup.take(rtenv.freeze_gc())
        node = Node()
        node.itself = node
        seen = weakref.ref(node)
        del node
        assert seen() is not None
        rtenv.collect_young()
        assert seen() is None and not gc.isenabled()


def test_denormals_are_off_in_steps_only() -> None:
    assert denormals_can_be_off() == rtenv.denormals().ok
    assert denormals_kept(), "Python computes as always"


def test_cpus_are_chosen_and_read(tmp_path: Path) -> None:
    assert cpu_list("0-2,5") == {0, 1, 2, 5} and cpu_list("") == cpu_list(None) == set()
    folder = tmp_path / "sys/devices/system/cpu"
    folder.mkdir(parents=True)
    (folder / "isolated").write_text("0\n")
    assert choose_cpu("auto", tmp_path) == 0 and choose_cpu("none") is None and choose_cpu(3) == 3
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/version").write_text("#1 SMP PREEMPT_DYNAMIC Debian\n")
    assert kernel_preemption(tmp_path) == (False, "kernel: SMP PREEMPT_DYNAMIC Debian, not PREEMPT_RT")
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/kernel/realtime").write_text("1\n")
    assert kernel_preemption(tmp_path)[0]


def test_a_run_keeps_the_list_and_undoes_it(tmp_path: Path) -> None:
    result = run(rig_file(tmp_path), tmp_path / "run", 0.2, Car(), Unit())
    listed = json.loads((tmp_path / "run" / "run.json").read_text())["realtime"]
    assert {m["name"] for m in listed} == {"denormals", "garbage collection"}
    assert all({"name", "wanted", "ok", "in_force", "of"} <= set(m) for m in listed)
    assert result.stats.degraded == [m["in_force"] for m in listed if not m["ok"]]
    assert gc.isenabled()


def test_denormal_inputs_count_as_zero_on_every_way_a_tick_runs() -> None:
    """A signal of 1e-310 times 1: the wiring copies it as 0 when the tick runs virtually, in replay and in the loop."""
    if not denormals_can_be_off():
        pytest.skip("denormal numbers cannot be switched off on this processor")

    def rig(inputs: DataRing | None = None) -> Rig:
        made = Rig(16, 1e-3)
        made.set_initial({3: 1e-310, 4: 2.0})
        made.set_wiring([], [(3, 5, 1.0, 0.0), (4, 6, 1.0, 0.0)], [])
        made.set_record([], None, inputs, None, None)
        made.set_clock(n_ticks=2)
        return made

    records = DataRing(1 << 12)
    virtual, replayed, real = rig(records), rig(), rig()
    virtual.begin(0)
    virtual.ticks(2, 0)
    replayed.begin(0)
    for chunk in iter(records.drain, b""):
        at = 0
        while at < len(chunk):
            at = replayed.replay(chunk, at)
    real.arm()
    in_thread(lambda: real.run() or True)
    for one in (virtual, replayed, real):
        assert one.tick == 2 and one.value(5) == 0.0 and one.value(6) == 2.0
    assert virtual.state_hash == replayed.state_hash
    assert denormals_kept(), "and Python has its denormal numbers back"
