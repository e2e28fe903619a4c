"""Numbers of small tools that people read: when metrics of two runs are alike, how long a datagram takes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from torqueloop.hil.doctor import rights
from torqueloop.hil.runs.compare import _alike


@pytest.mark.parametrize(
    ("x", "y", "alike"),
    [(100.0, 100.9, True), (100.0, 101.1, False), (-100.0, -100.9, True), (-101.005, -100.0, True),
     (101.005, 100.0, True), (-101.015, -100.0, False), (1.0, -1.0, False), (2e-10, 9e-10, True),
     (1e-9, 1.2e-8, False), (math.nan, math.nan, True), (0.0, 5e-10, True), ("a", "b", False), (None, 1.0, False)],
)  # fmt: skip
def test_metrics_are_alike_within_a_part_of_the_larger_or_a_billionth(x: Any, y: Any, alike: bool) -> None:
    assert _alike(x, y, 0.01) == _alike(y, x, 0.01) == alike


def test_the_doctor_tells_the_round_trip_of_a_datagram_in_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([5_000_000, 5_250_000])
    monkeypatch.setattr(rights.time, "monotonic_ns", lambda: next(clock))
    found = rights.multicast()
    assert found.level == "ok" and found.values == {"round_trip_us": 250.0} and "after 250 µs" in found.text
