"""The doctor finds what is there, advises where something is not, and never fails itself."""

from __future__ import annotations

import pytest

from torqueloop.hil import doctor
from torqueloop.hil.doctor import Finding, examine, exit_status
from torqueloop.hil.rig import machine, rtenv


def test_every_look_gives_a_finding_with_text() -> None:
    findings = examine(probe_s=0.05)
    assert {"kernel", "SCHED_FIFO", "UDP multicast", "C compiler", "jitter"} <= {f.name for f in findings}
    assert all(f.text and f.level in ("ok", "note", "fail") for f in findings)
    # a note without advice helps nobody
    assert all(f.advice for f in findings if f.level == "fail")


def test_only_a_failure_changes_the_exit_status() -> None:
    assert exit_status([Finding("a", "ok", ""), Finding("b", "note", "")]) == 0
    assert exit_status([Finding("a", "ok", ""), Finding("b", "fail", "")]) == 1


def test_a_look_that_breaks_becomes_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> tuple[bool, str]:
        raise RuntimeError("odd system")

    monkeypatch.setattr(machine, "kernel_preemption", broken)
    found = examine(probe_s=0.0)[0]
    assert found.level == "note" and "odd system" in found.text


def test_refused_fifo_is_a_note_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rtenv, "set_fifo", lambda priority: rtenv.Measure("priority", "", False, "refused"))
    found = doctor.fifo()
    assert found.level == "note" and "refused" in found.text and "limits.conf" in found.advice


def test_small_memlock_limit_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _: (64 << 10, 64 << 10))
    found = doctor.memlock()
    assert (found.level, found.text) == ("note", "limit 64 KiB")


def test_missing_multicast_fails_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object) -> None:
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(doctor.socket.socket, "sendto", refused)
    found = doctor.multicast()
    assert found.level == "fail" and "unreachable" in found.text and "ip route" in found.advice


def test_late_wake_ups_fail_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0]

    def now() -> int:
        return clock[0]

    def oversleep(deadline: int) -> None:
        clock[0] = deadline + 800_000

    monkeypatch.setattr(doctor, "sleeper", lambda: (now, oversleep, "a clock that is late"))
    found = doctor.probe(0.1)
    assert found.level == "fail" and found.values is not None
    assert found.values["p50_us"] == pytest.approx(800.0) and found.values["max_us"] == pytest.approx(800.0)
