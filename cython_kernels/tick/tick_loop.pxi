# Life of the loop (included by tick.pyx): arming, the absolute grid, overruns and their policies.


cdef void rig_arm(rig_t* r, int64_t now_ns) noexcept nogil:
    """Begin: signals at their start values, counters at zero, ages counted from now. Nothing was sent before.
    real-time: yes."""
    cdef int i
    # what came before arming is not part of the run (a replay could not know it)
    _discard(r, RX_AT_ARMING)
    for i in range(r.n_bus):
        codec_rx_arm(r.bus[i].codec, r.bus[i].rx, now_ns)
        if r.bus[i].port != NULL:
            port_arm(r.bus[i].port)
        memset(&r.bus[i].word, 0, sizeof(bus_word_t))
    for i in range(r.n_pins):
        r.pins[i].version = slot_version(r.pins[i].slot)
    _arm_io(r)
    memcpy(r.sig, r.sig0, r.n_sig * sizeof(double))
    if r.plant.model != NULL:
        tl_outputs(r.plant.model, r.plant.state, r.sig + r.plant.out_slot)
        r.rec.mode_seen = r.plant.state.log.n
    for i in range(r.n_driver):
        r.driver[i].hint = 0
    if r.scenario != NULL:
        scenario_arm(r.scenario, r.sig)
    if r.monitors != NULL:
        monitors_arm(r.monitors, r.sig)
    if r.faults != NULL:
        _arm_faults(r)
    for i in range(r.n_bus):
        if r.bus[i].sendings != NULL:
            _arm_sendings(r, &r.bus[i])
    r.tick = 0
    r.tick_from = 0
    r.step_from = 0
    if r.ctl != NULL:
        r.ctl.n_held = 0
        r.ctl.work = 0.0
    r.hash = HASH_SEED
    r.veh.version = 0
    r.veh.stamp_ns = now_ns
    r.veh.I_wheel = 0.0
    r.veh.momentum_last = _combine(r, r.veh.momentum, r.veh.n_momentum)
    r.veh.force_last = _combine(r, r.veh.force, r.veh.n_force)
    r.flags_next = r.flags_kept = 0
    r.late_in_row = 0
    account_clear(r.account)
    r.arm_ns = r.age_from_ns = now_ns
    r.disarm = DISARM_NO
    r.latch.reacting = 0
    store_release_i32(&r.armed, 1)


cdef bint rig_finished(const rig_t* r) noexcept nogil:
    """The run has its ticks, its scenario is over, or the safe state has lasted as long as it was to be shown."""
    if r.grid.n_ticks >= 0 and r.tick >= r.grid.n_ticks:
        return True
    if r.scenario != NULL and r.sig[r.scenario.first_slot + SCEN_STATE] != SCENARIO_RUNNING:
        return True
    return r.latch.latched and r.grid.safe_stop_ticks >= 0 and r.tick - r.latch.tick > r.grid.safe_stop_ticks


cdef bint _policy(rig_t* r, int64_t* grid, int64_t behind) noexcept nogil:
    """The wake-up came `behind` whole periods after *grid: drop grid points, run late, or stop (rules C7 to C9). True:
    the tick about to run is the last one."""
    cdef int64_t drop = 0
    cdef bint last = False, started_late
    if behind == 0:
        r.late_in_row = 0
        return False
    if r.grid.policy == POLICY_CATCH_UP:
        # not more than max_catch_up late ticks one after the other, whatever they cost
        drop = max(0, behind - (r.grid.max_catch_up - r.late_in_row))
    elif r.grid.policy == POLICY_SKIP or r.account.book == &r.account.grace:
        drop = behind
    else:
        rig_external(r, CAUSE_MISSED, behind)
        last = True
    started_late = behind > drop
    r.late_in_row = r.late_in_row + 1 if started_late else 0
    grid[0] += drop * r.grid.period_ns
    account_missed(r.account, started_late, drop)
    r.flags_next |= FLAG_MISSED
    if drop > 0:
        r.flags_next |= FLAG_SLIPPED
    return last


cdef void rig_run(rig_t* r) noexcept nogil:
    """The loop on its grid, until stop, end or POLICY_STOP. real-time: yes.
    Own thread, GIL released throughout."""
    cdef int64_t grid, now, late
    cdef int64_t spin = 0
    cdef uint32_t bits
    cdef bint last = False
    r.beat.thread_id = <int32_t>syscall(SYS_gettid)
    r.beat.running = 1
    r.account.watch_usage = r.grid.script == NULL
    now = clock_now(r.grid.script)
    r.first_wake_ns = now
    grid = now + r.grid.period_ns
    while not last:
        bits = clock_sleep(r.grid.script, grid - spin)
        if bits:
            rig_command(r, bits, CMD_DISARM if bits & CMD_ARM else 0)
        now = clock_spin(r.grid.script, grid)
        store_release_i64(&r.beat.beats, r.beat.beats + 1)
        if load_acquire_u32(&r.command) & CMD_STOP:
            break
        if not r.armed or r.disarm == DISARM_SILENT:
            if not _arm_wanted(r):
                if r.armed and load_acquire_i32(&r.beat.asked) > CAUSE_NONE:
                    # a fault while disarmed: nothing is sent, nothing needs a ramp; the run is over
                    rig_latch(r, r.beat.asked, r.beat.asked_detail)
                    break
                # idle wakes warm up code, caches and the timer; frames are only counted, nothing is sent
                _discard(r, RX_PER_TICK)
                grid = (grid if now - grid < r.grid.period_ns else now) + r.grid.period_ns
                spin = 0
                continue
            if not r.armed:
                rig_arm(r, now)
            # armed again, the grid begins anew: time spent disarmed is no slip
            grid = now
            spin = r.grid.spin_ns
            r.late_in_row = 0
            account_grid(r.account, now, r.grid.period_ns)
        late = now - grid
        account_wake(r.account, r.tick, late)
        last = _policy(r, &grid, late // r.grid.period_ns)
        r.account.due_ns = grid + r.grid.period_ns
        rig_tick(r, now)
        grid += r.grid.period_ns
        if rig_finished(r):
            break
    _leave_io(r)
    r.end_ns = clock_now(r.grid.script)
    store_release_i32(&r.beat.running, 0)
