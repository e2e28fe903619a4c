"""Controllers, each law once: for a rig's tick (tick/controllers.pyx) and for Python beside a simulation (core/controls).

    control_step(c, read, own, dt)      one call: `read` as the controller's record lists it, `own` its numbers, which are all
                                        its state; dt: seconds since its last call, 0 at the first

Parameters, numbers and their meaning: records.py. Sources: driver: Otter, Dempsey, Schlegel 2000 (PI, one pedal);
cooling_fan: exponent 0.8 of forced turbulent convection.
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.math cimport fabs, pow
from libc.stdint cimport int32_t
from libc.string cimport memcpy

from torqueloop.cython_kernels.controls.records import KINDS
from torqueloop.cython_kernels.model.tables cimport table1

cdef tuple NAMES = tuple(KINDS)


cdef inline double _clip(double value, double low, double high) noexcept nogil:
    return low if value < low else high if value > high else value


cdef inline double _toward(double value, double target, double rise, double fall, double dt) noexcept nogil:
    """value moved to the target by no more than rise*dt up or fall*dt down."""
    return _clip(target, value - fall * dt, value + rise * dt)


cdef inline double _at(const tl_table1* curve, double x) noexcept nogil:
    cdef int32_t hint = 0
    return table1(curve, x, &hint)


cdef inline double _positive(double x) noexcept nogil:
    return x if x > 0.0 else 0.0


cdef void _cooling_fan(const tl_cooling_fan* p, const double* read, double* own) noexcept nogil:
    cdef double T = read[COOLING_FAN_READ_T_COOLANT], air = 0.0, wind
    own[COOLING_FAN_FAN] = T > (p.T_off if own[COOLING_FAN_FAN] > 0.5 else p.T_on)
    if own[COOLING_FAN_FAN] > 0.5:
        air = p.fan_air
    wind = p.still + pow(fabs(read[COOLING_FAN_READ_V]) / p.v_ref, 0.8)
    if air > wind:
        wind = air
    own[COOLING_FAN_AIR] = wind if wind < p.most else p.most


cdef inline double _foot(const tl_driver* p, double* own, double wanted, double dt) noexcept nogil:
    """The pedals one period further."""
    cdef double pedals = own[DRIVER_PEDALS], side, depth
    if pedals == 0.0:
        side = 1.0 if wanted > 0.0 else -1.0
        own[DRIVER_OFF] += dt
        if wanted == 0.0 or (own[DRIVER_FOOT] == -side and own[DRIVER_OFF] < p.t_change):
            return pedals
        own[DRIVER_FOOT] = side
    own[DRIVER_OFF] = 0.0
    side, depth = own[DRIVER_FOOT], fabs(pedals)
    depth = _toward(depth, _positive(wanted * side), p.press, p.release, dt)
    return side * _positive(depth)


cdef void _driver(const tl_driver* p, const double* read, double* own, double dt) noexcept nogil:
    cdef double v_set = read[DRIVER_READ_V_SET], v = read[DRIVER_READ_V], share = dt / p.T_track
    cdef bint resting = v_set < p.v_rest and fabs(v) < p.v_rest
    cdef double wanted = -p.brake_rest if resting else p.kp * (v_set - v) + own[DRIVER_INTEGRAL]
    own[DRIVER_PEDALS] = _foot(p, own, _clip(wanted, -1.0, 1.0), dt)
    if resting:
        own[DRIVER_INTEGRAL] = 0.0
    else:
        share = share if share < 1.0 else 1.0
        own[DRIVER_INTEGRAL] += dt * p.ki * (v_set - v) + share * (own[DRIVER_PEDALS] - wanted)
    own[DRIVER_ACCELERATOR] = _positive(own[DRIVER_PEDALS])
    own[DRIVER_BRAKE] = _positive(-own[DRIVER_PEDALS])


cdef void _fuel_flow(const tl_fuel_flow* p, const double* read, double* own, double dt) noexcept nogil:
    cdef double accelerator = read[FUEL_FLOW_READ_ACCELERATOR], w = read[FUEL_FLOW_READ_W]
    cdef double wanted = _clip(accelerator + read[FUEL_FLOW_READ_IDLE], 0.0, 1.0)
    cdef bint off = accelerator < p.released
    own[FUEL_FLOW_RELEASED_FOR] = own[FUEL_FLOW_RELEASED_FOR] + dt if off else 0.0
    if own[FUEL_FLOW_CUT] > 0.5:
        own[FUEL_FLOW_CUT] = off and w > p.w_resume
    else:
        own[FUEL_FLOW_CUT] = off and w > p.w_cut and own[FUEL_FLOW_RELEASED_FOR] >= p.t_cut
    if own[FUEL_FLOW_CUT] > 0.5:
        own[FUEL_FLOW_DEMAND] = 0.0
    else:
        own[FUEL_FLOW_DEMAND] = _toward(own[FUEL_FLOW_DEMAND], wanted, p.rise, p.fall, dt)
    own[FUEL_FLOW_FUEL] = 1.0 - own[FUEL_FLOW_CUT]


cdef void _gearbox(const tl_gearbox* p, const tl_table1* curve, int32_t n_curve, const double* read, double* own,
                   double dt) noexcept nogil:
    # curves: up of gears 1, 2, ..., then down
    cdef double throttle = read[GEARBOX_READ_THROTTLE], v = read[GEARBOX_READ_V], rate = 1.0 / p.t_shift
    cdef int32_t ups = n_curve // 2, gear
    # a gear is a place in the curves, and the numbers of a checkpoint are a file's
    if not 1.0 <= own[GEARBOX_GEAR] <= ups + 1.0:
        own[GEARBOX_GEAR] = 1.0
    gear = <int32_t>own[GEARBOX_GEAR]
    own[GEARBOX_SINCE] += dt
    if own[GEARBOX_SINCE] >= p.t_dwell:
        if gear <= ups and v > _at(&curve[gear - 1], throttle):
            own[GEARBOX_GEAR], own[GEARBOX_SINCE] = gear + 1, 0.0
        elif gear > 1 and v < _at(&curve[ups + gear - 2], throttle):
            own[GEARBOX_GEAR], own[GEARBOX_SINCE] = gear - 1, 0.0
    own[GEARBOX_GEAR_ACTUAL] = _toward(own[GEARBOX_GEAR_ACTUAL], own[GEARBOX_GEAR], rate, rate, dt)
    own[GEARBOX_LOCKUP] = (0.0 < p.lockup_gear <= own[GEARBOX_GEAR]
                           and own[GEARBOX_GEAR_ACTUAL] == own[GEARBOX_GEAR]
                           and v > p.v_lockup - (p.lockup_band if own[GEARBOX_LOCKUP] > 0.5 else 0.0))
    own[GEARBOX_P_LOCKUP] = own[GEARBOX_LOCKUP] * p.p_closed


cdef void _idle(const tl_idle* p, const tl_table1* curve, const double* read, double* own, double dt) noexcept nogil:
    cdef double target = _at(curve, read[IDLE_READ_T_COOLANT])
    cdef double error = target - read[IDLE_READ_W]
    cdef double demand = p.kp * error + own[IDLE_INTEGRAL]
    cdef bint saturated = (demand > p.limit and error > 0.0) or (demand < 0.0 and error < 0.0)
    if not saturated and read[IDLE_READ_ACCELERATOR] <= p.released:
        own[IDLE_INTEGRAL] = _clip(own[IDLE_INTEGRAL] + dt * p.ki * error, 0.0, p.limit)
    own[IDLE_DEMAND], own[IDLE_W_IDLE] = _clip(demand, 0.0, p.limit), target


cdef void control_step(const control_t* c, const double* read, double* own, double dt) noexcept nogil:
    """One call. real-time: yes."""
    if c.kind == CONTROL_IDLE:
        _idle(<const tl_idle*>c.parameters, c.curve, read, own, dt)
    elif c.kind == CONTROL_DRIVER:
        _driver(<const tl_driver*>c.parameters, read, own, dt)
    elif c.kind == CONTROL_FUEL_FLOW:
        _fuel_flow(<const tl_fuel_flow*>c.parameters, read, own, dt)
    elif c.kind == CONTROL_GEARBOX:
        _gearbox(<const tl_gearbox*>c.parameters, c.curve, c.n_curve, read, own, dt)
    elif c.kind == CONTROL_COOLING_FAN:
        _cooling_fan(<const tl_cooling_fan*>c.parameters, read, own)


cdef class Law:
    """One controller: its parameters and its numbers.

    kind: one of records.KINDS. parameters: in the order of its record, SI. curves: ((x, ...), (y, ...), whether it goes on
    as a line outside, else held) in the order of the law. start: its numbers before the first call (none: all 0). ValueError where they are not of that
    kind; ranges are the matter of who makes it (core/controls)."""

    def __init__(self, str kind not None, parameters, curves=(), start=None):
        cdef Py_ssize_t at = 0, n = 0
        cdef int32_t k, i
        cdef double* points
        cdef tl_table1* table
        record = KINDS.get(kind)
        if record is None or self._memory != NULL:
            raise ValueError(f"controller {kind!r}: allowed {', '.join(KINDS)}, made once")
        self.kind, self.parameters = kind, tuple(float(x) for x in parameters)
        self.curves = tuple((tuple(map(float, x)), tuple(map(float, y)), bool(line)) for x, y, line in curves)
        several = any(s for _, _, s in record.curves)
        wrong = len(self.curves) % 2 if several else len(self.curves) != len(record.curves)
        if len(self.parameters) != len(record.record.fields) or wrong:
            raise ValueError(f"{kind}: {len(self.parameters)} parameters, {len(self.curves)} curves; allowed: "
                             f"{len(record.record.fields)}, {'pairs' if several else len(record.curves)}")
        for x, y, _ in self.curves:
            if not x or len(x) != len(y) or any(not b > a for a, b in zip(x, x[1:])):
                raise ValueError(f"{kind}: curve over {x}: allowed: rising numbers, as many values")
            n += 3 * len(x)
        self.c.kind = NAMES.index(kind)
        self.c.n_read, self.c.n_own, self.c.n_curve = len(record.reads), len(record.own), len(self.curves)
        n += len(self.parameters) + self.c.n_own
        self._memory = PyMem_Calloc(1, n * sizeof(double) + self.c.n_curve * sizeof(tl_table1))
        if self._memory == NULL:
            raise MemoryError
        points = <double*>self._memory
        self.own_ = points
        at = self.c.n_own
        self.c.parameters = points + at
        for value in self.parameters:
            points[at] = value
            at += 1
        table = <tl_table1*>(points + n)
        self.c.curve = table
        for k, (x, y, line) in enumerate(self.curves):
            table[k].n, table[k].linear, table[k].x = len(x), line, points + at
            table[k].y, table[k].dy = points + at + table[k].n, points + at + 2 * table[k].n
            for i in range(table[k].n):
                points[at + i], points[at + table[k].n + i] = x[i], y[i]
            for i in range(table[k].n - 1):
                points[at + 2 * table[k].n + i] = (y[i + 1] - y[i]) / (x[i + 1] - x[i])
            at += 3 * table[k].n
        if start is not None:
            self.own = start

    def __dealloc__(self):
        PyMem_Free(self._memory)

    def __reduce__(self):
        return Law, (self.kind, self.parameters, self.curves, self.own)

    @property
    def own(self):
        """Its numbers: commands, then what it keeps, as its record lists them."""
        return tuple(self.own_[k] for k in range(self.c.n_own))

    @own.setter
    def own(self, values):
        given = tuple(float(x) for x in values)
        if len(given) != self.c.n_own:
            raise ValueError(f"{self.kind}: {len(given)} numbers of its own; allowed: {self.c.n_own}")
        for k in range(self.c.n_own):
            self.own_[k] = given[k]

    def step(self, double dt, measured):
        """One call, dt seconds after the last: its commands by name. measured: what it reads, by name, SI; KeyError."""
        cdef double[MOST_READS] read
        record = KINDS[self.kind]
        for k, field in enumerate(record.reads):
            read[<int>k] = measured[field.name]
        with nogil:
            control_step(&self.c, read, self.own_, dt)
        return {field.name: self.own_[<int>k] for k, field in enumerate(record.commands)}
