"""What the gearbox does, watched in every tick, and the tables of that; the same code reads a recording (`Monitors.read`).

    closed elements     capacity above `closed`               -> a gear of the file, too few, too many, another ratio
    engaged gear        |w_in - i w_out| <= 0.002 |w_in| + 0.2 rad/s for gear_ticks; with too few elements closed it only stays; at
                        standstill that of the closed elements only, also where a free wheel is overrun behind a shift
    monitor             value > limit for `hold` ticks        -> latched

A value is NaN where the monitor has nothing to look at. Where pedals or the lever change, what follows is the driver's.
In the safe state, where the rig opens the elements itself, nothing is judged.
Limits, their reasons and the sentences stand in hil/monitors/catalogue.py.
"""

from libc.math cimport NAN, fabs, isnan
from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.rings.buffer cimport PyBuffer_Release, doubles_of

FACTS = ("w_in", "w_out", "v", "a", "tau_in", "tau_lockup", "lockup_mode", "engine", "pedal", "brake", "lever", "reported",
         "asked", "request", "answer", "park", "cause")
#: own signals in their order; only the first is recorded
SIGNALS = ("gear", "engaged", "candidate", "candidate_tick", "last", "changed", "last_tick", "lever", "lever_tick", "pedal",
           "brake", "driver_tick", "closed", "closed_tick", "asked", "asked_before", "asked_tick", "reported", "reported_tick",
           "direction", "back", "back_before", "left_out", "radius", "rest", "tied_tick", "idle_tick", "locked_up", "ran",
           "request_tick", "given_up", "power_tick", "shift_tick", "replaced", "raced")
#: monitors by their number in C
KINDS = ("direction", "neutral", "no_gear", "tie_up", "flare", "hunting", "shift_time", "other_gear", "skipped", "slip",
         "no_drive", "engine_speed", "stall", "lock_up", "park", "unanswered", "late_answer", "reported_speed",
         "interrupted")
CLOSED = {"neutral": CLOSED_NEUTRAL, "blocked": CLOSED_BLOCKED, "other": CLOSED_OTHER}
NUMBERS = {"R": GEAR_REVERSE, "P": GEAR_PARK, "N": 0}
UNKNOWN = GEAR_UNKNOWN
assert len(FACTS) == N_FACT and len(SIGNALS) == N_OWN

cdef enum:
    MONITOR_DIRECTION = 0
    MONITOR_NEUTRAL = 1
    MONITOR_NO_GEAR = 2
    MONITOR_TIE_UP = 3
    MONITOR_FLARE = 4
    MONITOR_HUNTING = 5
    MONITOR_SHIFT_TIME = 6
    MONITOR_OTHER_GEAR = 7
    MONITOR_SKIPPED = 8
    MONITOR_SLIP = 9
    MONITOR_NO_DRIVE = 10
    MONITOR_ENGINE_SPEED = 11
    MONITOR_STALL = 12
    MONITOR_LOCK_UP = 13
    MONITOR_PARK = 14
    MONITOR_UNANSWERED = 15
    MONITOR_LATE_ANSWER = 16
    MONITOR_REPORTED_SPEED = 17
    MONITOR_INTERRUPTED = 18

# Positions of the lever (hil/common/levers.py): P R N, then those that drive forwards.
cdef enum:
    LEVER_P = 0
    LEVER_R = 1
    LEVER_N = 2
    LEVER_D = 3

cdef double GEAR_REL = 2e-3       # rigid shafts give 0; elastic ones need the rest [1]
cdef double GEAR_ABS = 0.2        # the same at low speed [rad/s]
cdef double ROLLS = 2.0           # the output turns; below, every ratio fits [rad/s]
cdef double RADIUS_FROM = 20.0    # v / w_out is read from this speed of the output on [rad/s]
cdef double PRESSED = 0.05        # the pedal asks for a drive
cdef double RELEASED = 0.02       # the brake is off
cdef double MOVED = 0.03          # pedals change by this much: what follows is the driver's
cdef double DRIVER_S = 0.5        # for this time: the driveline's answer to a pedal is over [s]
cdef double LEFT_S = 0.1          # a gear is left for this time: less is the slip of elements while others are filled [s]
cdef double ROLLS_BACK = 1.0      # faster against the lever the control unit may leave the car in neutral [m/s]
cdef double MOVES = 0.2           # the car moves [m/s]
cdef double BACK_S = 4.0          # a gear is gone back to within this time: hunting [s]
cdef double HILL_PEDAL = 0.5      # up to this pedal a hill may hold a car whose gear is closed: 12 % take less than a third
cdef double LOCK_UP_PEDAL = 0.6   # a converter is locked in steady driving below this pedal
cdef double LOCK_UP_SHARE = 0.6   # in the gears from this share of the highest on
cdef double REPORTED_REL = 0.05       # part of a speed that the message may be wrong: resolution, and one cycle of acceleration


# What this tick is, computed once for all monitors.
cdef struct scene_t:
    double w_in
    double w_out
    double v
    double pedal
    double brake
    double lever
    double reported                 # numbers of gears
    double asked
    int32_t closed
    int32_t closed_as
    int64_t tick
    int64_t lever_ticks         # since the lever's last change
    double tau_in               # torque on the turbine [Nm]; NaN: not known
    bint overrun                # the free wheel of the closed gear lets the input turn slower
    bint rolls                  # the output turns
    bint ahead                  # forwards
    bint forwards               # the lever asks for a forward gear
    bint backwards


cdef void monitors_arm(const monitors_t* m, double* sig) noexcept nogil:
    """Nothing was seen. real-time: yes."""
    cdef double* s = sig + m.first_slot
    cdef int32_t k
    for k in range(N_OWN + N_ROW * m.n_row):
        s[k] = 0.0
    s[M_TIED_TICK] = s[M_IDLE_TICK] = s[M_REQUEST_TICK] = s[M_POWER_TICK] = -1.0
    s[M_BACK] = s[M_BACK_BEFORE] = -1e18
    s[M_ASKED] = s[M_ASKED_BEFORE] = s[M_REPORTED] = GEAR_UNKNOWN
    for k in range(m.n_row):
        s[N_OWN + N_ROW * k + R_SINCE] = -1.0
        m.evidence[k].first = -1
        m.evidence[k].reached = m.evidence[k].ticks = 0
        m.evidence[k].worst = m.evidence[k].seen = -1e300


cdef inline double _fact(const monitors_t* m, const double* sig, int32_t fact) noexcept nogil:
    return sig[m.fact[fact]] if m.fact[fact] >= 0 else NAN


cdef double _gear_of(const word_t* words, int32_t n, double value) noexcept nogil:
    cdef int32_t k
    for k in range(n):
        if words[k].value == value:
            return words[k].gear
    return GEAR_UNKNOWN


cdef int32_t _engaged(const monitors_t* m, const double* s, const scene_t* c) noexcept nogil:
    """Number of the gear in the table, from 1, whose ratio the speeds have, or whose free wheel is overrun; 0: none."""
    cdef double error, best = GEAR_REL * fabs(c.w_in) + GEAR_ABS
    cdef int32_t k, found = 0
    # behind a shift the gear whose free wheel is overrun is engaged; on the way the speeds cross other ratios
    if c.rolls and c.overrun and c.w_in < m.gear[c.closed_as].ratio * c.w_out - best:
        return c.closed_as + 1 if c.tick - s[M_CLOSED_TICK] >= m.settle_ticks else 0
    if not c.rolls:
        if c.closed_as < 0:
            return 0
        # at rest every ratio fits: another gear than the speeds have shown is engaged once other elements are closed
        if s[M_LAST] != 0.0 and m.gear[c.closed_as].number != s[M_LAST] and s[M_CLOSED_TICK] <= s[M_LAST_TICK]:
            return 0
        error = c.w_in - m.gear[c.closed_as].ratio * c.w_out
        return 0 if error > best or (error < -best and not c.overrun) else c.closed_as + 1
    for k in range(m.n_gear):
        error = fabs(c.w_in - m.gear[k].ratio * c.w_out)
        # of two gears with one ratio the closed elements tell which
        if error < best or (error == best and k == c.closed_as):
            best, found = error, k + 1
    # with too few elements closed the speeds may have the ratio of a gear by chance; the one before may hold a little
    return found if c.closed_as != CLOSED_NEUTRAL or found == s[M_ENGAGED] else 0


cdef void _changed(const monitors_t* m, double* s, const scene_t* c, int32_t engaged) noexcept nogil:
    """Another gear is engaged than before."""
    cdef double number = m.gear[engaged - 1].number
    cdef double step = number - s[M_LAST]
    cdef bint forward = number > 0 and s[M_LAST] > 0
    s[M_ENGAGED], s[M_GEAR], s[M_LEFT_OUT] = engaged, number, 0.0
    if step == 0.0:
        return
    if forward:
        # a shift that ends soon behind a move of the driver was begun before it, or by it: the way back from it is his
        if (step * s[M_DIRECTION] < 0.0 and s[M_CHANGED] - s[M_DRIVER_TICK] > m.settle_ticks
                and c.tick - s[M_CHANGED] < BACK_S / m.tick_s):
            s[M_BACK_BEFORE], s[M_BACK] = s[M_BACK], c.tick
        s[M_DIRECTION] = 1.0 if step > 0.0 else -1.0
        # not out of neutral, nor behind a gear that was overrun
        if (c.forwards and c.rolls and fabs(step) > 1.0 and fabs(s[M_ASKED] - s[M_ASKED_BEFORE]) == 1.0 and s[M_ASKED_BEFORE] == s[M_LAST]
                and c.tick - s[M_LAST_TICK] < m.settle_ticks):
            s[M_LEFT_OUT] = fabs(step) - 1.0
    s[M_LAST], s[M_CHANGED] = number, c.tick


cdef void _gear(const monitors_t* m, double* s, const scene_t* c) noexcept nogil:
    """The engaged gear, held for gear_ticks."""
    cdef int32_t engaged = _engaged(m, s, c)
    if engaged != s[M_CANDIDATE]:
        s[M_CANDIDATE], s[M_CANDIDATE_TICK] = engaged, c.tick
    if engaged == 0:
        s[M_GEAR] = s[M_ENGAGED] = 0.0
    elif engaged == s[M_ENGAGED]:
        s[M_LAST_TICK] = c.tick
    elif c.tick - s[M_CANDIDATE_TICK] >= m.gear_ticks:
        _changed(m, s, c, engaged)
        s[M_LAST_TICK] = c.tick


cdef inline bint _in_gear(double gear) noexcept nogil:
    """A forward gear, as far as the control unit says it: after a move of the lever it says so when one is engaged."""
    return gear > 0.0 or gear == GEAR_UNKNOWN


cdef void _driver(const monitors_t* m, double* s, const scene_t* c) noexcept nogil:
    """When the driver changed something, and since when he asks for a drive in a gear."""
    cdef bint races = m.races > 0.0 and c.w_in > m.races
    cdef bint against = (c.forwards and c.v < -ROLLS_BACK) or (c.backwards and c.v > ROLLS_BACK)
    if not races:
        s[M_RACED] = 0.0
    elif against or c.lever != s[M_LEVER]:
        s[M_RACED] = 1.0
    if c.lever != s[M_LEVER]:
        s[M_LEVER], s[M_LEVER_TICK], s[M_DRIVER_TICK] = c.lever, c.tick, c.tick
    if fabs(c.pedal - s[M_PEDAL]) > MOVED or fabs(c.brake - s[M_BRAKE]) > MOVED:
        s[M_PEDAL], s[M_BRAKE], s[M_DRIVER_TICK] = c.pedal, c.brake, c.tick
    if s[M_DRIVER_TICK] == c.tick:
        s[M_BACK] = s[M_BACK_BEFORE] = -1e18
    if not c.forwards or c.pedal <= PRESSED or c.overrun or not _in_gear(c.asked) or not _in_gear(c.reported):
        s[M_POWER_TICK] = -1.0
    elif s[M_POWER_TICK] < 0.0:
        s[M_POWER_TICK] = c.tick


cdef void _unit(const monitors_t* m, double* s, const double* sig, scene_t* c) noexcept nogil:
    """What the control unit says and asks for."""
    cdef double request = _fact(m, sig, F_REQUEST), answer = _fact(m, sig, F_ANSWER)
    c.reported = _gear_of(m.reported, m.n_reported, _fact(m, sig, F_REPORTED))
    c.asked = _gear_of(m.asked, m.n_asked, _fact(m, sig, F_ASKED))
    if c.reported != s[M_REPORTED]:
        s[M_REPORTED], s[M_REPORTED_TICK] = c.reported, c.tick
    if c.asked != s[M_ASKED]:
        s[M_SHIFT_TICK], s[M_ASKED_BEFORE] = s[M_ASKED_TICK], s[M_ASKED]
        s[M_ASKED], s[M_ASKED_TICK] = c.asked, c.tick
    if isnan(request) or isnan(answer):
        return
    if answer != 0.0 and request != 0.0 and s[M_REQUEST_TICK] >= 0.0 and c.tick - s[M_REQUEST_TICK] >= m.answer_ticks:
        # its message has been sent meanwhile
        s[M_REQUEST_TICK], s[M_GIVEN_UP] = -2.0, 0.0
    elif request == 0.0:
        s[M_GIVEN_UP] += 1.0 if s[M_REQUEST_TICK] >= 0.0 else 0.0
        s[M_REQUEST_TICK] = -1.0
    elif s[M_REQUEST_TICK] == -1.0:
        s[M_REQUEST_TICK] = c.tick


cdef void _target(double* s, const monitors_t* m, const scene_t* c) noexcept nogil:
    """Another gear is asked for before the one asked for is engaged, with lever and pedals at rest since before that was
    asked for. Not until the old gear is left for LEFT_S, and not where a torque request was not acknowledged: that is
    why."""
    cdef double driver_ticks = DRIVER_S / m.tick_s, left_ticks = LEFT_S / m.tick_s
    # the unit says that it was engaged, or its free wheel is overrun
    if c.reported == s[M_ASKED_BEFORE] or (c.overrun and m.gear[c.closed_as].number == s[M_ASKED_BEFORE]):
        return
    if (s[M_ASKED_TICK] == c.tick and s[M_ASKED] > 0.0 and s[M_ASKED_BEFORE] > 0.0 and s[M_LAST] > 0.0
            and s[M_LAST] != s[M_ASKED_BEFORE] and s[M_GEAR] == 0.0 and c.tick - s[M_LAST_TICK] > left_ticks
            and s[M_SHIFT_TICK] - s[M_DRIVER_TICK] > driver_ticks and s[M_REQUEST_TICK] < 0.0 and s[M_GIVEN_UP] == 0.0):
        s[M_REPLACED] += 1.0


cdef double _turbine_torque(const monitors_t* m, const double* sig) noexcept nogil:
    cdef double lockup = _fact(m, sig, F_TAU_LOCKUP)
    return _fact(m, sig, F_TAU_IN) - (0.0 if isnan(lockup) else lockup)


cdef double _traction(const monitors_t* m, const double* s, const double* sig, double ratio) noexcept nogil:
    """Acceleration by the turbine torque with a ratio [m/s2]."""
    return _turbine_torque(m, sig) * ratio / (s[M_RADIUS] * m.mass)


cdef void _balance(const monitors_t* m, double* s, const double* sig, const scene_t* c) noexcept nogil:
    """What the acceleration is beside the turbine torque, while one gear is closed; since when elements block."""
    cdef double a = _fact(m, sig, F_A)
    if c.closed_as != CLOSED_BLOCKED:
        s[M_TIED_TICK] = -1.0
    elif s[M_TIED_TICK] < 0.0:
        s[M_TIED_TICK] = c.tick
    if fabs(c.w_out) > RADIUS_FROM:
        s[M_RADIUS] = c.v / c.w_out
    if c.closed_as >= 0 and s[M_RADIUS] > 0.0 and not isnan(a) and c.closed_as + 1 == s[M_ENGAGED]:
        # a filter of 0.2 s: the driveline oscillates at 3 to 8 Hz
        s[M_REST] += (a - _traction(m, s, sig, m.gear[c.closed_as].ratio) - s[M_REST]) * m.every * m.tick_s / 0.2


include "monitor_values.pxi"


cdef void _judge(const monitors_t* m, double* s, const scene_t* c, int32_t k, double value) noexcept nogil:
    """Latch where the limit was exceeded for long enough, and keep what was seen."""
    cdef const row_t* row = &m.row[k]
    cdef double* own = s + N_OWN + N_ROW * k
    cdef evidence_t* e = &m.evidence[k]
    if isnan(value):
        own[R_SINCE] = -1.0
        return
    e.reached += 1
    e.seen = max(e.seen, value)
    if not value > row.limit:
        own[R_SINCE] = -1.0
        return
    if own[R_SINCE] < 0.0:
        own[R_SINCE] = c.tick
    if c.tick - own[R_SINCE] < row.hold:
        return
    own[R_FAILED] = 1.0
    e.ticks += m.every if c.tick - own[R_SINCE] > row.hold else <int64_t>(c.tick - own[R_SINCE]) + m.every
    if e.first < 0:
        e.first = <int64_t>own[R_SINCE]
        e.closed, e.gear, e.last = c.closed, <int32_t>s[M_GEAR], <int32_t>s[M_LAST]
        if row.kind == MONITOR_SKIPPED:
            e.last -= <int32_t>(s[M_DIRECTION] * (s[M_LEFT_OUT] + 1.0))
        elif row.kind == MONITOR_INTERRUPTED:
            e.gear = <int32_t>s[M_ASKED_BEFORE]
        e.asked, e.reported, e.lever = c.asked, c.reported, c.lever
    if value > e.worst:
        e.worst, e.worst_tick = value, c.tick


cdef void monitors_tick(const monitors_t* m, double* sig, int64_t tick) noexcept nogil:
    """All monitors, in every `every` ticks, on the signals at the end of the tick. real-time: yes."""
    cdef double* s = sig + m.first_slot
    cdef scene_t c
    cdef double value
    cdef int32_t k
    if tick % m.every != 0:
        return
    c.tick = tick
    c.w_in, c.w_out, c.v = _fact(m, sig, F_W_IN), _fact(m, sig, F_W_OUT), _fact(m, sig, F_V)
    c.pedal, c.brake, c.lever = _fact(m, sig, F_PEDAL), _fact(m, sig, F_BRAKE), _fact(m, sig, F_LEVER)
    if isnan(c.brake):
        c.brake = 0.0
    if m.fact[F_LEVER] < 0:
        c.lever = LEVER_D
    c.closed = 0
    for k in range(m.n_element):
        if sig[m.element[k].capacity] > m.element[k].closed:
            c.closed |= 1 << k
    c.closed_as = m.closed_as[c.closed]
    c.rolls, c.ahead = fabs(c.w_out) > ROLLS, c.w_out > ROLLS
    c.forwards, c.backwards = c.lever >= LEVER_D, c.lever == LEVER_R
    if c.closed != s[M_CLOSED]:
        s[M_CLOSED], s[M_CLOSED_TICK] = c.closed, tick
    c.tau_in = _turbine_torque(m, sig)
    c.overrun = c.closed_as >= 0 and m.overruns[c.closed] and c.w_in < m.gear[c.closed_as].ratio * c.w_out
    _unit(m, s, sig, &c)
    _driver(m, s, &c)
    c.lever_ticks = tick - <int64_t>s[M_LEVER_TICK]
    _gear(m, s, &c)
    if _fact(m, sig, F_CAUSE) > 0.0:
        return
    _target(s, m, &c)
    _balance(m, s, sig, &c)
    for k in range(m.n_row):
        _judge(m, s, &c, k, _value(m, s, sig, &c, m.row[k].kind))


cdef class Monitors(Blocks):
    """The tables of the monitors for a signal table of `n_sig` slots; `first_slot`: of their own SIGNALS and two of each
    monitor."""

    def __cinit__(self, int n_sig, int first_slot, double tick_s, int every, dict facts, list elements, list gears,
                  list rows):
        """every: ticks between two looks. facts: slot by name of FACTS. elements: (slot of the capacity, closed from [Nm]). gears: (number, ratio,
        closed elements, a bit each).
        rows: (name of KINDS, limit, hold [ticks])."""
        self.n_sig = n_sig
        self.m.first_slot, self.m.tick_s, self.m.every = first_slot, tick_s, max(1, every)
        if first_slot < 2 or first_slot + N_OWN + N_ROW * len(rows) > n_sig:
            raise IndexError(f"monitors from slot {first_slot} on: they need {N_OWN + N_ROW * len(rows)} of {n_sig}")
        if len(elements) > 16:
            raise ValueError(f"{len(elements)} elements: allowed 16")
        for k, name in enumerate(FACTS):
            self.m.fact[k] = self._slot(facts[name]) if name in facts else -1
        self.m.n_element, self.m.element = len(elements), <watched_t*>self.block(len(elements) * sizeof(watched_t))
        for k, (slot, closed) in enumerate(elements):
            self.m.element[k].capacity, self.m.element[k].closed = self._slot(slot), closed
        self.m.n_gear, self.m.gear = len(gears), <gear_t*>self.block(len(gears) * sizeof(gear_t))
        for k, (number, ratio, closed) in enumerate(gears):
            self.m.gear[k].number, self.m.gear[k].ratio, self.m.gear[k].closed = number, ratio, closed
            self.m.top = max(self.m.top, <int32_t>number)
        self.m.n_row, self.m.row = len(rows), <row_t*>self.block(len(rows) * sizeof(row_t))
        self.m.evidence = <evidence_t*>self.block(len(rows) * sizeof(evidence_t))
        for k, (name, limit, hold) in enumerate(rows):
            self.m.row[k].kind, self.m.row[k].limit, self.m.row[k].hold = KINDS.index(name), limit, hold
        self.m.closed_as = <int8_t*>self.block(1 << len(elements))
        self.m.overruns = <int8_t*>self.block(1 << len(elements))

    def _slot(self, index) -> int:
        if not 0 <= index < self.n_sig:
            raise IndexError(f"signal slot {index}: allowed 0..{self.n_sig - 1}")
        return index

    def set_closed(self, list closed_as, list overruns) -> None:
        """By closed elements, a bit each: index of the gear or a value of CLOSED; whether a free wheel holds it."""
        cdef int32_t k
        if len(closed_as) != 1 << self.m.n_element or len(overruns) != len(closed_as):
            raise ValueError(f"{len(closed_as)} sets of closed elements: needed {1 << self.m.n_element}")
        for k in range(len(closed_as)):
            if not CLOSED_OTHER <= closed_as[k] < self.m.n_gear:
                raise IndexError(f"closed elements {k}: gear {closed_as[k]}; allowed {CLOSED_OTHER}..{self.m.n_gear - 1}")
            self.m.closed_as[k], self.m.overruns[k] = closed_as[k], overruns[k]

    def set_car(
        self, double mass, double idle, double engine_max, double engine_cut, double races, double gear_s, double settle_s
    ) -> None:
        """mass [kg]; idle, engine_max, engine_cut, races [rad/s]; gear_s: a gear holds this long to count; settle_s:
        elements move so long."""
        self.m.mass, self.m.idle, self.m.races = mass, idle, races
        self.m.engine_max, self.m.engine_cut = engine_max, engine_cut
        self.m.gear_ticks, self.m.settle_ticks = round(gear_s / self.m.tick_s), round(settle_s / self.m.tick_s)

    def set_unit(self, list reported, list asked, list pairs, double answer_s) -> None:
        """reported, asked: (value of the signal, number of the gear); pairs: (slot of a speed that is sent, its source, range of
        its message); answer_s: from one message that acknowledges to the next."""
        self.m.answer_ticks = round(answer_s / self.m.tick_s)
        self.m.n_reported, self.m.reported = len(reported), <word_t*>self.block(len(reported) * sizeof(word_t))
        self.m.n_asked, self.m.asked = len(asked), <word_t*>self.block(len(asked) * sizeof(word_t))
        for k, (value, gear) in enumerate(reported):
            self.m.reported[k].value, self.m.reported[k].gear = value, gear
        for k, (value, gear) in enumerate(asked):
            self.m.asked[k].value, self.m.asked[k].gear = value, gear
        self.m.n_pair, self.m.pair = len(pairs), <pair_t*>self.block(len(pairs) * sizeof(pair_t))
        for k, (reported_slot, source, low, high) in enumerate(pairs):
            self.m.pair[k].reported, self.m.pair[k].source = self._slot(reported_slot), self._slot(source)
            self.m.pair[k].low, self.m.pair[k].high = low, high

    def arm(self, sig) -> None:
        """Start values of the own signals in a signal table (float64)."""
        cdef Py_buffer view
        cdef double* p = doubles_of(sig, &view, True)
        if view.len // 8 == self.n_sig:
            monitors_arm(&self.m, p)
        PyBuffer_Release(&view)

    def read(self, sig, rows, ticks, gears) -> None:
        """Ticks of a recording: `rows` (flat, len(ticks) times n_first numbers) go to the slots from 2 on, one tick after
        the other, with `ticks` (float64) their numbers; the gear engaged in each goes to `gears`."""
        cdef Py_buffer views[4]
        cdef double* table = doubles_of(sig, &views[0], True)
        cdef double* data = doubles_of(rows, &views[1], False)
        cdef double* number = doubles_of(ticks, &views[2], False)
        cdef double* out = doubles_of(gears, &views[3], True)
        cdef Py_ssize_t n = views[2].len // 8, width = self.m.first_slot - 2, k, i
        cdef bint fits = (views[0].len // 8 == self.n_sig and views[1].len // 8 == n * width and views[3].len // 8 == n)
        if fits:
            with nogil:
                for k in range(n):
                    for i in range(width):
                        table[2 + i] = data[k * width + i]
                    monitors_tick(&self.m, table, <int64_t>number[k])
                    out[k] = table[self.m.first_slot + M_GEAR]
        for k in range(4):
            PyBuffer_Release(&views[k])
        if not fits:
            raise ValueError(f"signal table of {self.n_sig}, {width} numbers a tick, as many gears as ticks are needed")

    def evidence(self, sig) -> list:
        """Of each row: (failed, reached [ticks], seen, first tick, ticks beyond, worst, its tick, closed elements, gear,
        gear before, asked, reported, lever)."""
        cdef Py_ssize_t at = self.m.first_slot + N_OWN
        cdef evidence_t* e
        cdef int32_t k
        found = []
        for k in range(self.m.n_row):
            e = &self.m.evidence[k]
            found.append((bool(sig[at + N_ROW * k + R_FAILED]), e.reached, e.seen, e.first, e.ticks, e.worst,
                          e.worst_tick, e.closed, e.gear, e.last, e.asked, e.reported, e.lever))
        return found
