# Replay (included by tick.pyx): an input record back into the places where a tick finds its inputs.


cdef int rig_feed(rig_t* r, const uint8_t* raw, size_t size, input_head_t* head) noexcept nogil:
    """Put the inputs of the record at `raw` where the next tick takes them from; FEED_*. Nothing is changed unless it
    is FEED_OK, FEED_FRAME or FEED_CONTROL. Not for a tick: the record is one of a file."""
    cdef can_frame_t frame
    cdef double value[N_VEHICLE]
    cdef int64_t stamp
    cdef size_t at = sizeof(input_head_t), end, n, rest = 0
    cdef control_chunk_t chunk
    cdef uint32_t i
    if size < at:
        return FEED_HEAD
    memcpy(head, raw, at)
    end = head.n_bytes
    if head.flags & INPUT_BUS:
        rest += sizeof(bus_word_t)
    if head.flags & INPUT_VEHICLE:
        rest += 8 + sizeof(value)
    if end > size or end < at + head.n_frames * <size_t>can_frame_packed(0) + rest:
        return FEED_LENGTH
    if head.tick != r.tick:
        return FEED_TICK
    if (head.n_frames > 0 and r.codec == NULL) or (head.flags & INPUT_VEHICLE and r.veh_in == NULL):
        return FEED_LINK
    for i in range(head.n_frames):
        # a packed frame: its head tells how many data bytes follow
        memset(&frame, 0, sizeof(frame))
        if at + CAN_FRAME_HEAD > end:
            return FEED_FRAME
        memcpy(&frame, raw + at, CAN_FRAME_HEAD)
        n = can_frame_packed(frame.dlc)
        if n > FRAME_BYTES or at + n > end:
            return FEED_FRAME
        memcpy(&frame, raw + at, n)
        frames_push(r.rx_ring, &frame)
        at += n
    if head.flags & INPUT_CONTROL:
        # the last part; how long it is is said in it
        if r.ctl == NULL or at + rest + sizeof(chunk) > end:
            return FEED_CONTROL
        memcpy(&chunk, raw + at + rest, sizeof(chunk))
        if not 0 <= chunk.n_writes <= CTL_WRITES:
            return FEED_CONTROL
        n = sizeof(chunk) + chunk.n_writes * sizeof(ctl_write_t)
        if at + rest + n != end or not feed_control(r, &chunk, raw + at + rest + sizeof(chunk)):
            return FEED_CONTROL
    elif at + rest != end:
        return FEED_FRAME
    if head.flags & INPUT_BUS:
        memcpy(&r.bus, raw + at, sizeof(bus_word_t))
        at += sizeof(bus_word_t)
    if head.flags & INPUT_VEHICLE:
        memcpy(&stamp, raw + at, 8)
        memcpy(value, raw + at + 8, sizeof(value))
        slot_write(r.veh_in, value, stamp)
    if head.cause != CAUSE_NONE:
        store_relaxed_i64(&r.ext_detail, head.detail)
        store_release_i32(&r.ext_cause, head.cause)
    if r.safety != NULL:
        r.safety.switches = head.flags >> INPUT_SWITCHES
    rig_command(
        r, CMD_DISARM if head.flags & INPUT_DISARM else 0, CMD_DISARM if head.flags & INPUT_ARM else 0)
    return FEED_OK
