# CAN in a tick (included by tick.pyx), one bus after the other: received frames -> codec -> signals; messages that are
# due -> frames. Faults on the way: tick_faults.pxi.


cdef inline void _keep(rig_t* r, const void* data, size_t n) noexcept nogil:
    # append to the input record, which has room for all that a tick takes in
    memcpy(r.rec.input_record + r.rec.input_at, data, n)
    r.rec.input_at += n


cdef void _log_frame(rig_t* r, const bus_t* b, const can_frame_t* frame, int64_t t_ns, uint8_t mark) noexcept nogil:
    cdef can_frame_t copy
    if r.rec.bus_ring != NULL:
        copy = frame[0]
        copy.t_ns = t_ns
        copy.flags |= mark
        copy.bus = <uint8_t>b.index
        data_push(r.rec.bus_ring, &copy, can_frame_packed(copy.dlc))


cdef inline uint8_t _decode_frame(rig_t* r, bus_t* b, const can_frame_t* frame, int64_t now_ns,
                           uint32_t* flags) noexcept nogil:
    # a frame into the signals; its mark in the log. Ages count from the time of the tick, which is an input
    cdef int status = codec_decode(b.codec, frame, r.sig, b.rx, now_ns)
    if status == CODEC_OK or status == CODEC_UNKNOWN:
        return 0
    b.rx_bad += 1
    flags[0] |= FLAG_BAD_FRAME
    return BUS_REFUSED


cdef void _take_frame(rig_t* r, bus_t* b, can_frame_t* frame, int64_t now_ns, input_head_t* head,
                      uint32_t* flags) noexcept nogil:
    cdef uint8_t mark
    b.rx_frames += 1
    frame.bus = <uint8_t>b.index
    if _links_disturbed(r):
        _receive_disturbed(r, b, frame, now_ns, flags)
    else:
        mark = _decode_frame(r, b, frame, now_ns, flags)
        # the log shows the time of arrival
        _log_frame(r, b, frame, frame.t_ns if frame.t_ns > 0 else now_ns, mark)
    _keep(r, frame, can_frame_packed(frame.dlc))
    head.n_frames += 1


cdef inline bint _native(const bus_t* b) noexcept nogil:
    return b.port != NULL and b.port.fd >= 0


cdef void _latch_native(rig_t* r, bus_t* b, int64_t now_ns, input_head_t* head, uint32_t* flags) noexcept nogil:
    cdef can_frame_t frame
    cdef int n, i, kind
    cdef int left = RX_PER_TICK
    cdef int errors = 0
    while left > 0:
        n = port_receive(b.port, left, now_ns)
        if n == 0:
            break
        if n < 0:
            # an error of the socket hides the frames behind it; more than two in a tick wait
            errors += 1
            if errors > 2:
                break
            continue
        for i in range(n):
            kind = port_frame(b.port, i, &frame)
            if kind == PORT_DATA:
                _take_frame(r, b, &frame, now_ns, head, flags)
            elif kind == PORT_ERROR or kind == PORT_STOLEN:
                # they change no signal but those of the bus; the log shows them
                _log_frame(r, b, &frame, frame.t_ns, BUS_REFUSED if kind == PORT_STOLEN else 0)
        left -= n
        if n < PORT_BATCH:
            break
    if left <= 0:
        b.port.rx_limited += 1
    port_received(b.port, now_ns)


cdef void _keep_words(rig_t* r, int64_t now_ns, input_head_t* head) noexcept nogil:
    # behind the frames of all buses: the state of those native ones where it has changed
    cdef bus_entry_t entry
    cdef bus_t* b
    cdef int64_t n = 0
    cdef size_t count_at = r.rec.input_at
    cdef int i
    for i in range(r.n_bus):
        b = &r.bus[i]
        if not _native(b):
            continue
        entry.bus = i
        port_word(b.port, now_ns, &entry.word)
        if memcmp(&entry.word, &b.word, sizeof(bus_word_t)) == 0:
            continue
        b.word = entry.word
        if n == 0:
            _keep(r, &n, sizeof(n))
        _keep(r, &entry, sizeof(entry))
        n += 1
    if n > 0:
        memcpy(r.rec.input_record + count_at, &n, sizeof(n))
        head.flags |= INPUT_BUS


cdef void _bus_signals(rig_t* r, const bus_t* b, int64_t now_ns) noexcept nogil:
    # from b.word alone, which a replay takes from the input record
    cdef double* sig = r.sig + b.state_slot
    cdef const bus_word_t* word = &b.word
    cdef int64_t off = _off_ticks(r, b) if _links_disturbed(r) else -1
    sig[BUS_STATE] = BUS_OFF if off >= 0 else word.state
    if off > 0 and off * r.grid.period_ns > b.down_limit_ns:
        # as if the controller were off: by the rig's time, which a replay has too
        rig_latch(r, CAUSE_BUS, on_bus(b.index, -BUS_OFF))
    sig[BUS_TX_ERRORS] = word.tx_errors
    sig[BUS_RX_ERRORS] = word.rx_errors
    sig[BUS_ERROR_FRAMES] = <double>word.error_frames
    sig[BUS_RX_DROPPED] = <double>word.rx_dropped
    sig[BUS_TX_LOST] = <double>word.tx_lost
    if word.state >= BUS_OFF:
        if now_ns - word.down_since_ns > b.down_limit_ns:
            rig_latch(r, CAUSE_BUS, on_bus(b.index, -word.state))
    elif word.tx_lost_in_row >= <uint32_t>b.tx_drop_limit:
        rig_latch(r, CAUSE_BUS, on_bus(b.index, <int32_t>word.tx_lost_in_row))


cdef void _latch_can(rig_t* r, int64_t now_ns, input_head_t* head, uint32_t* flags) noexcept nogil:
    cdef can_frame_t frame
    cdef const rx_message_t* message
    cdef bus_t* b = r.bus
    cdef bus_t* end = b + r.n_bus
    cdef int i, left
    cdef bint any_native = False
    while b < end:
        if _links_disturbed(r) and r.faults.n_queued > 0:
            _release(r, b, True, now_ns, flags)
        if _native(b):
            any_native = True
            _latch_native(r, b, now_ns, head, flags)
        else:
            left = RX_PER_TICK
            while left > 0 and frames_pop(b.rx_ring, &frame):
                _take_frame(r, b, &frame, now_ns, head, flags)
                left -= 1
        b += 1
    if any_native:
        _keep_words(r, now_ns, head)
    b = r.bus
    while b < end:
        if b.state_slot > 0:
            _bus_signals(r, b, now_ns)
        codec_check_timeouts(b.codec, b.rx, now_ns)
        for i in range(b.n_required):
            message = &b.rx.message[b.required[i]]
            if message.timed_out:
                # frames that were refused for any reason came from somebody: a counter that stands still is not silence
                rig_latch(r, CAUSE_TCU_FRAMES if message.bad else CAUSE_TCU_SILENT, on_bus(b.index, b.required[i]))
                break
        b += 1


cdef void _discard_bus(bus_t* b, int most) noexcept nogil:
    cdef can_frame_t frame
    cdef int n, i
    cdef int64_t now
    if not _native(b):
        while frames_pop(b.rx_ring, &frame):
            b.idle_frames += 1
        return
    now = monotonic_ns()
    while most > 0:
        n = port_receive(b.port, PORT_BATCH, now)
        if n == 0:
            break
        for i in range(n):
            if port_frame(b.port, i, &frame) == PORT_DATA:
                b.idle_frames += 1
        most -= n if n > 0 else 1
    port_received(b.port, now)


cdef void _discard(rig_t* r, int most) noexcept nogil:
    # Frames before arming are only counted: up to `most` messages, so that a flooded bus cannot hold up the loop.
    cdef int i
    for i in range(r.n_bus):
        _discard_bus(&r.bus[i], most)


cdef inline bint _hand_over(bus_t* b, const can_frame_t* frame) noexcept nogil:
    return port_send(b.port, frame) if _native(b) else frames_push(b.tx_ring, frame)


cdef inline bint _transmit(rig_t* r, bus_t* b, can_frame_t* frame, int64_t now_ns, uint32_t* flags) noexcept nogil:
    # hand a frame over; True: somebody is to send it
    if load_acquire_i32(&r.beat.muted):
        # after a hang; the frame was made all the same, so that a replay finds the same state
        flags[0] |= FLAG_TX_DROPPED
        return False
    frame.t_ns = now_ns
    if _hand_over(b, frame):
        b.tx_frames += 1
        b.tx_dropped_in_row = 0
        _log_frame(r, b, frame, now_ns, BUS_TX)
        return True
    b.tx_dropped += 1
    b.tx_dropped_in_row += 1
    flags[0] |= FLAG_TX_DROPPED
    # whether there is room is no input of this tick: it latches in the next one, by way of the input record (the native
    # port's losses are in its bus word)
    if b.tx_dropped_in_row >= <uint64_t>b.tx_drop_limit and not _native(b):
        rig_external(r, CAUSE_BUS, on_bus(b.index, <int32_t>b.tx_dropped_in_row))
    return False


cdef bint _send_message(rig_t* r, bus_t* b, int32_t message, int64_t now_ns, uint32_t* flags) noexcept nogil:
    # make and hand over the frame of a message that is due; True: somebody is to send it
    cdef can_frame_t frame
    cdef bint disturbed = _links_disturbed(r)
    if disturbed:
        _freeze_counter(r, b, message, flags)
    if codec_encode(b.codec, b.tx, message, r.sig, &frame) == CODEC_NAN:
        rig_latch(r, CAUSE_ENCODE, on_bus(b.index, message))
        return False
    if disturbed:
        return _send_disturbed(r, b, message, &frame, now_ns, flags)
    return _transmit(r, b, &frame, now_ns, flags)
