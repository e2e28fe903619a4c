# The part of the CAN codec that runs in a tick; included by codec.pyx, whose head states the rules.

cdef int codec_find(const codec_t* c, uint32_t can_id) noexcept nogil:
    """Index of the received message with this identifier (bit 31: extended), -1 if there is none. real-time: yes."""
    cdef int lo, hi, mid
    if not can_id & CAN_FRAME_EXTENDED:
        return c.standard[can_id] if can_id < 2048 else -1
    lo = 0
    hi = c.n_extended
    while lo < hi:
        mid = (lo + hi) >> 1
        if c.extended_id[mid] < can_id:
            lo = mid + 1
        else:
            hi = mid
    return c.extended_message[lo] if lo < c.n_extended and c.extended_id[lo] == can_id else -1


cdef inline int _reject(rx_message_t* r, int status, uint32_t used_counter) noexcept nogil:
    r.count[status] += 1
    r.bad += 1
    r.rejected += used_counter
    return status


cdef inline uint32_t _counter_place(const codec_t* c, const codec_message_t* m, uint32_t value) noexcept nogil:
    # how many counter values come before this one
    cdef uint32_t n = value - m.counter_min
    cdef int i
    for i in range(m.first_skip, m.last_skip):
        if c.skip[i] < value:
            n -= 1
    return n


cdef inline bint _counter_exists(const codec_t* c, const codec_message_t* m, uint32_t value) noexcept nogil:
    cdef int i
    if not m.counter_min <= value <= m.counter_max:
        return False
    for i in range(m.first_skip, m.last_skip):
        if c.skip[i] == value:
            return False
    return True


cdef uint32_t codec_next_counter(const codec_t* c, const codec_message_t* m, uint32_t value) noexcept nogil:
    """The counter value after this one. real-time: yes."""
    cdef int i
    value = value + 1 if value < m.counter_max else m.counter_min
    for i in range(m.first_skip, m.last_skip):
        # ascending, and never the highest value
        if c.skip[i] == value:
            value += 1
    return value


cdef inline uint64_t _raw(const codec_message_t* m, const codec_signal_t* s, const uint8_t* data, uint64_t little,
                          uint64_t big) noexcept nogil:
    # bits of a signal; little, big: the first word, all that messages of up to 8 bytes have
    cdef uint64_t word
    if not m.wide:
        return ((big if s.big_endian else little) >> s.shift) & s.mask
    word = load_word(data + s.at, s.big_endian)
    if s.nine:
        if s.big_endian:
            return ((word << s.shift) | (data[s.at + 8] >> (8 - s.shift))) & s.mask
        return ((word >> s.shift) | (<uint64_t> data[s.at + 8] << (64 - s.shift))) & s.mask
    return (word >> s.shift) & s.mask


cdef inline bint _in_frame(const codec_t* c, const codec_group_t* g, const uint8_t* data) noexcept nogil:
    # whether the selectors of the data say that the signals of this group are there
    cdef const codec_when_t* w
    cdef uint64_t raw
    cdef int i, k
    cdef bint found
    for i in range(g.first_when, g.last_when):
        w = &c.when[i]
        raw = (load_word(data + w.at, w.big_endian) >> w.shift) & w.mask
        found = False
        for k in range(w.first, w.last):
            if c.range[k].lo <= raw <= c.range[k].hi:
                found = True
                break
        if not found:
            return False
    return True


cdef inline bint _decode(const codec_t* c, const codec_message_t* m, int first, int last, const uint8_t* data,
                         uint64_t little, uint64_t big, double* value, rx_message_t* r) noexcept nogil:
    # values of the signals first <= i < last; NaN: keeps what it has. False: one is out of range
    cdef const codec_signal_t* s
    cdef uint64_t raw
    cdef double v
    cdef int i, k
    cdef bint invalid
    for i in range(first, last):
        s = &c.signal[i]
        raw = _raw(m, s, data, little, big)
        if s.kind == RAW_UNSIGNED:
            v = <double> raw
        elif s.kind == RAW_SIGNED:
            v = <double> <int64_t> ((raw ^ s.sign) - s.sign)
        elif s.kind == RAW_FLOAT32:
            v = tl_f32(raw)
        else:
            v = tl_f64(raw)
        if s.last_invalid > s.first_invalid:
            invalid = False
            for k in range(s.first_invalid, s.last_invalid):
                if c.invalid[k] == raw:
                    invalid = True
            if invalid:
                value[i - m.first] = NAN_VALUE
                continue
        # written so that a NaN fails as well; floats always have finite limits
        if s.check and not (s.raw_lo <= v <= s.raw_hi):
            return False
        value[i - m.first] = v * s.scale + s.offset
    return True


cdef inline bint _decode_groups(const codec_t* c, const codec_message_t* m, const can_frame_t* frame, uint64_t little,
                                uint64_t big, double* value, rx_message_t* r) noexcept nogil:
    cdef const codec_group_t* g
    cdef int k, i
    for k in range(m.first_group, m.last_group):
        g = &c.group[k]
        if _in_frame(c, g, frame.data):
            if not _decode(c, m, g.first, g.last, frame.data, little, big, value, r):
                return False
        else:
            for i in range(g.first - m.first, g.last - m.first):
                value[i] = ABSENT
    return True


cdef inline uint32_t _counter_of(const codec_message_t* m, const can_frame_t* frame) noexcept nogil:
    # alive counter of a frame; 0 in messages without one
    return <uint32_t> field_load(&m.counter, frame.data)


cdef inline int _count(const codec_t* c, const codec_message_t* m, rx_message_t* r, uint32_t counter, bint fresh) noexcept nogil:
    # what the alive counter says, CODEC_OK: the frame is good so far; the step allowed grows by the frames known to be
    # refused in between. fresh: there is no earlier one to compare with
    cdef int64_t delta
    if not _counter_exists(c, m, counter):
        return _reject(r, CODEC_JUMP, 1)
    if fresh:
        return CODEC_OK
    delta = <int64_t> _counter_place(c, m, counter) - <int64_t> _counter_place(c, m, r.counter)
    if delta < 0:
        delta += m.counter_n
    if delta == 0:
        return _reject(r, CODEC_REPEAT, 0)
    if delta > m.max_delta + <int64_t> r.rejected:
        r.counter = counter
        r.rejected = 0
        return _reject(r, CODEC_JUMP, 0)
    if delta > 1 + <int64_t> r.rejected:
        r.lost += delta - 1 - r.rejected
    return CODEC_OK


cdef inline int _out_of_range(const codec_message_t* m, rx_message_t* r, uint32_t counter) noexcept nogil:
    # the counter of a refused frame is known and used up
    if not m.has_counter:
        return _reject(r, CODEC_RANGE, 1)
    r.counter = counter
    r.rejected = 0
    return _reject(r, CODEC_RANGE, 0)


cdef inline void _store(const codec_t* c, const codec_message_t* m, const double* value, double* table,
                        rx_message_t* r) noexcept nogil:
    # the values of a good frame into the table
    cdef int i, n = m.last - m.first
    if m.last_group > m.first_group:
        for i in range(n):
            if value[i] == value[i] and value[i] != ABSENT:
                table[c.signal[m.first + i].slot] = value[i]
            elif value[i] != value[i]:
                r.invalid += 1
    else:
        for i in range(n):
            table[c.signal[m.first + i].slot] = value[i]


cdef int codec_decode(const codec_t* c, const can_frame_t* frame, double* table, rx_state_t* rx,
                      int64_t now_ns) noexcept nogil:
    """Check a frame and, if it is good, write its signals into `table`. Returns CODEC_*. real-time: yes."""
    cdef double value[SIGNALS_MAX]
    cdef int index = codec_find(c, frame.id), status
    cdef const codec_message_t* m
    cdef rx_message_t* r
    cdef uint64_t little, big
    cdef uint32_t counter
    cdef bint fresh, good

    rx.last_index = index
    if index < 0 or frame.flags & (CAN_FLAG_REMOTE | CAN_FLAG_ERROR):
        rx.last_index = -1
        rx.unknown += 1
        return CODEC_UNKNOWN
    m = &c.message[index]
    r = &rx.message[index]

    if (frame.flags & CAN_FLAG_FD) != m.format:
        return _reject(r, CODEC_FORMAT, 1)
    if frame.dlc != m.dlc:
        return _reject(r, CODEC_LENGTH, 1)

    little = tl_load64(frame.data)
    big = __builtin_bswap64(little)
    counter = _counter_of(m, frame)
    if m.protect != NULL and not protect_right(m.protect, frame.data, counter):
        return _reject(r, CODEC_CRC, 1)

    fresh = not r.seen or (m.timeout_ns > 0 and now_ns - r.last_frame_ns > m.timeout_ns)
    r.last_frame_ns = now_ns
    if m.has_counter:
        status = _count(c, m, r, counter, fresh)
        if status != CODEC_OK:
            return status

    # signals on the stack first: a value out of range refuses the whole frame
    if m.last_group > m.first_group:
        good = _decode_groups(c, m, frame, little, big, value, r)
    else:
        good = _decode(c, m, m.first, m.last, frame.data, little, big, value, r)
    if not good:
        return _out_of_range(m, r, counter)
    _store(c, m, value, table, r)

    r.counter = counter
    r.rejected = 0
    r.bad = 0
    r.seen = 1
    r.timed_out = 0
    r.last_ok_ns = now_ns
    r.count[CODEC_OK] += 1
    return CODEC_OK


cdef inline void _merge(uint8_t* data, int at, uint64_t bits, bint big_endian) noexcept nogil:
    tl_store64(data + at, tl_load64(data + at) | (__builtin_bswap64(bits) if big_endian else bits))


cdef inline void _put(const codec_signal_t* s, uint64_t raw, uint8_t* data) noexcept nogil:
    # bits of a signal into a message that is all in memory
    if not s.nine:
        _merge(data, s.at, raw << s.shift, s.big_endian)
    elif s.big_endian:
        _merge(data, s.at, raw >> s.shift, True)
        data[s.at + 8] |= <uint8_t> (raw << (8 - s.shift))
    else:
        _merge(data, s.at, raw << s.shift, False)
        data[s.at + 8] |= <uint8_t> (raw >> (64 - s.shift))


cdef inline bint _encode(const codec_signal_t* s, double v, uint64_t* raw) noexcept nogil:
    # raw bits of a value; True: it was limited
    cdef double x = (v - s.offset) / s.scale
    cdef bint limited = False
    if s.kind <= RAW_SIGNED:
        x = rint(x)
    if x < s.raw_lo or x > s.raw_hi:
        x = s.raw_lo if x < s.raw_lo else s.raw_hi
        limited = True
    if s.kind <= RAW_SIGNED:
        raw[0] = (<uint64_t> <int64_t> x if x < 0 else <uint64_t> x) & s.mask
    elif s.kind == RAW_FLOAT32:
        raw[0] = tl_bits32(x)
    else:
        raw[0] = tl_bits64(x)
    return limited


cdef inline int _encode_groups(const codec_t* c, const codec_message_t* m, const tx_message_t* t, const double* table,
                               uint8_t* data) noexcept nogil:
    # all signals that are in this frame; how many were limited, -1: one is NaN
    cdef const codec_group_t* g
    cdef const codec_signal_t* s
    cdef uint64_t raw
    cdef int limited = 0
    cdef int k, i
    for k in range(m.first_group, m.last_group):
        g = &c.group[k]
        if not _in_frame(c, g, data):
            continue
        for i in range(g.first, g.last):
            s = &c.signal[i]
            if s.selector and m.n_pages:
                raw = c.page[m.first_page + <int> t.page * m.n_selectors + s.selector - 1]
            else:
                if isnan(table[s.slot]):
                    return -1
                limited += _encode(s, table[s.slot], &raw)
            _put(s, raw, data)
    return limited


cdef int codec_encode(const codec_t* c, tx_state_t* tx, int index, const double* table,
                      can_frame_t* out) noexcept nogil:
    """Make the frame of message `index` with alive counter and checksum (all of `out` but t_ns). real-time: yes.

    CODEC_NAN: a signal is NaN, `out` and the alive counter are unchanged.
    """
    cdef const codec_message_t* m = &c.message[index]
    cdef tx_message_t* t = &tx.message[index]
    cdef const codec_signal_t* s
    cdef uint64_t little = 0
    cdef uint64_t big = 0
    cdef uint64_t raw
    cdef uint8_t wide[64]
    cdef bint in_memory = m.wide or m.last_group > m.first_group
    cdef int saturated = 0
    cdef double v
    cdef int i

    if in_memory:
        memset(wide, 0, 64)
    if m.last_group > m.first_group:
        saturated = _encode_groups(c, m, t, table, wide)
        if saturated < 0:
            t.refused += 1
            return CODEC_NAN
    else:
        for i in range(m.first, m.last):
            s = &c.signal[i]
            v = table[s.slot]
            if isnan(v):
                t.refused += 1
                return CODEC_NAN
            saturated += _encode(s, v, &raw)
            if m.wide:
                _put(s, raw, wide)
            elif s.big_endian:
                big |= raw << s.shift
            else:
                little |= raw << s.shift

    out.id = m.id
    out.dlc = m.dlc
    out.flags = m.send_flags
    out.bus = out.spare = 0
    if in_memory:
        memcpy(out.data, wide, 64)
    else:
        tl_store64(out.data, little | __builtin_bswap64(big))
        memset(out.data + 8, 0, 56)
    field_toggle(&m.counter, out.data, t.counter)
    if m.protect != NULL:
        protect_put(m.protect, out.data, t.counter)
    if m.has_counter:
        t.counter = codec_next_counter(c, m, t.counter)
    if m.n_pages:
        t.page = t.page + 1 if t.page + 1 < <uint32_t> m.n_pages else 0
    t.saturated += saturated
    t.sent += 1
    return CODEC_OK


cdef int codec_check_timeouts(const codec_t* c, rx_state_t* rx, int64_t now_ns) noexcept nogil:
    """Update timed_out of all watched messages; the number of silent ones. Once a tick. real-time: yes."""
    cdef int i
    cdef int silent = 0
    cdef const codec_message_t* m
    cdef rx_message_t* r
    for i in range(c.n_watched):
        m = &c.message[c.watched[i]]
        r = &rx.message[c.watched[i]]
        if now_ns - r.last_ok_ns > m.timeout_ns:
            r.timeouts += 1 - r.timed_out
            r.timed_out = 1
            silent += 1
    return silent


cdef void codec_rx_arm(const codec_t* c, rx_state_t* rx, int64_t now_ns) noexcept nogil:
    """Start: all ages count from now_ns, every first frame is accepted, all counters are zero. real-time: yes."""
    cdef int i
    memset(rx.message, 0, c.n_messages * sizeof(rx_message_t))
    for i in range(c.n_messages):
        rx.message[i].last_ok_ns = now_ns
        rx.message[i].last_frame_ns = now_ns
    rx.unknown = 0
    rx.last_index = -1
