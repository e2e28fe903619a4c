# Faults on signals, and the limits of what is sent (included by tick.pyx). Structs: faults.pxd, safety.pxd.
#
# A fault on an input acts behind the wiring copies, so the signal received keeps its true value beside the spoilt input.
# Limits come last: whatever a model, a fault or the safe state wants to send, the range and the slew hold.


cdef inline double _way_back(const rig_t* r, const fault_t* f, const fault_state_t* s, double x) noexcept nogil:
    """Behind its window: linearly from what the fault made of the signal last to its true value."""
    cdef double part
    if s.ended < 0 or f.back_ticks == 0:
        return x
    part = (sim_tick(r) - s.ended + 1) / <double>f.back_ticks
    return x + (s.last - x) * (1.0 - part) if part < 1.0 else x


cdef double _spoilt(const rig_t* r, const fault_t* f, fault_state_t* s, double x) noexcept nogil:
    if f.kind == FAULT_OFFSET:
        return x + f.value
    if f.kind == FAULT_GAIN:
        return x * f.value
    if f.kind == FAULT_STUCK:
        return s.held
    if f.kind == FAULT_VALUE:
        return f.value
    if f.kind == FAULT_NOISE:
        # the upper 53 bits as a number in -1 .. 1
        return x + f.value * (<double>(<int64_t>_random(s) >> 11) * (1.0 / 4503599627370496.0))
    if f.kind == FAULT_RAMP:
        return x + f.value * (sim_tick(r) - s.begun)
    if f.kind == FAULT_LAG:
        return s.last + f.value * (x - s.last)
    return NAN


cdef void _signal_faults(rig_t* r, int32_t stage, uint32_t* flags) noexcept nogil:
    cdef const fault_t* f
    cdef fault_state_t* s
    cdef double x, y
    cdef int i
    for i in range(r.faults.first[stage], r.faults.first[stage + 1]):
        f = &r.faults.fault[i]
        s = &r.faults.state[i]
        if s.begun < 0 and f.back_ticks == 0:
            continue
        x = (r.sig[f.target] - f.offset) / f.gain
        if s.begun < 0:
            y = _way_back(r, f, s, x)
            if y != x:
                r.sig[f.target] = f.gain * y + f.offset
                flags[0] |= FLAG_FAULT
            continue
        if not s.active:
            s.active = 1
            s.held = s.last = x
        if not _acts(r, f, s, flags):
            s.last = x
            continue
        y = _spoilt(r, f, s, x)
        r.sig[f.target] = f.gain * y + f.offset
        if f.kind != FAULT_NAN:
            s.last = y


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
    cdef const band_t* band = r.safety.band
    cdef const band_t* last = band + r.safety.n_band
    cdef guard_t* g
    cdef guard_t* end
    cdef double x
    while band < last:
        if band.lo == NULL or not all_between(r.sig + band.slot, band.lo, band.hi, band.n):
            g = r.safety.guard + band.first
            end = g + band.n
            while g < end:
                x = r.sig[g.slot]
                if not (x >= g.quiet_lo and x <= g.quiet_hi):
                    _guard(r, g, flags)
                g += 1
        band += 1


cdef void _safe_outputs(rig_t* r, uint32_t* flags) noexcept nogil:
    """Last thing before frames are made."""
    if r.faults != NULL:
        _signal_faults(r, STAGE_OUTPUT, flags)
    if r.safety != NULL:
        _guard_outputs(r, flags)
