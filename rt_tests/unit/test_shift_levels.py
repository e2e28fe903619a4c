"""What is looked at around a shift: levels of the acceleration, the pedal, and whether the output moves at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_drive_monitors import T, drive, quality, seen

from torqueloop.hil.report import drive_monitors
from torqueloop.hil.report.shift_quality import LEVEL_S


def test_levels_are_means_over_their_window() -> None:
    a = np.random.default_rng(3).normal(size=200)
    n = round(LEVEL_S / 0.01)
    assert n > 3
    assert drive_monitors._levels(a, T[:200]) == pytest.approx([a[k : k + n].mean() for k in range(201 - n)])
    assert len(drive_monitors._levels(a[: n - 1], T[: n - 1])) == 0


@pytest.mark.parametrize(("pedal", "share"), [
    (np.where(T < 4.0, 1.0, 0.0), 0.4),  # long before the shift
    (np.where(T > 6.0, 1.0, 0.0), 0.4),  # long behind it
    (np.where(abs(T - 4.6) < 0.01, 0.1, 0.0), 0.7),
    (np.where(abs(T - 5.7) < 0.01, 0.1, 0.0), 0.7),
    (np.full(len(T), 0.9), 1.0), (None, 1.0),
])  # fmt: skip
def test_the_limit_of_a_hard_shift_follows_the_largest_pedal_around_it(pedal: Any, share: float) -> None:
    """A shift from 5.0 to 5.5 s; 2 of 5 m/s2 without the pedal, 5 from 20 % on."""
    assert drive_monitors._share_of_limit(drive(pedal=pedal), quality(5.0, 5.5)) == pytest.approx(share)


@pytest.mark.parametrize(("speed", "judged"), [(1.9, False), (2.1, True), (-2.1, True)])
def test_actuators_are_judged_once_the_output_has_moved(speed: float, judged: bool) -> None:
    d = drive(w_out=np.where(abs(T - 3.0) < 0.1, speed, 0.0), column=lambda name: np.zeros(len(T)))
    found = seen("actuator_still", d, actuators=["valve"])
    assert (found is not None) == judged and (found is None or found.failed)
