"""Time of arrival of a frame on the clock of the rig's loop, from the stamps of the kernel.

The kernel gives a software stamp (CLOCK_REALTIME, when the frame left the driver) and, with adapters that have one, a
hardware stamp (clock of the adapter, any zero, when the frame ended on the wire). The loop lives on CLOCK_MONOTONIC:

    software   t = real + offset            offset = CLOCK_MONOTONIC - CLOCK_REALTIME, sampled every REFRESH calls
    hardware   t = hw + lower envelope of (t_software - hw) over the last one to two windows of HW_WINDOW_NS

A software stamp is late by the way from wire to stack, never early, so the smallest difference of a window is the
offset of the two clocks plus the shortest way; short windows follow the drift of the adapter's clock (100 us/s at
worst: 10 us in a window).

Results never go back and never lie after `now_ns`, whatever is done to the wall clock (a step of NTP shows as frames
with equal times for at most REFRESH calls).
"""

from libc.string cimport memset

from torqueloop.cython_kernels.clock.clock cimport monotonic_ns, wall_ns

cdef enum:
    # calls between two samples of the offset (two clock reads, 50 ns): 64 ms at 1 kHz
    REFRESH = 64

cdef int64_t HW_WINDOW_NS = 100_000_000


cdef void _sample(stamps_t* s) noexcept nogil:
    # wall time between two monotonic ones; of three tries the one that took shortest: nothing came between
    cdef int64_t before, real, after
    cdef int64_t best = -1
    cdef int i
    for i in range(3):
        before = monotonic_ns()
        real = wall_ns()
        after = monotonic_ns()
        if best < 0 or after - before < best:
            best = after - before
            s.real_offset_ns = before + best // 2 - real


cdef void stamps_init(stamps_t* s) noexcept nogil:
    """Forget everything and sample the offset. real-time: yes."""
    memset(s, 0, sizeof(stamps_t))
    _sample(s)


cdef void stamps_refresh(stamps_t* s) noexcept nogil:
    """Once per look into the socket. real-time: yes."""
    s.calls += 1
    if s.calls >= REFRESH:
        s.calls = 0
        _sample(s)


cdef int64_t stamps_arrival(stamps_t* s, int64_t real_ns, int64_t hw_ns, int64_t now_ns) noexcept nogil:
    """Arrival in ns of CLOCK_MONOTONIC from the stamps (0: not there); without any, now_ns. real-time: yes."""
    cdef int64_t t = now_ns
    cdef int64_t offset
    if real_ns > 0:
        t = real_ns + s.real_offset_ns
    if hw_ns > 0:
        offset = t - hw_ns
        if not s.hw_seen:
            s.hw_seen = 1
            s.hw_offset_ns = s.hw_next_ns = offset
            s.hw_window_ns = t
        if offset < s.hw_next_ns:
            s.hw_next_ns = offset
        if t - s.hw_window_ns > HW_WINDOW_NS:
            s.hw_window_ns = t
            s.hw_offset_ns = s.hw_next_ns
            s.hw_next_ns = offset
        if offset < s.hw_offset_ns:
            s.hw_offset_ns = offset
        t = hw_ns + s.hw_offset_ns
    if t > now_ns:
        t = now_ns
    if t < s.last_ns:
        t = s.last_ns
    s.last_ns = t
    return t


cdef class Stamps:
    """Python door to the conversion, for tests."""

    def __cinit__(self):
        stamps_init(&self.s)

    @property
    def real_offset_ns(self) -> int:
        """CLOCK_MONOTONIC - CLOCK_REALTIME as sampled last."""
        return self.s.real_offset_ns

    def refresh(self) -> None:
        """As stamps_refresh."""
        stamps_refresh(&self.s)

    def arrival(self, real_ns: int, hw_ns: int, now_ns: int) -> int:
        """As stamps_arrival."""
        return stamps_arrival(&self.s, real_ns, hw_ns, now_ns)
