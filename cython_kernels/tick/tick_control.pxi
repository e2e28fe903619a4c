# Control transaction of a tick (included by tick.pyx): taken whole at its top, recorded and given back at its end.


cdef inline int64_t sim_tick(const rig_t* r) noexcept nogil:
    """Ticks of simulated time: those since arming, and those before the image the run goes on from."""
    return r.tick + r.tick_from


cdef void _hold(rig_t* r, int32_t stage) noexcept nogil:
    cdef ctl_hold_t* h
    cdef int i
    for i in range(r.ctl.n_held):
        h = &r.ctl.held[i]
        if h.stage == stage:
            h.own = r.sig[h.slot]
            r.sig[h.slot] = h.value


cdef void _write(rig_t* r, const ctl_write_t* w) noexcept nogil:
    cdef ctl_t* c = r.ctl
    cdef int at
    if w.kind == CTL_SET:
        r.sig[w.slot] = w.value
        return
    at = 0
    while at < c.n_held and c.held[at].slot != w.slot:
        at += 1
    if w.kind == CTL_HOLD:
        if at == c.n_held:
            if at == CTL_HELD:
                return
            c.n_held += 1
            c.held[at].slot = w.slot
            c.held[at].stage = r.plant.in_slot <= w.slot < r.plant.in_slot + r.plant.n_in
        c.held[at].value = w.value
        c.held[at].own = r.sig[w.slot]
    elif at < c.n_held:
        # its own value is in the table already
        c.n_held -= 1
        c.held[at] = c.held[c.n_held]


cdef void _take_image(rig_t* r, image_t* m) noexcept nogil:
    """The rig between two ticks -> m. real-time: yes (copies of fixed size)."""
    cdef image_head_t* h = m.head
    cdef const bus_t* b
    cdef int i, bus, at = 0
    h.tick = sim_tick(r)
    h.hash = r.hash
    h.I_wheel = r.veh.I_wheel
    h.momentum_last = r.veh.momentum_last
    h.force_last = r.veh.force_last
    h.work = r.ctl.work
    memcpy(h.vehicle, r.veh.last, sizeof(r.veh.last))
    h.n_held = r.ctl.n_held
    memcpy(h.held, r.ctl.held, sizeof(r.ctl.held))
    memcpy(m.sig, r.sig, r.n_sig * sizeof(double))
    if r.plant.model != NULL:
        memcpy(m.x, r.plant.state.x, r.plant.state.nx * sizeof(double))
        memcpy(m.k, r.plant.state.k, r.plant.state.nk * sizeof(int64_t))
    for bus in range(r.n_bus):
        b = &r.bus[bus]
        for i in range(b.codec.n_messages):
            m.rx[at + i].counter = b.rx.message[i].counter
            m.rx[at + i].seen = b.rx.message[i].seen
            m.rx[at + i].rejected = b.rx.message[i].rejected
            m.rx[at + i].bad = b.rx.message[i].bad
            m.tx[at + i] = <int64_t>b.tx.message[i].counter | <int64_t>b.tx.message[i].page << 32
        at += b.codec.n_messages
    for i in range(r.n_driver):
        m.hint[i] = r.driver[i].hint
    if r.safety != NULL:
        for i in range(r.safety.n_guard):
            m.guard_last[i] = r.safety.guard[i].last
            m.guard_seen[i] = r.safety.guard[i].seen
    h.n_queued = 0
    if r.faults != NULL:
        memcpy(m.fault, r.faults.state, r.faults.n_fault * sizeof(fault_state_t))
        memcpy(m.queue, r.faults.queue, r.faults.n_queued * sizeof(queued_t))
        h.n_queued = r.faults.n_queued
    at = 0
    for bus in range(r.n_bus):
        if r.bus[bus].sendings != NULL:
            memcpy(m.sending + at, r.bus[bus].sendings.state, r.bus[bus].sendings.n * sizeof(sending_state_t))
            at += <int>(r.bus[bus].sendings.n * sizeof(sending_state_t) // sizeof(int64_t))
            memcpy(m.sending + at, r.bus[bus].sendings.raw, r.bus[bus].sendings.n_signal * sizeof(uint64_t))
            at += r.bus[bus].sendings.n_signal


cdef void _give_image(rig_t* r, const image_t* m, bint links, int64_t now_ns) noexcept nogil:
    """m -> the rig; ages count from now. real-time: yes (copies of fixed size, at most one lock pattern built)."""
    cdef const image_head_t* h = m.head
    cdef bus_t* b
    cdef int i, bus, at = 0
    r.tick_from = h.tick - r.tick
    r.hash = h.hash
    r.veh.I_wheel = h.I_wheel
    r.veh.momentum_last = h.momentum_last
    r.veh.force_last = h.force_last
    r.ctl.work = h.work
    memcpy(r.veh.last, h.vehicle, sizeof(r.veh.last))
    r.veh.stamp_ns = now_ns
    r.age_from_ns = now_ns
    r.veh.refused_in_row = 0
    r.ctl.n_held = <int32_t>h.n_held
    memcpy(r.ctl.held, h.held, sizeof(r.ctl.held))
    memcpy(r.sig, m.sig, r.n_sig * sizeof(double))
    if r.plant.model != NULL:
        tl_state_take(r.plant.model, r.plant.state, m.x, m.k)
    for bus in range(r.n_bus):
        b = &r.bus[bus]
        b.tx_dropped_in_row = 0
        for i in range(b.codec.n_messages):
            b.rx.message[i].last_ok_ns = now_ns
            b.rx.message[i].last_frame_ns = now_ns
            b.rx.message[i].timed_out = 0
            if links:
                b.rx.message[i].counter = m.rx[at + i].counter
                b.rx.message[i].seen = m.rx[at + i].seen
                b.rx.message[i].rejected = m.rx[at + i].rejected
                b.rx.message[i].bad = m.rx[at + i].bad
                b.tx.message[i].counter = <uint32_t>m.tx[at + i]
                b.tx.message[i].page = <uint32_t>(m.tx[at + i] >> 32)
        at += b.codec.n_messages
    for i in range(r.n_driver):
        r.driver[i].hint = <int32_t>m.hint[i]
    if r.safety != NULL:
        r.safety.unresolved = 0
        for i in range(r.safety.n_guard):
            r.safety.guard[i].last = m.guard_last[i]
            r.safety.guard[i].seen = <int32_t>m.guard_seen[i]
    if r.faults != NULL:
        memcpy(r.faults.state, m.fault, r.faults.n_fault * sizeof(fault_state_t))
        # frames on their way belong to the peers that go back as well
        r.faults.n_queued = <int32_t>h.n_queued if links else 0
        memcpy(r.faults.queue, m.queue, r.faults.n_queued * sizeof(queued_t))
    at = 0
    for bus in range(r.n_bus):
        if r.bus[bus].sendings != NULL:
            memcpy(r.bus[bus].sendings.state, m.sending + at, r.bus[bus].sendings.n * sizeof(sending_state_t))
            at += <int>(r.bus[bus].sendings.n * sizeof(sending_state_t) // sizeof(int64_t))
            memcpy(r.bus[bus].sendings.raw, m.sending + at, r.bus[bus].sendings.n_signal * sizeof(uint64_t))
            at += r.bus[bus].sendings.n_signal
    if links:
        r.step_from = r.tick_from
    elif r.veh.received != NULL:
        # what waits in the slot belongs to the motion that is left
        r.veh.version = slot_version(r.veh.received)


cdef void _take_model(rig_t* r) noexcept nogil:
    """Another model of the same structure goes on from the present state: speeds and angles stay, accelerations and
    modes are found anew. real-time: yes (copies of fixed size, at most one lock pattern built)."""
    cdef ctl_t* c = r.ctl
    cdef tl_state* old = r.plant.state
    cdef int i
    for i in range(c.n_stored):
        c.work -= r.sig[r.plant.out_slot + c.stored[i]]
    tl_state_take(c.model, c.model_state, old.x, old.k)
    c.model_state.fresh[0] = 1
    c.model_state.hist[0] = 0
    r.plant.model = c.model
    r.plant.state = c.model_state
    # the same speeds and angles are another stored energy: a jump that the balance must know
    tl_outputs(r.plant.model, r.plant.state, r.plant.out_new)
    for i in range(c.n_stored):
        c.work += r.plant.out_new[c.stored[i]]
    # the inputs of the tick are written below; a new state keeps its own log of modes
    r.rec.mode_seen = r.plant.state.log.n
    for i in range(min(c.n_gain, r.veh.n_momentum)):
        r.veh.momentum[i].gain = c.gain[i]
    r.veh.momentum_last = _combine(r, r.veh.momentum, r.veh.n_momentum)


cdef void _take_control(rig_t* r, int64_t now_ns, input_head_t* head) noexcept nogil:
    """Held signals get their own values back; then the posted transaction takes effect as a whole. real-time: yes."""
    cdef ctl_t* c = r.ctl
    cdef int32_t state = load_acquire_i32(&c.state)
    cdef int i
    for i in range(c.n_held):
        r.sig[c.held[i].slot] = c.held[i].own
    if state & CTL_WHO != CTL_POSTED or load_relaxed_i64(&c.at_tick) > sim_tick(r):
        return
    if not swap_if_i32(&c.state, state, state & ~CTL_WHO | CTL_TAKEN):
        return
    c.result = CTL_OK
    c.recorded = c.what & ~CTL_IMAGE
    if c.what & (CTL_MODEL | CTL_RESTORE) and (r.latch.latched or r.latch.reacting):
        c.result = CTL_REFUSED
        c.recorded = 0
    else:
        if c.what & CTL_MODEL:
            _take_model(r)
        if c.what & CTL_RESTORE:
            _give_image(r, c.source, c.what & CTL_LINKS != 0, now_ns)
        for i in range(c.n_write):
            _write(r, &c.write[i])
        if c.what & CTL_IMAGE:
            _take_image(r, c.target)
        if c.n_write or c.recorded:
            head.flags |= INPUT_CONTROL
    c.done_tick = sim_tick(r)
    c.done_now_ns = now_ns


cdef inline void _end_control(ctl_t* c) noexcept nogil:
    """Give what this tick has taken back, with its answer."""
    # the control thread may be posting now
    cdef int32_t state = load_acquire_i32(&c.state)
    if state & CTL_WHO == CTL_TAKEN:
        store_release_i32(&c.state, state & ~CTL_WHO | CTL_FREE)


cdef void _record_control(rig_t* r) noexcept nogil:
    """Append what was taken to the input record."""
    cdef ctl_t* c = r.ctl
    cdef control_chunk_t chunk
    chunk.n_writes = c.n_write
    chunk.what = c.recorded
    chunk.ref = c.ref
    _keep(r, &chunk, sizeof(control_chunk_t))
    _keep(r, c.write, c.n_write * sizeof(ctl_write_t))


cdef bint feed_control(rig_t* r, const control_chunk_t* chunk, const uint8_t* writes) noexcept nogil:
    """Replay: the transaction of an input record, ready to be posted. False if this rig cannot take it."""
    cdef ctl_t* c = r.ctl
    cdef int i
    memcpy(c.write, writes, chunk.n_writes * sizeof(ctl_write_t))
    for i in range(chunk.n_writes):
        if not 2 <= c.write[i].slot < r.n_sig or not CTL_SET <= c.write[i].kind <= CTL_RELEASE:
            return False
    c.n_write = chunk.n_writes
    c.at_tick = -1
    c.ref = chunk.ref
    c.recorded = chunk.what
    c.what = 0
    return True
