# The part of the CAN port that runs in a tick; included by socketcan.pyx, whose head states the rules.

# --- receiving -----------------------------------------------------------------------------------------------


cdef inline bint _interface_lost(int error) noexcept nogil:
    return error == ENETDOWN or error == ENODEV or error == ENXIO


cdef inline void _set_state(canport_t* p, int state) noexcept nogil:
    p.state = state
    if state == BUS_DOWN:
        # the kernel has thrown away what was queued
        p.forgotten += p.n_pending
        p.n_pending = 0
    if state > p.worst:
        p.worst = state


cdef int _read_error(canport_t* p) noexcept nogil:
    # 0: nothing there; -1: an error of the socket, which is counted
    cdef int error = errno
    if error == EAGAIN:
        return 0
    if _interface_lost(error):
        _set_state(p, BUS_DOWN)
    elif error != EINTR:
        p.rx_failed += 1
        p.last_errno = error
    return -1


cdef int port_wait(canport_t* p) noexcept nogil:
    """Wait for a message and read it as message 0; as port_receive. For a blocking socket (with SO_RCVTIMEO: 0 when the
    time is over), in a thread that answers frames instead of keeping to a grid; one system call."""
    cdef ssize_t n
    p.msg[0].msg_hdr.msg_controllen = PORT_CONTROL
    n = recvmsg(p.fd, &p.msg[0].msg_hdr, 0)
    if n < 0:
        return _read_error(p)
    p.msg[0].msg_len = <unsigned int>n
    p.read_ns = monotonic_ns()
    return 1


cdef int port_receive(canport_t* p, int limit, int64_t now_ns) noexcept nogil:
    """Read up to min(limit, PORT_BATCH) messages. real-time: yes, one system call that does not block.

    The number read; 0: none there; -1: an error of the socket was taken instead, frames may wait behind it.
    """
    cdef int i, n
    if limit > PORT_BATCH:
        limit = PORT_BATCH
    for i in range(limit):
        p.msg[i].msg_hdr.msg_controllen = PORT_CONTROL
    n = recvmmsg(p.fd, p.msg, limit, MSG_DONTWAIT, NULL)
    if n >= 0:
        p.read_ns = monotonic_ns() if n > 0 else now_ns
        return n
    return _read_error(p)


cdef int64_t _arrival(canport_t* p, int i) noexcept nogil:
    # stamps and drop count of message i; the loop ends with the control buffer
    cdef msghdr* m = &p.msg[i].msg_hdr
    cdef cmsghdr* c = CMSG_FIRSTHDR(m)
    cdef timespec t[3]
    cdef int64_t real = 0, hw = 0
    cdef uint32_t count
    while c != NULL:
        if c.cmsg_level == SOL_SOCKET:
            if c.cmsg_type == SO_RXQ_OVFL and c.cmsg_len >= CMSG_LEN(4):
                memcpy(&count, CMSG_DATA(c), 4)
                # the kernel counts for ever, modulo 2**32
                p.rx_dropped += <uint32_t>(count - p.overflow)
                p.overflow = count
            elif c.cmsg_type == SCM_TIMESTAMPING and c.cmsg_len >= CMSG_LEN(sizeof(t)):
                memcpy(t, CMSG_DATA(c), sizeof(t))
                real = <int64_t>t[0].tv_sec * NS_PER_S + t[0].tv_nsec
                hw = <int64_t>t[2].tv_sec * NS_PER_S + t[2].tv_nsec
            elif c.cmsg_type == SCM_TIMESTAMPNS and c.cmsg_len >= CMSG_LEN(sizeof(timespec)):
                memcpy(t, CMSG_DATA(c), sizeof(timespec))
                real = <int64_t>t[0].tv_sec * NS_PER_S + t[0].tv_nsec
        c = CMSG_NXTHDR(m, c)
    p.stamped = max(p.stamped, 2 if hw > 0 else 1 if real > 0 else 0)
    return stamps_arrival(&p.stamps, real, hw, p.read_ns)


cdef bint _is_own(const canport_t* p, uint32_t can_id) noexcept nogil:
    cdef int lo = 0, hi = p.n_own, mid
    while lo < hi:
        mid = (lo + hi) >> 1
        if p.own[mid] < can_id:
            lo = mid + 1
        else:
            hi = mid
    return lo < p.n_own and p.own[lo] == can_id


cdef uint64_t _mark(const can_frame_t* frame) noexcept nogil:
    # tells frames of one identifier apart by their data
    cdef uint64_t mark = 0, word
    cdef int i
    for i in range(0, frame.dlc, 8):
        memcpy(&word, frame.data + i, 8)
        mark = ((mark << 7) | (mark >> 57)) ^ word
    return mark


cdef void _confirm(canport_t* p, const can_frame_t* frame) noexcept nogil:
    # The oldest frame with this identifier and these data. Frames of one identifier stay in order, so those before it
    # will not come any more; a controller may send frames of several identifiers out of order.
    cdef uint64_t mark = _mark(frame)
    cdef int i, k, kept = 0
    p.confirmed += 1
    for i in range(p.n_pending):
        if p.pending_id[i] == frame.id and p.pending_mark[i] == mark:
            break
    else:
        return
    hist_add(&p.send_latency, frame.t_ns - p.pending_ns[i])
    for k in range(p.n_pending):
        if k <= i and p.pending_id[k] == frame.id:
            p.forgotten += k < i
            continue
        p.pending_id[kept] = p.pending_id[k]
        p.pending_mark[kept] = p.pending_mark[k]
        p.pending_ns[kept] = p.pending_ns[k]
        kept += 1
    p.n_pending = kept


cdef void _error_frame(canport_t* p, const can_frame_t* frame) noexcept nogil:
    # one look at every class: constant time
    cdef uint8_t controller = frame.data[1]
    cdef int i
    p.error_frames += 1
    for i in range(N_ERR_BITS):
        p.errors[i] += (frame.id >> i) & 1
    if frame.id & ERR_CRTL:
        for i in range(N_ERR - N_ERR_BITS):
            p.errors[N_ERR_BITS + i] += (controller >> i) & 1
    if frame.id & (ERR_CNT | ERR_CRTL):
        # older drivers fill the counters in without saying so
        p.tx_errors = frame.data[6]
        p.rx_errors = frame.data[7]
    if frame.id & ERR_BUSOFF:
        _set_state(p, BUS_OFF)
    elif frame.id & ERR_RESTARTED:
        _set_state(p, BUS_ACTIVE)
    elif frame.id & ERR_CRTL:
        if controller & CRTL_PASSIVE:
            _set_state(p, BUS_PASSIVE)
        elif controller & CRTL_WARNING:
            _set_state(p, BUS_WARNING)
        elif controller & CRTL_ACTIVE:
            _set_state(p, BUS_ACTIVE)


cdef int port_frame(canport_t* p, int i, can_frame_t* frame) noexcept nogil:
    """Message i of the batch as a frame; PORT_*. Called once for each message, in order. real-time: yes."""
    cdef const uint8_t* wire = p.wire[i]
    cdef uint32_t n = p.msg[i].msg_len
    cdef int flags = p.msg[i].msg_hdr.msg_flags
    cdef uint32_t can_id
    cdef int64_t t_ns = _arrival(p, i)
    memset(frame, 0, sizeof(can_frame_t))
    frame.t_ns = t_ns
    if flags & MSG_TRUNC or (n != CLASSIC_BYTES and n != FD_BYTES) or wire[4] > n - WIRE_DATA:
        p.malformed += 1
        return PORT_OTHER
    memcpy(&can_id, wire, 4)
    frame.dlc = wire[4]
    if n == FD_BYTES:
        frame.flags = CAN_FLAG_FD
        frame.flags |= (CAN_FLAG_BRS if wire[5] & WIRE_BRS else 0) | (CAN_FLAG_ESI if wire[5] & WIRE_ESI else 0)
    memcpy(frame.data, wire + WIRE_DATA, frame.dlc)
    if p.state == BUS_DOWN:
        # something came: the interface is there again, and its controller begins anew
        _set_state(p, BUS_ACTIVE)
    if can_id & WIRE_ERROR:
        frame.id = can_id & <uint32_t>0x1FFFFFFF
        frame.flags |= CAN_FLAG_ERROR
        _error_frame(p, frame)
        return PORT_ERROR
    frame.id = can_id & ~<uint32_t>WIRE_REMOTE
    if can_id & WIRE_REMOTE:
        frame.flags |= CAN_FLAG_REMOTE
        p.remote += 1
        return PORT_OTHER
    if flags & MSG_CONFIRM:
        _confirm(p, frame)
        return PORT_OWN
    if _is_own(p, frame.id):
        p.foreign += 1
        if not p.foreign_any:
            p.foreign_any = 1
            p.foreign_id = frame.id
        return PORT_STOLEN
    p.rx += 1
    hist_add(&p.receive_latency, p.read_ns - t_ns)
    return PORT_DATA


cdef void port_received(canport_t* p, int64_t now_ns) noexcept nogil:
    """After the last message of a tick: ages, and now and then the offset of the clocks. real-time: yes."""
    stamps_refresh(&p.stamps)
    if p.n_pending > 0 and now_ns - p.pending_ns[0] > p.pending_age_max_ns:
        p.pending_age_max_ns = now_ns - p.pending_ns[0]


# --- sending -------------------------------------------------------------------------------------------------


cdef void _expect(canport_t* p, const can_frame_t* frame, int64_t t_ns) noexcept nogil:
    if p.n_pending == PORT_PENDING:
        # the oldest will not be waited for any longer
        p.forgotten += 1
        p.n_pending -= 1
        memmove(p.pending_id, &p.pending_id[1], p.n_pending * sizeof(uint32_t))
        memmove(p.pending_mark, &p.pending_mark[1], p.n_pending * sizeof(uint64_t))
        memmove(p.pending_ns, &p.pending_ns[1], p.n_pending * sizeof(int64_t))
    p.pending_id[p.n_pending] = frame.id
    p.pending_mark[p.n_pending] = _mark(frame)
    p.pending_ns[p.n_pending] = t_ns
    p.n_pending += 1


cdef bint port_send(canport_t* p, const can_frame_t* frame) noexcept nogil:
    """Hand a data frame to the kernel; False: it did not take it (counted, lost). real-time: yes, does not block."""
    cdef uint8_t wire[PORT_WIRE]
    cdef size_t size = FD_BYTES if frame.flags & CAN_FLAG_FD else CLASSIC_BYTES
    cdef int64_t t_ns
    cdef int error
    memset(wire, 0, sizeof(wire))
    memcpy(wire, &frame.id, 4)
    wire[4] = frame.dlc
    if frame.flags & CAN_FLAG_FD:
        wire[5] = WIRE_FDF | (WIRE_BRS if frame.flags & CAN_FLAG_BRS else 0)
    memcpy(wire + WIRE_DATA, frame.data, size - WIRE_DATA)
    t_ns = monotonic_ns()
    if send(p.fd, wire, size, MSG_DONTWAIT | MSG_NOSIGNAL) == <ssize_t>size:
        p.tx += 1
        p.tx_lost_in_row = 0
        if p.state == BUS_DOWN:
            _set_state(p, BUS_ACTIVE)
        _expect(p, frame, t_ns)
        return True
    error = errno
    if _interface_lost(error):
        p.tx_down += 1
        _set_state(p, BUS_DOWN)
    elif error == ENOBUFS:
        p.tx_enobufs += 1
    elif error == EAGAIN:
        p.tx_again += 1
    else:
        p.tx_failed += 1
        p.last_errno = error
    if p.state < BUS_OFF:
        # with the bus away the time without it counts, not the frames
        p.tx_lost_in_row += 1
    return False


# --- state ---------------------------------------------------------------------------------------------------


cdef void port_word(canport_t* p, int64_t now_ns, bus_word_t* word) noexcept nogil:
    """What of the port reaches signals; now_ns is the time of the tick. real-time: yes."""
    if p.state < BUS_OFF:
        p.down_since_ns = 0
    elif p.down_since_ns == 0:
        p.down_since_ns = now_ns
    memset(word, 0, sizeof(bus_word_t))
    word.state = p.state
    word.tx_errors = p.tx_errors
    word.rx_errors = p.rx_errors
    word.tx_lost_in_row = p.tx_lost_in_row
    word.rx_dropped = p.rx_dropped
    word.error_frames = p.error_frames
    word.tx_lost = p.tx_enobufs + p.tx_again + p.tx_down + p.tx_failed
    word.down_since_ns = p.down_since_ns


cdef void port_arm(canport_t* p) noexcept nogil:
    """Counters at zero; the state of the bus and who stole an identifier are kept. real-time: yes."""
    p.worst = p.state
    p.stamped = 0
    p.down_since_ns = 0
    p.n_pending = 0
    p.pending_age_max_ns = 0
    p.forgotten = p.rx = p.rx_dropped = p.rx_limited = p.rx_failed = p.malformed = p.remote = 0
    p.confirmed = p.foreign = p.error_frames = 0
    p.tx = p.tx_enobufs = p.tx_again = p.tx_down = p.tx_failed = 0
    p.tx_lost_in_row = 0
    p.last_errno = 0
    memset(p.errors, 0, sizeof(p.errors))
    hist_clear(&p.receive_latency)
    hist_clear(&p.send_latency)
