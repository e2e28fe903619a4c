from libc.stdint cimport int32_t, int64_t

# Kernel time stamps of frames -> clock of the rig's loop (CLOCK_MONOTONIC). See stamps.pyx.
cdef struct stamps_t:
    int64_t real_offset_ns      # CLOCK_MONOTONIC - CLOCK_REALTIME, sampled by stamps_refresh
    int64_t last_ns             # newest result: results never go back
    int64_t hw_offset_ns        # CLOCK_MONOTONIC - clock of the adapter; lower envelope of what was seen
    int64_t hw_next_ns          # the same of the window that is running
    int64_t hw_window_ns        # begin of that window
    int32_t hw_seen             # stamps of the adapter seen since stamps_init
    int32_t calls               # of stamps_refresh

cdef void stamps_init(stamps_t* s) noexcept nogil
cdef void stamps_refresh(stamps_t* s) noexcept nogil
cdef int64_t stamps_arrival(stamps_t* s, int64_t real_ns, int64_t hw_ns, int64_t now_ns) noexcept nogil

cdef class Stamps:
    cdef stamps_t s
