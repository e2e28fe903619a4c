from libc.stdint cimport int64_t

# Log-linear buckets as in HdrHistogram: below 2**SUB_BITS ns one bucket per ns, above it every power of two is divided
# into 2**SUB_BITS equal buckets, so a value is known to 1/64 = 1.6 % of itself. Range up to 2**36 ns = 68 s.
cdef enum:
    SUB_BITS = 6
    SUB = 1 << SUB_BITS
    TOP_BITS = 36
    N_BUCKETS = (TOP_BITS - SUB_BITS + 1) * SUB

ctypedef struct hist_t:
    int64_t count       # number of values added
    int64_t sum_ns      # for the mean
    int64_t min_ns
    int64_t max_ns      # exact, also when above the range of the buckets
    int64_t negative    # values < 0 (counted in bucket 0)
    int64_t bucket[N_BUCKETS]

cdef void hist_clear(hist_t* h) noexcept nogil
cdef void hist_add(hist_t* h, int64_t ns) noexcept nogil

cdef class Histogram:
    cdef hist_t h
