"""Protection of CAN messages against code of others: `autosar-e2e` (AUTOSAR), `opendbc` (makers), by hand else.

Each rule: our frames are right for the independent code, theirs for ours, and every single flipped bit is refused by
both; a refused frame leaves signals and counters of the receiver as they are and is counted by its reason.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from torqueloop.cython_kernels.can import codec as k
from torqueloop.cython_kernels.can.codec import CodecTables, RxState, TxState
from torqueloop.cython_kernels.can.codec_spec import MessageSpec, SignalSpec
from torqueloop.cython_kernels.can.crc import Crc
from torqueloop.cython_kernels.can.protection import E2E_PROFILES
from torqueloop.hil.can.protect import E2ESettings, owned_signals

pytest.importorskip("e2e", reason="autosar-e2e is not installed")
pytest.importorskip("opendbc.can", reason="opendbc is not installed")

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "rt_tests" / "judges"))

from judgetools.rules import IDS, RULES, Rule, autosar, flipped  # noqa: E402

FD = 4


def message(profile: str, length: int, free: list[int], can_id: int, **more: object) -> MessageSpec:
    """A received message whose free bits are a signal each."""
    signals = tuple(SignalSpec(f"b{bit}", bit, 1, slot=i) for i, bit in enumerate(free))
    return MessageSpec("P", can_id, can_id > 0x7FF, length, True, signals, e2e=profile, fd=length > 8,
                       **more)  # type: ignore[arg-type]  # fmt: skip


def spec_of(rule: Rule) -> MessageSpec:
    """The codec's description of a rule's message."""
    renamed = {"offset": "e2e_offset", "init": "e2e_init", "xorout": "e2e_xorout"}
    more = {renamed.get(k, k): tuple(v) if isinstance(v, list) else v for k, v in rule.settings.items()}
    return message(rule.profile, rule.length, rule.free, rule.can_id, crc_bits=rule.crc, counter=rule.counter, **more)


def frames_of(spec: MessageSpec, seed: int, n: int) -> list[bytes]:
    sender = TxState(CodecTables([replace(spec, receive=False)], len(spec.signals)))
    rng = np.random.default_rng(seed)
    return [sender.encode(rng.integers(0, 2, len(spec.signals)).astype(float), 0)[2] for _ in range(n)]


@pytest.mark.parametrize("name", RULES)
def test_our_frames_are_right_for_the_independent_code_and_for_us(name: str) -> None:
    rule, spec = RULES[name], spec_of(RULES[name])
    receiver = RxState(CodecTables([spec], len(spec.signals)))
    for data in frames_of(spec, 1, 40):
        assert rule.right(data) and rule.protect(data) == data, data.hex()
        frame_id = spec.can_id | (0x80000000 if spec.extended else 0)
        assert receiver.decode(np.zeros(len(spec.signals)), frame_id, data, 0, FD * spec.fd) == k.OK


@pytest.mark.parametrize("name", RULES)
def test_every_flipped_bit_is_refused_by_both_and_changes_nothing(name: str) -> None:
    rule, spec = RULES[name], spec_of(RULES[name])
    n = len(spec.signals)
    receiver, table = RxState(CodecTables([spec], n)), np.full(n, -1.0)
    frame_id = spec.can_id | (0x80000000 if spec.extended else 0)
    first, second = frames_of(spec, 2, 2)
    assert receiver.decode(table, frame_id, first, 0, FD * spec.fd) == k.OK
    before = table.copy()
    assert len(rule.flips) == 8 * spec.length or rule.profile in ("HYUNDAI_SUM6", "HYUNDAI_BITS", "PARITY_01")
    for count, bit in enumerate(rule.flips, start=1):
        bad = flipped(second, bit)
        assert not rule.right(bad), f"bit {bit}: the independent code takes it"
        assert receiver.decode(table, frame_id, bad, 0, FD * spec.fd) == k.CRC, f"bit {bit}"
        assert receiver.counters()["P"]["crc"] == count
    assert np.array_equal(table, before)
    assert receiver.decode(table, frame_id, second, 0, FD * spec.fd) == k.OK
    assert receiver.counters()["P"]["lost"] == 0


def test_every_profile_is_compared() -> None:
    assert {r.profile for r in RULES.values()} == set(E2E_PROFILES) - {"NONE"}


def test_counters_of_the_autosar_profiles_are_those_of_the_independent_code() -> None:
    for name, rule in autosar().items():
        spec = spec_of(rule)
        frames = frames_of(spec, 3, 300)
        assert rule.following is not None
        for now, after in zip(frames, frames[1:], strict=False):
            # their sender goes on from our frame: same counter, so with our data the same frame
            span = _counter_bits(spec)
            assert _bits(rule.following(now), span) == _bits(after, span), name


def _counter_bits(spec: MessageSpec) -> tuple[int, int]:
    from torqueloop.cython_kernels.can.protection import header_fields

    _, counter, _ = header_fields(spec)
    start, length, _ = counter or spec.counter or (0, 0, False)
    return start // 8, max(1, length // 8)


def _bits(data: bytes, span: tuple[int, int]) -> bytes:
    part = data[span[0] : span[0] + span[1]]
    return bytes([part[0] & 0x0F]) if span[1] == 1 and span[0] == 1 else part


@pytest.mark.parametrize(
    ("parameters", "check"),
    [((16, 0x1021, 0xFFFF, 0, False), 0x29B1), ((32, 0xF4ACFB13, 0xFFFFFFFF, 0xFFFFFFFF, True), 0x1697D06A),
     ((64, 0x42F0E1EBA9EA3693, 2**64 - 1, 2**64 - 1, True), 0x995DC9BBDF1939FA), ((8, 0x1D, 0xFF, 0xFF, False), 0x4B),
     ((8, 0x2F, 0xFF, 0xFF, False), 0xDF), ((32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, True), 0xCBF43926)],
)  # fmt: skip
def test_crcs_of_the_text_123456789_are_the_published_ones(parameters: tuple, check: int) -> None:
    assert Crc(*parameters)(b"123456789") == check


def test_recorded_frames_of_a_gearbox_are_taken() -> None:
    from opendbc.can.tests import test_checksums

    frames: list[bytes] = []
    probe = test_checksums.TestCanChecksums()
    probe.verify_volkswagen_mqb_crc = lambda *a, **_: frames.extend(a[2])  # type: ignore[method-assign]
    probe.test_volkswagen_mqb_crc_getriebe_11()
    assert len(frames) == 16
    spec = spec_of(RULES["mqb"])
    assert spec.data_ids == tuple(IDS)
    receiver = RxState(CodecTables([spec], len(spec.signals)))
    assert [receiver.decode(np.zeros(len(spec.signals)), 0x0AD, f) for f in frames] == [k.OK] * 16


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"e2e": "AUTOSAR_P04", "data_id": 1}, "header of 12 bytes"),
        ({"e2e": "AUTOSAR_P05", "data_id": 1, "e2e_offset": 6}, "allowed 0..5"),
        ({"e2e": "AUTOSAR_P05", "data_id": 1 << 16}, "0..65535"),
        ({"e2e": "AUTOSAR_P01_1C", "data_id": 0x1000, "crc_byte": 0}, "0..4095"),
        ({"e2e": "AUTOSAR_P01_1B", "data_id": 1, "crc_byte": 0, "counter": None}, "alive counter"),
        ({"e2e": "PSA", "crc_byte": 0}, "has 4"),
        ({"e2e": "HYUNDAI_CANFD", "crc_byte": 0}, "has 16"),
        ({"e2e": "HYUNDAI_SUM6", "length": 5, "crc_byte": 0}, "covers 6 bytes"),
        ({"e2e": "SAE_J1850", "crc_bits": (4, 8, False)}, "whole bytes"),
    ],
)
def test_settings_that_do_not_fit_are_named(change: dict, text: str) -> None:
    base = MessageSpec("P", 0x123, False, 8, True, (), counter=(20, 4, False))
    with pytest.raises(ValueError, match="message P") as error:
        CodecTables([replace(base, **change)], 0)
    assert text in str(error.value)


def test_the_page_of_the_rules_is_up_to_date() -> None:
    from torqueloop.hil.can.protection_page import page

    path = ROOT / "docs" / "can_protection.md"
    assert path.read_text(encoding="utf-8") == page(), (
        "python -m torqueloop.hil.can.protection_page > docs/can_protection.md"
    )


OWNED = [("AUTOSAR_P04", 0), ("AUTOSAR_P05", 3), ("AUTOSAR_P06", 2), ("AUTOSAR_P07", 1), ("AUTOSAR_P01_1C", 0),
         ("SAE_J1850", 0)]  # fmt: skip


@pytest.mark.parametrize(("profile", "offset"), OWNED)
def test_the_codec_owns_the_signals_that_lie_in_the_header_of_a_profile(profile: str, offset: int) -> None:
    """The headers of AUTOSAR have 12, 3, 5, 20 bytes from the offset on; profile 1C has the high nibble of byte 1."""
    size = {"AUTOSAR_P04": 12, "AUTOSAR_P05": 3, "AUTOSAR_P06": 5, "AUTOSAR_P07": 20}.get(profile, 0)
    fields = {f"n{k}": (4 * k, 4) for k in range(2 * 24)} | {
        "whole": (8 * (offset + size) - 8, 8),
        "over": (8 * (offset + size) - 4, 8),
    }
    message = SimpleNamespace(signals=[
        SimpleNamespace(name=name, start=start, length=length, byte_order="little_endian")
        for name, (start, length) in fields.items() if start >= 0
    ])  # fmt: skip
    settings = E2ESettings(profile=profile, offset=offset, crc_signal="n40", counter_signal="n44")
    owned = {"n40", "n44"} | {f"n{k}" for k in range(2 * offset, 2 * (offset + size))} | ({"whole"} if size else set())
    assert owned_signals(message, settings) == owned | ({"n3"} if profile.endswith("1C") else set())
