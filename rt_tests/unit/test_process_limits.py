"""Limits of the process that are raised or said, and what a measure of real time tells of itself."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.realtime import limits, rtenv
from torqueloop.hil.results.run import Measure as MeasureRow

INF = limits.resource.RLIM_INFINITY


@pytest.mark.parametrize(("files", "space", "raised_to", "said"), [
    ((1024, 8192), (INF, INF), 4096, ""), ((1024, 2000), (INF, INF), 2000, ""), ((1024, INF), (INF, INF), 4096, ""),
    ((5000, 8192), (INF, INF), None, ""), ((INF, INF), (2 << 30, INF), None, ""),
    ((4096, 4096), (1 << 30, 1 << 30), None, ""),
    ((64, 64), (INF, INF), None, "may open 64 files"), ((64, 80), (INF, INF), 80, "may open 80 files"),
    ((4096, 4096), (512 << 20, INF), None, "may map 524288 kB"),
])  # fmt: skip
def test_limits_of_the_process_are_raised_or_said(
    files: tuple[int, int], space: tuple[int, int], raised_to: int | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(soft, hard) of open files and of the address space; a rig needs 96 files and 1 GiB."""
    table = {limits.resource.RLIMIT_NOFILE: files, limits.resource.RLIMIT_AS: space}
    told: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(limits.resource, "getrlimit", table.__getitem__)
    monkeypatch.setattr(limits.resource, "setrlimit", lambda which, pair: told.append((which, pair)))
    if said:
        with pytest.raises(ConfigError, match=said):
            limits.check_limits()
    else:
        limits.check_limits()
    assert told == ([] if raised_to is None else [(limits.resource.RLIMIT_NOFILE, (raised_to, files[1]))])


def test_a_measure_says_what_was_wanted_and_what_is_in_force() -> None:
    told = rtenv.Measure("priority", "SCHED_FIFO 80", False, "refused", "grant it", of="loop").report()
    assert told == MeasureRow(
        name="priority", wanted="SCHED_FIFO 80", ok=False, in_force="refused", remedy="grant it", of="loop"
    )
    before = sys.getswitchinterval()
    measure = rtenv.short_gil_turns(0.002)
    assert measure.in_force == "GIL handed over after 2 ms" and sys.getswitchinterval() == 0.002
    assert measure.undo is not None
    measure.undo()
    assert sys.getswitchinterval() == before


class Libc:
    """Notes what it is asked for and answers as it is told: name -> answer, else 0."""

    def __init__(self, **answers: int) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.answers = answers

    def __getattr__(self, name: str) -> Callable[..., int]:
        def asked(*given: object) -> int:
            self.calls.append((name, *given))
            return self.answers.get(name, 0)

        return asked


def test_memory_is_kept_by_the_numbers_of_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """malloc.h of glibc: M_TRIM_THRESHOLD -1, M_MMAP_THRESHOLD -3, M_MMAP_MAX -4, by default 128 KiB, 128 KiB and
    65536; mman.h: MCL_CURRENT 1, MCL_FUTURE 2; prctl.h: PR_SET_TIMERSLACK 29, PR_GET_TIMERSLACK 30."""
    libc = Libc(mallopt=1, prctl=0)
    monkeypatch.setattr(rtenv, "_libc", lambda: libc)
    monkeypatch.setattr(rtenv, "_linux", lambda: True)
    kept = rtenv.keep_heap()
    assert kept.ok and libc.calls == [("mallopt", -1, -1), ("mallopt", -4, 0)]
    libc.calls.clear()
    assert kept.undo is not None
    kept.undo()
    default = [("mallopt", -1, 131072), ("mallopt", -3, 131072), ("mallopt", -4, 65536), ("malloc_trim", 0)]
    assert libc.calls == default
    libc.calls.clear()
    locked = rtenv.lock_memory()
    assert locked.ok and libc.calls == [("mlockall", 3)]
    libc.calls.clear()
    exact = rtenv.timer_slack()
    assert exact.ok and libc.calls == [("prctl", 29, 1, 0, 0, 0), ("prctl", 30, 0, 0, 0, 0)]
    assert exact.in_force == "timer slack 0 ns"
    refusing = Libc(mallopt=0, mlockall=-1)
    monkeypatch.setattr(rtenv, "_libc", lambda: refusing)
    assert not rtenv.keep_heap().ok and refusing.calls == [("mallopt", -1, -1), *default]
    refusing.calls.clear()
    assert not rtenv.lock_memory().ok and refusing.calls == [("mlockall", 3), ("munlockall",)]
