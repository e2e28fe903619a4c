# Replay (included by tick.pyx): an input record back into the places where a tick finds its inputs.


cdef int rig_feed(rig_t* r, const uint8_t* raw, size_t size, input_head_t* head) noexcept nogil:
    """Put the inputs of the record at `raw` where the next tick takes them from; FEED_*. Unless it is FEED_OK the
    rig is of no use any more. Not for a tick: the record is one of a file."""
    cdef can_frame_t frame
    cdef double value[N_VEHICLE]
    cdef double pins[MAX_PINS]
    cdef int64_t stamp, count, number, k
    cdef bus_entry_t entry
    cdef size_t at = sizeof(input_head_t), end, n
    cdef control_chunk_t chunk
    cdef uint32_t i
    if size < at:
        return FEED_HEAD
    memcpy(head, raw, at)
    end = head.n_bytes
    if end > size or end < at + head.n_frames * <size_t>can_frame_packed(0):
        return FEED_LENGTH
    if head.tick != r.tick:
        return FEED_TICK
    if (head.n_frames > 0 and r.n_bus == 0) or (head.flags & INPUT_VEHICLE and r.veh_in == NULL):
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
        if frame.bus >= r.n_bus:
            return FEED_LINK
        frames_push(r.bus[frame.bus].rx_ring, &frame)
        at += n
    if head.flags & INPUT_BUS:
        if at + sizeof(count) > end:
            return FEED_LENGTH
        memcpy(&count, raw + at, sizeof(count))
        at += sizeof(count)
        if not 0 < count <= r.n_bus or at + <size_t>count * sizeof(entry) > end:
            return FEED_LENGTH
        for k in range(count):
            memcpy(&entry, raw + at, sizeof(entry))
            at += sizeof(entry)
            if not 0 <= entry.bus < r.n_bus:
                return FEED_LINK
            r.bus[entry.bus].word = entry.word
    if head.flags & INPUT_VEHICLE:
        if at + 8 + sizeof(value) > end:
            return FEED_LENGTH
        memcpy(&stamp, raw + at, 8)
        memcpy(value, raw + at + 8, sizeof(value))
        slot_write(r.veh_in, value, stamp)
        at += 8 + sizeof(value)
    if head.flags & INPUT_PINS:
        if at + sizeof(count) > end:
            return FEED_LENGTH
        memcpy(&count, raw + at, sizeof(count))
        at += sizeof(count)
        for k in range(count):
            if at + sizeof(number) > end:
                return FEED_LENGTH
            memcpy(&number, raw + at, sizeof(number))
            at += sizeof(number)
            if not 0 <= number < r.n_pins:
                return FEED_LINK
            n = r.pins[number].n * sizeof(double)
            if at + n > end:
                return FEED_LENGTH
            memcpy(pins, raw + at, n)
            slot_write(r.pins[number].slot, pins, 0)
            at += n
    if head.flags & INPUT_CONTROL:
        # the last part; how long it is is said in it
        if r.ctl == NULL or at + sizeof(chunk) > end:
            return FEED_CONTROL
        memcpy(&chunk, raw + at, sizeof(chunk))
        if not 0 <= chunk.n_writes <= CTL_WRITES:
            return FEED_CONTROL
        n = sizeof(chunk) + chunk.n_writes * sizeof(ctl_write_t)
        if at + n != end or not feed_control(r, &chunk, raw + at + sizeof(chunk)):
            return FEED_CONTROL
    elif at != end:
        return FEED_FRAME
    if head.cause != CAUSE_NONE:
        store_relaxed_i64(&r.beat.asked_detail, head.detail)
        store_release_i32(&r.beat.asked, head.cause)
    if r.faults != NULL:
        r.faults.switches = head.flags >> INPUT_SWITCHES
    rig_command(
        r, CMD_DISARM if head.flags & INPUT_DISARM else 0, CMD_DISARM if head.flags & INPUT_ARM else 0)
    return FEED_OK
