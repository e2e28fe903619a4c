# CAN in a tick (included by tick.pyx): received frames -> codec -> signals; messages that are due -> frames.


cdef void _log_frame(rig_t* r, const can_frame_t* frame, int64_t now_ns, uint8_t mark) noexcept nogil:
    cdef can_frame_t copy
    if r.bus_ring != NULL:
        copy = frame[0]
        copy.t_ns = now_ns
        copy.flags |= mark
        data_push(r.bus_ring, &copy, sizeof(can_frame_t))


cdef void _latch_can(rig_t* r, int64_t now_ns, input_head_t* head, uint32_t* flags) noexcept nogil:
    cdef can_frame_t* kept = <can_frame_t*>(r.input_record + sizeof(input_head_t))
    cdef can_frame_t frame
    cdef int status, i
    while head.n_frames < RX_PER_TICK and frames_pop(r.rx_ring, &frame):
        status = codec_decode(r.codec, &frame, r.sig, r.rx, now_ns)
        r.rx_frames += 1
        if status != CODEC_OK and status != CODEC_UNKNOWN:
            r.rx_bad += 1
            flags[0] |= FLAG_BAD_FRAME
            _log_frame(r, &frame, now_ns, BUS_REFUSED)
        else:
            _log_frame(r, &frame, now_ns, 0)
        kept[head.n_frames] = frame
        head.n_frames += 1
    codec_check_timeouts(r.codec, r.rx, now_ns)
    for i in range(r.n_required):
        if r.rx.message[r.required[i]].timed_out:
            # frames that were refused for any reason came from somebody: a counter that stands still is not silence
            rig_latch(r, CAUSE_TCU_FRAMES if r.rx.message[r.required[i]].bad else CAUSE_TCU_SILENT, r.required[i])
            break


cdef void _send(rig_t* r, int64_t now_ns, uint32_t* flags) noexcept nogil:
    cdef can_frame_t frame
    cdef tx_t* due
    cdef int i, status
    cdef bint any_sent = False
    cdef uint32_t faults = 0
    cdef uint64_t one = 1
    if r.frozen:
        return
    for i in range(r.n_tx):
        due = &r.tx_plan[i]
        if r.tick < due.offset or (r.tick - due.offset) % due.period != 0:
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
        if frames_push(r.tx_ring, &frame):
            r.tx_frames += 1
            r.tx_dropped_in_row = 0
            any_sent = True
            _log_frame(r, &frame, now_ns, BUS_TX)
        else:
            r.tx_dropped += 1
            r.tx_dropped_in_row += 1
            flags[0] |= FLAG_TX_DROPPED
            if r.tx_dropped_in_row >= <uint64_t>r.tx_drop_limit:
                rig_latch(r, CAUSE_BUS, <int64_t>r.tx_dropped_in_row)
    if any_sent and r.bell_fd > 0:
        # wake the sending thread; an eventfd never blocks the writer (it is non-blocking), a lost ring costs its next
        # look
        write(r.bell_fd, &one, sizeof(one))
