# Faults injected on purpose, and the limits of what is sent (included by tick.pyx). Structs: safety.pxd.
#
# Both depend on the tick, the signals and the switch word only, which is part of the input record: a replay does the same.
# A fault on an input acts behind the wiring copies, so the signal received keeps its true value beside the spoilt input.
# Limits come last: whatever a model, a fault or the safe state wants to send, the range and the slew hold.


cdef inline bint _fault_on(const rig_t* r, const fault_t* f) noexcept nogil:
    if f.switch_bit >= 0:
        return (r.safety.switched >> f.switch_bit) & 1
    return f.from_tick <= sim_tick(r) < f.until_tick


cdef inline double _noise(int64_t tick, int32_t target) noexcept nogil:
    # splitmix64 of tick and target as a number in -1 .. 1
    cdef uint64_t z = <uint64_t>tick * HASH_FACTOR + <uint64_t>target * 0xD1B54A32D192ED03U
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU
    z ^= z >> 31
    return <double>(<int64_t>z >> 11) * (1.0 / 4503599627370496.0)


cdef void _take_switches(rig_t* r, input_head_t* head) noexcept nogil:
    """Top of a tick."""
    r.safety.switched = load_acquire_u32(&r.safety.switches) & 0xFFFF
    head.flags |= r.safety.switched << INPUT_SWITCHES


cdef void _signal_faults(rig_t* r, int32_t stage, uint32_t* flags) noexcept nogil:
    cdef fault_t* f
    cdef double x
    cdef int i
    for i in range(r.safety.n_fault):
        f = &r.safety.fault[i]
        if f.stage != stage:
            continue
        if not _fault_on(r, f):
            f.active = 0
            continue
        x = (r.sig[f.target] - f.offset) / f.gain
        if not f.active:
            f.active = 1
            f.held = x
        if f.kind == FAULT_OFFSET:
            x += f.value
        elif f.kind == FAULT_GAIN:
            x *= f.value
        elif f.kind == FAULT_STUCK:
            x = f.held
        elif f.kind == FAULT_VALUE:
            x = f.value
        elif f.kind == FAULT_NOISE:
            x += f.value * _noise(sim_tick(r), f.target)
        else:
            x = NAN
        r.sig[f.target] = f.gain * x + f.offset
        f.count += 1
        flags[0] |= FLAG_FAULT


cdef void _guard(rig_t* r, guard_t* g, uint32_t* flags) noexcept nogil:
    """Range, then slew, of a sent signal. NaN goes on: the encoder refuses it and latches."""
    cdef double x = r.sig[g.slot], y
    cdef bint held
    if x != x:
        return
    y = g.hi if x > g.hi else g.lo if x < g.lo else x
    held = x > g.hi + g.tol or x < g.lo - g.tol
    if g.slew > 0.0 and g.seen:
        if y > g.last + g.slew:
            y = g.last + g.slew
            held = True
        elif y < g.last - g.slew:
            y = g.last - g.slew
            held = True
    r.sig[g.slot] = y
    g.last = y
    g.seen = 1
    if held:
        g.count += 1
        flags[0] |= FLAG_LIMITED
        if g.safe:
            rig_latch(r, CAUSE_OUTPUT, g - r.safety.guard)


cdef inline void _guard_outputs(rig_t* r, uint32_t* flags) noexcept nogil:
    """All sent signals; most are between their limits."""
    cdef guard_t* g = r.safety.guard
    cdef guard_t* end = g + r.safety.n_guard
    cdef const double* sig = r.sig
    cdef double x
    while g < end:
        x = sig[g.slot]
        if not (x >= g.quiet_lo and x <= g.quiet_hi):
            _guard(r, g, flags)
        g += 1


cdef void _safe_outputs(rig_t* r, uint32_t* flags) noexcept nogil:
    """Last thing before frames are made."""
    _signal_faults(r, STAGE_OUTPUT, flags)
    _guard_outputs(r, flags)


cdef uint32_t _frame_faults(rig_t* r, bus_t* b, int32_t message, uint32_t* flags) noexcept nogil:
    """Before a frame is made: the faults that act on it, as bits 1 << (kind - FAULT_FRAMES)."""
    cdef fault_t* f
    cdef uint32_t kinds = 0
    cdef int i
    for i in range(r.safety.n_fault):
        f = &r.safety.fault[i]
        if f.stage != STAGE_FRAME or f.target != message or f.bus != b.index:
            continue
        if not _fault_on(r, f):
            f.active = 0
            continue
        if f.kind == FAULT_COUNTER:
            if not f.active:
                f.held = b.tx.message[message].counter
            b.tx.message[message].counter = <uint32_t>f.held
        f.active = 1
        f.count += 1
        kinds |= 1 << (f.kind - FAULT_FRAMES)
        flags[0] |= FLAG_FAULT
    return kinds


cdef bint _spoil(const bus_t* b, int32_t message, uint32_t kinds, can_frame_t* frame) noexcept nogil:
    """Behind the encoder; False: the frame is not to be sent."""
    if kinds & (1 << (FAULT_CRC - FAULT_FRAMES)):
        protect_spoil(b.codec.message[message].protect, frame.data, 0xFF)
    if kinds & (1 << (FAULT_LENGTH - FAULT_FRAMES)) and frame.dlc > 0:
        frame.dlc -= 1
        frame.data[frame.dlc] = 0
    return not kinds & (1 << (FAULT_DROP - FAULT_FRAMES))
