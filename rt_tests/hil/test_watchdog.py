"""The watchdog: independent of the GIL and of the loop, and what a hang leads to."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rig_help import children, rig_file
from waiting import PATIENCE_S, wait_for

from torqueloop.cython_kernels.clock.clock import now_ns
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.realtime.rtenv import set_fifo
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.report.report import analyse
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.assemble.safe_state import Watchdog
from torqueloop.hil.rig.resolve.plan import load_plan

MS = 1_000_000
#: a loop hangs for so long [ms], and is found after LIMIT_S: a machine that does not run the watchdog either for two
#: seconds in between changes nothing
HANG_MS, LIMIT_S = 3_000, 0.5
#: usleep called with the GIL held, as a C extension does that forgets to release it
HOLDING_THE_GIL = ctypes.PyDLL(None)


@contextmanager
def gil_held() -> Iterator[None]:
    """No other Python thread runs meanwhile, between two calls neither."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def started(rig: Rig) -> threading.Thread:
    thread = threading.Thread(target=rig.run, daemon=True)
    thread.start()
    return thread


def test_a_hang_is_found_and_muted_while_somebody_holds_the_gil() -> None:
    rig = Rig(10, 5e-3)
    rig.set_clock(n_ticks=100)
    rig.inject_busy(4, 1, HANG_MS * MS)
    watchdog = Watchdog(rig, LIMIT_S)
    loop = started(rig)
    watchdog.start()
    # both are in their loops, which need the GIL no more
    wait_for(lambda: rig.heartbeat > 0 and watchdog._watch.looks > 0, loop.is_alive)
    rig.arm()
    with gil_held():
        while not watchdog.hung_ns and rig.tick <= 4:
            HOLDING_THE_GIL.usleep(10_000)
        released = now_ns()
    assert 0 < watchdog.hung_ns < released, "no Python ran meanwhile"
    assert rig.muted
    loop.join(PATIENCE_S)
    watchdog.stop()
    assert rig.cause()["cause"] == "hung" and rig.state == "safe"


def test_python_in_the_watchdogs_thread_never_runs_above_the_loop() -> None:
    if not set_fifo(2).ok:
        pytest.skip("no right to SCHED_FIFO")
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    rig = Rig(10, 5e-3)
    seen: list[int] = []

    class Looking(Watchdog):
        def run(self) -> None:
            seen.append(os.sched_getscheduler(0))
            super().run()
            seen.append(os.sched_getscheduler(0))

    watchdog = Looking(rig, 5.0, 2)
    watchdog.start()
    assert watchdog.native_id is not None
    wait_for(lambda: os.sched_getscheduler(watchdog.native_id) == os.SCHED_FIFO)
    assert os.sched_getparam(watchdog.native_id).sched_priority == 2
    watchdog.stop()
    assert seen == [os.SCHED_OTHER, os.SCHED_OTHER]


def test_a_loop_that_comes_back_goes_to_the_safe_state_at_once_and_sends_nothing_more(tmp_path: Path) -> None:
    plan = load_plan(rig_file(tmp_path, "safe_state.overrun_limit = 0", "vehicle.age_limit_s = 60.0"))
    parts = build(plan, 60.0)
    rig = parts.rig
    rig.inject_busy(50, 1, HANG_MS * MS)
    watchdog = Watchdog(rig, LIMIT_S)
    loop = started(rig)
    rig.arm()
    watchdog.start()
    wait_for(lambda: watchdog.hung, loop.is_alive)
    parts.buses[0].tx_ring.pop_all()
    version = parts.vehicle_out.version
    loop.join(PATIENCE_S)
    watchdog.stop()
    cause = rig.cause()
    assert cause["cause"] == "hung" and cause["detail"] >= 1e3 * LIMIT_S
    assert cause["tick"] == 51, "the first tick after the one that hung"
    assert rig.tick == 51 + 1001, "one second of safe state, as the rig file says"
    assert parts.buses[0].tx_ring.pop_all() == [] and parts.vehicle_out.version == version
    assert parts.buses[0].tx.counters()["HIL_Speeds"]["sent"] > 10, "frames are made, for a replay"
    speed = plan.table.slot("input.engine.pedal")
    assert rig.value(speed) == 0.0


def test_a_watchdog_that_was_not_run_itself_does_not_accuse() -> None:
    """Stopped as a whole (a debugger, a paused machine), neither loop nor watchdog ran: that is no hang."""
    code = (
        "import threading\n"
        "from torqueloop.cython_kernels.tick.rig import Rig\n"
        "from torqueloop.hil.rig.assemble.safe_state import Watchdog\n"
        "rig = Rig(10, 5e-3)\n"
        "rig.set_clock(n_ticks=300, policy='skip')\n"
        "w = Watchdog(rig, 0.5)\n"
        "t = threading.Thread(target=rig.run); t.start(); rig.arm(); w.start()\n"
        "while rig.tick < 5: pass\n"
        "print('running', flush=True)\n"
        "t.join(); w.stop()\n"
        "print(w.hung, rig.counters()['dropped'] > 100, flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    process.send_signal(signal.SIGCONT)
    assert process.stdout.readline() == "False True\n"
    assert process.wait(PATIENCE_S) == 0


HANG = (
    "import sys; from torqueloop.hil.rig.run.session import RunSpec, run_rig; "
    "r = run_rig(sys.argv[1], RunSpec('real', 60.0, sys.argv[2], inject_busy=(300, 1, 10**18))); "
    "sys.exit(r.exit_status)"
)


@pytest.mark.proof
@pytest.mark.usefixtures("multicast")
def test_a_loop_that_never_returns_ends_as_hung_with_report_and_status(tmp_path: Path) -> None:
    rig = rig_file(
        tmp_path,
        "bus.powertrain.rx_timeout_s.TCU_Pressure_1 = 50.0",
        "bus.powertrain.rx_timeout_s.TCU_Pressure_2 = 50.0",
        "vehicle.age_limit_s = 50.0",
        own_bus=True,
    )
    out = tmp_path / "r"
    process = subprocess.Popen([sys.executable, "-c", HANG, str(rig), str(out)], stderr=subprocess.PIPE)
    try:
        assert process.wait(PATIENCE_S) == 1, process.stderr.read().decode() if process.stderr else ""
    finally:
        process.kill()
    info = read_run_info(out)
    assert info.state == "hung" and info.ended
    assert info.stats.safe_state.kind == "hung" and "no heartbeat" in info.stats.safe_state.cause
    signals = read_signals(out)
    assert signals.closed and signals.tick[-1] == 299, "every tick before the one that hangs is recorded"
    report = analyse(out)
    failed = [c.name for c in report.checks if c.counts and not c.passed]
    assert "the run ended by itself" in failed and "no safe state" in failed
    assert children(process.pid) == []
