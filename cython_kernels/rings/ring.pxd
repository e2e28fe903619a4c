from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from torqueloop.cython_kernels.rings.can_frame cimport can_frame_t

# Lock-free queues with one producer and one consumer. head and tail count up for ever and are masked on access; the
# producer owns head, the consumer owns tail, each on its own cache line. Publishing is a release store, looking is an
# acquire load. A full ring refuses (False), counts the drop and never waits.
ctypedef struct spsc_t:
    uint8_t* data
    uint64_t capacity       # slots (FrameRing) or bytes (DataRing), a power of two
    uint8_t pad0[48]
    uint64_t head           # written by the producer
    uint64_t dropped        # producer: records refused because the ring was full
    uint64_t high_water     # producer: largest fill seen
    uint8_t pad1[40]
    uint64_t tail           # written by the consumer
    uint8_t pad2[56]

# Latest value of n doubles with a stamp, guarded by a sequence lock: odd while the writer is inside.
ctypedef struct slot_t:
    int n
    uint64_t* word          # 2 * number of writes (+1 inside a write), stamp in ns, n doubles; may be shared memory

cdef enum:
    SLOT_SEQ = 0
    SLOT_STAMP = 1
    SLOT_HEAD = 2           # words before the doubles
    SLOT_MAX = 256          # doubles

cdef bint frames_push(spsc_t* r, const can_frame_t* frame) noexcept nogil
cdef bint frames_pop(spsc_t* r, can_frame_t* frame) noexcept nogil
cdef bint data_push(spsc_t* r, const void* record, uint32_t n_bytes) noexcept nogil
cdef void* data_place(spsc_t* r, uint32_t n_bytes) noexcept nogil
cdef void data_keep(spsc_t* r, uint32_t n_bytes) noexcept nogil
cdef int64_t data_pop(spsc_t* r, void* record, uint64_t room) noexcept nogil
cdef uint64_t spsc_fill(spsc_t* r) noexcept nogil

cdef void slot_write(slot_t* s, const double* values, int64_t stamp_ns) noexcept nogil
cdef uint64_t slot_read(slot_t* s, double* values, int64_t* stamp_ns) noexcept nogil
cdef uint64_t slot_version(slot_t* s) noexcept nogil

cdef class FrameRing:
    cdef spsc_t r

cdef class DataRing:
    cdef spsc_t r

cdef class LatestSlot:
    cdef slot_t s
    cdef uint64_t* _own     # NULL: the words are in _memory
    cdef object _memory
