"""Rings and latest-value slots, in one thread and between two."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from repetitions import repetitions

from torqueloop.cython_kernels.probes import ring_selftest as selftest
from torqueloop.cython_kernels.rings.ring import DataRing, FrameRing, LatestSlot, slot_bytes


def test_frames_come_out_as_they_went_in():
    ring = FrameRing(8)
    assert ring.push(0x210, b"\x01\x02\x03", t_ns=77, flags=1)
    assert ring.push(0x80000123, b"")
    assert ring.pop() == (0x210, b"\x01\x02\x03", 77, 1)
    assert ring.pop() == (0x80000123, b"", 0, 0)
    assert ring.pop() is None


def test_full_frame_ring_refuses_and_counts_and_keeps_what_it_has():
    ring = FrameRing(4)
    results = [ring.push(i, bytes([i])) for i in range(6)]
    assert results == [True] * 4 + [False] * 2
    assert ring.dropped == 2 and ring.high_water == 4 and len(ring) == 4
    assert [f[0] for f in ring.pop_all()] == [0, 1, 2, 3]


def test_more_than_8_data_bytes_is_an_error():
    with pytest.raises(ValueError, match="allowed 0..8"):
        FrameRing(4).push(1, bytes(9))


@given(st.lists(st.binary(max_size=40), max_size=60))
def test_records_of_any_length_come_out_whole_and_in_order(records):
    ring = DataRing(256)
    out, kept = [], []
    for record in records:
        if ring.push(record):
            kept.append(record)
        elif len(ring):
            out.append(ring.pop())
    while (record := ring.pop()) is not None:
        out.append(record)
    assert out == kept
    assert ring.dropped == len(records) - len(kept)


def test_records_that_go_over_the_end_of_the_buffer_come_out_as_they_went_in():
    ring = DataRing(256)
    for k in range(60):
        record = bytes((k + 7 * i) % 251 for i in range(37))
        assert ring.push(record) and ring.pop() == record


def test_drain_joins_only_whole_records():
    ring = DataRing(1024)
    for i in range(5):
        ring.push(bytes([i]) * 10)
    assert ring.drain(25) == bytes([0]) * 10 + bytes([1]) * 10
    assert ring.drain() == b"".join(bytes([i]) * 10 for i in (2, 3, 4))
    assert ring.drain() == b""


def test_record_larger_than_the_ring_is_refused():
    ring = DataRing(64)
    assert not ring.push(bytes(64)) and ring.dropped == 1 and len(ring) == 0


@pytest.mark.parametrize(
    "make", [lambda: FrameRing(0), lambda: DataRing(8), lambda: LatestSlot(0), lambda: LatestSlot(1000)]
)
def test_impossible_sizes_are_refused_with_the_allowed_range(make):
    with pytest.raises(ValueError, match="allowed"):
        make()


def test_slot_gives_the_newest_value_and_counts_writes():
    slot = LatestSlot(3)
    assert slot.read() == (0, 0, (0.0, 0.0, 0.0))
    slot.write([1.0, 2.0, 3.0], 10)
    slot.write((4.0, 5.0, float("inf")), 20)
    assert slot.read() == (2, 20, (4.0, 5.0, float("inf"))) and slot.version == 2


def test_slot_refuses_the_wrong_number_of_values():
    slot = LatestSlot(2)
    with pytest.raises(ValueError, match="3 values given, 2 needed"):
        slot.write([1, 2, 3])
    assert slot.version == 0


def test_slots_of_the_same_memory_are_one_slot():
    memory = bytearray(slot_bytes(2) + 8)
    written, read = LatestSlot(2, memory), LatestSlot(2, memoryview(memory))
    written.write([1.5, -2.5], 30)
    assert read.read() == (1, 30, (1.5, -2.5)) and bytes(8) == memory[-8:]
    for wrong in (bytearray(slot_bytes(2) - 1), memoryview(memory)[1:]):
        with pytest.raises(ValueError, match="allowed: at least 32, aligned to 8"):
            LatestSlot(2, wrong)


def in_two_threads(first, second):
    """Run both at once; the result of the second."""
    thread = threading.Thread(target=first)
    thread.start()
    result = second()
    thread.join()
    return result


@pytest.mark.proof
def test_two_threads_without_the_gil_lose_no_frame_and_keep_the_order():
    ring, n = FrameRing(64), repetitions(200_000)
    bad = in_two_threads(lambda: selftest.produce_frames(ring, n), lambda: selftest.consume_frames(ring, n))
    assert bad == 0 and len(ring) == 0 and ring.high_water <= 64


@pytest.mark.proof
def test_two_threads_without_the_gil_pass_records_whole():
    ring, n = DataRing(1024), repetitions(200_000)
    bad = in_two_threads(lambda: selftest.produce_records(ring, n), lambda: selftest.consume_records(ring, n))
    assert bad == 0 and len(ring) == 0


def test_slot_is_read_whole_or_not_at_all_while_another_thread_writes():
    slot, n = LatestSlot(16), repetitions(300_000)
    reads, bad, _ = in_two_threads(lambda: selftest.write_slot(slot, n), lambda: selftest.read_slot(slot, n))
    assert bad == 0 and reads > 0 and slot.version == n


def test_python_reads_a_slot_that_is_being_written():
    slot, n = LatestSlot(8), repetitions(300_000)
    thread = threading.Thread(target=selftest.write_slot, args=(slot, n))
    thread.start()
    seen = 0
    while seen < n:
        version, stamp, values = slot.read()
        assert version == 0 or (stamp >= seen and set(values) == {float(stamp)})
        seen = max(seen, stamp)
    thread.join()
