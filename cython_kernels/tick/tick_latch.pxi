# First phase of a tick (included by tick.pyx): vehicle value, driver tables -> signals.


cdef void _latch_vehicle(rig_t* r, int64_t now_ns, input_head_t* head, uint32_t* flags) noexcept nogil:
    cdef double value[MAX_VEHICLE]
    cdef int64_t stamp = 0, age
    cdef uint64_t version
    cdef double factor = 1.0, total = 0.0
    cdef bint good = True
    cdef int i
    version = slot_read(r.veh.received, value, &stamp)
    if version != 0 and version != r.veh.version:
        r.veh.version = version
        _keep(r, &stamp, 8)
        _keep(r, value, N_VEHICLE * sizeof(double))
        head.flags |= INPUT_VEHICLE
        for i in range(N_VEHICLE):
            total += value[i]
        if total - total != 0.0:
            # one of them is not finite, or only their sum
            for i in range(N_VEHICLE):
                good = good and isfinite(value[i])
        if good:
            memcpy(r.veh.last, value, N_VEHICLE * sizeof(double))
            # a value that came before arming is as old as the arming: waiting for the start is not silence
            r.veh.stamp_ns = stamp if stamp > r.age_from_ns else r.age_from_ns
            r.veh.taken += 1
            r.veh.refused_in_row = 0
            if r.tick + r.step_from - <int64_t>value[VEH_STEP] > r.veh.echo_max:
                r.veh.echo_max = r.tick + r.step_from - <int64_t>value[VEH_STEP]
            flags[0] |= FLAG_VEHICLE_NEW
        else:
            r.veh.refused += 1
            r.veh.refused_in_row += 1
            flags[0] |= FLAG_VEHICLE_REFUSED
            if r.veh.refused_in_row >= <uint64_t>r.veh.refuse_limit:
                rig_latch(r, CAUSE_VEHICLE_DATA, <int64_t>r.veh.refused_in_row)
    # age of what is used now: fresh -> hold -> ramp to zero force -> safe state
    age = now_ns - r.veh.stamp_ns
    if age > r.veh.age_max_ns:
        r.veh.age_max_ns = age
    if age > r.veh.age_limit_ns:
        r.veh.stale_ticks += 1
        flags[0] |= FLAG_VEHICLE_STALE
        age -= r.veh.age_limit_ns + r.veh.hold_ns
        if age > 0:
            factor = 1.0 - age / <double>r.veh.ramp_ns if age < r.veh.ramp_ns else 0.0
            if age >= r.veh.ramp_ns:
                rig_latch(r, CAUSE_VEHICLE_SILENT, (now_ns - r.veh.stamp_ns) // NS_PER_MS)
    memcpy(r.sig + r.veh.slot, r.veh.last, N_VEHICLE * sizeof(double))
    r.sig[r.veh.slot + r.veh.ramped] *= factor


cdef void _latch_pins(rig_t* r, input_head_t* head) noexcept nogil:
    # numbers of control units that are not on a bus, as they sent them last
    cdef double value[MAX_PINS]
    cdef pins_t* p
    cdef int64_t stamp = 0, n = 0, number
    cdef uint64_t version
    cdef size_t count_at = r.rec.input_at
    for number in range(r.n_pins):
        p = &r.pins[number]
        version = slot_read(p.slot, value, &stamp)
        if version == 0 or version == p.version:
            continue
        p.version = version
        if n == 0:
            _keep(r, &n, sizeof(n))
        _keep(r, &number, sizeof(number))
        _keep(r, value, p.n * sizeof(double))
        memcpy(r.sig + p.first, value, p.n * sizeof(double))
        n += 1
    if n > 0:
        memcpy(r.rec.input_record + count_at, &n, sizeof(n))
        head.flags |= INPUT_PINS


cdef void _latch_driver(rig_t* r) noexcept nogil:
    # y(t) linear between the points; two points at one time are a step, from then on the second holds
    cdef double t = sim_tick(r) * r.grid.tick_s
    cdef const double* x
    cdef const double* y
    cdef driver_t* d = r.driver
    cdef const driver_t* end = d + r.n_driver
    cdef int k
    while d < end:
        x = d.t
        y = d.y
        k = d.hint
        while k + 1 < d.n and t >= x[k + 1]:
            k += 1
        d.hint = k
        if k + 1 == d.n or t <= x[0]:
            r.sig[d.slot] = y[k]
        else:
            r.sig[d.slot] = y[k] + (y[k + 1] - y[k]) * ((t - x[k]) / (x[k + 1] - x[k]))
        d += 1
