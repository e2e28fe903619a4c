"""What the loop counts about its own time: books, histograms, worst ticks. The words are those of docs/clock.md."""

from libc.stdint cimport int32_t, int64_t, uint32_t

from torqueloop.cython_kernels.clock.histogram cimport hist_add, hist_t
from torqueloop.cython_kernels.clock.usage cimport usage_t

# Phases of a tick that are timed.
cdef enum:
    PHASE_LATCH = 0
    PHASE_INPUTS = 1
    PHASE_STEP = 2
    PHASE_OUTPUTS = 3
    PHASE_TX = 4
    PHASE_PUBLISH = 5
    N_PHASES = 6

cdef enum:
    N_WORST = 32                # worst ticks kept of each kind

# Counters of one stretch of the run: the start-up grace, or everything after it.
cdef struct book_t:
    int64_t ticks
    int64_t overruns
    int64_t missed              # = late_started + dropped
    int64_t late_started
    int64_t dropped
    int64_t lateness_max_ns
    int64_t compute_max_ns
    usage_t usage

# One tick in figures.
cdef struct tick_figures_t:
    int64_t tick
    int64_t lateness_ns
    int64_t compute_ns
    int64_t margin_ns
    int64_t phase_ns[N_PHASES]
    usage_t usage               # of the tick and the sleep before it

# The worst ticks by one key, in no order. An ordinary tick is one comparison with `bar_ns`.
cdef struct ranking_t:
    int32_t n
    int32_t least               # entry with the smallest key once all places are taken
    int64_t bar_ns              # its key; a tick must exceed it to get in
    int64_t key_ns[N_WORST]
    tick_figures_t entry[N_WORST]

cdef struct account_t:
    int64_t grace_ticks         # ticks 0 .. grace_ticks - 1 belong to the start-up grace
    int32_t watch_usage         # 1: faults and switches of the calling thread are counted (one system call a tick)
    int64_t due_ns              # next grid point, set by the loop; 0: a clock without deadlines
    int64_t grid0_ns            # begin of the grid: time of arming, or of arming again
    int64_t points              # grid points of the grids before it
    book_t* book                # of the running tick
    book_t run
    book_t grace
    int64_t overruns_in_row
    int64_t overruns_in_row_max
    tick_figures_t now          # the running tick
    usage_t usage               # of the thread, at the end of the tick before
    hist_t* lateness
    hist_t* compute
    hist_t* margin
    hist_t* phase[N_PHASES]
    ranking_t by_lateness
    ranking_t by_compute

# real-time: yes, all of them. account_end tells how many overruns there are in a row now (0: the tick was in time).
cdef void account_clear(account_t* a) noexcept nogil
cdef void account_grid(account_t* a, int64_t now_ns, int64_t period_ns) noexcept nogil
cdef void account_wake(account_t* a, int64_t tick, int64_t lateness_ns) noexcept nogil
cdef void account_missed(account_t* a, int64_t late_started, int64_t dropped) noexcept nogil
cdef int64_t account_end(account_t* a, int64_t begin_ns, int64_t end_ns) noexcept nogil


cdef inline void account_open(account_t* a, int64_t tick) noexcept nogil:
    """Choose the book of a tick."""
    a.now.tick = tick
    a.book = &a.grace if tick < a.grace_ticks else &a.run


cdef inline void account_phase(account_t* a, int phase, int64_t ns) noexcept nogil:
    """Time of one phase of the running tick."""
    a.now.phase_ns[phase] = ns
    if a.book == &a.run:
        hist_add(a.phase[phase], ns)


cdef class Account:
    cdef account_t a
    cdef readonly object lateness
    cdef readonly object compute
    cdef readonly object margin
    cdef readonly tuple phases
