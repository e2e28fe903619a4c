"""What a loop shows to those who look after it, and what they ask of it. Every word is written whole by one side.

The loop counts its wakes; whoever sees the count stand still may ask for the safe state, mute the loop and take its
priority away. Nothing here belongs to what the loop does: a watchdog needs no more of a rig than this.
"""

from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.clock.atomic cimport store_relaxed_i64, store_release_i32, swap_if_i32

cdef struct heartbeat_t:
    # ---- written by the loop ----
    int64_t beats               # wakes so far, also before arming
    int32_t running             # 1: inside the loop
    int32_t thread_id           # of its thread (Linux tid)
    # ---- written by others ----
    int32_t asked               # cause the safe state is asked for with; 0: none, -1: being written
    int32_t muted               # after a hang, never cleared: nothing is sent any more
    int64_t asked_detail


cdef inline bint heartbeat_ask(heartbeat_t* h, int32_t cause, int64_t detail) noexcept nogil:
    """Ask for the safe state from any thread; True if nobody did before. The next tick takes it over."""
    if swap_if_i32(&h.asked, 0, -1):
        # -1 reserves the word while the detail is written
        store_relaxed_i64(&h.asked_detail, detail)
        store_release_i32(&h.asked, cause)
        return True
    return False


cdef class Heartbeat:
    """The heartbeat of a loop, for its watchdog."""
    cdef heartbeat_t* h
    cdef object owner           # of the memory h points to
