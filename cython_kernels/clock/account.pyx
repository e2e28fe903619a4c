"""Accounting of the loop's time. Every tick costs the same: some counters, nine histogram entries, two comparisons with
the worst ticks so far, and on a real clock one system call for the page faults and context switches of the thread.

Nothing here is an input of a tick: the books are no part of the state hash, and a replay gives other times.
"""

from libc.stdint cimport int64_t
from libc.string cimport memset

from torqueloop.cython_kernels.clock.histogram cimport Histogram, hist_add, hist_clear
from torqueloop.cython_kernels.clock.usage cimport thread_usage, usage_t

#: names of the phases, by number (account.pxd PHASE_*)
PHASES = ("latch", "inputs", "step", "outputs", "tx", "publish")


cdef void account_clear(account_t* a) noexcept nogil:
    """Everything at zero; called at arming, by the thread of the loop."""
    cdef int i
    memset(&a.run, 0, sizeof(book_t))
    memset(&a.grace, 0, sizeof(book_t))
    memset(&a.now, 0, sizeof(tick_figures_t))
    memset(&a.by_lateness, 0, sizeof(ranking_t))
    memset(&a.by_compute, 0, sizeof(ranking_t))
    a.overruns_in_row = a.overruns_in_row_max = 0
    a.due_ns = a.grid0_ns = a.points = 0
    hist_clear(a.lateness)
    hist_clear(a.compute)
    hist_clear(a.margin)
    for i in range(N_PHASES):
        hist_clear(a.phase[i])
    account_open(a, 0)


cdef void account_grid(account_t* a, int64_t now_ns, int64_t period_ns) noexcept nogil:
    """A grid begins now: the run was armed, or armed again. Called by the thread of the loop."""
    if a.due_ns != 0:
        a.points += (a.due_ns - a.grid0_ns) // period_ns
    a.grid0_ns = now_ns
    a.due_ns = 0
    if a.watch_usage:
        # faults and switches of the time in between are nobody's
        thread_usage(&a.usage)


cdef void account_wake(account_t* a, int64_t tick, int64_t lateness_ns) noexcept nogil:
    """The wake-up that serves a tick came this late."""
    account_open(a, tick)
    a.now.lateness_ns = lateness_ns
    if lateness_ns > a.book.lateness_max_ns:
        a.book.lateness_max_ns = lateness_ns
    if a.book == &a.run:
        hist_add(a.lateness, lateness_ns)


cdef void account_missed(account_t* a, int64_t late_started, int64_t dropped) noexcept nogil:
    """Grid points that were not met: run late, or not at all."""
    a.book.late_started += late_started
    a.book.dropped += dropped
    a.book.missed += late_started + dropped


cdef void _rank(ranking_t* r, const tick_figures_t* tick, int64_t key_ns) noexcept nogil:
    cdef int i
    if r.n < N_WORST:
        i = r.n
        r.n += 1
    elif key_ns > r.bar_ns:
        i = r.least
    else:
        return
    r.entry[i] = tick[0]
    r.key_ns[i] = key_ns
    if r.n == N_WORST:
        r.least = 0
        for i in range(1, N_WORST):
            if r.key_ns[i] < r.key_ns[r.least]:
                r.least = i
        r.bar_ns = r.key_ns[r.least]


cdef int64_t account_end(account_t* a, int64_t begin_ns, int64_t end_ns) noexcept nogil:
    """Close the running tick: compute time, margin, faults and switches, worst ticks."""
    cdef book_t* book = a.book
    cdef usage_t before = a.usage
    cdef usage_t* u = &a.now.usage
    cdef bint counts = book == &a.run
    cdef int64_t compute = end_ns - begin_ns
    book.ticks += 1
    a.now.compute_ns = compute
    if compute > book.compute_max_ns:
        book.compute_max_ns = compute
    if a.watch_usage:
        thread_usage(&a.usage)
        u.minor_faults = a.usage.minor_faults - before.minor_faults
        u.major_faults = a.usage.major_faults - before.major_faults
        u.voluntary = a.usage.voluntary - before.voluntary
        u.involuntary = a.usage.involuntary - before.involuntary
        book.usage.minor_faults += u.minor_faults
        book.usage.major_faults += u.major_faults
        book.usage.voluntary += u.voluntary
        book.usage.involuntary += u.involuntary
    if counts:
        hist_add(a.compute, compute)
    if a.due_ns != 0:
        a.now.margin_ns = a.due_ns - end_ns
        if a.now.margin_ns < 0:
            book.overruns += 1
        if counts:
            hist_add(a.margin, a.now.margin_ns)
            _rank(&a.by_lateness, &a.now, a.now.lateness_ns)
            a.overruns_in_row = a.overruns_in_row + 1 if a.now.margin_ns < 0 else 0
            if a.overruns_in_row > a.overruns_in_row_max:
                a.overruns_in_row_max = a.overruns_in_row
    if counts:
        _rank(&a.by_compute, &a.now, compute)
    return a.overruns_in_row


cdef dict _usage_dict(const usage_t* u):
    return {
        "minor_faults": u.minor_faults, "major_faults": u.major_faults, "voluntary_switches": u.voluntary,
        "involuntary_switches": u.involuntary,
    }


cdef list _worst(const ranking_t* r):
    cdef const tick_figures_t* t
    cdef int i
    order = sorted(range(r.n), key=lambda k: (-r.key_ns[k], r.entry[k].tick))
    found = []
    for i in order:
        t = &r.entry[i]
        found.append({
            "tick": t.tick, "lateness_us": t.lateness_ns / 1e3, "compute_us": t.compute_ns / 1e3,
            "margin_us": t.margin_ns / 1e3,
            "phase_us": {name: t.phase_ns[k] / 1e3 for k, name in enumerate(PHASES)}, **_usage_dict(&t.usage),
        })
    return found


cdef class Account:
    """Books of one rig. Read from any thread: while the loop runs, single counters are whole, but a sum or an entry of
    the worst ticks may be of two ticks; at the end everything is exact."""

    def __cinit__(self):
        cdef Histogram h
        cdef int i
        self.lateness, self.compute, self.margin = Histogram(), Histogram(), Histogram()
        self.phases = tuple(Histogram() for _ in PHASES)
        h = self.lateness
        self.a.lateness = &h.h
        h = self.compute
        self.a.compute = &h.h
        h = self.margin
        self.a.margin = &h.h
        for i in range(N_PHASES):
            h = self.phases[i]
            self.a.phase[i] = &h.h
        account_open(&self.a, 0)

    def counters(self, tick_s: float) -> dict:
        """Counters after the grace in the words of docs/clock.md, and `grace`: those of the ticks in it. grid_points: all
        that were served or dropped."""
        cdef book_t* b = &self.a.run
        cdef book_t* g = &self.a.grace
        points = self.a.points
        if self.a.due_ns:
            points += (self.a.due_ns - self.a.grid0_ns) // round(tick_s * 1e9)
        return {
            "grid_points": points if points else b.ticks + g.ticks,
            "missed": b.missed, "late_started": b.late_started, "dropped": b.dropped, "overruns": b.overruns,
            "overruns_in_row_max": self.a.overruns_in_row_max, "lost_time_s": b.dropped * tick_s,
            "margin_min_us": (self.margin.min_ns if self.margin.count else tick_s * 1e9) / 1e3,
            **_usage_dict(&b.usage),
            "grace": {
                "ticks": g.ticks, "missed": g.missed, "late_started": g.late_started, "dropped": g.dropped,
                "overruns": g.overruns, "lost_time_s": g.dropped * tick_s, "lateness_max_us": g.lateness_max_ns / 1e3,
                "compute_max_us": g.compute_max_ns / 1e3, **_usage_dict(&g.usage),
            },
            "phase_mean_us": {name: self.phases[k].mean_ns / 1e3 for k, name in enumerate(PHASES)},
            "phase_max_us": {name: self.phases[k].max_ns / 1e3 for k, name in enumerate(PHASES)},
        }

    def worst(self) -> dict:
        """The worst ticks after the grace, worst first: `by_lateness` (empty without deadlines) and `by_compute`. Each
        with tick, lateness, compute time, margin, phases in us, and the faults and switches of the tick and the
        sleep before it."""
        return {"by_lateness": _worst(&self.a.by_lateness), "by_compute": _worst(&self.a.by_compute)}
