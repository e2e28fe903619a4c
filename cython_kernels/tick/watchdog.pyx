"""The watchdog's own loop: looks at a heartbeat from a thread that needs neither the GIL nor the loop that beats.

A busy Python thread or a C extension that holds the GIL does not delay it. Given a priority above the loop's it runs
even where the loop spins on its only CPU. It does not allocate and calls nothing but the clock and the scheduler.

No new heartbeat for `limit_s` means the loop hangs. Then, in this order:

    latch      the safe state is asked for with cause "hung", before anything else can ask for it
    mute       the tick sends nothing more in this run, to the bus or to the vehicle, whenever it comes back
    demote     the loop's thread loses its real-time priority: the processor it spins on is needed to end the run

A loop that comes back finds the cause at its next tick and goes into the safe state.
"""

from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.clock.atomic cimport (
    load_acquire_i32,
    load_relaxed_i64,
    store_relaxed_i64,
    store_release_i32,
)
from torqueloop.cython_kernels.clock.clock cimport monotonic_ns, sleep_until_ns
from torqueloop.cython_kernels.clock.heartbeat cimport Heartbeat, heartbeat_ask, heartbeat_t
from torqueloop.cython_kernels.tick.tick cimport CAUSE_HUNG

cdef extern from "<sched.h>" nogil:
    struct sched_param:
        int sched_priority
    int sched_setscheduler(int thread, int policy, const sched_param* param)
    int SCHED_OTHER, SCHED_FIFO

#: the loop is looked at at least this often: bounds how long stop() waits [ns]
cdef int64_t PAUSE_MAX_NS = 50_000_000
#: a pause of this thread that much longer than planned was not the loop's fault [ns]
cdef int64_t SLACK_NS = 50_000_000

cdef struct watch_t:
    int64_t limit_ns
    int64_t longest_ns          # longest time without a new heartbeat
    int64_t hung_ns             # when the loop was found hung, 0: never
    int64_t looks
    int64_t away                # pauses in which this thread itself was not run
    int32_t stop


cdef void _found_hung(watch_t* w, heartbeat_t* h, int64_t now, int64_t silent_ns) noexcept nogil:
    cdef sched_param ordinary
    heartbeat_ask(h, CAUSE_HUNG, silent_ns // 1_000_000)
    store_release_i32(&h.muted, 1)
    ordinary.sched_priority = 0
    sched_setscheduler(load_acquire_i32(&h.thread_id), SCHED_OTHER, &ordinary)
    store_relaxed_i64(&w.hung_ns, now)


cdef void _schedule(int policy, int priority) noexcept nogil:
    cdef sched_param wanted
    wanted.sched_priority = priority
    sched_setscheduler(0, policy, &wanted)


cdef void _watch(watch_t* w, heartbeat_t* h) noexcept nogil:
    cdef int64_t pause = min(w.limit_ns // 4, PAUSE_MAX_NS)
    cdef int64_t now = monotonic_ns()
    cdef int64_t since = now, looked = now, last = load_relaxed_i64(&h.beats), beat
    while not load_acquire_i32(&w.stop):
        sleep_until_ns(now + pause)
        now = monotonic_ns()
        beat = load_relaxed_i64(&h.beats)
        if beat != last or not load_acquire_i32(&h.running):
            last = beat
            since = now
        elif now - looked > 2 * pause + SLACK_NS:
            # this thread itself was not run for long: it cannot accuse the loop of what it did not see
            since += now - looked - pause
            w.away += 1
        looked = now
        w.looks += 1
        if now - since > w.longest_ns:
            store_relaxed_i64(&w.longest_ns, now - since)
        if now - since > w.limit_ns and w.hung_ns == 0:
            _found_hung(w, h, now, now - since)


cdef class Watch:
    """Watches one loop. `run` blocks without the GIL until `stop`; call it in a thread of its own."""

    cdef watch_t w
    cdef Heartbeat heartbeat
    cdef int priority

    def __init__(self, Heartbeat heartbeat not None, limit_s: float, priority: int = 0):
        """priority: SCHED_FIFO priority while it watches (0, or without the right to it: as any other thread). It has it
        only without the GIL: what Python does in this thread before and after never runs above the loop."""
        if not 0.01 <= limit_s <= 1e4:
            raise ValueError(f"watchdog limit {limit_s} s: allowed 0.01..1e4 s")
        if heartbeat.h == NULL:
            raise ValueError("a heartbeat that belongs to no loop")
        self.heartbeat, self.priority = heartbeat, priority
        self.w.limit_ns = round(limit_s * 1e9)

    def run(self) -> None:
        """Look at the heartbeat until stop() is called."""
        with nogil:
            if self.priority > 0:
                _schedule(SCHED_FIFO, self.priority)
            _watch(&self.w, self.heartbeat.h)
            if self.priority > 0:
                _schedule(SCHED_OTHER, 0)

    def stop(self) -> None:
        """run() returns within 0.05 s. From any thread."""
        store_release_i32(&self.w.stop, 1)

    @property
    def hung_ns(self) -> int:
        """Monotonic time at which the loop was found hung [ns]; 0: never."""
        return load_relaxed_i64(&self.w.hung_ns)

    @property
    def longest_s(self) -> float:
        """Longest time without a new heartbeat [s]."""
        return load_relaxed_i64(&self.w.longest_ns) * 1e-9

    @property
    def looks(self) -> int:
        """Looks so far."""
        return self.w.looks
