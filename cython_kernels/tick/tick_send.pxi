# What goes out in a tick (included by tick.pyx): frames held back, messages that are due, those of a change or event.


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
