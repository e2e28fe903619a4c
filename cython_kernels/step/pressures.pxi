# Pressures of actuators as functions of time: known at every point of a step before anything else is.
#
# With c = c0 + c1 x + c2 x^2 the command within 0 and the supply pressure, and r = h/tau, between two switches
#
#   p = q(x) + rest exp(-r (x - begin)),    q = c - c'/r + c''/r^2,    rest = p(begin) - q(begin)        without a lag p = c
#
# Switches are known beforehand and divide the step (next_break). A piston fills in t_fill while c > p_return, its pressure follows
# p_return meanwhile; it empties in t_empty.
#
# Equations: (67), (68).

cdef extern from *:
    """
    /* Pa: a pressure so near its command has arrived. A lag alone never ends; this is a millionth of the last bit of a sensor */
    #define TL_ARRIVED 1e-6
    /* of a piston: so full it is full, to the rounding of the time at which it is */
    #define TL_FULL (1.0 - 1e-9)
    /* instead of the fraction of the step at which a pressure switches: it does not */
    #define TL_NEVER 1e300
    /* of the step: two breakpoints so near to each other, or to its ends, are one */
    #define TL_BREAKS_APART 1e-9
    """
    const double ARRIVED "TL_ARRIVED"
    const double FULL "TL_FULL"
    const double NEVER "TL_NEVER"
    const double BREAKS_APART "TL_BREAKS_APART"

cdef inline double clipped_command(const tl_model* m, int32_t i, double cmd) noexcept nogil:
    """Commanded pressure within 0 and the supply pressure; NaN stays NaN, so that it is seen in the state."""
    if cmd < 0.0:
        return 0.0
    return m.act[i].p_max if cmd > m.act[i].p_max else cmd


cdef inline double pressure_at(const tl_model* m, const tl_state* s, int32_t i, double x) noexcept nogil:
    """Pressure i at the fraction x of the step, up to its next switch; beyond it the law before it goes on."""
    cdef const tl_curve* f = &s.press[i]
    cdef double p = f.q[0] + x * (f.q[1] + x * f.q[2])
    if f.rest == 0.0:
        return p
    # (the whole step and half of it from its begin: factors known)
    if f.begin == 0.0 and x == 1.0:
        return p + f.rest * m.act[i].E[2 * f.falling]
    if f.begin == 0.0 and x == 0.5:
        return p + f.rest * m.act[i].E[2 * f.falling + 1]
    return p + f.rest * exp(-f.rate * (x - f.begin))


cdef inline void pressures(const tl_model* m, const tl_state* s, double x, double* p) noexcept nogil:
    """All of them."""
    cdef int32_t i
    for i in range(TL_NACT(m)):
        p[i] = pressure_at(m, s, i, x)


cdef inline void fill_levels(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """Fill levels of the pistons at the fraction x of the step, up to the next switch."""
    cdef int32_t i
    cdef double level
    for i in range(TL_NACT(m)):
        level = s.press[i].level + (x - s.press[i].begin) * s.press[i].filling
        s.fill[i] = 0.0 if level < 0.0 else (1.0 if level > FULL else level)


cdef inline double curve_at(const tl_curve* f, double x) noexcept nogil:
    return f.q[0] + x * (f.q[1] + x * f.q[2]) + (f.rest * exp(-f.rate * (x - f.begin)) if f.rest != 0.0 else 0.0)


cdef double curve_side(const tl_margin* g, double x) noexcept nogil:
    """The curve of a margin where it must have the sign g.way."""
    return g.way * curve_at(g.curve, x)


cdef double curve_leaves(const tl_curve* f, double side, double turn, double x, double last) noexcept nogil:
    """First fraction of the step behind x and up to `last` from which on the curve has not the sign `side`, or NEVER; turn: the
    only one behind which it may come back."""
    cdef tl_margin g
    cdef double[2] points
    g.at = curve_side
    g.curve = f
    g.way = side
    points[0] = turn if turn < last else last
    points[1] = last
    x = first_below(&g, x, points, 2, ARRIVED)
    return x if happens(x) and x > f.begin + BREAKS_APART else NEVER


cdef inline double side_behind(double value, double slope, double curvature) noexcept nogil:
    """Sign of what has this value, slope and curvature, from here on; as near to 0 as rounding the slope says, and so on."""
    if fabs(value) > ARRIVED:
        return 1.0 if value > 0.0 else -1.0
    if fabs(slope) > ARRIVED:
        return 1.0 if slope > 0.0 else -1.0
    return 1.0 if curvature > 0.0 else (-1.0 if curvature < 0.0 else 0.0)


cdef inline double sooner_switch(tl_curve* c, double level, double side, double turn, double last, double first) noexcept nogil:
    """The first switch so far, or that at which the command c leaves its side of a level."""
    cdef double x
    c.q[0] -= level
    x = curve_leaves(c, side, turn, c.begin, last)
    c.q[0] += level
    return x if x < first else first


cdef void clip_command(const tl_model* m, const tl_state* s, int32_t i, tl_curve* c, double last, double* end) noexcept nogil:
    """The command c of actuator i, a parabola, within its limits; and where that ends."""
    cdef double x = c.begin, top = m.act[i].p_max, slope = c.q[1] + 2.0 * x * c.q[2], turn = NEVER
    cdef double value = c.q[0] + x * (c.q[1] + x * c.q[2])
    if c.q[2] != 0.0:
        turn = -0.5 * c.q[1] / c.q[2]
    if side_behind(value, slope, c.q[2]) < 0.0:
        end[0] = sooner_switch(c, 0.0, -1.0, turn, last, end[0])
        c.q[0] = 0.0
    elif side_behind(value - top, slope, c.q[2]) > 0.0:
        end[0] = sooner_switch(c, top, 1.0, turn, last, end[0])
        c.q[0] = top
    else:
        end[0] = sooner_switch(c, 0.0, 1.0, turn, last, end[0])
        end[0] = sooner_switch(c, top, -1.0, turn, last, end[0])
        return
    c.q[1] = 0.0
    c.q[2] = 0.0


cdef void fill_piston(const tl_model* m, tl_state* s, int32_t i, tl_curve* c, double last, double* end) noexcept nogil:
    """How piston i fills or empties with the command c, what its pressure follows then (in c), and where that ends."""
    cdef tl_curve* f = &s.press[i]
    cdef double x = c.begin, turn = -0.5 * c.q[1] / c.q[2] if c.q[2] != 0.0 else NEVER
    cdef double value = c.q[0] + x * (c.q[1] + x * c.q[2]) - m.act[i].p_return
    cdef double side = side_behind(value, c.q[1] + 2.0 * x * c.q[2], c.q[2])
    if c.q[1] != 0.0 or c.q[2] != 0.0:
        end[0] = sooner_switch(c, m.act[i].p_return, 1.0 if side > 0.0 else -1.0, turn, last, end[0])
    f.filling = 0.0
    if side <= 0.0:
        f.filling = -m.h / m.act[i].t_empty
    elif f.level < FULL:
        f.filling = m.h / m.act[i].t_fill
        x += (1.0 - f.level) / f.filling
        if x <= c.begin + BREAKS_APART:
            f.level = 1.0                        # it takes no time
            f.filling = 0.0
            return
        end[0] = x if x < end[0] else end[0]
        c.q[0] = m.act[i].p_return
        c.q[1] = 0.0
        c.q[2] = 0.0


cdef void follow(const tl_model* m, tl_state* s, int32_t i, const tl_curve* c, double last, double* end) noexcept nogil:
    """The pressure f from c.begin on, where c is what it follows; a pressure without a lag jumps to it. And where f ends."""
    cdef tl_curve* f = &s.press[i]
    cdef tl_curve gap
    cdef double x = c.begin, value = c.q[0] + x * (c.q[1] + x * c.q[2]), slope = c.q[1] + 2.0 * x * c.q[2], tau, turn = NEVER, side
    side = side_behind(value - s.now.p[i], slope, c.q[2])
    f.falling = side < 0.0
    tau = m.act[i].tau_fall if f.falling else m.act[i].tau_rise
    f.begin = x
    f.rest = 0.0
    memcpy(f.q, c.q, sizeof(c.q))
    gap = c[0]
    if c.q[2] != 0.0:
        turn = -0.5 * c.q[1] / c.q[2]
    if tau == 0.0:
        # it goes with the command until that turns round
        s.now.p[i] = value
        gap.q[0] = c.q[1]
        gap.q[1] = 2.0 * c.q[2]
        gap.q[2] = 0.0
        turn = NEVER
    else:
        f.rate = m.h / tau
        f.q[0] += (2.0 * c.q[2] / f.rate - c.q[1]) / f.rate
        f.q[1] -= 2.0 * c.q[2] / f.rate
        f.rest = s.now.p[i] - (f.q[0] + x * (f.q[1] + x * f.q[2]))
        if fabs(f.rest) <= ARRIVED:
            f.rest = 0.0
        gap.q[0] -= f.q[0]
        gap.q[1] -= f.q[1]
        gap.q[2] = 0.0
        gap.rest = -f.rest
        gap.rate = f.rate
    if m.act[i].tau_rise != m.act[i].tau_fall and (c.q[1] != 0.0 or c.q[2] != 0.0):
        x = curve_leaves(&gap, side, turn, x, last)
        end[0] = x if x < end[0] else end[0]


cdef inline int32_t approach(const tl_model* m, tl_state* s, int32_t i, double command) noexcept nogil:
    """The pressure from the begin of the step on towards a command that is held; 1 when one without a lag has jumped."""
    cdef tl_curve* f = &s.press[i]
    cdef double gap = s.now.p[i] - command, tau
    f.q[0] = command
    f.q[1] = 0.0
    f.q[2] = 0.0
    f.begin = 0.0
    f.rest = 0.0
    f.filling = 0.0
    if fabs(gap) <= ARRIVED:
        return 0
    f.falling = gap > 0.0
    tau = m.act[i].tau_fall if f.falling else m.act[i].tau_rise
    if tau == 0.0:
        s.now.p[i] = command
        return 1
    f.rate = m.h / tau
    f.rest = gap
    return 0


cdef int32_t follow_command(const tl_model* m, tl_state* s, int32_t i, double x, double last) noexcept nogil:
    """The pressure from the fraction x of the step on, where its command changes within the step, or a piston fills; s.next_switch
    is brought forward to where that law ends. 1 when a pressure without a lag has jumped."""
    cdef int32_t k = m.act[i].input, nin = TL_NIN(m)
    cdef double before = s.now.p[i]
    cdef tl_curve c
    c.rest = 0.0
    c.rate = 0.0
    c.falling = 0
    c.begin = x
    s.press[i].level = s.fill[i]
    s.press[i].filling = 0.0
    if s.held:
        c.q[0] = clipped_command(m, i, s.inp[k])
        c.q[1] = 0.0
        c.q[2] = 0.0
    else:
        c.q[0] = s.in_c[k]
        c.q[1] = s.in_c[nin + k]
        c.q[2] = s.in_c[2 * nin + k]
        clip_command(m, s, i, &c, last, &s.next_switch)
    if m.act[i].kind == FILL_TIME:
        fill_piston(m, s, i, &c, last, &s.next_switch)
    follow(m, s, i, &c, last, &s.next_switch)
    return s.now.p[i] != before


cdef inline int32_t begin_pressures(const tl_model* m, tl_state* s, double x, double last) noexcept nogil:
    """Laws of the pressures from the fraction x of the step on, where they are s.now.p, and s.next_switch: up to where (not
    beyond `last`). 1 when some pressure without a lag has jumped."""
    cdef int32_t i, jumped = 0, quiet = s.quiet >= LISTED and not s.fresh[0]
    s.next_switch = NEVER
    if not s.held or m.act_fills:
        for i in range(TL_NACT(m)):
            jumped |= follow_command(m, s, i, x, last)
        return jumped
    for i in range(TL_NACT(m)):
        if not (quiet and s.lists.still[i] == STILL):      # (one that has arrived stays)
            jumped |= approach(m, s, i, clipped_command(m, i, s.inp[m.act[i].input]))
    return jumped


cdef inline void reach_pressures(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """Pressures and fill levels of the instant at the fraction x of the step."""
    pressures(m, s, x, s.now.p)
    fill_levels(m, s, x)


cdef void pass_switches(const tl_model* m, tl_state* s, double x) noexcept nogil:
    """The same, through switches on the way."""
    cdef int32_t k
    for k in range(4 * TL_NACT(m)):
        if not s.next_switch < x:
            break
        reach_pressures(m, s, s.next_switch)
        begin_pressures(m, s, s.next_switch, x)
    reach_pressures(m, s, x)
