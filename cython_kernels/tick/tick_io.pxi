# I/O devices in a tick (included by tick.pyx). Structs: io.pxd. Their inputs are part of the input record where they have
# changed; how long a call took and whether writing succeeded are no inputs of the tick, so they latch through rig_external.


cdef void _io_took(rig_t* r, const io_device_t* d, int64_t* since, hist_t* times, uint64_t* slow) noexcept nogil:
    """Account for a call that began at `since`, which becomes the time now. The limit holds after the start-up grace."""
    cdef int64_t now = clock_now(r.grid.script), took = now - since[0]
    since[0] = now
    hist_add(times, took)
    if d.limit_ns > 0 and took > d.limit_ns and r.account.book != &r.account.grace:
        slow[0] += 1
        rig_external(r, CAUSE_IO, (d - r.io) << IO_REASON_BITS | IO_SLOW)


cdef void _take_inputs(rig_t* r, io_device_t* d, uint32_t* flags) noexcept nogil:
    """Values of a device into its signals; one that is not finite leaves its signal as it was."""
    cdef int64_t number = d - r.io
    cdef double x
    cdef int i
    for i in range(d.n_in):
        x = d.gain[i] * d.value[i] + d.offset[i]
        if not isfinite(x):
            rig_latch(r, CAUSE_IO, number << IO_REASON_BITS | IO_NAN)
            continue
        if x < d.lo[i] or x > d.hi[i]:
            x = d.lo[i] if x < d.lo[i] else d.hi[i]
            d.limited += 1
            flags[0] |= FLAG_LIMITED
        r.sig[d.in_slot + i] = x
    r.sig[d.state_slot] = d.state
    d.stale_in_row = d.stale_in_row + 1 if d.state == IO_STALE else 0
    if d.state == IO_STALE:
        d.stale += 1
        if d.stale_in_row >= d.stale_limit:
            rig_latch(r, CAUSE_IO, number << IO_REASON_BITS | IO_OLD)
    elif d.state != IO_OK:
        d.failed += 1
        rig_latch(r, CAUSE_IO, number << IO_REASON_BITS | IO_READ)


cdef void _read_io(rig_t* r) noexcept nogil:
    """Read all devices, before causes of other threads are taken: one that keeps the tick waiting is named as the cause,
    and not another one that became old meanwhile."""
    cdef int64_t since = clock_now(r.grid.script)
    cdef io_device_t* d = r.io
    cdef io_device_t* end = d + r.n_io
    while d < end:
        if d.read != NULL:
            d.state = d.read(d.device, sim_tick(r) * r.grid.tick_s, d.value)
            d.reads += 1
            _io_took(r, d, &since, d.read_time, &d.slow)
        d += 1


cdef void _latch_io(rig_t* r, input_head_t* head, uint32_t* flags) noexcept nogil:
    """What all devices have read."""
    cdef int64_t number, n = 0, state
    cdef size_t count_at = r.rec.input_at, n_bytes
    cdef io_device_t* d
    for number in range(r.n_io):
        d = &r.io[number]
        n_bytes = d.n_in * sizeof(double)
        if d.state != d.state_kept or memcmp(d.value, d.kept, n_bytes) != 0:
            if n == 0:
                _keep(r, &n, sizeof(n))
            state = d.state
            d.state_kept = d.state
            memcpy(d.kept, d.value, n_bytes)
            _keep(r, &number, sizeof(number))
            _keep(r, &state, sizeof(state))
            _keep(r, d.value, n_bytes)
            n += 1
        _take_inputs(r, d, flags)
    if n > 0:
        memcpy(r.rec.input_record + count_at, &n, sizeof(n))
        head.flags |= INPUT_IO


cdef void _guard_io(rig_t* r) noexcept nogil:
    """Safe values instead of the signals in the safe state and while disarming, and for a value that is not finite."""
    cdef io_device_t* d = r.io
    cdef io_device_t* end = d + r.n_io
    cdef int i
    while d < end:
        for i in range(d.n_out):
            if not isfinite(r.sig[d.out_slot + i]):
                rig_latch(r, CAUSE_IO, (d - r.io) << IO_REASON_BITS | IO_NAN)
                r.sig[d.out_slot + i] = d.safe[i]
        d += 1
    if not r.latch.latched and r.disarm == DISARM_NO:
        return
    d = r.io
    while d < end:
        memcpy(r.sig + d.out_slot, d.safe, d.n_out * sizeof(double))
        d += 1


cdef bint _taken_io(rig_t* r) noexcept nogil:
    """The guardian has taken the devices over: this process has stood still, and goes on."""
    cdef io_device_t* d = r.io
    cdef io_device_t* end = d + r.n_io
    while d < end:
        if d.watch != NULL and load_acquire_i32(&d.watch.taken):
            rig_external(r, CAUSE_IO, (d - r.io) << IO_REASON_BITS | IO_TAKEN)
            return True
        d += 1
    return False


cdef void _write_io(rig_t* r) noexcept nogil:
    """Write all devices. A frozen or muted rig writes the safe values, and so does one whose guardian has acted."""
    cdef int64_t since = clock_now(r.grid.script)
    cdef bint muted = load_acquire_i32(&r.beat.muted)
    cdef bint safe = muted or r.latch.latched or r.disarm != DISARM_NO or _taken_io(r)
    cdef io_device_t* d = r.io
    cdef io_device_t* end = d + r.n_io
    while d < end:
        if d.watch != NULL:
            d.watch.state = IO_WATCH_SAFE if safe else IO_WATCH_RUNS
            store_release_i64(<int64_t*>&d.watch.beats, <int64_t>(d.watch.beats + 1))
        if d.write != NULL:
            memcpy(d.out, d.safe if safe else r.sig + d.out_slot, d.n_out * sizeof(double))
            d.writes += 1
            if d.write(d.device, (sim_tick(r) + 1) * r.grid.tick_s, d.out) != IO_OK:
                d.failed += 1
                rig_external(r, CAUSE_IO, (d - r.io) << IO_REASON_BITS | IO_WRITE)
            _io_took(r, d, &since, d.write_time, &d.slow)
        d += 1


cdef void _leave_io(rig_t* r) noexcept nogil:
    """The loop ends: the outputs are safe at once, however long the rest of the run takes."""
    cdef io_device_t* d = r.io
    cdef io_device_t* end = d + r.n_io
    while d < end:
        if d.write != NULL:
            memcpy(d.out, d.safe, d.n_out * sizeof(double))
            d.write(d.device, sim_tick(r) * r.grid.tick_s, d.out)
        if d.watch != NULL:
            d.watch.state = IO_WATCH_IDLE
        d += 1


cdef void _arm_io(rig_t* r) noexcept nogil:
    """What a replay does not know is forgotten: the values before arming."""
    cdef io_device_t* d = r.io
    cdef io_device_t* end = d + r.n_io
    while d < end:
        memset(d.value, 0, d.n_in * sizeof(double))
        memset(d.kept, 0, d.n_in * sizeof(double))
        d.state = d.state_kept = IO_OK
        d.stale_in_row = 0
        d.reads = d.writes = d.stale = d.failed = d.limited = d.slow = 0
        d += 1


cdef int _feed_io(rig_t* r, const uint8_t* raw, size_t end, size_t* at) noexcept nogil:
    """Values and states of the devices that have changed (replay)."""
    cdef int64_t count, number, state, k
    cdef size_t n
    cdef io_device_t* d
    if at[0] + sizeof(count) > end:
        return FEED_LENGTH
    memcpy(&count, raw + at[0], sizeof(count))
    at[0] += sizeof(count)
    for k in range(count):
        if at[0] + 2 * sizeof(number) > end:
            return FEED_LENGTH
        memcpy(&number, raw + at[0], sizeof(number))
        memcpy(&state, raw + at[0] + sizeof(number), sizeof(state))
        at[0] += 2 * sizeof(number)
        if not 0 <= number < r.n_io:
            return FEED_LINK
        d = &r.io[number]
        n = d.n_in * sizeof(double)
        if at[0] + n > end:
            return FEED_LENGTH
        d.state = <int32_t>state
        memcpy(d.value, raw + at[0], n)
        at[0] += n
    return FEED_OK
