"""Latency histogram of fixed size: 1.6 % resolution from 1 ns to 68 s, adding costs a few ns and never allocates.

One thread adds, any thread may read: each counter is a naturally aligned 64-bit word, so a reader sees whole numbers;
between count and buckets it may be one value behind.
"""

from libc.string cimport memset

cdef int64_t _lower_edge(int i) noexcept nogil:
    cdef int row = i // SUB
    if row == 0:
        return i
    return (<int64_t>(SUB + i % SUB)) << (row - 1)


cdef int64_t _upper_edge(int i) noexcept nogil:
    # largest value that falls into the bucket
    return _lower_edge(i + 1) - 1


cdef void hist_clear(hist_t* h) noexcept nogil:
    """real-time: yes. One that is empty already is left alone: 16 KB each, and a rig arms a dozen between two ticks."""
    if h.count == 0 and h.min_ns == <int64_t>0x7FFFFFFFFFFFFFFF:
        return
    memset(h, 0, sizeof(hist_t))
    # empty: anything is smaller and greater
    h.min_ns = <int64_t>0x7FFFFFFFFFFFFFFF
    h.max_ns = -h.min_ns


cdef class Histogram:
    """Latencies in ns; read in us by `summary`."""

    def __cinit__(self):
        hist_clear(&self.h)

    def add(self, ns: int) -> None:
        """Count one value in ns."""
        hist_add(&self.h, ns)

    def clear(self) -> None:
        """Forget everything."""
        hist_clear(&self.h)

    def merge(self, Histogram other not None) -> None:
        """Add all values of another histogram."""
        cdef int i
        if other.h.count == 0:
            return
        if other.h.min_ns < self.h.min_ns:
            self.h.min_ns = other.h.min_ns
        if other.h.max_ns > self.h.max_ns:
            self.h.max_ns = other.h.max_ns
        self.h.count += other.h.count
        self.h.sum_ns += other.h.sum_ns
        self.h.negative += other.h.negative
        for i in range(N_BUCKETS):
            self.h.bucket[i] += other.h.bucket[i]

    def load(self, summary) -> None:
        """Add the values of a stored `summary`, bucket by bucket: as exact as the histogram it came from (the mean to
        1e-9 of itself). ValueError: the buckets do not add up to its count, or an edge is none of ours."""
        cdef Histogram other = Histogram()
        cdef int64_t edge, n
        cdef int i
        for edge_us, count in summary["hist"]:
            edge, n = round(edge_us * 1e3), count
            i = hist_index(edge) if edge > 0 else 0
            if n < 0 or _lower_edge(i) != edge:
                raise ValueError(f"bucket [{edge_us} us, {count}]: allowed lower edges of buckets and counts >= 0")
            other.h.bucket[i] += n
            other.h.count += n
        if other.h.count != summary["count"]:
            raise ValueError(f"{other.h.count} values in the buckets: allowed count = {summary['count']}")
        other.h.min_ns, other.h.max_ns = round(summary["min"] * 1e3), round(summary["max"] * 1e3)
        other.h.sum_ns = round(summary["mean"] * 1e3 * other.h.count)
        other.h.negative = summary.get("negative", 0)
        self.merge(other)

    @property
    def count(self) -> int:
        """Number of values."""
        return self.h.count

    @property
    def min_ns(self) -> int:
        """Smallest value, exact (0 when empty)."""
        return self.h.min_ns if self.h.count else 0

    @property
    def max_ns(self) -> int:
        """Largest value, exact (0 when empty)."""
        return self.h.max_ns if self.h.count else 0

    @property
    def negative(self) -> int:
        """Number of values below zero."""
        return self.h.negative

    @property
    def mean_ns(self) -> float:
        """Arithmetic mean, exact (0 when empty)."""
        return self.h.sum_ns / <double>self.h.count if self.h.count else 0.0

    def percentile(self, p: float) -> int:
        """Smallest bucket edge in ns that at least p % of the values do not exceed (never above the exact maximum).
        Negative values read as 0; `min_ns` is the smallest."""
        cdef int64_t need, seen = 0
        cdef int i
        if not 0.0 <= p <= 100.0:
            raise ValueError(f"percentile {p}: allowed 0..100")
        if self.h.count == 0:
            return 0
        # ceil without the noise of p * count / 100 (99.9 % of 1000 is 999, not 1000)
        need = max(1, -int(-round(p * self.h.count / 100.0, 6) // 1))
        for i in range(N_BUCKETS):
            seen += self.h.bucket[i]
            if seen >= need:
                return min(_upper_edge(i), self.h.max_ns) if i < N_BUCKETS - 1 else self.h.max_ns
        return self.h.max_ns

    def buckets(self) -> list:
        """Non-empty buckets as (lower edge in ns, count), ascending."""
        cdef int i
        return [(_lower_edge(i), self.h.bucket[i]) for i in range(N_BUCKETS) if self.h.bucket[i]]

    def summary(self) -> dict:
        """count, mean, p50, p90, p99, p999, p9999, min, max in us, how many are negative, and the whole histogram as
        `hist`: [[lower edge in us, count], ...]; `load` reads it back."""
        named = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9, "p9999": 99.99}
        out = {"count": self.count, "mean": self.mean_ns / 1e3, "min": self.min_ns / 1e3, "max": self.max_ns / 1e3}
        out.update({name: self.percentile(p) / 1e3 for name, p in named.items()})
        out["negative"] = self.negative
        out["hist"] = [[edge / 1e3, n] for edge, n in self.buckets()]
        return out
