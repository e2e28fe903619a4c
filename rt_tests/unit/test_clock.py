"""Monotonic clock and absolute sleep."""

import signal
import threading
import time

from torqueloop.cython_kernels.clock import clock


def test_clock_is_python_s_monotonic_clock():
    before = time.monotonic_ns()
    now = clock.now_ns()
    assert before <= now <= time.monotonic_ns()


def test_wall_clock_is_python_s_wall_clock():
    assert abs(clock.now_wall_ns() - time.time_ns()) < 1_000_000_000


def test_sleep_never_wakes_before_its_deadline():
    for _ in range(20):
        deadline = clock.now_ns() + 1_000_000
        assert clock.sleep_until(deadline) >= deadline


def test_deadline_in_the_past_or_zero_returns_at_once():
    clock.sleep_until(clock.now_ns() - 1)
    clock.sleep_until(0)
    clock.sleep_until(-5)


def test_sleep_of_the_main_thread_survives_signals():
    # setitimer interrupts clock_nanosleep with EINTR several times; the sleep must still reach its deadline
    hits: list[int] = []
    old = signal.signal(signal.SIGALRM, lambda *_: hits.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
        deadline = clock.now_ns() + 60_000_000
        assert clock.sleep_until(deadline) >= deadline
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert hits, "no signal arrived: the test proved nothing"


def test_sleep_releases_the_gil():
    ran = threading.Event()
    threading.Timer(0.01, ran.set).start()
    clock.sleep_until(clock.now_ns() + 100_000_000)
    assert ran.is_set()


def test_busy_wait_lasts_at_least_its_time():
    before = clock.now_ns()
    clock.busy_wait(2_000_000)
    assert clock.now_ns() - before >= 2_000_000
