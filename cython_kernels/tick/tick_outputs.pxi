# Inputs, step and outputs of a tick (included by tick.pyx).


cdef inline void _copy(double* sig, const wiring_t* w) noexcept nogil:
    """Wiring: sig[dst] = gain * sig[src] + offset, one row after the other."""
    cdef const copy_t* row = w.row
    cdef const copy_t* end = row + w.n_plain
    # x + 0.0 is what 1.0 * x + 0.0 is: 0 where x is -0
    while end - row >= 4:
        sig[row.dst] = sig[row.src] + 0.0
        sig[row[1].dst] = sig[row[1].src] + 0.0
        sig[row[2].dst] = sig[row[2].src] + 0.0
        sig[row[3].dst] = sig[row[3].src] + 0.0
        row += 4
    while row < end:
        sig[row.dst] = sig[row.src] + 0.0
        row += 1
    end = w.row + w.n
    while row < end:
        sig[row.dst] = row.gain * sig[row.src] + row.offset
        row += 1


cdef void _inputs(rig_t* r, uint32_t* flags) noexcept nogil:
    cdef int i
    cdef double x
    if r.ctl != NULL:
        _hold(r, 0)
    _copy(r.sig, &r.in_copy)
    if r.ctl != NULL:
        _hold(r, 1)
    if r.faults != NULL:
        _signal_faults(r, STAGE_INPUT, flags)
    if r.latch.reacting:
        for i in range(r.n_safe):
            x = (r.tick - r.latch.react_tick) * r.grid.tick_s
            x = x / r.safe[i].ramp_s if x < r.safe[i].ramp_s else 1.0
            r.sig[r.safe[i].slot] = r.safe[i].start + (r.safe[i].target - r.safe[i].start) * x
    if r.plant.model != NULL and r.plant.n_in > 0:
        # held over the tick: one set of values for all substeps
        memcpy(r.plant.state.inp, r.sig + r.plant.in_slot, r.plant.n_in * sizeof(double))
        r.plant.state.held = 1


cdef void _step(rig_t* r) noexcept nogil:
    cdef int64_t unresolved = r.plant.state.counters[TL_C_FALLBACKS]
    cdef int i, status
    for i in range(r.plant.substeps):
        status = tl_step(r.plant.model, r.plant.state)
        if status != 0:
            rig_latch(r, CAUSE_NOT_FINITE, status)
            return
    if r.safety != NULL:
        if r.plant.state.counters[TL_C_FALLBACKS] == unresolved:
            r.safety.unresolved = 0
        else:
            # one is well posed and loses energy only; in a row, the motion is not that of the model any more
            r.safety.unresolved += 1
            if r.safety.solver_limit > 0 and r.safety.unresolved >= r.safety.solver_limit:
                rig_latch(r, CAUSE_SOLVER, r.safety.unresolved)


cdef double _combine(const rig_t* r, const copy_t* terms, int n) noexcept nogil:
    cdef double total = 0.0
    cdef int i
    for i in range(n):
        total += terms[i].gain * r.sig[terms[i].src]
    return total


cdef void _outputs(rig_t* r, uint32_t* flags) noexcept nogil:
    cdef int i
    cdef double momentum, force, value
    if r.plant.model != NULL and not r.frozen:
        tl_outputs(r.plant.model, r.plant.state, r.plant.out_new)
        i = not_finite(r.plant.out_new, r.plant.n_out)
        if i >= 0:
            rig_latch(r, CAUSE_NOT_FINITE, r.plant.out_slot + i)
        if not r.frozen:
            # after a fault the last good outputs stay in the table
            copy(r.plant.out_new, r.sig + r.plant.out_slot, r.plant.n_out)
    # Impulse of the tractive force: m dv/dt = F_wheel + F_road  =>  I += d(m v) - T * mean(F_road) over the tick
    momentum = _combine(r, r.veh.momentum, r.veh.n_momentum)
    force = _combine(r, r.veh.force, r.veh.n_force)
    value = (momentum - r.veh.momentum_last) + r.grid.tick_s * 0.5 * (force + r.veh.force_last)
    r.veh.I_wheel += value
    r.veh.momentum_last = momentum
    r.veh.force_last = force
    r.sig[r.own.F_wheel] = value / r.grid.tick_s
    r.sig[r.own.I_wheel] = r.veh.I_wheel
    for i in range(r.n_limit):
        value = r.sig[r.limit[i].slot]
        if not (value >= r.limit[i].lo and value <= r.limit[i].hi):
            rig_latch(r, CAUSE_LIMIT, i)
            break
    r.sig[r.own.time] = (sim_tick(r) + 1) * r.grid.tick_s
    r.sig[r.own.tick] = <double>sim_tick(r)
    r.sig[r.own.status] = RIG_FAULT if r.frozen else RIG_SAFE if r.latch.latched else RIG_RUNNING
    if r.disarm:
        r.sig[r.own.status] = RIG_OFF
    r.sig[r.own.cause] = r.latch.cause
    if r.sensors != NULL and not r.frozen:
        sensors_tick(r.sensors, r.sig)
        if r.faults != NULL:
            _signal_faults(r, STAGE_SENSOR, flags)
    _copy(r.sig, &r.out_copy)
