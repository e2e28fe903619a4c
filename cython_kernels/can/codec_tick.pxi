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


cdef inline uint8_t _checksum(const codec_t* c, const codec_message_t* m, const uint8_t* data,
                              uint8_t counter) noexcept nogil:
    # checksum of all bytes but the checksum byte itself, by the message's profile
    cdef const crc8_t* crc = &c.crc[m.crc_index]
    cdef uint8_t r = 0
    cdef uint32_t s
    cdef int i
    if m.e2e == E2E_CRC_ID or m.e2e == E2E_CRC_LIST:
        r = crc.init
        if m.e2e == E2E_CRC_ID:
            r = crc8_byte(crc, r, m.data_id & 0xFF)
            r = crc8_byte(crc, r, m.data_id >> 8)
        r = crc8_bytes(crc, r, data, m.crc_byte)
        r = crc8_bytes(crc, r, data + m.crc_byte + 1, m.dlc - m.crc_byte - 1)
        if m.e2e == E2E_CRC_LIST:
            r = crc8_byte(crc, r, m.data_ids[counter & 15])
        return r ^ crc.xorout
    if m.e2e == E2E_XOR:
        for i in range(m.dlc):
            r ^= data[i]
        return r ^ data[m.crc_byte]
    # BMW: the identifier's bytes belong to the sum
    s = (m.id & 0xFF) + ((m.id >> 8) & 0xFF) + ((m.id >> 16) & 0xFF) + ((m.id >> 24) & 0x1F)
    for i in range(m.dlc):
        s += data[i]
    s -= data[m.crc_byte]
    return <uint8_t> ((s & 0xFF) + (s >> 8))


cdef inline int _reject(rx_message_t* r, int status, uint32_t used_counter) noexcept nogil:
    r.count[status] += 1
    r.bad += 1
    r.rejected += used_counter
    return status


cdef inline uint64_t _word(const uint8_t* data, int at, bint big_endian) noexcept nogil:
    # the 8 bytes from `at` on, in the byte order of a signal; at <= 56 stays inside the 64 bytes of a frame
    cdef uint64_t word = tl_load64(data + at)
    return __builtin_bswap64(word) if big_endian else word


cdef int codec_decode(const codec_t* c, const can_frame_t* frame, double* table, rx_state_t* rx,
                      int64_t now_ns) noexcept nogil:
    """Check a frame and, if it is good, write its signals into `table`. Returns CODEC_*. real-time: yes."""
    cdef double value[SIGNALS_MAX]
    cdef int index = codec_find(c, frame.id)
    cdef const codec_message_t* m
    cdef const codec_signal_t* s
    cdef rx_message_t* r
    cdef uint64_t little, big, word, raw
    cdef uint32_t delta
    cdef uint8_t counter = 0
    cdef bint fresh
    cdef double v
    cdef int i, n

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
    if m.has_counter:
        word = _word(frame.data, m.counter_at, m.counter_big_endian)
        counter = <uint8_t> ((word >> m.counter_shift) & m.counter_mask)
    if m.e2e != E2E_NONE and _checksum(c, m, frame.data, counter) != frame.data[m.crc_byte]:
        return _reject(r, CODEC_CRC, 1)

    # alive counter; the step allowed grows by the frames known to be refused in between
    fresh = not r.seen or (m.timeout_ns > 0 and now_ns - r.last_frame_ns > m.timeout_ns)
    r.last_frame_ns = now_ns
    if m.has_counter:
        if counter > m.counter_max:
            return _reject(r, CODEC_JUMP, 1)
        if not fresh:
            delta = <uint32_t> counter + (m.counter_max + 1 if counter < r.counter else 0) - r.counter
            if delta == 0:
                return _reject(r, CODEC_REPEAT, 0)
            if delta > m.max_delta + r.rejected:
                r.counter = counter
                r.rejected = 0
                return _reject(r, CODEC_JUMP, 0)
            if delta > 1 + r.rejected:
                r.lost += delta - 1 - r.rejected

    # signals on the stack first: a value out of range refuses the whole frame
    n = m.last - m.first
    for i in range(n):
        s = &c.signal[m.first + i]
        word = _word(frame.data, s.at, s.big_endian) if m.wide else big if s.big_endian else little
        raw = (word >> s.shift) & s.mask
        if s.kind == RAW_UNSIGNED:
            v = <double> raw
        elif s.kind == RAW_SIGNED:
            v = <double> <int64_t> ((raw ^ s.sign) - s.sign)
        elif s.kind == RAW_FLOAT32:
            v = tl_f32(raw)
        else:
            v = tl_f64(raw)
        # written so that a NaN fails as well; floats always have finite limits
        if s.check and not (s.raw_lo <= v <= s.raw_hi):
            # the counter of a refused frame is known and used up
            if m.has_counter:
                r.counter = counter
                r.rejected = 0
                return _reject(r, CODEC_RANGE, 0)
            return _reject(r, CODEC_RANGE, 1)
        value[i] = v * s.scale + s.offset
    for i in range(n):
        table[c.signal[m.first + i].slot] = value[i]

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
    cdef uint32_t saturated = 0
    cdef double v, x
    cdef int i

    if m.wide:
        memset(wide, 0, 64)
    for i in range(m.first, m.last):
        s = &c.signal[i]
        v = table[s.slot]
        if isnan(v):
            t.refused += 1
            return CODEC_NAN
        x = (v - s.offset) / s.scale
        if s.kind <= RAW_SIGNED:
            x = rint(x)
        if x < s.raw_lo or x > s.raw_hi:
            x = s.raw_lo if x < s.raw_lo else s.raw_hi
            saturated += 1
        if s.kind <= RAW_SIGNED:
            raw = <uint64_t> <int64_t> x if x < 0 else <uint64_t> x
        elif s.kind == RAW_FLOAT32:
            raw = tl_bits32(x)
        else:
            raw = tl_bits64(x)
        raw = (raw & s.mask) << s.shift
        if m.wide:
            _merge(wide, s.at, raw, s.big_endian)
        elif s.big_endian:
            big |= raw
        else:
            little |= raw

    if m.has_counter:
        raw = <uint64_t> t.counter << m.counter_shift
        if m.wide:
            _merge(wide, m.counter_at, raw, m.counter_big_endian)
        elif m.counter_big_endian:
            big |= raw
        else:
            little |= raw
    out.id = m.id
    out.dlc = m.dlc
    out.flags = m.send_flags
    out.bus = out.spare = 0
    if m.wide:
        memcpy(out.data, wide, 64)
    else:
        tl_store64(out.data, little | __builtin_bswap64(big))
        memset(out.data + 8, 0, 56)
    if m.e2e != E2E_NONE:
        out.data[m.crc_byte] = _checksum(c, m, out.data, t.counter)
    t.counter = t.counter + 1 if t.counter < m.counter_max else 0
    t.saturated += saturated
    t.sent += 1
    return CODEC_OK


cdef int codec_check_timeouts(const codec_t* c, rx_state_t* rx, int64_t now_ns) noexcept nogil:
    """Update timed_out of all watched messages; the number of silent ones. Once a tick. real-time: yes."""
    cdef int i
    cdef int silent = 0
    cdef const codec_message_t* m
    cdef rx_message_t* r
    for i in range(c.n_messages):
        m = &c.message[i]
        if m.timeout_ns > 0:
            r = &rx.message[i]
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
