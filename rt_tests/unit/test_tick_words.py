"""What a tick does with its whole signal table: fingerprint, search for what is not finite, copies, recorded ranges."""

import itertools
import struct

import numpy as np
import pytest

from torqueloop.cython_kernels.probes.words import between, copied, fingerprint_of, first_not_finite
from torqueloop.cython_kernels.rings.ring import DataRing
from torqueloop.cython_kernels.tick.first_fault import FirstFault
from torqueloop.cython_kernels.tick.rig import SAMPLE_HEAD_BYTES, Rig
from torqueloop.cython_kernels.tick.safety import Safety


def test_hash_tells_signs_that_change_together() -> None:
    # every pair of 40 signals changes its sign: upper bits alone, which plain products of odd factors would cancel
    base = np.linspace(-3.0, 5.0, 40)
    base[7] = base[21] = 0.0
    seen = {fingerprint_of(base)}
    for chosen in itertools.chain(itertools.combinations(range(40), 1), itertools.combinations(range(40), 2)):
        other = base.copy()
        other[list(chosen)] *= -1.0
        seen.add(fingerprint_of(other))
    assert len(seen) == 1 + 40 + 40 * 39 // 2


def test_hash_tells_signs_that_change_together_far_apart() -> None:
    # pairs of one lane at all distances
    base = np.random.default_rng(8).normal(size=1024)
    seen = {fingerprint_of(base)}
    for first in (0, 2, 5, 135):
        for other in range(first + 8, 1024, 8):
            changed = base.copy()
            changed[[first, other]] *= -1.0
            seen.add(fingerprint_of(changed))
    assert len(seen) == 1 + sum(len(range(first + 8, 1024, 8)) for first in (0, 2, 5, 135))


def twice(x: int) -> int:
    """x times 2 in the field of AES."""
    return x << 1 & 0xFF ^ (0x1B if x & 0x80 else 0)


def sub_byte(x: int) -> int:
    """SubBytes of AES by its definition: inverse x^254 in the field, then an affine map."""
    inverse = 1
    for _ in range(254):
        factor, product = x, 0
        for bit in range(8):
            product ^= factor * (inverse >> bit & 1)
            factor = twice(factor)
        inverse = product
    wide = inverse << 8 | inverse
    return 0x63 ^ inverse ^ (wide >> 7 ^ wide >> 6 ^ wide >> 5 ^ wide >> 4) & 0xFF


SUB_BYTES = [sub_byte(x) for x in range(256)]


def aes_round(state: bytes, key: bytes) -> bytes:
    """A round of AES on 16 bytes, column by column (FIPS 197)."""
    s = [SUB_BYTES[x] for x in state]
    s = [s[(i + 4 * (i % 4)) % 16] for i in range(16)]
    mixed = []
    for c in range(0, 16, 4):
        for r in range(4):
            x, y, z, w = (s[c + (r + k) % 4] for k in range(4))
            mixed.append(twice(x) ^ twice(y) ^ y ^ z ^ w)
    return bytes(x ^ k for x, k in zip(mixed, key, strict=True))


def test_a_round_of_aes_is_that_of_the_standard() -> None:
    # FIPS 197, appendix B, round 1: start of round, key of round 1, start of round 2
    start, key = "193de3bea0f4e22b9ac68d2ae9f84808", "a0fafe1788542cb123a339392a6c7605"
    assert aes_round(bytes.fromhex(start), bytes.fromhex(key)).hex() == "a49c7ff2689f352b6b5bea43026a5049"


def as_defined(words: list[int], seed: int) -> int:
    """The fingerprint as its description says, a byte at a time."""
    begin = (
        (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F),
        (0xA0761D6478BD642F, 0x589965CC75374CC3),
        (0xE7037ED1A0B428DB, 0x1D8E4E27C47D124F),
        (0x8EBC6AF09C88C6E3, 0xEB44ACCAB455D165),
    )
    lanes = [struct.pack("<2Q", seed ^ one, len(words) ^ other) for one, other in begin]
    for at in range(0, len(words) - 1, 2):
        lanes[at // 2 % 4] = aes_round(lanes[at // 2 % 4], struct.pack("<2Q", *words[at : at + 2]))
    if len(words) % 2:
        lanes[3] = aes_round(lanes[3], struct.pack("<2Q", words[-1], 0))
    for other in (*lanes[1:], bytes(16)):
        lanes[0] = aes_round(aes_round(lanes[0], bytes(16)), other)
    lower, upper = struct.unpack("<2Q", lanes[0])
    return lower ^ upper


@pytest.mark.parametrize("plain", [False, True])
def test_hash_is_what_its_description_says_on_every_processor(plain: bool) -> None:
    rng = np.random.default_rng(3)
    for n in [*range(72), 228, 1000]:
        words = rng.integers(0, 1 << 64, n + 1, dtype=np.uint64)[1:]
        seed = int(rng.integers(0, 1 << 64, dtype=np.uint64))
        assert fingerprint_of(words.view(np.float64), seed, plain) == as_defined([int(w) for w in words], seed)


@pytest.mark.parametrize("n", range(1, 20))
def test_hash_tells_the_last_bit_the_place_the_length_and_the_seed(n: int) -> None:
    base = np.arange(1.0, n + 1.0)
    seen = {fingerprint_of(base), fingerprint_of(base, 1), fingerprint_of(np.append(base, 0.0))}
    for i in range(n):
        other = base.copy()
        other[i] = np.nextafter(other[i], np.inf)
        seen.add(fingerprint_of(other))
    for i in range(n - 1):
        other = base.copy()
        other[[i, i + 1]] = other[[i + 1, i]]
        seen.add(fingerprint_of(other))
    assert len(seen) == 3 + n + n - 1


def test_hash_continues_from_the_one_before() -> None:
    values = np.arange(24.0)
    assert fingerprint_of(values) == fingerprint_of(values.copy())
    one, other = fingerprint_of(values[:8]), fingerprint_of(values[1:9])
    assert fingerprint_of(values[8:], one) != fingerprint_of(values[8:], other)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("n", [1, 3, 4, 7, 8, 9, 16, 31, 32, 33, 141])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_value_that_is_not_finite_is_found(n: int, bad: float, plain: bool) -> None:
    values = np.linspace(-1e301, 1e301, n)
    assert first_not_finite(values, plain) == -1
    for i in range(n):
        values[i:] = bad
        assert first_not_finite(values, plain) == i
        values[i:] = 1.0
        values[i] = bad
        assert first_not_finite(values, plain) == i
        values[i] = 1.0


@pytest.mark.parametrize("plain", [False, True])
def test_opposite_infinities_do_not_hide_each_other(plain: bool) -> None:
    values = np.zeros(16)
    values[2], values[10] = np.inf, -np.inf
    assert first_not_finite(values, plain) == 2


@pytest.mark.parametrize("plain", [False, True])
def test_a_sum_out_of_range_is_no_fault_of_its_terms(plain: bool) -> None:
    values = np.full(64, 1.7e308)
    assert first_not_finite(values, plain) == -1
    values[63] = np.nan
    assert first_not_finite(values, plain) == 63


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("twice", [False, True])
def test_a_copy_has_every_bit_and_leaves_what_is_behind_it(twice: bool, plain: bool) -> None:
    rng = np.random.default_rng(5)
    for n in [*range(0, 40), 63, 64, 65, 141, 210]:
        # any bits: NaN with their payload, signs of zeros
        values = rng.integers(0, 1 << 64, n, dtype=np.uint64).view(np.float64)
        places = [np.full(n + 3, 7.0) for _ in range(2)]
        # neither source nor target need be aligned to more than 8 bytes
        copied(values, places[0][1:], places[1][2:] if twice else None, plain)
        for k, place in enumerate(places):
            begin, done = k + 1, k == 0 or twice
            expected = np.full(n + 3, 7.0)
            if done:
                expected[begin : begin + n] = values
            assert place.tobytes() == expected.tobytes(), (n, k)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("n", [1, 2, 4, 5, 18])
def test_limits_of_neighbours_are_looked_at_all_at_once(n: int, plain: bool) -> None:
    size = -(-n // 4) * 4
    values, low, high = np.zeros(size + 1)[1:], np.full(size, -np.inf), np.full(size, np.inf)
    low[:n], high[:n] = -1.0, 2.0
    assert between(values, low, high, n, plain)
    for i in range(n):
        for edge in (-1.0, 2.0):
            values[i] = edge
            assert between(values, low, high, n, plain)
            values[i] = np.nextafter(edge, edge * np.inf)
            assert not between(values, low, high, n, plain)
        values[i] = np.nan
        assert not between(values, low, high, n, plain)
        values[i] = 0.0
    values[n:] = 1e300
    assert between(values, low, high, n, plain)


def guarded(x: float, y: float, slew: float) -> list[float]:
    """Signals 5 .. 10 after one tick that would send x as 7 and y as 10; limits 0 .. 1 of all, 8 with a slew."""
    rig, safety = Rig(12, 1e-3), Safety(12, 1e-3)
    safety.set_guards([(slot, 0.0, 1.0, 0.0, slew if slot == 8 else 0.0, False) for slot in range(5, 11)])
    rig.set_safety(safety)
    rig.set_initial({5: 0.5, 6: 0.25, 7: x, 8: 0.5, 9: 1.0, 10: y, 11: np.nan})
    rig.begin(0)
    assert rig.ticks(1, 0) == 1
    counts = [int(v > 1.0 or v < 0.0) for v in (0.5, 0.25, x, 0.5, 1.0, y)]
    assert safety.guard_counts() == counts
    return [float(v) for v in rig.values(list(range(5, 11)))]


@pytest.mark.parametrize("slew", [0.0, 100.0])
@pytest.mark.parametrize("x", [0.0, 1.0, 1.5, -0.5])
@pytest.mark.parametrize("y", [0.75, 7.0])
def test_each_of_several_neighbours_is_held_to_its_limits(x: float, y: float, slew: float) -> None:
    # a NaN behind them is none of theirs; one with a slew divides them
    assert guarded(x, y, slew) == [0.5, 0.25, min(max(x, 0.0), 1.0), 0.5, 1.0, min(y, 1.0)]


@pytest.mark.parametrize(
    "rows",
    [
        # scaled ones between plain ones
        [(2, 6, 1.0, 0.0), (3, 7, 2.0, 1.0), (4, 8, 1.0, 0.0), (5, 9, 1.0, 0.0), (2, 10, 1.0, 0.0), (3, 11, 1.0, 0.0)],
        # a row that reads what one before it writes
        [(2, 6, 3.0, 0.0), (6, 7, 1.0, 0.0), (7, 8, 1.0, -1.0), (8, 9, 1.0, 0.0)],
        # one that reads what a later one writes
        [(9, 6, 1.0, 0.0), (2, 9, 2.0, 0.0), (3, 10, 1.0, 0.0)],
        # two that write the same
        [(2, 6, 2.0, 0.0), (3, 6, 1.0, 0.0)],
        [(2, 6, 1.0, 0.0), (3, 6, 2.0, 0.0)],
        # -0 becomes 0 by an offset of 0 and stays by one of -0
        [(5, 6, 1.0, 0.0), (5, 7, 1.0, -0.0), (5, 8, 2.0, 0.0)],
        [],
    ],
)
def test_wiring_does_what_its_rows_say_one_after_the_other(rows: list[tuple[int, int, float, float]]) -> None:
    start = {2: 0.1, 3: 0.7, 4: -3.0, 5: -0.0, 9: 11.0}
    values = np.zeros(12)
    for slot, value in start.items():
        values[slot] = value
    rig = Rig(12, 1e-3)
    rig.set_initial(start)
    rig.set_wiring([], rows, [])
    rig.begin(0)
    assert rig.ticks(1, 0) == 1
    for src, dst, gain, offset in rows:
        values[dst] = gain * values[src] + offset
    assert np.array(rig.values(list(range(2, 12)))).tobytes() == values[2:].tobytes()


@pytest.mark.parametrize("slots", [[2, 3, 4, 5], [9, 8, 7], [4], [], [3, 4, 4, 5, 2, 3, 9], [11, 0, 1]])
def test_recorded_signals_come_in_the_order_asked_for(slots: list[int]) -> None:
    rig, samples = Rig(12, 1e-3), DataRing(4096)
    rig.set_initial({slot: 10.0 + slot for slot in range(2, 12)})
    rig.set_record(slots, samples, None, None, None)
    rig.begin(0)
    assert rig.ticks(2, 0) == 2
    records = samples.drain()
    size = SAMPLE_HEAD_BYTES + 8 * len(slots)
    assert len(records) == 2 * size
    for start in (SAMPLE_HEAD_BYTES, size + SAMPLE_HEAD_BYTES):
        found = struct.unpack_from(f"<{len(slots)}d", records, start)
        # slot 0 reads 0, slot 1 is the sink
        assert [x for x, slot in zip(found, slots, strict=True) if slot != 1] == [
            10.0 + slot if slot else 0.0 for slot in slots if slot != 1
        ]


@pytest.mark.parametrize("kept", [False, True])
def test_records_are_whole_where_the_end_of_the_ring_would_cut_them(kept: bool) -> None:
    # records of 32 + 5 * 8 bytes, in a ring of 256: some are made in place, others in two parts
    rig, samples, first = Rig(7, 1e-3), DataRing(256), FirstFault(5, 40, 0)
    rig.set_rig_slots(1, 2, 1, 1)
    rig.set_initial({slot: 10.0 + slot for slot in range(3, 7)})
    rig.set_record([2, 3, 4, 5, 6], samples, None, None, None)
    if kept:
        rig.set_first_fault(first)
    rig.begin(0)
    found = []
    for tick in range(40):
        assert rig.ticks(1, 0) == 1
        record = samples.drain()
        assert len(record) == SAMPLE_HEAD_BYTES + 40
        assert struct.unpack_from("<q", record) == (tick,)
        assert struct.unpack_from("<5d", record, SAMPLE_HEAD_BYTES) == (tick, 13.0, 14.0, 15.0, 16.0)
        found.append(record)
    if kept:
        first.hold()
        assert first.records() == b"".join(found)


def test_a_full_ring_of_records_counts_what_it_refuses() -> None:
    rig, samples = Rig(7, 1e-3), DataRing(256)
    rig.set_record([2, 3, 4, 5, 6], samples, None, None, None)
    rig.begin(0)
    assert rig.ticks(10, 0) == 10
    # three records of 8 + 72 bytes
    assert len(samples.drain()) == 3 * 72
    assert samples.dropped == 7
