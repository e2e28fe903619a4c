# Raw numbers of signals, and what changes a frame that is made already and makes its checksum right again; included by
# codec.pyx. For messages that are sent on change, and for disturbances: other frames do not come here.


cdef uint64_t codec_raw_of(const codec_t* c, int signal, const double* table) noexcept nogil:
    """Raw number a signal is sent with; NaN: all ones. real-time: yes."""
    cdef const codec_signal_t* s = &c.signal[signal]
    cdef uint64_t raw = ~<uint64_t> 0
    if not isnan(table[s.slot]):
        _encode(s, table[s.slot], &raw)
    return raw


cdef uint32_t codec_counter_of(const codec_message_t* m, const uint8_t* data) noexcept nogil:
    """Alive counter in the data. real-time: yes."""
    return <uint32_t> field_load(&m.counter, data)


cdef void codec_set_counter(const codec_message_t* m, uint8_t* data, uint32_t value) noexcept nogil:
    """Another alive counter, checksum right. real-time: yes."""
    field_toggle(&m.counter, data, field_load(&m.counter, data) ^ value)
    codec_protect(m, data)


cdef bint codec_set_raw(const codec_t* c, const codec_message_t* m, int signal, uint64_t raw,
                        uint8_t* data) noexcept nogil:
    """Another raw number of a signal, checksum right; False: the signal is not in this frame. real-time: yes."""
    cdef const codec_signal_t* s = &c.signal[signal]
    cdef const codec_group_t* g
    cdef uint64_t little = tl_load64(data)
    cdef uint64_t old
    cdef int k
    for k in range(m.first_group, m.last_group):
        g = &c.group[k]
        if g.first <= signal < g.last and not _in_frame(c, g, data):
            return False
    old = _raw(m, s, data, little, __builtin_bswap64(little))
    # XOR of the bits that change
    raw = (raw ^ old) & s.mask
    if not m.wide:
        little = __builtin_bswap64(raw << s.shift) if s.big_endian else raw << s.shift
        tl_store64(data, tl_load64(data) ^ little)
    elif not s.nine:
        store_word(data + s.at, load_word(data + s.at, s.big_endian) ^ (raw << s.shift), s.big_endian)
    elif s.big_endian:
        store_word(data + s.at, load_word(data + s.at, True) ^ (raw >> s.shift), True)
        data[s.at + 8] ^= <uint8_t> (raw << (8 - s.shift))
    else:
        store_word(data + s.at, load_word(data + s.at, False) ^ (raw << s.shift), False)
        data[s.at + 8] ^= <uint8_t> (raw >> (64 - s.shift))
    codec_protect(m, data)
    return True


cdef void codec_protect(const codec_message_t* m, uint8_t* data) noexcept nogil:
    """The checksum anew. real-time: yes."""
    cdef const protect_t* p = m.protect
    cdef int i
    if p == NULL:
        return
    for i in range(p.n_fixed):
        data[p.fixed_at[i]] &= ~p.fixed_mask[i]
    field_toggle(&p.field, data, field_load(&p.field, data))
    protect_put(p, data, codec_counter_of(m, data) if m.has_counter else 0)
