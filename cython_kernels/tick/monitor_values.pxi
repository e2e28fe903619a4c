# What each monitor is judged by in a tick (included by monitors.pyx); NaN where it has nothing to look at.


cdef double _lowest(const monitors_t* m, const double* s, const scene_t* c) noexcept nogil:
    """Smallest ratio of the gear before and the one it goes to; once that is engaged, of both while the elements of the one
    before open; not reported: of its neighbours that are closed as well."""
    cdef double lowest = 0.0
    cdef int32_t k
    cdef bint there, goes = c.asked > 0.0 and c.asked != s[M_LAST]
    cdef double other = c.asked if goes else s[M_ASKED_BEFORE]
    if not goes and c.tick - s[M_ASKED_TICK] >= m.settle_ticks:
        other = GEAR_UNKNOWN
    for k in range(m.n_gear):
        there = m.gear[k].number == s[M_LAST] or m.gear[k].number == other
        if not goes and fabs(m.gear[k].number - s[M_LAST]) <= 1.0 and m.gear[k].closed & ~c.closed == 0:
            there = True
        if there and m.gear[k].number > 0 and (lowest == 0.0 or m.gear[k].ratio < lowest):
            lowest = m.gear[k].ratio
    return lowest


cdef double _tie_up(const monitors_t* m, const double* s, const double* sig, const scene_t* c) noexcept nogil:
    """Deceleration below the lines of both gears, by the turbine torque and their ratios [m/s2]."""
    cdef double a = _fact(m, sig, F_A)
    if isnan(a) or isnan(c.tau_in) or s[M_RADIUS] <= 0.0 or m.mass <= 0.0 or not c.forwards or s[M_DRIVER_TICK] == c.tick:
        return NAN
    if s[M_TIED_TICK] < 0.0 or (s[M_TIED_TICK] - s[M_DRIVER_TICK]) * m.tick_s < DRIVER_S:
        return 0.0
    return (_traction(m, s, sig, _lowest(m, s, c)) if c.tau_in > 0.0 else 0.0) + s[M_REST] - a


cdef double _flare(const monitors_t* m, const double* s, const scene_t* c) noexcept nogil:
    """Input speed above the lines of both gears [rad/s]."""
    cdef double higher = 0.0
    cdef int32_t k
    if s[M_POWER_TICK] < 0.0 or not c.ahead or s[M_LAST] <= 0.0:
        return NAN
    # not where the lever has just asked for another gear
    if s[M_ENGAGED] > 0.0 or s[M_DRIVER_TICK] > s[M_LAST_TICK] - DRIVER_S / m.tick_s or c.lever_ticks < 2 * m.settle_ticks:
        return 0.0
    for k in range(m.n_gear):
        if m.gear[k].number == s[M_LAST] or m.gear[k].number == c.asked:
            higher = max(higher, m.gear[k].ratio)
    return fabs(c.w_in) - higher * fabs(c.w_out)


cdef double _slip(const monitors_t* m, const double* s, const scene_t* c) noexcept nogil:
    """Input speed beside the line of the gear whose elements are closed for long [rad/s]."""
    cdef double slip
    if c.closed_as < 0 or not c.rolls or c.tick - max(s[M_CLOSED_TICK], s[M_ASKED_TICK]) < m.settle_ticks:
        return NAN
    slip = c.w_in - m.gear[c.closed_as].ratio * c.w_out
    if m.overruns[c.closed]:
        return max(0.0, slip)
    return fabs(slip)


cdef double _no_drive(const monitors_t* m, double* s, const scene_t* c) noexcept nogil:
    """Time without a drive that lever and pedal ask for [s]."""
    cdef double ahead = -c.v if c.backwards else c.v
    # a gear holds: what it gives may be too little for the hill
    cdef bint holds = (c.closed_as >= 0 and (m.gear[c.closed_as].number > 0) == c.forwards
                       and fabs(c.w_in - m.gear[c.closed_as].ratio * c.w_out) < ROLLS)
    if (not (c.forwards or c.backwards) or c.pedal <= PRESSED or not c.brake < RELEASED or ahead < -ROLLS_BACK
            or s[M_RACED] != 0.0):
        s[M_IDLE_TICK] = -1.0
        return NAN
    if (ahead > MOVES and c.closed_as != CLOSED_NEUTRAL) or (holds and c.pedal <= HILL_PEDAL):
        s[M_IDLE_TICK] = -1.0
    elif s[M_IDLE_TICK] < 0.0:
        s[M_IDLE_TICK] = c.tick
    return (c.tick - s[M_IDLE_TICK]) * m.tick_s if s[M_IDLE_TICK] >= 0.0 else 0.0


cdef double _other_gear(const monitors_t* m, const double* s, const scene_t* c) noexcept nogil:
    """Gears between what the unit says, or where it says nothing asks for, and what is engaged, with nothing changing."""
    cdef double said = c.reported if c.reported != GEAR_UNKNOWN else c.asked
    cdef int64_t since = <int64_t>max(max(s[M_REPORTED_TICK], s[M_ASKED_TICK]), s[M_LAST_TICK] - m.settle_ticks)
    if said == GEAR_UNKNOWN or said == GEAR_PARK or not c.rolls or s[M_GEAR] == 0.0:
        return NAN
    if c.tick - max(since, <int64_t>s[M_CHANGED]) < m.settle_ticks or c.lever_ticks < m.settle_ticks:
        return 0.0
    return fabs(said - s[M_GEAR])


cdef double _direction(const monitors_t* m, const scene_t* c) noexcept nogil:
    """Speed of the car with a gear closed that drives the other way than the lever says [m/s]."""
    if not (c.forwards or c.backwards) or isnan(c.v):
        return NAN
    if c.closed_as < 0 or c.lever_ticks < m.settle_ticks or (m.gear[c.closed_as].number > 0) == c.forwards:
        return 0.0
    return fabs(c.v)


cdef double _lock_up(const monitors_t* m, double* s, const double* sig, const scene_t* c) noexcept nogil:
    """Time of steady driving in a high gear while the converter was never locked [s]."""
    cdef double mode = _fact(m, sig, F_LOCKUP_MODE)
    if isnan(mode):
        return NAN
    if mode == 0.0 and c.rolls:
        s[M_LOCKED_UP] = 1.0
    if s[M_GEAR] < LOCK_UP_SHARE * m.top or c.pedal <= RELEASED or c.pedal >= LOCK_UP_PEDAL:
        return NAN
    return 0.0 if s[M_LOCKED_UP] else (c.tick - max(s[M_CHANGED], s[M_DRIVER_TICK])) * m.tick_s


cdef double _engine(const monitors_t* m, double* s, const double* sig, const scene_t* c, bint stalls) noexcept nogil:
    """Speed of the engine above its limit, or below half of idle once it ran [rad/s]."""
    cdef double w = _fact(m, sig, F_ENGINE)
    if isnan(w) or m.idle <= 0.0:
        return NAN
    if w > 0.8 * m.idle:
        s[M_RAN] = 1.0
    if stalls:
        return 0.5 * m.idle - w if s[M_RAN] else NAN
    # no gear is left beyond reverse and the highest one: where the wheels drive the engine there, no control unit can end it
    # behind the lever it may be left from full throttle in neutral
    if ((s[M_GEAR] < 0.0 or s[M_GEAR] == m.top) and not c.tau_in > 0.0) or c.lever_ticks < m.settle_ticks:
        return NAN
    # no gear joins engine and wheels: what slips and the shafts that turn faster drive it against its governor
    return w - (m.engine_max if s[M_GEAR] else m.engine_cut)


cdef double _reported_speed(const monitors_t* m, const double* sig) noexcept nogil:
    """Largest difference between a speed that is sent and the one it is made of, beyond the part allowed [rad/s]."""
    cdef double worst = 0.0, source
    cdef int32_t k
    for k in range(m.n_pair):
        source = min(max(sig[m.pair[k].source], m.pair[k].low), m.pair[k].high)
        worst = max(worst, fabs(sig[m.pair[k].reported] - source) - REPORTED_REL * fabs(source))
    return worst if m.n_pair > 0 else NAN


cdef double _park(const monitors_t* m, const double* sig, const scene_t* c) noexcept nogil:
    """Speed of the car with the park lock closed, by the unit's own word for it [m/s]."""
    cdef double park = _fact(m, sig, F_PARK)
    if isnan(c.v) or (isnan(park) and c.reported == GEAR_UNKNOWN and c.asked == GEAR_UNKNOWN):
        return NAN
    if (not isnan(park) and park != 0.0) or c.reported == GEAR_PARK or c.asked == GEAR_PARK:
        return fabs(c.v)
    return 0.0


cdef double _value(const monitors_t* m, double* s, const double* sig, const scene_t* c, int32_t kind) noexcept nogil:
    """What a monitor is judged by in this tick; NaN: nothing to look at."""
    if kind == MONITOR_DIRECTION:
        return _direction(m, c)
    elif kind == MONITOR_NEUTRAL:
        if (c.lever != LEVER_P and c.lever != LEVER_N) or c.lever_ticks < m.settle_ticks:
            return NAN
        return 1.0 if c.closed_as >= 0 or c.closed_as == CLOSED_OTHER else 0.0
    elif kind == MONITOR_NO_GEAR:
        if not (c.forwards or c.backwards) or c.lever_ticks < m.settle_ticks:
            return NAN
        return 1.0 if c.closed_as == CLOSED_OTHER or c.closed_as == CLOSED_BLOCKED else 0.0
    elif kind == MONITOR_TIE_UP:
        return _tie_up(m, s, sig, c)
    elif kind == MONITOR_FLARE:
        return _flare(m, s, c)
    elif kind == MONITOR_HUNTING:
        if not c.forwards:
            return NAN
        return 1.0 if c.tick - s[M_BACK_BEFORE] < BACK_S / m.tick_s else 0.0
    elif kind == MONITOR_SHIFT_TIME:
        # before the first gear of a drive as well: its elements may slip all the time
        if s[M_POWER_TICK] < 0.0 or not c.ahead or s[M_LAST] < 0.0:
            return NAN
        return (c.tick - max(s[M_LAST_TICK], s[M_POWER_TICK])) * m.tick_s
    elif kind == MONITOR_OTHER_GEAR:
        return _other_gear(m, s, c)
    elif kind == MONITOR_SKIPPED:
        return s[M_LEFT_OUT] if c.forwards and c.asked != GEAR_UNKNOWN else NAN
    elif kind == MONITOR_SLIP:
        return _slip(m, s, c)
    elif kind == MONITOR_NO_DRIVE:
        return _no_drive(m, s, c)
    elif kind == MONITOR_ENGINE_SPEED or kind == MONITOR_STALL:
        return _engine(m, s, sig, c, kind == MONITOR_STALL)
    elif kind == MONITOR_LOCK_UP:
        return _lock_up(m, s, sig, c)
    elif kind == MONITOR_PARK:
        return _park(m, sig, c)
    elif kind == MONITOR_UNANSWERED:
        if isnan(_fact(m, sig, F_REQUEST)) or isnan(_fact(m, sig, F_ANSWER)):
            return NAN
        return (c.tick - s[M_REQUEST_TICK]) * m.tick_s if s[M_REQUEST_TICK] >= 0.0 else 0.0
    elif kind == MONITOR_LATE_ANSWER:
        return NAN if isnan(_fact(m, sig, F_REQUEST)) or isnan(_fact(m, sig, F_ANSWER)) else s[M_GIVEN_UP]
    elif kind == MONITOR_INTERRUPTED:
        return s[M_REPLACED] if c.forwards and c.asked != GEAR_UNKNOWN else NAN
    return _reported_speed(m, sig)
