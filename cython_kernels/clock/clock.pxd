from libc.stdint cimport int64_t

# real-time: yes, all of them (no allocation, no Python object, no lock)
cdef int64_t monotonic_ns() noexcept nogil
cdef int64_t wall_ns() noexcept nogil
cdef int sleep_until_ns(int64_t deadline_ns) noexcept nogil
cdef void spin_ns(int64_t duration_ns) noexcept nogil
