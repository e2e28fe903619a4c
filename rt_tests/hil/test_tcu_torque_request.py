"""The torque request of the soft TCU, by itself: its share in the inertia phase and its way back."""

from __future__ import annotations

import pytest

from torqueloop.hil.ecu.torque_request import TorqueReduction, TorqueRequest

DT = 5e-3
TABLE = TorqueReduction(reduction=0.3, return_s=0.15, least_Nm=40.0)


def test_in_the_inertia_phase_of_a_shift_up_it_asks_for_its_share_of_the_drivers_torque() -> None:
    request = TorqueRequest(TABLE, DT)
    for driver in (100.0, 250.0, 41.0):
        request.step(True, "inertia", driver)
        assert request.active and request.limit == pytest.approx(0.7 * driver)


NO_REQUEST = [(False, "inertia", 200.0), (True, "torque", 200.0), (True, "inertia", 39.0), (False, None, 200.0)]


@pytest.mark.parametrize(("upshift", "stage", "driver"), NO_REQUEST)
def test_it_asks_for_nothing_downwards_in_other_phases_and_below_its_least_torque(
    upshift: bool, stage: str | None, driver: float
) -> None:
    request = TorqueRequest(TABLE, DT)
    request.step(upshift, stage, driver)
    assert not request.active


def test_it_comes_back_within_return_s_and_ends_at_the_drivers_torque() -> None:
    """T' = T_driver / return_s: from 0.7 T_driver it takes 0.3 return_s = 43 ms of 0.145 s, nine steps of 5 ms."""
    request = TorqueRequest(TorqueReduction(reduction=0.3, return_s=0.145), DT)
    request.step(True, "inertia", 200.0)
    limits = []
    while request.active:
        request.step(True, "closing", 200.0)
        limits.append(request.limit)
    assert len(limits) == 9 and limits == pytest.approx([140.0 + 200.0 * DT / 0.145 * (k + 1) for k in range(9)])


def test_a_driver_who_lets_go_ends_it_and_a_small_torque_comes_back_at_the_rate_of_the_least_one() -> None:
    request = TorqueRequest(TABLE, DT)
    request.step(True, "inertia", 200.0)
    request.step(True, "closing", 10.0)
    assert not request.active and request.limit == pytest.approx(140.0 + 40.0 * DT / 0.15)


def test_without_a_table_there_is_no_request() -> None:
    request = TorqueRequest(None, DT)
    request.step(True, "inertia", 300.0)
    assert not request.active
