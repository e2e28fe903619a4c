"""What a real-time thread does for itself, and a probe of how late it wakes.

Everything here concerns the calling thread. The probe is cyclictest's loop: sleep to the next point of an absolute grid,
note how late; no GIL meanwhile, the histogram has a fixed size.
"""

from libc.errno cimport errno
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.clock.atomic cimport load_acquire_i32, load_relaxed_i64, store_relaxed_i64, store_release_i32
from torqueloop.cython_kernels.clock.clock cimport monotonic_ns, sleep_until_ns
from torqueloop.cython_kernels.clock.denormals cimport DENORMALS_AVAILABLE, denormals_off, denormals_restore
from torqueloop.cython_kernels.clock cimport usage
from torqueloop.cython_kernels.clock.histogram cimport Histogram, hist_add

cdef extern from *:
    """
    #include <stddef.h>
    /* one page a call; the write after the inner call keeps the compiler from making a loop of it */
    static void __attribute__((noinline)) tl_touch_stack(size_t n_bytes) {
      volatile char page[4096];
      page[0] = 1;
      if (n_bytes > sizeof(page)) tl_touch_stack(n_bytes - sizeof(page));
      page[sizeof(page) - 1] = 1;
    }
    static double tl_times(double a, double b) {
      volatile double x = a, y = b;
      return x * y;
    }
    """
    void tl_touch_stack(size_t n_bytes) noexcept nogil
    double tl_times(double a, double b) noexcept nogil


def prefault_stack(n_bytes: int) -> None:
    """Touch the next n_bytes of the calling thread's stack, so that the loop takes no page fault for them."""
    cdef size_t n = n_bytes
    if not 0 < n_bytes <= 1 << 20:
        raise ValueError(f"{n_bytes} bytes of stack: allowed 1..1048576")
    with nogil:
        tl_touch_stack(n)


def denormals_can_be_off() -> bool:
    """Does the switch that every step is made under work on this machine? Tried: 1e-300 * 1e-10 must give 0."""
    cdef double product
    cdef unsigned long long mode
    if not DENORMALS_AVAILABLE:
        return False
    with nogil:
        mode = denormals_off()
        product = tl_times(1e-300, 1e-10)
        denormals_restore(mode)
    return product == 0.0


def denormals_kept() -> bool:
    """Does the calling thread compute with denormal numbers, as Python is meant to? (Outside of steps it must.)"""
    return tl_times(1e-300, 1e-10) != 0.0


def thread_usage() -> dict:
    """Of the calling thread since it began: minor_faults, major_faults, switches (it waited), preemptions."""
    cdef usage.usage_t u
    if usage.thread_usage(&u) != 0:
        raise OSError(errno, "getrusage(RUSAGE_THREAD)")
    return {
        "minor_faults": u.minor_faults, "major_faults": u.major_faults, "switches": u.voluntary,
        "preemptions": u.involuntary,
    }


cdef class Probe:
    """Wakes on an absolute grid and notes how late, until `count` wake-ups or stop()."""
    cdef readonly Histogram lateness
    cdef int64_t period_ns, count, done, passed
    cdef int32_t stopped

    def __cinit__(self, period_ns: int, count: int):
        if not 10_000 <= period_ns <= 1_000_000_000:
            raise ValueError(f"period {period_ns} ns: allowed 10000..1000000000")
        if count < 1:
            raise ValueError(f"{count} wake-ups: allowed at least 1")
        self.lateness = Histogram()
        self.period_ns, self.count = period_ns, count

    def run(self) -> None:
        """The loop, without the GIL; in the thread whose wake-ups are of interest."""
        cdef int64_t grid, now
        with nogil:
            grid = monotonic_ns() + self.period_ns
            while self.done < self.count and not load_acquire_i32(&self.stopped):
                sleep_until_ns(grid)
                now = monotonic_ns()
                hist_add(&self.lateness.h, now - grid)
                store_relaxed_i64(&self.done, self.done + 1)
                grid += self.period_ns
                # points passed meanwhile are counted, not served one after the other: each would look late for the same cause
                while grid <= now:
                    grid += self.period_ns
                    self.passed += 1

    def stop(self) -> None:
        """End the loop at its next wake. From any thread."""
        store_release_i32(&self.stopped, 1)

    @property
    def wakes(self) -> int:
        """Wake-ups so far."""
        return load_relaxed_i64(&self.done)

    @property
    def missed(self) -> int:
        """Grid points that had passed before the thread woke."""
        return self.passed
