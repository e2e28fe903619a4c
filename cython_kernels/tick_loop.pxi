# Life of the loop (included by tick.pyx): arming, the absolute grid, overruns and their policies.


cdef void rig_arm(rig_t* r, int64_t now_ns) noexcept nogil:
    """Begin: signals at their start values, counters at zero, ages counted from now. Nothing was sent before.
    real-time: yes."""
    cdef can_frame_t frame
    cdef int i
    if r.codec != NULL:
        # what came before arming is not part of the run (a replay could not know it)
        while frames_pop(r.rx_ring, &frame):
            r.idle_frames += 1
        codec_rx_arm(r.codec, r.rx, now_ns)
    memcpy(r.sig, r.sig0, r.n_sig * sizeof(double))
    if r.model != NULL:
        tl_outputs(r.model, r.state, r.sig + r.out_slot)
        r.mode_seen = r.state.log_n
    for i in range(r.n_driver):
        r.driver[i].hint = 0
    r.tick = 0
    r.hash = HASH_SEED
    r.veh_version = 0
    r.veh_stamp_ns = now_ns
    r.I_wheel = 0.0
    r.momentum_last = _combine(r, r.momentum, r.n_momentum)
    r.force_last = _combine(r, r.force, r.n_force)
    hist_clear(r.lateness)
    hist_clear(r.compute)
    memset(r.phase_max_ns, 0, sizeof(r.phase_max_ns))
    memset(r.phase_sum_ns, 0, sizeof(r.phase_sum_ns))
    r.margin_min_ns = r.period_ns
    r.arm_ns = r.age_from_ns = now_ns
    r.disarm = DISARM_NO
    r.reacting = 0
    store_release_i32(&r.armed, 1)


cdef bint rig_finished(const rig_t* r) noexcept nogil:
    """The run has its ticks, or the safe state has lasted as long as it was to be shown."""
    if r.n_ticks >= 0 and r.tick >= r.n_ticks:
        return True
    return r.safe_latched and r.safe_stop_ticks >= 0 and r.tick - r.cause_tick > r.safe_stop_ticks


cdef void _drop(rig_t* r, int64_t* grid, int64_t n) noexcept nogil:
    grid[0] += n * r.period_ns
    r.dropped += n
    r.missed += n
    r.flags_next |= FLAG_SLIPPED | FLAG_MISSED


cdef void rig_run(rig_t* r) noexcept nogil:
    """The loop on the real clock, until stop, end or POLICY_STOP. real-time: yes.
    Own thread, GIL released throughout."""
    cdef int64_t grid, now, late, behind
    cdef can_frame_t frame
    cdef bint last = False
    r.thread_id = <int32_t>syscall(SYS_gettid)
    r.running = 1
    now = monotonic_ns()
    r.first_wake_ns = now
    grid = now + r.period_ns
    while not last:
        sleep_until_ns(grid)
        now = monotonic_ns()
        store_release_i64(&r.heartbeat, r.heartbeat + 1)
        if load_acquire_u32(&r.command) & CMD_STOP:
            break
        if not r.armed or r.disarm == DISARM_SILENT:
            if not _arm_wanted(r):
                if r.armed and load_acquire_i32(&r.ext_cause) > CAUSE_NONE:
                    # a fault while disarmed: nothing is sent, nothing needs a ramp; the run is over
                    rig_latch(r, r.ext_cause, r.ext_detail)
                    break
                # idle wakes warm up code, caches and the timer; frames are only counted, nothing is sent
                if r.codec != NULL:
                    while frames_pop(r.rx_ring, &frame):
                        r.idle_frames += 1
                grid = (grid if now - grid < r.period_ns else now) + r.period_ns
                continue
            if not r.armed:
                rig_arm(r, now)
            grid = now
        late = now - grid
        hist_add(r.lateness, late)
        r.lateness_ns = <int32_t>min(late, <int64_t>0x7FFFFFFF)
        behind = late // r.period_ns
        if behind > 0:
            if r.policy == POLICY_SKIP:
                _drop(r, &grid, behind)
            else:
                if r.policy == POLICY_STOP:
                    rig_external(r, CAUSE_OVERRUNS, behind)
                    last = True
                elif behind > r.max_catch_up:
                    _drop(r, &grid, behind - r.max_catch_up)
                r.missed += 1
                r.late_started += 1
                r.flags_next |= FLAG_MISSED
        rig_tick(r, now)
        grid += r.period_ns
        late = monotonic_ns() - grid
        if -late < r.margin_min_ns:
            r.margin_min_ns = -late
        if late > 0:
            r.overruns += 1
            r.overruns_in_row += 1
            r.flags_next |= FLAG_OVERRUN
            if r.overruns_in_row > r.overruns_in_row_max:
                r.overruns_in_row_max = r.overruns_in_row
            if r.overrun_limit > 0 and r.overruns_in_row >= r.overrun_limit:
                rig_external(r, CAUSE_OVERRUNS, r.overruns_in_row)
        else:
            r.overruns_in_row = 0
        if rig_finished(r):
            break
    r.end_ns = monotonic_ns()
    store_release_i32(&r.running, 0)
