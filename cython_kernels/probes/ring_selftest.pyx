"""Two threads without the GIL on the rings and slots: proves the memory order that Python threads alone cannot disturb.

Used by the tests; each function is one side and runs without the GIL until it is through.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from torqueloop.cython_kernels.rings.can_frame cimport can_frame_t
from torqueloop.cython_kernels.rings.ring cimport (
    DataRing,
    FrameRing,
    LatestSlot,
    data_pop,
    data_push,
    frames_pop,
    frames_push,
    slot_read,
    slot_write,
)

cdef enum:
    RECORD_MAX = 64


def produce_frames(FrameRing ring not None, int64_t n) -> int:
    """Push n frames whose contents follow from their number, trying again while the ring is full; the refusals."""
    cdef can_frame_t frame
    cdef int64_t i, refused = 0
    cdef uint64_t word
    memset(&frame, 0, sizeof(frame))
    with nogil:
        for i in range(n):
            word = <uint64_t>i * <uint64_t>0x9E3779B97F4A7C15
            frame.t_ns, frame.id, frame.dlc = i, <uint32_t>i, 8
            memcpy(frame.data, &word, 8)
            while not frames_push(&ring.r, &frame):
                refused += 1
    return refused


def consume_frames(FrameRing ring not None, int64_t n) -> int:
    """Pop n frames; how many were not the next one, whole."""
    cdef can_frame_t frame
    cdef int64_t i = 0, bad = 0
    cdef uint64_t word
    with nogil:
        while i < n:
            if frames_pop(&ring.r, &frame):
                memcpy(&word, frame.data, 8)
                bad += frame.t_ns != i or frame.id != <uint32_t>i or word != <uint64_t>i * <uint64_t>0x9E3779B97F4A7C15
                i += 1
    return bad


def produce_records(DataRing ring not None, int64_t n) -> int:
    """Push n records of 1..8 words, all equal to the record's number; the refusals."""
    cdef int64_t record[8]
    cdef int64_t i, refused = 0
    cdef int k
    with nogil:
        for i in range(n):
            for k in range(8):
                record[k] = i
            while not data_push(&ring.r, record, <uint32_t>(8 * (1 + i % 8))):
                refused += 1
    return refused


def consume_records(DataRing ring not None, int64_t n) -> int:
    """Pop n records; how many had a wrong length or contents."""
    cdef int64_t record[8]
    cdef int64_t i = 0, bad = 0, size
    cdef int k
    with nogil:
        while i < n:
            size = data_pop(&ring.r, record, RECORD_MAX)
            if size >= 0:
                bad += size != 8 * (1 + i % 8)
                for k in range(<int>(size // 8)):
                    bad += record[k] != i
                i += 1
    return bad


def write_slot(LatestSlot slot not None, int64_t n) -> None:
    """Write n values whose doubles and stamp are all the same number."""
    cdef double value[256]
    cdef int64_t i
    cdef int k
    with nogil:
        for i in range(1, n + 1):
            for k in range(slot.s.n):
                value[k] = <double>i
            slot_write(&slot.s, value, i)


def read_slot(LatestSlot slot not None, int64_t last) -> tuple:
    """Read until the value `last` is seen; (reads, torn or backward values, reads that found the writer inside)."""
    cdef double value[256]
    cdef int64_t stamp = 0, seen = 0, reads = 0, bad = 0, busy = 0
    cdef int k
    with nogil:
        while seen < last:
            if slot_read(&slot.s, value, &stamp) == 0:
                busy += 1
                continue
            reads += 1
            for k in range(slot.s.n):
                bad += value[k] != <double>stamp
            bad += stamp < seen
            seen = stamp
    return reads, bad, busy
