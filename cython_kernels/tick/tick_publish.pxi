# What a tick leaves behind (included by tick.pyx): state hash, vehicle slot, records for the recorder.


cdef void _publish_modes(rig_t* r) noexcept nogil:
    cdef mode_t record
    cdef tl_state* s = r.plant.state
    cdef int64_t at
    cdef int n = 0
    if s.log.n - r.rec.mode_seen > s.log.size:
        r.rec.mode_seen = s.log.n - s.log.size
    while r.rec.mode_seen < s.log.n and n < MODES_PER_TICK:
        at = r.rec.mode_seen % s.log.size
        record.step = s.log.step[at]
        record.t_s = s.log.t[at]
        record.element = s.log.element[at]
        record.mode = s.log.mode[at]
        data_push(r.rec.mode_ring, &record, sizeof(mode_t))
        r.rec.mode_seen += 1
        n += 1


cdef inline void _gather(const rig_t* r, double* out, double* also) noexcept nogil:
    """Recorded signals, one range of neighbouring slots after the other, to one place or two (also: NULL for none)."""
    cdef const range_t* part = r.rec.range
    cdef const range_t* end = part + r.rec.n_range
    while part < end:
        if also == NULL:
            copy(r.sig + part.first, out, part.n)
        else:
            copy_twice(r.sig + part.first, out, also, part.n)
            also += part.n
        out += part.n
        part += 1


cdef inline void _sample(rig_t* r, sample_t* sample, sample_t* also, int64_t now_ns, int64_t begin_ns,
                         uint32_t flags) noexcept nogil:
    """The record of the tick; also: another place for it, NULL for none."""
    sample.tick = r.tick
    sample.t_wall_ns = now_ns
    sample.wake_lateness_ns = <int32_t>min(r.account.now.lateness_ns, <int64_t>0x7FFFFFFF)
    sample.flags = flags
    sample.status = STATUS_ARMED | (STATUS_SAFE if r.latch.latched else 0) | (STATUS_FROZEN if r.frozen else 0)
    sample.status |= (STATUS_DISARMING if r.disarm else 0) | <uint32_t>r.latch.cause << 8
    _gather(r, sample.out, also.out if also != NULL else NULL)
    sample.compute_ns = <int32_t>min(clock_now(r.grid.script) - begin_ns, <int64_t>0x7FFFFFFF)
    if also != NULL:
        memcpy(also, sample, SAMPLE_HEAD)


cdef inline void _publish_sample(rig_t* r, int64_t now_ns, int64_t begin_ns, uint32_t flags) noexcept nogil:
    """The record of the tick: made in the first-fault ring where that takes it, and in the ring of the recorder, in one
    pass where the end of that ring does not cut it."""
    cdef bint due = r.rec.sample_ring != NULL and r.tick % r.rec.every == 0
    cdef bint kept = r.rec.first_fault != NULL and not r.rec.first_fault.frozen and not load_acquire_i32(&r.rec.first_fault.held)
    cdef sample_t* sample = <sample_t*>first_fault_place(r.rec.first_fault) if kept else r.rec.sample
    cdef uint32_t n_bytes = SAMPLE_HEAD + 8 * r.rec.n
    cdef sample_t* sent = <sample_t*>data_place(r.rec.sample_ring, n_bytes) if due else NULL
    r.flags_kept |= flags
    if due or kept:
        _sample(r, sample, sent, now_ns, begin_ns, flags)
    if due:
        # what happened in the ticks without a record belongs to this one
        if sent != NULL:
            sent.flags = r.flags_kept
            data_keep(r.rec.sample_ring, n_bytes)
        else:
            sample.flags = r.flags_kept
            data_push(r.rec.sample_ring, sample, n_bytes)
            sample.flags = flags
        r.flags_kept = 0
    if kept:
        first_fault_keep(r.rec.first_fault)
        if r.latch.latched and r.tick - r.latch.tick >= r.rec.first_fault.after:
            store_release_i32(&r.rec.first_fault.frozen, 1)


cdef void _publish_sensed(rig_t* r, int64_t now_ns) noexcept nogil:
    # what control units read directly
    cdef double value[MAX_PINS]
    cdef int number, k
    cdef const sensed_t* p
    for number in range(r.n_sensed):
        p = &r.sensed[number]
        for k in range(p.n):
            value[k] = r.sig[p.source[k]]
        slot_write(p.slot, value, now_ns)


cdef void _publish(rig_t* r, int64_t now_ns, int64_t begin_ns, input_head_t* head, uint32_t flags) noexcept nogil:
    cdef double value[N_RIG + MAX_MORE]
    cdef int i
    r.hash = fingerprint(r.hash, r.sig, r.n_sig)
    if r.veh.sent != NULL and not load_acquire_i32(&r.beat.muted):
        value[0] = <double>(r.tick + r.step_from + 1)
        value[1] = r.sig[r.own.time]
        value[2] = r.sig[r.own.F_wheel]
        value[3] = r.veh.I_wheel
        value[4] = r.sig[r.veh.out_speed]
        value[5] = r.sig[r.veh.out_s]
        value[6] = r.sig[r.veh.out_brake]
        for i in range(r.veh.n_more):
            value[N_RIG + i] = r.sig[r.veh.more[i]]
        slot_write(r.veh.sent, value, now_ns)
    if r.n_sensed > 0:
        _publish_sensed(r, now_ns)
    _publish_sample(r, now_ns, begin_ns, flags)
    if r.rec.input_ring != NULL:
        if head.flags & INPUT_CONTROL:
            _record_control(r)
        head.n_bytes = <uint32_t>r.rec.input_at
        memcpy(r.rec.input_record, head, sizeof(input_head_t))
        data_push(r.rec.input_ring, r.rec.input_record, head.n_bytes)
    if r.rec.mode_ring != NULL and r.plant.model != NULL:
        _publish_modes(r)
