"""Sensors in the tick, after the model's outputs and before what is sent is copied.

    curve   y = table(x), linear between its points, constant outside: positions of a lever as a maker counts them,
            resistance of a temperature sensor, supply voltage
    moves   a lever with a rest position: when the driver's lever goes from a position to another, the value of that
            movement for hold_s, then the value at rest for as long at least. A car stands in P at the begin
    teeth   a wheel with Z teeth: a' = Z w / 2 pi, an edge each time a passes a whole number. Over a tick a moves with the
            mean of both ends' speeds; the time of an edge follows linearly. An edge is off its place by up to
            jitter teeth and missing with the probability dropout: splitmix64 of seed and number of the edge, so that
            there is no state of its own. Period: time between the last two edges that were seen;
            w = 2 pi / (Z period), and 2 pi / (Z age) as soon as no edge has come for longer than that.
"""

from libc.math cimport M_PI, fabs, floor
from libc.stdint cimport int32_t, int64_t, uint64_t

from torqueloop.cython_kernels.rings.buffer cimport PyBuffer_Release, doubles_of

#: signals of a sensor of teeth: (name, unit); "" is the sensor itself
TEETH_SIGNALS = (("", "rad/s"), ("count", "1"), ("edges", "1"), ("period", "s"), ("direction", "1"), ("angle", "1"),
                 ("age", "s"), ("speed", "rad/s"))
#: signals of a lever that sends movements
MOVES_SIGNALS = (("", "1"), ("at", "1"), ("left", "s"))
#: most edges of one tick: beyond, the tick counts no more (a wheel of 100 teeth at 60000 rpm has 100 in 1 ms)
cdef int MOST_EDGES = 1000


cdef inline double _random(uint64_t seed, uint64_t number, uint64_t which) noexcept nogil:
    """0 <= x < 1: splitmix64 (S. Vigna) of the number of the edge."""
    cdef uint64_t z = seed + (2 * number + which + 1) * <uint64_t>0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t>0x94D049BB133111EB
    z = z ^ (z >> 31)
    return <double>(z >> 11) * (1.0 / 9007199254740992.0)


cdef inline double _curve(const sensor_t* s, double x) noexcept nogil:
    cdef int k = 0
    if not x > s.x[0]:
        return s.y[0]
    if x >= s.x[s.n - 1]:
        return s.y[s.n - 1]
    while x >= s.x[k + 1]:
        k += 1
    return s.y[k] + (s.y[k + 1] - s.y[k]) / (s.x[k + 1] - s.x[k]) * (x - s.x[k])


cdef inline void _moves(const sensor_t* s, double T, double* own, double wanted) noexcept nogil:
    cdef int at = <int> own[MOVE_AT], to = <int> (wanted + 0.5)
    if own[MOVE_LEFT] > 0.0:
        own[MOVE_LEFT] -= T
    if own[MOVE_LEFT] <= 0.5 * T and to != at and 0 <= to < POSITIONS:
        own[MOVE_AT], own[MOVE_LEFT] = to, 2.0 * s.hold_s
        own[MOVE_VALUE] = s.y[at * POSITIONS + to]
    elif own[MOVE_LEFT] <= s.hold_s + 0.5 * T:
        own[MOVE_VALUE] = s.rest


cdef void _teeth(const sensor_t* s, double T, double* own, double w) noexcept nogil:
    cdef double way = s.per_rad * 0.5 * (fabs(own[SEN_SPEED]) + fabs(w)) * T
    cdef double at = own[SEN_ANGLE], share, seen_at, age = own[SEN_AGE], w_least
    cdef int edges = 0, k, n
    if w * own[SEN_SPEED] < 0.0:
        way = 0.0       # through standstill within a tick: the way there and back is less than what counts
    if w != 0.0:
        own[SEN_DIRECTION] = 1.0 if w > 0.0 else -1.0
    own[SEN_SPEED] = w
    n = <int>floor(at + way) if at + way < MOST_EDGES else MOST_EDGES
    for k in range(n):
        share = (k + 1.0 - at) / way
        own[SEN_COUNT] += 1.0
        if s.dropout > 0.0 and _random(s.seed, <uint64_t>own[SEN_COUNT], 0) < s.dropout:
            continue
        seen_at = share * T
        if s.jitter > 0.0:
            seen_at += s.jitter * (2.0 * _random(s.seed, <uint64_t>own[SEN_COUNT], 1) - 1.0) * T / way
        # age: time since the last edge seen, at the beginning of the tick less what has gone on since
        if own[SEN_PERIOD] > 0.0 or own[SEN_AGE] < s.standstill_s:
            own[SEN_PERIOD] = age + seen_at
        age = -seen_at
        edges += 1
    own[SEN_ANGLE] = at + way - n
    own[SEN_EDGES] = edges
    own[SEN_AGE] = age + T
    if own[SEN_AGE] > s.standstill_s:
        own[SEN_AGE], own[SEN_PERIOD] = s.standstill_s, 0.0
    own[SEN_VALUE] = 0.0
    if own[SEN_PERIOD] > 0.0:
        w_least = own[SEN_AGE] if own[SEN_AGE] > own[SEN_PERIOD] else own[SEN_PERIOD]
        own[SEN_VALUE] = 1.0 / (s.per_rad * w_least)
        if s.signed_speed:
            own[SEN_VALUE] *= own[SEN_DIRECTION]


cdef void sensors_tick(const sensors_t* m, double* sig) noexcept nogil:
    """All sensors, once a tick: signals are read from `sig`, their own written there."""
    cdef int k
    cdef const sensor_t* s
    for k in range(m.n):
        s = &m.sensor[k]
        if s.kind == SENSOR_CURVE:
            sig[s.out] = _curve(s, sig[s.source])
        elif s.kind == SENSOR_MOVES:
            _moves(s, m.tick_s, sig + s.out, sig[s.source])
        else:
            _teeth(s, m.tick_s, sig + s.out, sig[s.source])


cdef class Sensors(Blocks):
    """The tables of `n` sensors for a signal table of `n_sig` slots."""

    def __cinit__(self, int n_sig, int n, double tick_s):
        self.n_sig = n_sig
        self.m.n, self.m.tick_s = n, tick_s
        self.m.sensor = <sensor_t*>self.block(n * sizeof(sensor_t))
        # until it is set: reads and writes the slots of nothing
        for k in range(n):
            self.set_curve(k, source=0, out=1, points=[(0.0, 0.0), (1.0, 0.0)])

    cdef int32_t slot(self, index) except -1:
        if not 0 <= index < self.n_sig:
            raise IndexError(f"signal slot {index}: allowed 0..{self.n_sig - 1}")
        return index

    def set_curve(self, int index, *, source: int, out: int, points: list) -> None:
        """A curve: points (x, y), x rising."""
        cdef int k
        if not 0 <= index < self.m.n:
            raise IndexError(f"sensor {index} of {self.m.n}")
        if len(points) < 2 or any(b[0] <= a[0] for a, b in zip(points, points[1:])):
            raise ValueError(f"curve {points}: allowed: two points or more, x rising")
        cdef sensor_t* s = &self.m.sensor[index]
        s.kind, s.source, s.out, s.n = SENSOR_CURVE, self.slot(source), self.slot(out), len(points)
        s.x = <double*>self.block(s.n * sizeof(double))
        s.y = <double*>self.block(s.n * sizeof(double))
        for k in range(s.n):
            s.x[k], s.y[k] = points[k]

    def set_moves(self, int index, *, source: int, out: int, rest: float, hold_s: float, codes: list) -> None:
        """A lever that sends movements; codes: 9 x 9 numbers, from a position (row) to another (column)."""
        cdef int k
        if not 0 <= index < self.m.n:
            raise IndexError(f"sensor {index} of {self.m.n}")
        if len(codes) != POSITIONS * POSITIONS or not hold_s > 0.0:
            raise ValueError(f"{len(codes)} codes, held {hold_s} s: allowed: {POSITIONS * POSITIONS}, above 0")
        self.slot(out + N_MOVES - 1)
        cdef sensor_t* s = &self.m.sensor[index]
        s.kind, s.source, s.out, s.rest, s.hold_s = SENSOR_MOVES, self.slot(source), self.slot(out), rest, hold_s
        s.y = <double*>self.block(POSITIONS * POSITIONS * sizeof(double))
        for k in range(POSITIONS * POSITIONS):
            s.y[k] = codes[k]

    def set_teeth(self, int index, *, source: int, out: int, teeth: int, standstill_s: float, jitter: float,
                  dropout: float, signed_speed: bool, seed: int) -> None:
        """A wheel of teeth; `out`: slot of the first of its signals."""
        if not 0 <= index < self.m.n:
            raise IndexError(f"sensor {index} of {self.m.n}")
        if teeth < 1 or not standstill_s > 0.0:
            raise ValueError(f"{teeth} teeth, standstill after {standstill_s} s: allowed: both above 0")
        self.slot(out + N_TEETH - 1)
        cdef sensor_t* s = &self.m.sensor[index]
        s.kind, s.source, s.out, s.per_rad = SENSOR_TEETH, self.slot(source), self.slot(out), teeth / (2.0 * M_PI)
        s.standstill_s, s.jitter, s.dropout = standstill_s, jitter, dropout
        s.signed_speed, s.seed = signed_speed, seed

    def tick(self, sig) -> None:
        """One tick on a signal table (float64), for tests and tools."""
        cdef Py_buffer view
        cdef double* p = doubles_of(sig, &view, True)
        cdef Py_ssize_t n = view.len // 8
        if n == self.n_sig:
            sensors_tick(&self.m, p)
        PyBuffer_Release(&view)
        if n != self.n_sig:
            raise ValueError(f"signal table of {n}: allowed {self.n_sig}")
