"""The clock's rules with everything attached: the desk rig by a script, its replay, and the real clock's own parts."""

from __future__ import annotations

import resource
import threading
from typing import Any

import numpy as np
import pytest
from clock_script import BEGIN, MISSED, SLIPPED, T, play
from rig_help import DESK, rig_file
from waiting import PATIENCE_S

from torqueloop.cython_kernels.clock.loop_clock import ClockScript
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.rig.assemble.parts import RigParts, build
from torqueloop.hil.rig.resolve.plan import RigPlan, load_plan

MS = 1_000_000


def desk(plan: RigPlan, rows: list[tuple[int, int]], seconds: float) -> tuple[RigParts, np.ndarray[Any, Any], bytes]:
    """The desk rig without participants by a script, more ordinary ticks after its rows; samples and inputs."""
    parts = build(plan, seconds)
    parts.rig.set_script(ClockScript(rows + [(0, 9_000)] * 400, BEGIN))
    parts.rig.run()
    records = np.frombuffer(b"".join(iter(parts.samples.drain, b"")), signal_dtype(len(plan.recorded)))
    return parts, records, b"".join(iter(parts.inputs.drain, b""))


def stalls(n: int) -> list[tuple[int, int]]:
    """Small delays, a stall of 4 and one of 40 periods."""
    rows = [(7_000 + 131 * k % 900, 9_000 + 17 * k % 3000) for k in range(n)]
    rows[50], rows[90] = (7_000, 4 * MS + 300_000), (40 * MS, 9_000)
    return rows


def test_c16_run_with_dropped_ticks_replays_to_the_same_state():
    plan = load_plan(DESK)
    parts, records, inputs = desk(plan, stalls(200), 0.2)
    c = parts.rig.counters()
    assert (c["ticks"], c["dropped"], c["late_started"]) == (200, 35, 8) and c["lost_time_s"] == pytest.approx(0.035)
    assert [int(t) for t in np.flatnonzero(records["flags"] & SLIPPED)] == [90]
    assert [int(t) for t in np.flatnonzero(records["flags"] & MISSED)] == [51, 52, 53, 90, 91, 92, 93, 94]
    again, at = build(plan, 0.2), 0
    again.rig.begin(int(records["t_wall_ns"][0]))
    while at < len(inputs):
        at = again.rig.replay(inputs, at)
    assert again.rig.state_hash == parts.rig.state_hash
    replayed = np.frombuffer(b"".join(iter(again.samples.drain, b"")), records.dtype)
    assert replayed["out"].tobytes() == records["out"].tobytes()


def test_c2_ages_and_timeouts_count_from_arming():
    # nobody sends: pressures are required within 0.3 s of arming, whatever happened before
    plan = load_plan(DESK)
    for delay in (0, 700 * MS):
        parts, records, _ = desk(plan, [(delay, 9_000)], 0.4)
        cause = parts.rig.cause()
        assert (cause["cause"], cause["tick"]) == ("tcu_silent", 301)
        assert records["flags"][0] == 0


def test_c7_a_stall_ages_what_peers_sent_although_simulated_time_stood_still():
    # 0.31 s pass within tick 20: the next tick finds the control unit silent
    rows = [(0, 9_000)] * 20 + [(0, 310 * MS)]
    parts, _, _ = desk(load_plan(DESK), rows, 0.1)
    cause = parts.rig.cause()
    assert (cause["cause"], cause["tick"]) == ("tcu_silent", 21)
    assert parts.rig.counters()["dropped"] == 304, "309 periods late, 5 of them worked off"


def test_c15_books_cost_no_state_and_count_each_tick_once():
    parts, _, _ = desk(load_plan(DESK), stalls(150), 0.15)
    account, c = parts.rig.account, parts.rig.counters()
    for h in (account.lateness, account.compute, account.margin, *account.phases):
        assert h.count == c["ticks"] == 150
    assert account.worst()["by_compute"][0]["tick"] == 50 and account.worst()["by_lateness"][0]["tick"] == 90


def test_c11_and_c12_come_from_the_rig_file(tmp_path):
    edit = "clock.grace_s = 0.06\nclock.spin_us = 200"
    plan = load_plan(rig_file(tmp_path, edit))
    parts, records, _ = desk(plan, stalls(150), 0.15)
    c = parts.rig.counters()
    assert c["grace"]["ticks"] == 60 and c["grace"]["late_started"] == 3 and c["late_started"] == 5
    assert (records["flags"] & 256).tolist() == [256] * 60 + [0] * 90
    assert (records["wake_lateness_ns"][:50] == 0).all(), "delays below the spin"


# --- what only the real clock has -------------------------------------------------------------------------------------


def in_thread(rig: Rig) -> dict[str, int]:
    """Run on the real clock in a thread; what the kernel counted for the thread meanwhile."""
    found: dict[str, int] = {}

    def body() -> None:
        before = resource.getrusage(resource.RUSAGE_THREAD)
        rig.run()
        after = resource.getrusage(resource.RUSAGE_THREAD)
        names = {"ru_minflt": "minor_faults", "ru_majflt": "major_faults"}
        names |= {"ru_nvcsw": "voluntary_switches", "ru_nivcsw": "involuntary_switches"}
        found.update({words: getattr(after, key) - getattr(before, key) for key, words in names.items()})

    thread = threading.Thread(target=body)
    rig.arm()
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    return found


def test_c15_faults_and_switches_are_those_of_the_loops_thread():
    rig = Rig(4, 2e-3)
    rig.set_clock(n_ticks=60, grace_ticks=10, max_catch_up=1000)
    kernel = in_thread(rig)
    c = rig.counters()
    for name, total in kernel.items():
        assert 0 <= c[name] + c["grace"][name] <= total, name
    slept = 50 - c["late_started"] - c["overruns"]
    # not of every one: a thread that is preempted while it falls asleep has an involuntary switch instead
    assert c["voluntary_switches"] >= 0.8 * slept, "the sleep before each tick is a voluntary switch"
    worst = rig.account.worst()["by_compute"]
    assert len(worst) == 32 and sum(w["voluntary_switches"] for w in worst) > 0


def test_c12_spin_on_the_real_clock_wakes_never_before_the_grid_point():
    rig = Rig(4, 2e-3)
    rig.set_clock(n_ticks=40, spin_us=900.0, max_catch_up=1000)
    in_thread(rig)
    assert rig.tick == 40 and rig.lateness.negative == 0 and rig.lateness.count == 40


def test_c1_script_and_real_clock_run_the_same_loop():
    real, script = Rig(4, 2e-3), Rig(4, 2e-3)
    for rig in (real, script):
        rig.set_rig_slots(2, 3, 1, 1)
        rig.set_clock(n_ticks=30, max_catch_up=1000)
    in_thread(real)
    play([(0.0, 0.1)] * 30, rig=script, n_ticks=30)
    assert real.state_hash == script.state_hash and real.counters()["grid_points"] >= 30
    assert T == 1_000_000
