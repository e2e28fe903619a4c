"""Limits of the process that are raised or said, and what a measure of real time tells of itself."""

from __future__ import annotations

import sys

import pytest

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.realtime import limits, rtenv
from torqueloop.hil.results.run import Measure as Told

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
    told = rtenv.Measure("priority", "SCHED_FIFO 80", False, "refused", "grant it", of="loop").told()
    assert told == Told(
        name="priority", wanted="SCHED_FIFO 80", ok=False, in_force="refused", remedy="grant it", of="loop"
    )
    before = sys.getswitchinterval()
    measure = rtenv.short_gil_turns(0.002)
    assert measure.in_force == "GIL handed over after 2 ms" and sys.getswitchinterval() == 0.002
    assert measure.undo is not None
    measure.undo()
    assert sys.getswitchinterval() == before
