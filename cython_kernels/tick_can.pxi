# CAN in a tick (included by tick.pyx): received frames -> codec -> signals; messages that are due -> frames.


cdef inline void _keep(rig_t* r, const void* data, size_t n) noexcept nogil:
    # append to the input record, which has room for all that a tick takes in
    memcpy(r.input_record + r.input_at, data, n)
    r.input_at += n


cdef void _log_frame(rig_t* r, const can_frame_t* frame, int64_t t_ns, uint8_t mark) noexcept nogil:
    cdef can_frame_t copy
    if r.bus_ring != NULL:
        copy = frame[0]
        copy.t_ns = t_ns
        copy.flags |= mark
        data_push(r.bus_ring, &copy, can_frame_packed(copy.dlc))


cdef void _take_frame(rig_t* r, const can_frame_t* frame, int64_t now_ns, input_head_t* head,
                      uint32_t* flags) noexcept nogil:
    # ages count from the time of the tick, which is an input; the log shows the time of arrival
    cdef int status = codec_decode(r.codec, frame, r.sig, r.rx, now_ns)
    cdef uint8_t mark = 0
    r.rx_frames += 1
    if status != CODEC_OK and status != CODEC_UNKNOWN:
        r.rx_bad += 1
        flags[0] |= FLAG_BAD_FRAME
        mark = BUS_REFUSED
    _log_frame(r, frame, frame.t_ns if frame.t_ns > 0 else now_ns, mark)
    _keep(r, frame, can_frame_packed(frame.dlc))
    head.n_frames += 1


cdef inline bint _native(const rig_t* r) noexcept nogil:
    return r.port != NULL and r.port.fd >= 0


cdef void _latch_native(rig_t* r, int64_t now_ns, input_head_t* head, uint32_t* flags) noexcept nogil:
    cdef can_frame_t frame
    cdef bus_word_t word
    cdef int n, i, kind
    cdef int left = RX_PER_TICK
    cdef int errors = 0
    while left > 0:
        n = port_receive(r.port, left, now_ns)
        if n == 0:
            break
        if n < 0:
            # an error of the socket hides the frames behind it; more than two in a tick wait
            errors += 1
            if errors > 2:
                break
            continue
        for i in range(n):
            kind = port_frame(r.port, i, &frame)
            if kind == PORT_DATA:
                _take_frame(r, &frame, now_ns, head, flags)
            elif kind == PORT_ERROR or kind == PORT_STOLEN:
                # they change no signal but those of the bus; the log shows them
                _log_frame(r, &frame, frame.t_ns, BUS_REFUSED if kind == PORT_STOLEN else 0)
        left -= n
        if n < PORT_BATCH:
            break
    if left <= 0:
        r.port.rx_limited += 1
    port_received(r.port, now_ns)
    port_word(r.port, now_ns, &word)
    if memcmp(&word, &r.bus, sizeof(bus_word_t)) != 0:
        r.bus = word
        _keep(r, &word, sizeof(bus_word_t))
        head.flags |= INPUT_BUS


cdef void _bus_signals(rig_t* r, int64_t now_ns) noexcept nogil:
    # from r.bus alone, which a replay takes from the input record
    cdef double* sig = r.sig + r.bus_slot
    cdef const bus_word_t* bus = &r.bus
    sig[BUS_STATE] = bus.state
    sig[BUS_TX_ERRORS] = bus.tx_errors
    sig[BUS_RX_ERRORS] = bus.rx_errors
    sig[BUS_ERROR_FRAMES] = <double>bus.error_frames
    sig[BUS_RX_DROPPED] = <double>bus.rx_dropped
    sig[BUS_TX_LOST] = <double>bus.tx_lost
    if bus.state >= BUS_OFF:
        if now_ns - bus.down_since_ns > r.bus_down_limit_ns:
            rig_latch(r, CAUSE_BUS, -bus.state)
    elif bus.tx_lost_in_row >= <uint32_t>r.tx_drop_limit:
        rig_latch(r, CAUSE_BUS, bus.tx_lost_in_row)


cdef void _latch_can(rig_t* r, int64_t now_ns, input_head_t* head, uint32_t* flags) noexcept nogil:
    cdef can_frame_t frame
    cdef int i
    if _native(r):
        _latch_native(r, now_ns, head, flags)
    else:
        while head.n_frames < RX_PER_TICK and frames_pop(r.rx_ring, &frame):
            _take_frame(r, &frame, now_ns, head, flags)
    if r.bus_slot > 0:
        _bus_signals(r, now_ns)
    codec_check_timeouts(r.codec, r.rx, now_ns)
    for i in range(r.n_required):
        if r.rx.message[r.required[i]].timed_out:
            # frames that were refused for any reason came from somebody: a counter that stands still is not silence
            rig_latch(r, CAUSE_TCU_FRAMES if r.rx.message[r.required[i]].bad else CAUSE_TCU_SILENT, r.required[i])
            break


cdef void _discard(rig_t* r, int most) noexcept nogil:
    # Frames before arming are only counted: up to `most` messages, so that a flooded bus cannot hold up the loop.
    cdef can_frame_t frame
    cdef int n, i
    cdef int64_t now
    if r.codec == NULL:
        return
    if not _native(r):
        while frames_pop(r.rx_ring, &frame):
            r.idle_frames += 1
        return
    now = monotonic_ns()
    while most > 0:
        n = port_receive(r.port, PORT_BATCH, now)
        if n == 0:
            break
        for i in range(n):
            if port_frame(r.port, i, &frame) == PORT_DATA:
                r.idle_frames += 1
        most -= n if n > 0 else 1
    port_received(r.port, now)


cdef inline bint _hand_over(rig_t* r, const can_frame_t* frame) noexcept nogil:
    return port_send(r.port, frame) if _native(r) else frames_push(r.tx_ring, frame)


cdef void _send(rig_t* r, int64_t now_ns, uint32_t* flags) noexcept nogil:
    cdef can_frame_t frame
    cdef tx_t* due
    cdef int i, status
    cdef int64_t tick = sim_tick(r)
    cdef bint any_sent = False
    cdef uint32_t faults = 0
    cdef uint64_t one = 1
    if r.frozen:
        return
    for i in range(r.n_tx):
        due = &r.tx_plan[i]
        if tick < due.offset or (tick - due.offset) % due.period != 0:
            continue
        if r.safety != NULL:
            faults = _frame_faults(r, due.message, flags)
        status = codec_encode(r.codec, r.tx, due.message, r.sig, &frame)
        if status == CODEC_NAN:
            rig_latch(r, CAUSE_ENCODE, due.message)
            continue
        if faults and not _spoil(r, due.message, faults, &frame):
            continue
        if load_acquire_i32(&r.muted):
            # after a hang; the frame was made all the same, so that a replay finds the same state
            flags[0] |= FLAG_TX_DROPPED
            continue
        frame.t_ns = now_ns
        if _hand_over(r, &frame):
            r.tx_frames += 1
            r.tx_dropped_in_row = 0
            any_sent = True
            _log_frame(r, &frame, now_ns, BUS_TX)
        else:
            r.tx_dropped += 1
            r.tx_dropped_in_row += 1
            flags[0] |= FLAG_TX_DROPPED
            # whether there is room is no input of this tick: it latches in the next one, by way of the input record (the
            # native port's losses are in its bus word)
            if r.tx_dropped_in_row >= <uint64_t>r.tx_drop_limit and not _native(r):
                rig_external(r, CAUSE_BUS, <int64_t>r.tx_dropped_in_row)
    if any_sent and r.bell_fd > 0:
        # wake the sending thread; an eventfd never blocks the writer (it is non-blocking), a lost ring costs its next
        # look
        write(r.bell_fd, &one, sizeof(one))
