"""What every run is held to: each count alone fails the check it belongs to, and how many may be lost of how many."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torqueloop.hil.report.run_checks import Check, _bus, _peer, _vehicle
from torqueloop.hil.results.links import (
    BusStats,
    GatewayStats,
    LinkStats,
    NativeStats,
    PeerStats,
    RxMessage,
    VehicleStats,
)

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
    for port in (GatewayStats(stolen_ids=2), NativeStats(stolen_ids=2)):
        ways = {"gateway": port} if isinstance(port, GatewayStats) else {"native": port}
        (check,) = failed(BusStats(stolen="A (0x11)", unheard="B", **ways))
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
    peer = PeerStats(exit_status=3, losses={"refused (crc)": 4})
    for faults in (False, True):
        check = _peer("TCU", peer, faults)
        assert (check.passed, check.counts, check.text) == (False, not faults, "refused (crc) 4; ended with status 3")
    check = _peer("TCU", PeerStats(exit_status=3), False)
    assert (check.passed, check.counts) == (False, False) and _peer("TCU", PeerStats(exit_status=0), False).passed
