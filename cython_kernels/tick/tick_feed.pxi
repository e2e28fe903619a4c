# Replay (included by tick.pyx): an input record back into the places where a tick finds its inputs.


cdef int _feed_head(const rig_t* r, const uint8_t* raw, size_t size, input_head_t* head) noexcept nogil:
    """The head of the record, and whether it is one of this tick and of a rig with what it has inputs for."""
    if size < sizeof(input_head_t):
        return FEED_HEAD
    memcpy(head, raw, sizeof(input_head_t))
    if head.n_bytes > size or head.n_bytes < sizeof(input_head_t) + head.n_frames * <size_t>can_frame_packed(0):
        return FEED_LENGTH
    if head.tick != r.tick:
        return FEED_TICK
    if (head.n_frames > 0 and r.n_bus == 0) or (head.flags & INPUT_VEHICLE and r.veh.received == NULL):
        return FEED_LINK
    return FEED_OK


cdef int _feed_frames(rig_t* r, const uint8_t* raw, size_t end, uint32_t count, size_t* at) noexcept nogil:
    """Received frames, packed: the head of each tells how many data bytes follow."""
    cdef can_frame_t frame
    cdef size_t n
    cdef uint32_t i
    for i in range(count):
        memset(&frame, 0, sizeof(frame))
        if at[0] + CAN_FRAME_HEAD > end:
            return FEED_FRAME
        memcpy(&frame, raw + at[0], CAN_FRAME_HEAD)
        n = can_frame_packed(frame.dlc)
        if n > FRAME_BYTES or at[0] + n > end:
            return FEED_FRAME
        memcpy(&frame, raw + at[0], n)
        if frame.bus >= r.n_bus:
            return FEED_LINK
        frames_push(r.bus[frame.bus].rx_ring, &frame)
        at[0] += n
    return FEED_OK


cdef int _feed_buses(rig_t* r, const uint8_t* raw, size_t end, size_t* at) noexcept nogil:
    """States of the buses that have one in the record."""
    cdef int64_t count, k
    cdef bus_entry_t entry
    if at[0] + sizeof(count) > end:
        return FEED_LENGTH
    memcpy(&count, raw + at[0], sizeof(count))
    at[0] += sizeof(count)
    if not 0 < count <= r.n_bus or at[0] + <size_t>count * sizeof(entry) > end:
        return FEED_LENGTH
    for k in range(count):
        memcpy(&entry, raw + at[0], sizeof(entry))
        at[0] += sizeof(entry)
        if not 0 <= entry.bus < r.n_bus:
            return FEED_LINK
        r.bus[entry.bus].word = entry.word
    return FEED_OK


cdef int _feed_vehicle(rig_t* r, const uint8_t* raw, size_t end, size_t* at) noexcept nogil:
    """A state of the vehicle and its stamp."""
    cdef double value[N_VEHICLE]
    cdef int64_t stamp
    if at[0] + 8 + sizeof(value) > end:
        return FEED_LENGTH
    memcpy(&stamp, raw + at[0], 8)
    memcpy(value, raw + at[0] + 8, sizeof(value))
    slot_write(r.veh.received, value, stamp)
    at[0] += 8 + sizeof(value)
    return FEED_OK


cdef int _feed_pins(rig_t* r, const uint8_t* raw, size_t end, size_t* at) noexcept nogil:
    """Pins of the control units that have set any."""
    cdef double pins[MAX_PINS]
    cdef int64_t count, number, k
    cdef size_t n
    if at[0] + sizeof(count) > end:
        return FEED_LENGTH
    memcpy(&count, raw + at[0], sizeof(count))
    at[0] += sizeof(count)
    for k in range(count):
        if at[0] + sizeof(number) > end:
            return FEED_LENGTH
        memcpy(&number, raw + at[0], sizeof(number))
        at[0] += sizeof(number)
        if not 0 <= number < r.n_pins:
            return FEED_LINK
        n = r.pins[number].n * sizeof(double)
        if at[0] + n > end:
            return FEED_LENGTH
        memcpy(pins, raw + at[0], n)
        slot_write(r.pins[number].slot, pins, 0)
        at[0] += n
    return FEED_OK


cdef int _feed_transaction(rig_t* r, const uint8_t* raw, size_t end, size_t at) noexcept nogil:
    """A transaction of the control channel: the last part, how long it is is said in it."""
    cdef control_chunk_t chunk
    if r.ctl == NULL or at + sizeof(chunk) > end:
        return FEED_CONTROL
    memcpy(&chunk, raw + at, sizeof(chunk))
    if not 0 <= chunk.n_writes <= CTL_WRITES:
        return FEED_CONTROL
    if at + sizeof(chunk) + chunk.n_writes * sizeof(ctl_write_t) != end:
        return FEED_CONTROL
    return FEED_OK if feed_control(r, &chunk, raw + at + sizeof(chunk)) else FEED_CONTROL


cdef int _feed_parts(rig_t* r, const uint8_t* raw, const input_head_t* head) noexcept nogil:
    """What follows the head, part by part, to the end of the record."""
    cdef size_t at = sizeof(input_head_t), end = head.n_bytes
    cdef int status = _feed_frames(r, raw, end, head.n_frames, &at)
    if status == FEED_OK and head.flags & INPUT_BUS:
        status = _feed_buses(r, raw, end, &at)
    if status == FEED_OK and head.flags & INPUT_VEHICLE:
        status = _feed_vehicle(r, raw, end, &at)
    if status == FEED_OK and head.flags & INPUT_PINS:
        status = _feed_pins(r, raw, end, &at)
    if status == FEED_OK and head.flags & INPUT_IO:
        status = _feed_io(r, raw, end, &at)
    if status != FEED_OK:
        return status
    if head.flags & INPUT_CONTROL:
        return _feed_transaction(r, raw, end, at)
    return FEED_OK if at == end else FEED_FRAME


cdef int rig_feed(rig_t* r, const uint8_t* raw, size_t size, input_head_t* head) noexcept nogil:
    """Put the inputs of the record at `raw` where the next tick takes them from; FEED_*. Unless it is FEED_OK the
    rig is of no use any more. Not for a tick: the record is one of a file."""
    cdef int status = _feed_head(r, raw, size, head)
    if status == FEED_OK:
        status = _feed_parts(r, raw, head)
    if status != FEED_OK:
        return status
    if head.cause != CAUSE_NONE:
        store_relaxed_i64(&r.beat.asked_detail, head.detail)
        store_release_i32(&r.beat.asked, head.cause)
    if r.faults != NULL:
        r.faults.switches = head.flags >> INPUT_SWITCHES
    rig_command(
        r, CMD_DISARM if head.flags & INPUT_DISARM else 0, CMD_DISARM if head.flags & INPUT_ARM else 0)
    return FEED_OK
