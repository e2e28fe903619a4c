"""Clock semantics on the real clock: overruns are provoked by burning CPU in chosen ticks. No upper bounds on time."""

import threading

import pytest
from waiting import PATIENCE_S

from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.rig.assemble.safe_state import Watchdog, describe

TICK_S = 5e-3
MS = 1_000_000


def loop(rig: Rig, watchdog: Watchdog | None = None) -> None:
    thread = threading.Thread(target=rig.run)
    thread.start()
    rig.arm()
    if watchdog is not None:
        watchdog.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    if watchdog is not None:
        watchdog.stop()


def bare(n_ticks: int = 60, **clock) -> Rig:
    rig = Rig(10, TICK_S)
    rig.set_clock(n_ticks=n_ticks, **clock)
    return rig


def test_catch_up_runs_every_late_tick_and_loses_no_simulated_time():
    # 3.5 periods: ticks 21, 22, 23 begin late; a stall from outside may add to them, and only beyond 50 would be
    # dropped
    rig = bare(policy="catch_up", max_catch_up=50)
    rig.inject_busy(20, 1, int(3.5 * TICK_S * 1e9))
    loop(rig)
    c = rig.counters()
    assert c["ticks"] == 60 and c["overruns"] >= 3 and c["missed"] == c["late_started"] + c["dropped"]
    assert c["late_started"] >= 2 and c["margin_min_us"] < 0


def test_catch_up_drops_what_is_further_behind_than_its_limit():
    rig = bare(policy="catch_up", max_catch_up=2)
    rig.inject_busy(20, 1, int(6.5 * TICK_S * 1e9))
    loop(rig)
    c = rig.counters()
    assert c["dropped"] >= 3 and c["lost_time_s"] == pytest.approx(c["dropped"] * TICK_S)


def test_skip_drops_all_missed_grid_points_at_once():
    rig = bare(policy="skip")
    rig.inject_busy(20, 1, int(3.5 * TICK_S * 1e9))
    loop(rig)
    c = rig.counters()
    assert c["dropped"] >= 2 and c["late_started"] == 0 and c["missed"] == c["dropped"]
    assert c["lost_time_s"] == pytest.approx(c["dropped"] * TICK_S)


def test_stop_latches_and_ends_at_the_first_missed_tick():
    rig = bare(policy="stop")
    rig.inject_busy(20, 1, int(2.5 * TICK_S * 1e9))
    loop(rig)
    assert rig.counters()["ticks"] <= 22
    assert rig.cause()["cause"] == "missed" and "whole periods late" in describe(rig.cause())


def test_overruns_in_a_row_latch_the_safe_state():
    rig = bare(policy="catch_up", max_catch_up=5, overrun_limit=10)
    rig.inject_busy(5, 40, int(1.3 * TICK_S * 1e9))
    loop(rig)
    cause = rig.cause()
    assert cause["cause"] == "overruns" and cause["detail"] >= 10
    assert "overruns in a row" in describe(cause)


def test_hung_loop_is_seen_by_the_watchdog_and_latched_when_it_comes_back():
    rig = bare(40)
    # a machine that does not run the watchdog either for two seconds changes nothing
    rig.inject_busy(10, 1, 3_000 * MS)
    watchdog = Watchdog(rig, 0.5)
    loop(rig, watchdog)
    assert watchdog.hung and watchdog.longest_s > 0.5
    assert rig.cause()["cause"] in ("hung", "overruns")
    assert rig.safe_latched


def test_watchdog_leaves_a_healthy_loop_alone():
    rig = bare(100)
    watchdog = Watchdog(rig, 2.0)
    loop(rig, watchdog)
    assert not watchdog.hung and not rig.safe_latched


def test_stop_from_another_thread_ends_the_loop():
    rig = bare(-1)
    thread = threading.Thread(target=rig.run)
    thread.start()
    rig.arm()
    while rig.tick < 5:
        pass
    rig.stop()
    thread.join(PATIENCE_S)
    assert not thread.is_alive() and not rig.running and rig.tick >= 5


def test_first_request_from_outside_wins():
    rig = bare()
    assert rig.request_safe("thread", 7) and not rig.request_safe("bus", 8)
    rig.begin(0)
    rig.ticks(1, 0)
    assert rig.cause() == {"latched": True, "cause": "thread", "detail": 7, "bus": -1, "tick": 0, "frozen": False}
