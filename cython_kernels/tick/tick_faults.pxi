# Faults injected on purpose (included by tick.pyx). Structs: faults.pxd; those on signals: tick_safety.pxi.
#
# At the top of a tick the windows open and shut: by simulated time, by the switch word, or by a condition on the signals as the
# tick before left them. Everything a fault does then depends on these, on the frames and on its own random numbers, which start
# from a seed and stand in its state: a replay, and a rig that goes on from an image, do the same.
# A received frame is in the input record as it came; what the codec gets is the disturbed one.


cdef inline uint64_t _random(fault_state_t* s) noexcept nogil:
    # splitmix64
    cdef uint64_t z
    s.random += HASH_FACTOR
    z = (s.random ^ (s.random >> 30)) * 0xBF58476D1CE4E5B9U
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU
    return z ^ (z >> 31)


cdef void _arm_faults(rig_t* r) noexcept nogil:
    """Nothing has happened yet."""
    cdef faults_t* all = r.faults
    cdef fault_state_t* s
    cdef int i
    memset(all.state, 0, all.n_fault * sizeof(fault_state_t))
    for i in range(all.n_fault):
        s = &all.state[i]
        s.begun = s.ended = -1
        s.random = all.fault[i].seed
    all.n_queued = 0
    all.queue_lost = all.n_log = 0


cdef void _note_window(rig_t* r, int i, bint opened) noexcept nogil:
    cdef fault_log_t* entry
    if r.faults.n_log < FAULT_LOG:
        entry = &r.faults.log[r.faults.n_log]
        entry.tick = sim_tick(r)
        entry.fault = i
        entry.opened = opened
        entry.acts = r.faults.state[i].acts
    r.faults.n_log += 1


cdef bint _wanted(const rig_t* r, const fault_t* f) noexcept nogil:
    if f.begin == BEGIN_SWITCH:
        return (r.faults.switched >> f.switch_bit) & 1
    if f.begin == BEGIN_CONDITION:
        return holds(&f.when, r.sig)
    return f.from_tick <= sim_tick(r) < f.until_tick


cdef bint _over(const rig_t* r, const fault_t* f, const fault_state_t* s, bint wanted) noexcept nogil:
    if f.count > 0 and s.acts >= f.count:
        return True
    if f.lasts_ticks > 0 and sim_tick(r) - s.begun >= f.lasts_ticks:
        return True
    if f.until.n > 0 and holds(&f.until, r.sig):
        return True
    return not wanted and not f.own_end


cdef void _fault_windows(rig_t* r, input_head_t* head) noexcept nogil:
    """Top of a tick."""
    cdef faults_t* all = r.faults
    cdef const fault_t* f
    cdef fault_state_t* s
    cdef bint wanted
    cdef int i
    all.switched = load_acquire_u32(&all.switches) & 0xFFFF
    head.flags |= all.switched << INPUT_SWITCHES
    for i in range(all.n_fault):
        f = &all.fault[i]
        s = &all.state[i]
        wanted = _wanted(r, f)
        if s.begun >= 0:
            if _over(r, f, s, wanted):
                _note_window(r, i, False)
                s.begun = -1
                s.ended = sim_tick(r)
                s.spent = wanted
        elif not wanted:
            s.spent = 0
        elif not s.spent and (f.times == 0 or s.windows < f.times):
            s.begun = sim_tick(r)
            s.windows += 1
            s.seen = s.acts = 0
            s.active = 0
            _note_window(r, i, True)
    # several rows may be one fault: it is on while one of them is
    for i in range(all.n_fault):
        if all.fault[i].slot > 0:
            r.sig[all.fault[i].slot] = 0.0
    for i in range(all.n_fault):
        if all.fault[i].slot > 0 and all.state[i].begun >= 0:
            r.sig[all.fault[i].slot] = 1.0


cdef bint _acts(rig_t* r, const fault_t* f, fault_state_t* s, uint32_t* flags) noexcept nogil:
    """Whether the fault acts on this frame or in this tick; counted."""
    if s.begun < 0 or (f.count > 0 and s.acts >= f.count):
        return False
    s.seen += 1
    if f.every > 1 and (s.seen - 1) % f.every != 0:
        return False
    if f.chance < CHANCE_ALWAYS and _random(s) >> 11 >= f.chance:
        return False
    s.acts += 1
    s.total += 1
    if f.slot > 0:
        r.sig[f.slot + 1] += 1.0
    flags[0] |= FLAG_FAULT
    return True


# --- frames ------------------------------------------------------------------------------------------------------------


cdef inline bint _links_disturbed(const rig_t* r) noexcept nogil:
    """There are faults on frames or buses."""
    return r.faults != NULL and r.faults.n_fault > r.faults.first[STAGE_FRAME]


cdef int64_t _off_ticks(rig_t* r, const bus_t* b) noexcept nogil:
    """Ticks since a fault has taken the bus off; -1: none has."""
    cdef int64_t longest = -1
    cdef int i
    for i in range(r.faults.first[STAGE_BUS], r.faults.n_fault):
        if r.faults.fault[i].kind == FAULT_BUS_OFF and r.faults.fault[i].bus == b.index:
            if r.faults.state[i].begun >= 0 and sim_tick(r) - r.faults.state[i].begun > longest:
                longest = sim_tick(r) - r.faults.state[i].begun
    return longest


cdef bint _bus_off(rig_t* r, const bus_t* b) noexcept nogil:
    cdef int i
    for i in range(r.faults.first[STAGE_BUS], r.faults.n_fault):
        if r.faults.fault[i].kind == FAULT_BUS_OFF and r.faults.fault[i].bus == b.index:
            if r.faults.state[i].begun >= 0:
                return True
    return False


cdef void _freeze_counter(rig_t* r, bus_t* b, int32_t message, uint32_t* flags) noexcept nogil:
    """Before a frame is made: a counter that stands still goes on from where it stood when it is let go."""
    cdef const fault_t* f
    cdef fault_state_t* s
    cdef int i
    for i in range(r.faults.first[STAGE_FRAME], r.faults.first[STAGE_BUS]):
        f = &r.faults.fault[i]
        s = &r.faults.state[i]
        if f.kind != FAULT_COUNTER or f.target != message or f.bus != b.index or not _acts(r, f, s, flags):
            continue
        if not s.active:
            s.active = 1
            s.counter = b.tx.message[message].counter
        b.tx.message[message].counter = s.counter


cdef void _other_counter(const codec_t* c, const codec_message_t* m, const fault_t* f, fault_state_t* s,
                         uint8_t* data) noexcept nogil:
    cdef uint32_t value = codec_counter_of(m, data)
    cdef int64_t steps
    if f.kind == FAULT_COUNTER:
        if not s.active:
            s.active = 1
            s.counter = value
        value = s.counter
    else:
        steps = <int64_t>f.value
        if f.kind == FAULT_COUNTER_RANDOM:
            # not the right one
            steps = 1 + <int64_t>(_random(s) % <uint64_t>(min(m.counter_n, MOST_STEPS) - 1))
        while steps > 0:
            value = codec_next_counter(c, m, value)
            steps -= 1
    codec_set_counter(m, data, value)


cdef void _other_length(const fault_t* f, can_frame_t* frame) noexcept nogil:
    cdef int n = <int>f.value if f.value >= 0.0 else frame.dlc + <int>f.value
    n = 0 if n < 0 else n
    if n < frame.dlc:
        memset(frame.data + n, 0, frame.dlc - n)
    frame.dlc = <uint8_t>n


cdef int64_t _held_back(rig_t* r, const fault_t* f, fault_state_t* s, int64_t late, uint32_t* flags) noexcept nogil:
    """Ticks a frame is late by; those behind a frame that is held back wait for it, so that they stay in their order."""
    cdef int64_t tick = sim_tick(r)
    cdef int64_t own = 0
    if _acts(r, f, s, flags):
        own = <int64_t>f.value
        if f.kind == FAULT_JITTER and own > 0:
            own = <int64_t>(_random(s) % <uint64_t>(own + 1))
    own = max(own, s.last_due - tick)
    if own > 0:
        s.last_due = tick + own
    return max(late, own)


cdef int _disturb(rig_t* r, bus_t* b, int32_t message, can_frame_t* frame, int64_t* late, uint32_t* flags) noexcept nogil:
    """What the faults make of a frame; how often it comes, 0: not at all. late: ticks it is held back."""
    cdef const codec_message_t* m = &b.codec.message[message]
    cdef const fault_t* f
    cdef fault_state_t* s
    cdef uint64_t by
    cdef int whole = frame.dlc
    cdef int copies = 1
    cdef int i
    late[0] = 0
    for i in range(r.faults.first[STAGE_FRAME], r.faults.first[STAGE_BUS]):
        f = &r.faults.fault[i]
        s = &r.faults.state[i]
        if f.target != message or f.bus != b.index:
            continue
        if f.kind >= FAULT_DELAY:
            late[0] = _held_back(r, f, s, late[0], flags)
            continue
        if f.kind == FAULT_COUNTER and not m.receive:
            continue  # before the frame was made
        if whole != m.dlc and FAULT_RAW <= f.kind <= FAULT_CRC_RANDOM:
            continue  # it came in another length and is refused all the same
        if not _acts(r, f, s, flags):
            continue
        if f.kind == FAULT_DROP:
            return 0
        if f.kind == FAULT_RAW:
            codec_set_raw(b.codec, m, f.signal, f.raw, frame.data)
        elif f.kind <= FAULT_COUNTER_OFFSET:
            _other_counter(b.codec, m, f, s, frame.data)
        elif f.kind == FAULT_CRC:
            protect_spoil(m.protect, frame.data, f.raw)
        elif f.kind == FAULT_CRC_RANDOM:
            by = 1 + _random(s) % m.protect.mask
            protect_spoil(m.protect, frame.data, by)
        elif f.kind == FAULT_LENGTH:
            _other_length(f, frame)
        elif f.kind == FAULT_DUPLICATE:
            copies += <int>f.value
    return copies


cdef void _hold_back(rig_t* r, const bus_t* b, bint received, const can_frame_t* frame, int64_t late) noexcept nogil:
    cdef queued_t* q
    if r.faults.n_queued == r.faults.n_queue:
        r.faults.queue_lost += 1
        return
    q = &r.faults.queue[r.faults.n_queued]
    q.due = sim_tick(r) + late
    q.bus = b.index
    q.received = received
    q.frame = frame[0]
    r.faults.n_queued += 1


cdef void _receive_disturbed(rig_t* r, bus_t* b, can_frame_t* frame, int64_t now_ns, uint32_t* flags) noexcept nogil:
    """A frame that came, by way of the faults."""
    cdef can_frame_t spoilt = frame[0]
    cdef int32_t message = codec_find(b.codec, frame.id)
    cdef int64_t arrived = frame.t_ns if frame.t_ns > 0 else now_ns
    cdef int64_t late = 0
    cdef int copies = 1
    cdef uint8_t mark = 0
    if _bus_off(r, b):
        copies = 0
    elif message >= 0 and not frame.flags & (CAN_FLAG_REMOTE | CAN_FLAG_ERROR):
        copies = _disturb(r, b, message, &spoilt, &late, flags)
    if copies == 0:
        mark = BUS_REFUSED
    while copies > 0:
        if late > 0:
            _hold_back(r, b, True, &spoilt, late)
        else:
            mark |= _decode_frame(r, b, &spoilt, now_ns, flags)
        copies -= 1
    _log_frame(r, b, frame, arrived, mark)


cdef bint _release(rig_t* r, bus_t* b, bint received, int64_t now_ns, uint32_t* flags) noexcept nogil:
    """Frames of a bus that were held back and are due now; True: some were sent."""
    cdef faults_t* all = r.faults
    cdef int64_t tick = sim_tick(r)
    cdef queued_t* q
    cdef bint sent = False
    cdef int i, kept = 0
    for i in range(all.n_queued):
        q = &all.queue[i]
        if q.bus != b.index or q.received != received or q.due > tick:
            if kept < i:
                all.queue[kept] = q[0]
            kept += 1
        elif _bus_off(r, b):
            continue
        elif received:
            _decode_frame(r, b, &q.frame, now_ns, flags)
        elif _transmit(r, b, &q.frame, now_ns, flags):
            sent = True
    all.n_queued = kept
    return sent


cdef bint _send_disturbed(rig_t* r, bus_t* b, int32_t message, can_frame_t* frame, int64_t now_ns,
                          uint32_t* flags) noexcept nogil:
    """A frame that was made, by way of the faults; True: somebody is to send it."""
    cdef int64_t late = 0
    cdef int copies
    cdef bint sent = False
    copies = _disturb(r, b, message, frame, &late, flags)
    if _bus_off(r, b):
        return False
    while copies > 0:
        if late > 0:
            _hold_back(r, b, False, frame, late)
        elif _transmit(r, b, frame, now_ns, flags):
            sent = True
        copies -= 1
    return sent


cdef bint _send_load(rig_t* r, bus_t* b, int64_t now_ns, uint32_t* flags) noexcept nogil:
    """Frames of nobody's that fill the bus; True: some were sent."""
    cdef const fault_t* f
    cdef fault_state_t* s
    cdef can_frame_t frame
    cdef uint64_t word
    cdef int64_t since, n
    cdef bint sent = False
    cdef int i
    if _bus_off(r, b):
        return False
    for i in range(r.faults.first[STAGE_BUS], r.faults.n_fault):
        f = &r.faults.fault[i]
        s = &r.faults.state[i]
        if f.kind != FAULT_LOAD or f.bus != b.index or s.begun < 0:
            continue
        since = sim_tick(r) - s.begun
        n = <int64_t>((since + 1) * f.value) - <int64_t>(since * f.value)
        while n > 0:
            n -= 1
            if not _acts(r, f, s, flags):
                continue
            memset(&frame, 0, sizeof(frame))
            frame.id = f.can_id
            frame.dlc = 8
            word = _random(s)
            memcpy(frame.data, &word, 8)
            if _transmit(r, b, &frame, now_ns, flags):
                sent = True
    return sent
