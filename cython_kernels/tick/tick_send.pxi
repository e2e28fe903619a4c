# What goes out in a tick (included by tick.pyx): frames held back, messages that are due, those of a change or event (sending.pxd).
#
# A change is one of the raw number of a signal, as the frame has it: what the codec rounds away is none. The first frame of a
# message that is sent on change goes out at its start. All of it depends on tick and signals only.


cdef void _arm_sendings(rig_t* r, bus_t* b) noexcept nogil:
    cdef sendings_t* all = b.sendings
    cdef int i
    memset(all.state, 0, all.n * sizeof(sending_state_t))
    for i in range(all.n):
        all.state[i].last = -1
        all.state[i].pending = all.row[i].n_signal > 0
    for i in range(all.n_signal):
        all.raw[i] = codec_raw_of(b.codec, all.signal[i], r.sig)


cdef bint _changed(const rig_t* r, const bus_t* b, const sending_t* row) noexcept nogil:
    """Whether a signal has another raw number than last time; the new ones are kept."""
    cdef uint64_t raw
    cdef bint found = False
    cdef int i
    for i in range(row.first_signal, row.first_signal + row.n_signal):
        raw = codec_raw_of(b.codec, b.sendings.signal[i], r.sig)
        if raw != b.sendings.raw[i]:
            b.sendings.raw[i] = raw
            found = True
    return found


cdef bint _event(const rig_t* r, const bus_t* b, const sending_t* row, sending_state_t* s) noexcept nogil:
    """Whether the condition has come true."""
    cdef bint now
    cdef bint before = s.was
    if row.when.n == 0:
        return False
    now = holds(&row.when, r.sig)
    s.was = now
    return now and not before


cdef bint _send_event(rig_t* r, bus_t* b, const sending_t* row, sending_state_t* s, int64_t now_ns,
                      uint32_t* flags) noexcept nogil:
    """One such message; True: somebody is to send it."""
    cdef int64_t tick = sim_tick(r)
    cdef bint cyclic
    cdef bint changed = _changed(r, b, row)
    if _event(r, b, row, s) or changed:
        s.pending = 1
        # how the start values come about is no change that would be repeated
        s.left = 0 if changed and s.last < 0 else row.repeats
    if tick < row.first:
        return False
    cyclic = row.period > 0 and (tick - row.offset) % row.period == 0
    if not cyclic and (not s.pending or (s.last >= 0 and tick - s.last < row.gap)):
        return False
    s.last = tick
    if s.pending:
        s.left -= 1
        s.pending = s.left >= 0
    return _send_message(r, b, row.message, now_ns, flags)


cdef bint _send_events(rig_t* r, bus_t* b, int64_t now_ns, uint32_t* flags) noexcept nogil:
    cdef bint sent = False
    cdef int i
    for i in range(b.sendings.n):
        if _send_event(r, b, &b.sendings.row[i], &b.sendings.state[i], now_ns, flags):
            sent = True
    return sent


cdef void _send_bus(rig_t* r, bus_t* b, int64_t now_ns, uint32_t* flags) noexcept nogil:
    cdef const tx_t* due
    cdef int i, day
    cdef int64_t tick = sim_tick(r)
    cdef bint any_sent = False
    cdef uint64_t one = 1
    if _links_disturbed(r) and r.faults.n_queued > 0:
        any_sent = _release(r, b, False, now_ns, flags)
    if b.round > 0:
        # a function of the tick alone: a checkpoint or a replay needs nothing of it
        day = <int>(tick % b.round)
        for i in range(b.due_at[day], b.due_at[day + 1]):
            due = &b.tx_plan[b.due[i]]
            if tick >= due.first and _send_message(r, b, due.message, now_ns, flags):
                any_sent = True
    else:
        for i in range(b.n_tx):
            due = &b.tx_plan[i]
            if tick < due.first or (tick - due.offset) % due.period != 0:
                continue
            if _send_message(r, b, due.message, now_ns, flags):
                any_sent = True
    if b.sendings != NULL and _send_events(r, b, now_ns, flags):
        any_sent = True
    if _links_disturbed(r) and _send_load(r, b, now_ns, flags):
        any_sent = True
    if any_sent and b.bell_fd > 0:
        # wake the sending thread; an eventfd never blocks the writer (it is non-blocking), a lost ring costs its next
        # look
        write(b.bell_fd, &one, sizeof(one))


cdef void _send(rig_t* r, int64_t now_ns, uint32_t* flags) noexcept nogil:
    cdef int i
    if r.frozen:
        return
    for i in range(r.n_bus):
        _send_bus(r, &r.bus[i], now_ns, flags)
