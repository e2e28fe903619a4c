"""Sensors in the tick, after the model's outputs and before what is sent is copied.

    curve   y = table(x), linear between its points, constant outside: positions of a lever as a maker counts them,
            resistance of a temperature sensor, supply voltage
    moves   a lever with a rest position: when the driver's lever goes from a position to another, the value of that
            movement for hold_s, then the value at rest for as long at least. A car stands in P at the begin
    teeth   a wheel with Z teeth at a = Z phi / 2 pi. Tooth k gives an edge each time a passes k + d(k), in either
            direction. |d| < 1/2 is the sum of run_out sin(2 pi k / Z) and of a random displacement up to `jitter`
            (splitmix64 of seed and k). The last `missing` teeth of a turn give no edge, and any edge is lost with the
            probability `dropout`.
            Over a tick a moves by Z (phi - phi_before) / 2 pi; where only the speed is known, by its integral with a
            constant acceleration, in two parts where it changes its sign. The time of an edge follows linearly.
            a is kept as a whole tooth and a multiple of 2^-36 of a tooth, and what rounding to it leaves is added in
            the next tick. Sums are therefore exact however far the wheel has turned, and so is the frequency
            m / (D T) with m = D (whole teeth) + floor(D f) - floor(D f_before), f the fraction of a tooth: the
            frequencies of all ticks add up to floor(D a) / D teeth.
            Period: time between the last two edges that were seen; w = 2 pi / (Z period), and 2 pi / (Z age) as soon
            as no edge has come for longer than that. Amplitude of a coil: amplitude_Vs |w| (1 + amplitude_run_out
            cos(2 pi k / Z)); an edge below threshold_V is not seen.
    frame   what a digital sensor sends, as one whole number. A field is round(gain x + offset), limited to its bits.
            The check is the remainder of (seed x^(n + r) + data x^r) / g, with n bits of data and g of degree r:
            SENT (SAE J2716, recommended form): g = x^4 + x^3 + x^2 + 1, seed 5, highest bit first
            PSI5 (Base Standard 2.x): g = x^3 + x + 1, seed 7, lowest bit first, or even parity: the sum of all bits
"""

from libc.math cimport M_PI, cos, fabs, floor, fmod, rint, sin
from libc.stdint cimport int32_t, int64_t, uint64_t

from torqueloop.cython_kernels.rings.buffer cimport PyBuffer_Release, doubles_of

#: signals of a sensor of teeth: (name, unit); "" is the sensor itself
TEETH_SIGNALS = (("", "rad/s"), ("count", "1"), ("edges", "1"), ("period", "s"), ("direction", "1"), ("tooth", "1"),
                 ("angle", "1"), ("age", "s"), ("frequency", "Hz"), ("amplitude", "V"), ("pulses", "1"), ("width", "s"),
                 ("quiet", "s"), ("before", "1"), ("rest", "1"), ("begun", "1"))
#: most parts of a tooth that a frequency may be resolved into
MOST_PARTS = 1 << 17
#: checks of a frame, in the order of CHECK_...
CHECKS = ("sent", "psi5", "psi5_parity")
#: signals of a lever that sends movements
MOVES_SIGNALS = (("", "1"), ("at", "1"), ("left", "s"))
#: most teeth of one tick: a wheel does not turn faster (one of 100 teeth at 60000 rpm turns by 100 in 1 ms)
cdef double MOST_TEETH = 1000.0
#: steps of a tooth that its position is a multiple of: with 10 bits of whole teeth a sum is exact in 53
cdef double GRID = 2.0 ** 36


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


cdef inline double _place(const sensor_t* s, int64_t tooth) noexcept nogil:
    """Number of a tooth in its turn, 0 <= k < Z."""
    return tooth - s.teeth * floor(tooth / <double>s.teeth)


cdef inline double _displaced(const sensor_t* s, int64_t tooth) noexcept nogil:
    """d(k): distance of an edge from its tooth, in teeth."""
    cdef double d = 0.0
    if s.jitter > 0.0:
        d = s.jitter * (2.0 * _random(s.seed, <uint64_t>tooth, 1) - 1.0)
    if s.run_out > 0.0:
        d += s.run_out * sin(2.0 * M_PI * _place(s, tooth) / s.teeth)
    return d


cdef inline int _passed(const sensor_t* s, int64_t tooth, double x) noexcept nogil:
    """Last edge, counted from `tooth`, that is not ahead of x teeth behind that tooth."""
    cdef int k = <int>floor(x + 0.5)
    return k if x >= k + _displaced(s, tooth + k) else k - 1


cdef inline double _amplitude(const sensor_t* s, int64_t tooth, double w) noexcept nogil:
    return s.amplitude_Vs * fabs(w) * (1.0 + s.amplitude_run_out * cos(2.0 * M_PI * _place(s, tooth) / s.teeth))


cdef void _leg(const sensor_t* s, double* own, double way, double begin, double lasts) noexcept nogil:
    """The wheel turns by `way` teeth from the time `begin` of the tick on, for `lasts`."""
    cdef int64_t tooth = <int64_t>own[SEN_TOOTH]
    cdef double x = own[SEN_ANGLE], end, w, time, carried
    cdef int k, last, step
    way = min(max(way, -MOST_TEETH), MOST_TEETH)
    own[SEN_REST] += way - rint(way * GRID) / GRID
    carried = rint(own[SEN_REST] * GRID) / GRID
    own[SEN_REST] -= carried
    way = rint(way * GRID) / GRID + carried
    end = x + way
    w = way / (s.per_rad * lasts)
    if way != 0.0:
        own[SEN_DIRECTION] = step = 1 if way > 0.0 else -1
        # forward the edges behind the last passed one, backward the last passed one and those before it
        k, last = _passed(s, tooth, x), _passed(s, tooth, end)
        if step > 0:
            k += 1
            last += 1
        while k != last:
            time = begin + lasts * (k + _displaced(s, tooth + k) - x) / way
            if _place(s, tooth + k) < s.teeth - s.missing:
                _edge(s, own, tooth + k, time, w)
            k += step
    own[SEN_TOOTH] = tooth + floor(end)
    own[SEN_ANGLE] = end - floor(end)
    own[SEN_AMPLITUDE] = _amplitude(s, <int64_t>own[SEN_TOOTH], w)


cdef inline void _edge(const sensor_t* s, double* own, int64_t tooth, double time, double w) noexcept nogil:
    """An edge passes the sensor. SEN_AGE: how long before the beginning of the tick the last edge was seen."""
    own[SEN_COUNT] += 1.0
    if s.dropout > 0.0 and _random(s.seed, <uint64_t>own[SEN_COUNT], 0) < s.dropout:
        return
    if s.amplitude_Vs > 0.0 and _amplitude(s, tooth, w) < s.threshold_V:
        return
    if own[SEN_PERIOD] > 0.0 or own[SEN_AGE] < s.standstill_s:
        own[SEN_PERIOD] = own[SEN_AGE] + time
    own[SEN_AGE] = -time
    own[SEN_EDGES] += 1.0


cdef void _teeth(const sensor_t* s, double T, double* own, double now) noexcept nogil:
    cdef double before = own[SEN_BEFORE], turn, tooth, part, w_least
    if own[SEN_BEGUN] == 0.0:
        # nothing is known of the time before: no edge, and an angle stands where it is
        own[SEN_BEGUN], own[SEN_AGE], before = 1.0, s.standstill_s, now
        if s.of_angle:
            turn = rint(fmod(now, 2.0 * M_PI) * s.per_rad * GRID) / GRID
            own[SEN_TOOTH], own[SEN_ANGLE] = floor(turn), turn - floor(turn)
    own[SEN_BEFORE], own[SEN_EDGES] = now, 0.0
    tooth, part = own[SEN_TOOTH], floor(s.parts * own[SEN_ANGLE])
    if s.of_angle:
        _leg(s, own, s.per_rad * (now - before), 0.0, T)
    elif before * now < 0.0:
        turn = T * before / (before - now)      # time of the reversal
        _leg(s, own, s.per_rad * 0.5 * before * turn, 0.0, turn)
        _leg(s, own, s.per_rad * 0.5 * now * (T - turn), turn, T - turn)
    else:
        _leg(s, own, s.per_rad * 0.5 * (before + now) * T, 0.0, T)
    own[SEN_FREQUENCY] = (s.parts * (own[SEN_TOOTH] - tooth) + floor(s.parts * own[SEN_ANGLE]) - part) / (s.parts * T)
    if not s.signed_speed:
        own[SEN_FREQUENCY] = fabs(own[SEN_FREQUENCY])
    own[SEN_AGE] += T
    _pulses(s, T, own)
    if own[SEN_AGE] > s.standstill_s:
        own[SEN_AGE], own[SEN_PERIOD] = s.standstill_s, 0.0
    own[SEN_VALUE] = 0.0
    if own[SEN_PERIOD] > 0.0:
        w_least = own[SEN_AGE] if own[SEN_AGE] > own[SEN_PERIOD] else own[SEN_PERIOD]
        own[SEN_VALUE] = 1.0 / (s.per_rad * w_least)
        if s.signed_speed:
            own[SEN_VALUE] *= own[SEN_DIRECTION]


cdef inline void _pulses(const sensor_t* s, double T, double* own) noexcept nogil:
    """A pulse for each edge, of a width that tells the direction, and one each `every_s` without an edge."""
    own[SEN_PULSES] = own[SEN_EDGES]
    if own[SEN_EDGES] > 0.0:
        own[SEN_QUIET] = own[SEN_AGE]
        own[SEN_WIDTH] = s.width_forward if own[SEN_DIRECTION] > 0.0 else s.width_backward
        return
    own[SEN_QUIET] += T
    # the last digits of a sum of ticks
    if s.every_s > 0.0 and own[SEN_QUIET] > s.every_s - 1e-6 * T:
        own[SEN_QUIET] -= s.every_s
        own[SEN_PULSES], own[SEN_WIDTH] = 1.0, s.width_standstill


cdef inline uint64_t _remainder(uint64_t rest, uint64_t g, int r, uint64_t data, int n, bint lowest) noexcept nogil:
    """Of the data's n bits, led by `rest` and followed by r zeros, divided by g; lowest: from the lowest bit on."""
    cdef int k
    for k in range(n + r):
        rest <<= 1
        if k < n:
            rest |= (data >> (k if lowest else n - 1 - k)) & 1
        if rest >> r:
            rest ^= g
    return rest


cdef double _frame(const sensor_t* s, const double* sig) noexcept nogil:
    cdef uint64_t data = 0, status = 0, raw, turned, check
    cdef int k, j, n = 0
    cdef double value, most
    for k in range(s.n):
        most = <double>((<uint64_t>1 << s.field[k].bits) - 1)
        value = rint(s.x[k] * sig[s.field[k].source] + s.y[k])
        raw = <uint64_t>min(value, most) if value > 0.0 else 0
        if s.check != CHECK_SENT:
            data |= raw << n
        elif k == 0:
            status = raw
            continue
        else:
            if s.field[k].lowest_first:
                turned = 0
                for j in range(0, s.field[k].bits, 4):
                    turned = turned << 4 | (raw >> j & 15)
                raw = turned
            data = data << s.field[k].bits | raw
        n += s.field[k].bits
    if s.check == CHECK_SENT:
        return <double>(status << (n + 4) | data << 4 | _remainder(5, 0b11101, 4, data, n, False))
    check = _remainder(7, 0b1011, 3, data, n, True)
    # x^2 is sent first
    check = (check & 1) << 2 | (check & 2) | check >> 2
    if s.check == CHECK_PARITY:
        check = 0
        for k in range(n):
            check ^= data >> k & 1
    return <double>(check << n | data)


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
        elif s.kind == SENSOR_FRAME:
            sig[s.out] = _frame(s, sig)
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

    def set_teeth(self, int index, *, source: int, out: int, of_angle: bool, teeth: int, missing: int,
                  standstill_s: float, jitter: float, run_out: float, dropout: float, signed_speed: bool, parts: int,
                  amplitude_Vs: float, amplitude_run_out: float, threshold_V: float, widths_s: tuple, every_s: float,
                  seed: int) -> None:
        """A wheel of teeth; `out`: slot of the first of its signals; of_angle: `source` is an angle, not a speed;
        parts: D; widths_s: of a pulse forward, backward and at standstill."""
        if not 0 <= index < self.m.n:
            raise IndexError(f"sensor {index} of {self.m.n}")
        if not 0 <= missing < teeth or not standstill_s > 0.0 or not 1 <= parts <= MOST_PARTS:
            raise ValueError(f"{teeth} teeth without {missing}, standstill after {standstill_s} s, {parts} parts of a "
                             f"tooth: allowed: a tooth or more, above 0, 1..{MOST_PARTS}")
        if not jitter + run_out < 0.5:
            raise ValueError(f"jitter {jitter} and run_out {run_out}: allowed: less than half a tooth together")
        self.slot(out + N_TEETH - 1)
        cdef sensor_t* s = &self.m.sensor[index]
        s.kind, s.source, s.out, s.per_rad = SENSOR_TEETH, self.slot(source), self.slot(out), teeth / (2.0 * M_PI)
        s.of_angle, s.teeth, s.missing, s.parts = of_angle, teeth, missing, parts
        s.standstill_s, s.jitter, s.run_out, s.dropout = standstill_s, jitter, run_out, dropout
        s.amplitude_Vs, s.amplitude_run_out, s.threshold_V = amplitude_Vs, amplitude_run_out, threshold_V
        s.width_forward, s.width_backward, s.width_standstill = widths_s
        s.every_s, s.signed_speed, s.seed = every_s, signed_speed, seed

    def set_frame(self, int index, *, out: int, check: str, fields: list) -> None:
        """A frame; check: of CHECKS; fields: (source, gain, offset, bits, whether its lowest nibble is sent first), as
        they are sent. The first one of SENT is the status, which is not in its check."""
        cdef int k
        if not 0 <= index < self.m.n:
            raise IndexError(f"sensor {index} of {self.m.n}")
        if not fields or sum(bits for _, _, _, bits, _ in fields) > 48 or min(f[3] for f in fields) < 1:
            raise ValueError(f"{len(fields)} fields: allowed: one or more, each of a bit or more, up to 48 bits")
        cdef sensor_t* s = &self.m.sensor[index]
        s.kind, s.out, s.n, s.check = SENSOR_FRAME, self.slot(out), len(fields), CHECKS.index(check)
        s.x = <double*>self.block(s.n * sizeof(double))
        s.y = <double*>self.block(s.n * sizeof(double))
        s.field = <field_t*>self.block(s.n * sizeof(field_t))
        for k, (source, gain, offset, bits, lowest_first) in enumerate(fields):
            s.x[k], s.y[k] = gain, offset
            s.field[k].source, s.field[k].bits, s.field[k].lowest_first = self.slot(source), bits, lowest_first

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
