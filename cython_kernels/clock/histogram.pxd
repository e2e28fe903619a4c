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

cdef extern from *:
    """
    #ifndef TORQUELOOP_LOG2_H
    #define TORQUELOOP_LOG2_H
    static inline int tl_log2_u64(unsigned long long v) { return 63 - __builtin_clzll(v); }
    #endif
    """
    int tl_log2_u64(unsigned long long v) noexcept nogil


cdef inline int hist_index(int64_t ns) noexcept nogil:
    """Bucket of a value of 0 or more: the power of two chooses the row (all below 2 * SUB share the first two), the SUB_BITS
    bits behind the leading one the column."""
    cdef int row = tl_log2_u64(<unsigned long long>ns | SUB) - SUB_BITS
    return row * SUB + <int>(ns >> row) if row < TOP_BITS - SUB_BITS else N_BUCKETS - 1


cdef inline void hist_add(hist_t* h, int64_t ns) noexcept nogil:
    """Count one value in ns. real-time: yes."""
    if ns < h.min_ns:
        h.min_ns = ns
    if ns > h.max_ns:
        h.max_ns = ns
    h.sum_ns += ns
    h.count += 1
    if ns < 0:
        h.negative += 1
        ns = 0
    h.bucket[hist_index(ns)] += 1


cdef void hist_clear(hist_t* h) noexcept nogil

cdef class Histogram:
    cdef hist_t h
