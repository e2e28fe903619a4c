"""The ticks around the first fault, every one of them, whatever the recorder does with its disk.

The tick makes its sample record in a ring of fixed size that was allocated and touched before arming. When the safe
state is latched it goes on for `after` ticks and then leaves the ring alone: from then on it may be read at leisure. A
recording that thins out its samples or whose disk is full loses nothing of this.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from torqueloop.cython_kernels.clock.atomic cimport (
    load_acquire_i32,
    load_relaxed_i64,
    store_release_i32,
    store_release_i64,
)
from torqueloop.cython_kernels.clock.pages cimport tl_touch_pages

#: fixed part of a record (tick.pxd sample_t), most signals a rig has
cdef int64_t HEAD_BYTES = 32
cdef int64_t SIGNALS_MAX = 65536


cdef void* first_fault_place(first_fault_t* f) noexcept nogil:
    """Where the next record is written, over the oldest one. real-time: yes."""
    return f.data + (f.written % f.n) * f.n_bytes


cdef void first_fault_keep(first_fault_t* f) noexcept nogil:
    """The record at first_fault_place is whole. real-time: yes."""
    store_release_i64(&f.written, f.written + 1)


cdef class FirstFault:
    """Ring of the last `before` + 1 + `after` ticks with n_signals values each."""

    def __cinit__(self, n_signals: int, before: int, after: int):
        if not 0 <= n_signals <= SIGNALS_MAX:
            raise ValueError(f"{n_signals} signals: allowed 0..{SIGNALS_MAX}")
        if before < 0 or after < 0:
            raise ValueError(f"{before} ticks before and {after} after the fault: allowed 0 or more")
        self.n_signals = n_signals
        self.f.n, self.f.after = before + 1 + after, after
        self.f.n_bytes = HEAD_BYTES + 8 * n_signals
        self.f.data = <uint8_t*>malloc(self.f.n * self.f.n_bytes)
        if self.f.data == NULL:
            raise MemoryError
        # every page is touched now and not by a tick
        memset(self.f.data, 0, self.f.n * self.f.n_bytes)
        tl_touch_pages(self.f.data, self.f.n * self.f.n_bytes)

    def __dealloc__(self):
        free(self.f.data)

    @property
    def n_bytes(self) -> int:
        """Memory held."""
        return self.f.n * self.f.n_bytes

    @property
    def frozen(self) -> bool:
        """The ticks after the latching are in as well: nothing changes any more."""
        return load_acquire_i32(&self.f.frozen) != 0

    def hold(self) -> None:
        """The tick writes no more from its next look on: for a loop that has ended, or hangs."""
        store_release_i32(&self.f.held, 1)

    def records(self) -> bytes:
        """The records, oldest first; once frozen or held."""
        cdef int64_t written = load_relaxed_i64(&self.f.written)
        cdef int64_t count = min(written, self.f.n)
        cdef int64_t first = (written - count) % self.f.n
        cdef int64_t head = min(count, self.f.n - first)
        out = PyBytes_FromStringAndSize(NULL, count * self.f.n_bytes)
        cdef char* to = PyBytes_AS_STRING(out)
        memcpy(to, self.f.data + first * self.f.n_bytes, head * self.f.n_bytes)
        memcpy(to + head * self.f.n_bytes, self.f.data, (count - head) * self.f.n_bytes)
        return out
