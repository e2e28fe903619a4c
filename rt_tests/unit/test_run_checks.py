"""What every run is held to: each count alone fails the check it belongs to, and how many may be lost of how many."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from torqueloop.hil.record.signals import Signals, signal_dtype
from torqueloop.hil.report.energy import EnergyBalance, energy_balance
from torqueloop.hil.report.run_checks import Check, _bus, _peer, _vehicle, check_run
from torqueloop.hil.results.clock import ClockStats
from torqueloop.hil.results.links import (
    BusStats,
    GatewayStats,
    LinkStats,
    NativeStats,
    ParticipantStats,
    RxMessage,
    VehicleStats,
)
from torqueloop.hil.results.run import RunStats, SafeState

LOST, MISSING = "no frame lost between tick and bus", "no frame of a control unit lost"
REFUSED, STOLEN = "no received frame refused", "nobody else sends our CAN messages"
CLEAN_GATEWAY, CLEAN_NATIVE = BusStats(gateway=GatewayStats()), BusStats(native=NativeStats())


def failed(bus: BusStats) -> list[Check]:
    return [check for check in _bus("", bus) if not check.passed]


@pytest.mark.parametrize("place", ["rx_dropped", "kernel_drops", "tx_failed", "rx_failed"])
def test_each_place_of_the_gateway_where_frames_are_lost_is_named_with_its_count(place: str) -> None:
    (check,) = failed(replace(CLEAN_GATEWAY, gateway=GatewayStats(**{place: 7})))
    assert (check.name, check.text, check.from_machine) == (LOST, f"{place} 7", True)


@pytest.mark.parametrize("place", ["rx_dropped", "tx_enobufs", "tx_again", "tx_down", "tx_failed"])
def test_each_place_of_the_socket_where_frames_are_lost_is_named_with_its_count(place: str) -> None:
    (check,) = failed(replace(CLEAN_NATIVE, native=NativeStats(**{place: 7})))
    assert (check.name, check.text, check.from_machine) == (LOST, f"{place} 7", True)


@pytest.mark.parametrize("place", ["rx_ring_dropped", "tx_dropped"])
def test_each_full_ring_is_named_with_its_count(place: str) -> None:
    for clean in (BusStats(), CLEAN_GATEWAY, CLEAN_NATIVE):
        (check,) = failed(replace(clean, **{place: 7}))
        assert (check.name, check.text) == (LOST, f"{place} 7")


@pytest.mark.parametrize(("lost", "rx", "tx", "counts"), [
    (3, 100, 199, True), (3, 100, 201, False), (3, 201, 100, False), (1, 0, 0, True), (1, 99, 2, False),
])  # fmt: skip
def test_more_than_one_frame_in_a_hundred_lost_fails_the_run(lost: int, rx: int, tx: int, counts: bool) -> None:
    (check,) = failed(BusStats(rx_frames=rx, tx_frames=tx, tx_dropped=lost))
    assert check.name == LOST and check.counts == counts


@pytest.mark.parametrize(("ok", "lost", "counts"), [
    ((9900, 0), (99, 0), False), ((9900, 0), (101, 0), True), ((100, 300), (3, 1), False), ((100, 300), (3, 2), True),
    ((0, 0), (0, 1), True),
])  # fmt: skip
def test_frames_missing_between_counters_are_a_share_of_those_sent(
    ok: tuple[int, int], lost: tuple[int, int], counts: bool
) -> None:
    names = ("A", "B")
    messages = {n: RxMessage(ok=k, lost=x) for n, k, x in zip(names, ok, lost, strict=True)}
    (check,) = failed(BusStats(rx=messages))
    said = ", ".join(f"{n} {x}" for n, x in zip(names, lost, strict=True) if x)
    assert (check.name, check.counts, check.text) == (MISSING, counts, f"missing between two counters: {said}")


@pytest.mark.parametrize("why", ["format", "length", "crc", "repeat", "jump", "range"])
def test_frames_that_are_refused_are_told_with_their_reason(why: str) -> None:
    (check,) = failed(BusStats(rx={"A": RxMessage(ok=5), "B": RxMessage(ok=6, **{why: 4})}, rx_bad=4))
    assert (check.name, check.counts, check.text) == (REFUSED, False, f"B {why} 4")


def test_a_bus_in_error_and_frames_of_others_are_told() -> None:
    native = NativeStats(bus_state="active", bus_state_worst="passive", errors={"bit": 0, "ack": 3})
    (check,) = failed(BusStats(native=native))
    assert (check.counts, check.text) == (False, "worst state passive; error frames: ack 3")
    for port in (GatewayStats(foreign_frames=2), NativeStats(foreign_frames=2)):
        ways = {"gateway": port} if isinstance(port, GatewayStats) else {"native": port}
        (check,) = failed(BusStats(foreign="A (0x11)", unheard="B", **ways))
        assert check.name == STOLEN and check.text.startswith("2 frames of another sender, first A (0x11)")
    (check,) = [c for c in _bus("", replace(CLEAN_NATIVE, unheard="B")) if c.name == STOLEN]
    assert (check.passed, check.text) == (True, "not received: B")


@pytest.mark.parametrize(("counts", "text", "fails"), [
    ({"lost": 3, "gap": 2, "accepted": 400}, "lost 3 in 2 gaps, of 403 answers", False),
    ({"lost": 5, "gap": 2, "accepted": 400}, "lost 5 in 2 gaps, of 405 answers", True),
    ({"duplicate": 3, "accepted": 400}, "duplicate 3 in 0 gaps, of 403 answers", False),
    ({"out_of_order": 5, "accepted": 400}, "out of order 5 in 0 gaps, of 405 answers", True),
    ({"rejected": {"range": 5}, "accepted": 400}, "refused (range) 5 in 0 gaps, of 405 answers", True),
])  # fmt: skip
def test_answers_of_the_vehicle_are_counted_by_what_became_of_them(counts: dict, text: str, fails: bool) -> None:
    check = _vehicle("van", VehicleStats(taken=11, refused=0, link=LinkStats(**counts)))
    assert (check.name, check.passed, check.text, check.counts) == ("no answer of the van lost", False, text, fails)
    assert _vehicle("van", VehicleStats(taken=11, link=LinkStats(accepted=400, gap=1))).passed
    check = _vehicle("van", VehicleStats(taken=3, refused=2, link=LinkStats(accepted=400)))
    assert check.text == "refused by the tick 2 in 0 gaps, of 402 answers"


def test_a_peer_fails_a_run_by_what_it_has_lost_unless_faults_were_injected() -> None:
    peer = ParticipantStats(exit_status=3, losses={"refused (crc)": 4})
    for faults in (False, True):
        check = _peer("TCU", peer, faults)
        assert (check.passed, check.counts, check.text) == (False, not faults, "refused (crc) 4; ended with status 3")
    check = _peer("TCU", ParticipantStats(exit_status=3), False)
    assert (check.passed, check.counts) == (False, False) and _peer(
        "TCU", ParticipantStats(exit_status=0), False
    ).passed


@pytest.mark.parametrize(("residual", "passes", "fails"), [
    (9e-7, True, False), (-9e-7, True, False), (2e-6, False, False), (-2e-6, False, False), (9e-3, False, False),
    (-9e-3, False, False), (0.02, False, True), (-0.02, False, True), (math.nan, False, True),
])  # fmt: skip
def test_energy_may_be_open_by_a_millionth_and_fails_from_a_hundredth_on(
    residual: float, passes: bool, fails: bool
) -> None:
    """Of the energy turned over, whether it is missing or too much."""
    run = SimpleNamespace(info=SimpleNamespace(over=True, state="ended", clock="virtual"), signals=None,
                          stats=RunStats(), incomplete=[])  # fmt: skip
    energy = EnergyBalance({"engine": 200.0}, {"C4": 150.0}, {"car": 50.0 - 200.0 * residual}, 200.0 * residual)
    checks = check_run(run, RunStats(), {}, energy)  # type: ignore[arg-type]
    (check,) = [c for c in checks if c.name == "energy balance closes"]
    assert (check.passed, check.counts) == (passes, fails)


def test_an_energy_balance_is_what_came_in_less_what_went_and_what_is_there() -> None:
    """From recorded energies; turned over is the larger of all that came and all that went."""
    names = ["engine.work", "C4.heat", "car.kinetic", "tyre.loss", "other.w"]
    records = np.zeros(5, signal_dtype(5))
    records["out"] = np.linspace([7.0, 1.0, 40.0, 0.0, 9.0], [107.0, 31.0, 95.0, 12.5, 8.0], 5)
    units = {**dict.fromkeys(names[:4], "J"), "other.w": "rad/s"}
    balance = energy_balance(None, Signals.of(names, units, 1e-3, records))
    assert balance is not None
    assert (balance.supplied_J, balance.lost_J, balance.stored_J) == (
        {"engine.work": 100.0}, {"C4.heat": 30.0, "tyre.loss": 12.5}, {"car.kinetic": 55.0})  # fmt: skip
    assert balance.residual_J == pytest.approx(2.5) and balance.residual_rel == pytest.approx(0.025)


def test_an_energy_that_goes_the_other_way_is_turned_over_on_the_other_side() -> None:
    """A load takes 20 J, an element gives 5 J back and the car comes down by 15 J: 130 J came, 115 J went."""
    balance = EnergyBalance({"engine": 110.0, "load": -20.0}, {"C4": 60.0, "fan": -5.0}, {"v": 35.0, "h": -15.0}, 15.0)
    assert (balance.turned_over_J, balance.residual_rel) == (130.0, pytest.approx(15.0 / 130.0))
    taken = EnergyBalance({"load": -90.0}, {"C4": 10.0}, {"v": -98.0}, -2.0)
    assert (taken.turned_over_J, taken.residual_rel) == (100.0, -0.02)


def test_an_energy_belongs_where_its_name_says() -> None:
    """By what stands behind the last dot; kinetic and potential energy by any part of the name. The first and the last
    sample count, whatever lies between."""
    parts = {"supplied": ["heat_pump.work", "loss_motor.work"], "lost": ["A.Heat", "tc.loss", "damper.dissipation"],
             "stored": ["car.kinetic", "potential.total", "shaft.KineticEnergy"]}  # fmt: skip
    names = [name for group in parts.values() for name in group]
    records = np.zeros(4, signal_dtype(len(names)))
    records["out"][[0, 2, 3]] = np.arange(len(names)) * np.array([[10.0], [999.0], [11.5]])
    balance = energy_balance(None, Signals.of(names, dict.fromkeys(names, "J"), 1e-3, records))
    assert balance is not None
    for group, terms in zip(parts.values(), (balance.supplied_J, balance.lost_J, balance.stored_J), strict=True):
        assert terms == {name: pytest.approx(1.5 * names.index(name)) for name in group}


@pytest.mark.parametrize(("clock", "missed", "lost_time_s", "text"), [
    ("real", 7, 0.25, "7 of 400 missed, 0.25 s of simulated time lost"), ("real", 7, None, "7 of 400 missed, 0 s "
     "of simulated time lost"), ("real", 0, 0.0, ""), ("real", None, 0.0, None), ("virtual", 7, 0.0, None),
])  # fmt: skip
def test_ticks_that_are_late_are_counted_on_the_real_clock(
    clock: str, missed: int | None, lost_time_s: float | None, text: str | None
) -> None:
    run = SimpleNamespace(info=SimpleNamespace(over=True, state="ended", clock=clock), signals=None,
                          stats=RunStats(), incomplete=[])  # fmt: skip
    stats = RunStats(ClockStats(ticks=400, missed=missed, lost_time_s=lost_time_s))
    found = [c for c in check_run(run, stats, {}, None) if c.name == "every tick on time"]  # type: ignore[arg-type]
    assert [(c.passed, c.text, c.counts) for c in found] == ([] if text is None else [(not text, text, False)])


def test_a_safe_state_fails_the_run_and_some_of_its_causes_are_the_machine_s() -> None:
    run = SimpleNamespace(info=SimpleNamespace(over=True, state="ended", clock="virtual"), signals=None,
                          stats=RunStats(), incomplete=[])  # fmt: skip
    for safe, text, machine in (
        (SafeState(), "", False),
        (SafeState(True, "too fast", "limit", 12), "latched at step 12: too fast", False),
        (SafeState(True, "silent", "tcu_silent", 0), "latched at step 0: silent", True),
    ):
        checks = check_run(run, RunStats(safe_state=safe), {}, None)  # type: ignore[arg-type]
        found = [(c.passed, c.text, c.from_machine) for c in checks if c.name == "no safe state"]
        assert found == [(not text, text, machine)]
