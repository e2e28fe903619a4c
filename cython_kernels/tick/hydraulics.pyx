"""Hydraulic unit in the tick. In every sub-step of length h, with the commands held over the tick:

    solenoid   T i' = i_command - i                          without data of its coil, exactly
               L i' = d U - (1 - d) U_fly - R i, i >= 0      voltage drive with the duty d, exactly
               i    = the point of [i_off, i_on] nearest to i_command   current drive: i_on and i_off follow from the
                      equation above with d = 1 and d = 0, because the output stage has no more voltage
               R    = R20 (1 + 0.00393 (T - 20 degC))        copper
               p    = the point of [map(i) - b/2, map(i) + b/2] nearest to the p before   hysteresis of width b (play);
                      i in the middle of the sub-step
    valve      position 1 above p_on of its pilot pressure, 0 below p_off, else as before; held by another one: as before
    path       p = sum gain_i p_i + offset, or that of two a valve chooses, or the highest, 0 <= p <= line; no volume: at once
    line       p' = (Q_pump - sum Q - G p) / C, held at the pressure the regulator sets: what is too much goes back
               Q_pump = D eta_v |w|,   tau_pump = p D / eta_m
    spool      x'' + 2 zeta w0 x' + w0^2 (x - target) = 0    exactly; target = gain * source + offset, 0 <= x <= line
    element    V' = Q(x - p(V)) - G p(V),   Q(d) = K d / (d^2 + d_lam^2)^(1/4)
               p(V): return spring while the piston travels, accumulator, then what oil and lining give

Q is the turbulent orifice K = Cd A sqrt(2/rho), K sqrt(|d|) sign(d), made linear below d_lam (H. E. Merritt, Hydraulic
Control Systems, Wiley 1967, ch. 3; the smooth form is that of Modelica.Fluid's regRoot). V by the two-stage, L-stable
diagonally implicit Runge-Kutta method of order 2 (R. Alexander, SIAM J. Numer. Anal. 14, 1977), each stage by Newton's
iteration held in the interval that contains the root: g(V) = V - V0 - a Q rises steadily, so there is one. Where that
carries p past both its start and its supply, the sub-step is made by Euler's implicit step, which cannot.
"""

from libc.math cimport exp, fabs, sqrt
from libc.stdint cimport int32_t

from torqueloop.cython_kernels.rings.buffer cimport PyBuffer_Release, doubles_of

#: of the unit, of a solenoid, of a shift valve, of a path, of a circuit: (name, unit)
UNIT_SIGNALS = (("line", "Pa"), ("pump_torque", "Nm"), ("work", "J"), ("loss", "J"), ("stored", "J"), ("flow", "m3/s"))
SOLENOID_SIGNALS = (("i", "A"), ("p", "Pa"))
COIL_SIGNALS = (("sense", "A"), ("resistance", "Ohm"), ("through", "1"), ("free", "1"))
VALVE_SIGNALS = (("position", "1"),)
PATH_SIGNALS = (("p", "Pa"),)
CIRCUIT_SIGNALS = (("supply", "Pa"), ("supply_rate", "Pa/s"), ("volume", "m3"), ("p", "Pa"))

#: rise of the resistance of copper for each kelvin, of that at 20 degC [1/K] (IEC 60028), and 20 degC [K]
cdef double COPPER = 0.00393
cdef double T20 = 293.15
#: of Alexander's method
cdef double GAMMA = 1.0 - 0.7071067811865476
#: Newton's iteration ends when V moves by less than this share of itself, and after so many rounds at the latest
cdef double CLOSE = 1e-13
cdef int ROUNDS = 40
#: a pressure that is past all between which it lies by less than this share is rounding
cdef double BEYOND = 1e-9


cdef inline int _piece(const curve_t* c, double x) noexcept nogil:
    """Index of the piece of the curve x lies on; the first and the last go on beyond the ends."""
    cdef int k = 0
    while k < c.n - 2 and x >= c.x[k + 1]:
        k += 1
    return k


cdef inline double _value(const curve_t* c, double x) noexcept nogil:
    """Curve at x, constant outside."""
    cdef int k
    if x <= c.x[0]:
        return c.y[0]
    if x >= c.x[c.n - 1]:
        return c.y[c.n - 1]
    k = _piece(c, x)
    return c.y[k] + (c.y[k + 1] - c.y[k]) / (c.x[k + 1] - c.x[k]) * (x - c.x[k])


cdef inline double _slope(const circuit_t* c, int k) noexcept nogil:
    return (c.volume.y[k + 1] - c.volume.y[k]) / (c.volume.x[k + 1] - c.volume.x[k]) if k < c.volume.n - 1 else c.stiff


cdef inline double _pressure(const circuit_t* c, double V, double* slope) noexcept nogil:
    """p(V) and its slope."""
    cdef int k = c.volume.n - 1
    if V < c.volume.x[k]:
        k = _piece(&c.volume, V)
    slope[0] = _slope(c, k)
    return c.volume.y[k] + slope[0] * (V - c.volume.x[k])


cdef double _stored(const circuit_t* c, double V) noexcept nogil:
    """Energy of spring, accumulator and compressed oil: the integral of p over V from the empty element on."""
    cdef int k = c.volume.n - 1
    cdef double d
    if V < c.volume.x[k]:
        k = _piece(&c.volume, V)
    d = V - c.volume.x[k]
    return c.energy[k] + d * (c.volume.y[k] + 0.5 * _slope(c, k) * d)


cdef inline double _flow(const circuit_t* c, double lam, double scale, double d, double* slope) noexcept nogil:
    """Flow into the element [m3/s] for a pressure difference d, and its slope over d."""
    cdef double k = scale * (c.k_in if d > 0.0 else c.k_out)
    cdef double q = d * d + lam * lam
    cdef double root = sqrt(sqrt(q))
    slope[0] = k * (0.5 * d * d + lam * lam) / (q * root)
    return k * d / root


cdef double _stage(const circuit_t* c, double lam, double scale, double base, double a, double supply) noexcept nogil:
    """V of one stage: V = base + a (Q(supply - p(V)) - G p(V)), never below 0."""
    cdef double V = base, low = 0.0, high, p, dp, Q, dQ, g, next_V
    cdef int k
    # more than all the supply can give in the stage cannot be in it
    Q = _flow(c, lam, scale, supply, &dQ)
    high = base + (a * Q if Q > 0.0 else 0.0)
    if high < 0.0:
        high = 0.0
    if V < 0.0:
        V = 0.0
    for k in range(ROUNDS):
        p = _pressure(c, V, &dp)
        Q = _flow(c, lam, scale, supply - p, &dQ)
        g = V - base - a * (Q - c.leak * p)
        if g > 0.0:
            high = V
        else:
            low = V
        next_V = V - g / (1.0 + a * (dQ + c.leak) * dp)
        if not low <= next_V <= high:
            next_V = 0.5 * (low + high)
        if fabs(next_V - V) <= CLOSE * (c.volume.x[c.volume.n - 1] + V):
            return next_V
        V = next_V
    return V


cdef inline void _coil_tick(const hydraulics_t* m, const coil_t* c, const double* sig) noexcept nogil:
    """What is constant over a tick."""
    cdef double R = sig[c.slot + COIL_RESISTANCE] * (1.0 + c.per_kelvin * (sig[m.temperature] - T20))
    c.tick[0] = exp(-m.h * R / c.inductance)
    c.tick[1] = sig[c.supply] / R
    c.tick[2] = -c.flyback / R


cdef inline double _coil(const coil_t* c, double command, double i) noexcept nogil:
    """Current at the end of a sub-step."""
    cdef double on = c.tick[1] + (i - c.tick[1]) * c.tick[0]
    cdef double off = c.tick[2] + (i - c.tick[2]) * c.tick[0]
    if c.by_current:
        i = off if command < off else on if command > on else command
    else:
        i = off + (on - off) * (0.0 if command < 0.0 else 1.0 if command > 1.0 else command)
    # the diode of the output stage
    return i if i > 0.0 else 0.0


cdef inline void _solenoid(const solenoid_t* s, double* out, double* sig) noexcept nogil:
    cdef double target = s.gain * sig[s.command] + s.offset
    cdef double before = out[SOL_CURRENT], p
    if s.coil != NULL:
        out[SOL_CURRENT] = _coil(s.coil, target, before)
        sig[s.coil.slot + COIL_SENSE] = sig[s.coil.slot + COIL_THROUGH] * out[SOL_CURRENT]
        if sig[s.coil.slot + COIL_FREE] == 0.0:
            return
    else:
        out[SOL_CURRENT] = target + (before - target) * s.keep
    # in the middle of the sub-step: what follows takes it for constant, and keeps its second order so
    p = _value(&s.map, 0.5 * (before + out[SOL_CURRENT]) if s.coil != NULL or s.keep > 0.0 else target)
    if out[SOL_PRESSURE] < p - s.half:
        out[SOL_PRESSURE] = p - s.half
    elif out[SOL_PRESSURE] > p + s.half:
        out[SOL_PRESSURE] = p + s.half


cdef inline void _line(const hydraulics_t* m, double* own, const double* sig) noexcept nogil:
    cdef double target = m.line_gain * sig[m.line_source] + m.line_offset
    cdef double supply = m.displacement * m.volumetric * fabs(sig[m.speed])
    cdef double p = own[HYD_LINE]
    target = 0.0 if target < 0.0 else m.line_max if target > m.line_max else target
    p = (p + m.h * m.line_stiff * (supply - own[HYD_FLOW])) / (1.0 + m.h * m.line_stiff * m.line_leak)
    own[HYD_LINE] = 0.0 if p < 0.0 else target if p > target else p
    own[HYD_PUMP] = own[HYD_LINE] * m.displacement * m.over_mechanical if sig[m.speed] > 0.0 else 0.0


cdef inline void _path(const path_t* p, double line, double* out, const double* positions, const double* sig) noexcept nogil:
    cdef double total = p.offset, x
    cdef int k
    if p.form == PATH_CHOOSE:
        k = 1 if positions[p.valve * N_VALVE] > 0.5 else 0
        total += p.gain[k] * sig[p.source[k]]
    elif p.form == PATH_MAX:
        x = p.gain[0] * sig[p.source[0]]
        for k in range(1, p.n):
            if p.gain[k] * sig[p.source[k]] > x:
                x = p.gain[k] * sig[p.source[k]]
        total += x
    else:
        for k in range(p.n):
            total += p.gain[k] * sig[p.source[k]]
    out[PATH_PRESSURE] = 0.0 if total < 0.0 else line if total > line else total


cdef inline void _book(const circuit_t* c, double* own, double lam, double scale, double share, double h, double V,
                       double flow, double supply) noexcept nogil:
    """A stage at V with `flow` into the element, that counts for the time `share` of the sub-step h."""
    cdef double dp, dQ
    cdef double p = _pressure(c, V, &dp)
    cdef double Q = _flow(c, lam, scale, supply - p, &dQ)
    own[HYD_WORK] += share * supply * (flow + c.leak * p)
    own[HYD_LOSS] += share * ((supply - p) * (flow + c.leak * p) + c.leak * p * p)
    if Q > 0.0:
        own[HYD_FLOW] += share / h * Q


cdef double _element(const circuit_t* c, double* own, double V, double lam, double scale, double h, double before,
                     double after) noexcept nogil:
    """V at the end of a sub-step in which the supply goes linearly from `before` to `after`; its work is booked."""
    cdef double work = own[HYD_WORK], loss = own[HYD_LOSS], flow = own[HYD_FLOW]
    cdef double middle = before + GAMMA * (after - before)
    cdef double dp, first, second, rate, base
    cdef double p = _pressure(c, V, &dp)
    cdef double low = min(p, min(before, after)), high = max(p, max(before, after))
    first = _stage(c, lam, scale, V, GAMMA * h, middle)
    # the flow that counts is that of V: at V = 0 no more can leave
    rate = (first - V) / (GAMMA * h)
    _book(c, own, lam, scale, (1.0 - GAMMA) * h, h, first, rate, middle)
    base = V + (1.0 - GAMMA) * h * rate
    second = _stage(c, lam, scale, base, GAMMA * h, after)
    p = _pressure(c, second, &dp)
    if p <= high * (1.0 + BEYOND) and (c.leak > 0.0 or p >= low * (1.0 - BEYOND)):
        _book(c, own, lam, scale, GAMMA * h, h, second, (second - base) / (GAMMA * h), after)
        return second
    # where p(V) has a breakpoint, second order may carry it past its supply; Euler's implicit step never does
    own[HYD_WORK], own[HYD_LOSS], own[HYD_FLOW] = work, loss, flow
    second = _stage(c, lam, scale, V, h, after)
    _book(c, own, lam, scale, h, h, second, (second - V) / h, after)
    return second


cdef void _circuit(const hydraulics_t* m, const circuit_t* c, double* own, double* out, const double* positions,
                   const double* sig, double scale) noexcept nogil:
    cdef int k = 1 if c.valve >= 0 and positions[c.valve * N_VALVE] > 0.5 else 0
    cdef double line = own[HYD_LINE]
    cdef double target = c.gain[k] * sig[c.source[k]] + c.offset[k]
    cdef double before = out[CIR_SUPPLY], V = out[CIR_VOLUME], x, v, dp, omega
    target = 0.0 if target < 0.0 else line if target > line else target
    if c.spool:
        x, v = before - target, out[CIR_RATE]
        out[CIR_SUPPLY] = target + c.m[0] * x + c.m[1] * v
        out[CIR_RATE] = c.m[2] * x + c.m[3] * v
        # against a stop: the line holds no more, the tank no less
        if out[CIR_SUPPLY] < 0.0 or out[CIR_SUPPLY] > line:
            out[CIR_SUPPLY] = 0.0 if out[CIR_SUPPLY] < 0.0 else line
            out[CIR_RATE] = 0.0
    else:
        out[CIR_SUPPLY], out[CIR_RATE] = target, 0.0
        before = target
    own[HYD_STORED] -= _stored(c, V)
    V = _element(c, own, V, m.lam, scale, m.h, before, out[CIR_SUPPLY])
    own[HYD_STORED] += _stored(c, V)
    out[CIR_VOLUME] = V
    omega = sig[c.speed]
    out[CIR_PRESSURE] = _pressure(c, V, &dp) + c.spin * omega * omega


cdef void hydraulics_tick(const hydraulics_t* m, double* sig) noexcept nogil:
    """One tick: commands are read from `sig`, all of the unit's own signals written there."""
    cdef double* own = sig + m.first_slot
    cdef double* solenoids = own + N_HYD
    cdef double* positions = solenoids + m.n_solenoid * N_SOL
    cdef double* circuits = positions + m.n_valve * N_VALVE
    cdef double* paths = circuits + m.n_circuit * N_CIR
    cdef double scale = _value(&m.flow, sig[m.temperature])
    cdef int k, i, held
    for i in range(m.n_solenoid):
        if m.solenoid[i].coil != NULL:
            _coil_tick(m, m.solenoid[i].coil, sig)
    for k in range(m.substeps):
        for i in range(m.n_solenoid):
            _solenoid(&m.solenoid[i], solenoids + i * N_SOL, sig)
        for i in range(m.n_valve):
            held = m.valve[i].held_by
            if held >= 0 and positions[held * N_VALVE] > 0.5:
                continue
            if sig[m.valve[i].pilot] > m.valve[i].p_on:
                positions[i * N_VALVE] = 1.0
            elif sig[m.valve[i].pilot] < m.valve[i].p_off:
                positions[i * N_VALVE] = 0.0
        _line(m, own, sig)
        own[HYD_FLOW] = 0.0
        for i in range(m.n_path):
            _path(&m.path[i], own[HYD_LINE], paths + i * N_PATH, positions, sig)
        for i in range(m.n_circuit):
            _circuit(m, &m.circuit[i], own, circuits + i * N_CIR, positions, sig, scale)


# --- tables ------------------------------------------------------------------------------------------------------


def signals_of(int n_solenoid, int n_valve, int n_circuit, int n_path = 0):
    """Number of signals of a unit with so many parts."""
    return N_HYD + n_solenoid * N_SOL + n_valve * N_VALVE + n_circuit * N_CIR + n_path * N_PATH


cdef class Hydraulics(Blocks):
    """The tables of a hydraulic unit for a signal table of `n_sig` slots; `first_slot`: of its own signals. Parts as in
    hil/rig/devices/hydraulics.py, which has checked them; here only what would leave the memory."""

    def __cinit__(self, int n_sig, int first_slot, int n_solenoid, int n_valve, int n_circuit, int n_path = 0):
        self.n_sig = n_sig
        if first_slot < 2 or first_slot + signals_of(n_solenoid, n_valve, n_circuit, n_path) > n_sig:
            raise IndexError(f"signals of the hydraulic unit from slot {first_slot} on: the table has {n_sig}")
        self.m.first_slot = first_slot
        self.m.n_solenoid, self.m.n_valve, self.m.n_circuit = n_solenoid, n_valve, n_circuit
        self.m.n_path = n_path
        self.m.path = <path_t*>self.block(n_path * sizeof(path_t))
        self.m.solenoid = <solenoid_t*>self.block(n_solenoid * sizeof(solenoid_t))
        self.m.valve = <valve_t*>self.block(n_valve * sizeof(valve_t))
        self.m.circuit = <circuit_t*>self.block(n_circuit * sizeof(circuit_t))
        self.curve(&self.m.flow, [(0.0, 1.0), (1.0, 1.0)])

    cdef int32_t slot(self, index) except -1:
        if not 0 <= index < self.n_sig:
            raise IndexError(f"signal slot {index}: allowed 0..{self.n_sig - 1}")
        return index

    cdef int curve(self, curve_t* c, points) except -1:
        cdef int k
        if len(points) < 2 or any(b[0] <= a[0] for a, b in zip(points, points[1:])):
            raise ValueError(f"curve {points}: allowed: two points or more, x rising")
        c.n = len(points)
        c.x = <double*>self.block(c.n * sizeof(double))
        c.y = <double*>self.block(c.n * sizeof(double))
        for k in range(c.n):
            c.x[k], c.y[k] = points[k]
        return 0

    def set_unit(self, *, substeps: int, h: float, lam: float, speed: int, displacement: float, volumetric: float,
                 mechanical: float, line_source: int, line_gain: float, line_offset: float, line_max: float,
                 line_stiff: float, line_leak: float, temperature: int, flow: list) -> None:
        """Pump, line and oil; SI."""
        self.m.substeps, self.m.h, self.m.lam = substeps, h, lam
        self.m.speed, self.m.displacement = self.slot(speed), displacement
        self.m.volumetric, self.m.over_mechanical = volumetric, 1.0 / mechanical
        self.m.line_source = self.slot(line_source)
        self.m.line_gain, self.m.line_offset, self.m.line_max = line_gain, line_offset, line_max
        self.m.line_stiff, self.m.line_leak = line_stiff, line_leak
        self.m.temperature = self.slot(temperature)
        self.curve(&self.m.flow, flow)

    def set_solenoid(self, index: int, *, command: int, gain: float, offset: float, keep: float, half: float,
                     map: list, coil: dict | None = None) -> None:
        """One solenoid; coil: its electrical data."""
        if not 0 <= index < self.m.n_solenoid:
            raise IndexError(f"solenoid {index} of {self.m.n_solenoid}")
        cdef solenoid_t* s = &self.m.solenoid[<int>index]
        s.command, s.gain, s.offset, s.keep, s.half = self.slot(command), gain, offset, keep, half
        self.curve(&s.map, map)
        if coil is not None:
            s.coil = <coil_t*>self.block(sizeof(coil_t))
            s.coil.tick = <double*>self.block(3 * sizeof(double))
            self.slot(coil["slot"] + N_COIL - 1)
            s.coil.slot, s.coil.supply = self.slot(coil["slot"]), self.slot(coil["supply"])
            s.coil.by_current, s.coil.inductance = coil["by_current"], coil["inductance"]
            s.coil.flyback, s.coil.per_kelvin = coil["flyback"], COPPER if coil["warms"] else 0.0

    def set_valve(self, index: int, *, pilot: int, p_on: float, p_off: float, held_by: int = -1) -> None:
        """One shift valve."""
        if not 0 <= index < self.m.n_valve or not -1 <= held_by < self.m.n_valve:
            raise IndexError(f"shift valve {index} of {self.m.n_valve}, held by {held_by}")
        cdef valve_t* v = &self.m.valve[<int>index]
        v.pilot, v.p_on, v.p_off, v.held_by = self.slot(pilot), p_on, p_off, held_by

    def set_path(self, index: int, *, form: str, sources: list, offset: float, valve: int) -> None:
        """One path. sources: (slot, gain); form: "sum", "choose" by the valve, "max"."""
        cdef int k
        if not 0 <= index < self.m.n_path or not 1 <= len(sources) <= MAX_SOURCES:
            raise IndexError(f"path {index} of {self.m.n_path} with {len(sources)} sources")
        if form == "choose" and (not 0 <= valve < self.m.n_valve or len(sources) != 2):
            raise IndexError(f"path {index}: valve {valve} of {self.m.n_valve} chooses between {len(sources)} sources")
        cdef path_t* p = &self.m.path[<int>index]
        p.form, p.valve, p.n, p.offset = ("sum", "choose", "max").index(form), valve, len(sources), offset
        for k in range(p.n):
            p.source[k], p.gain[k] = self.slot(sources[k][0]), sources[k][1]

    def set_circuit(self, index: int, *, valve: int, sources: list, spool: list | None, k_in: float, k_out: float,
                    leak: float, volume: list, stiff: float, speed: int, spin: float) -> None:
        """One circuit. sources: (slot, gain, offset) of one or two pressures; spool: its matrix over one sub-step."""
        cdef int k
        if not 0 <= index < self.m.n_circuit or not -1 <= valve < self.m.n_valve or not 1 <= len(sources) <= 2:
            raise IndexError(f"circuit {index} of {self.m.n_circuit}, valve {valve}, {len(sources)} sources")
        cdef circuit_t* c = &self.m.circuit[<int>index]
        c.valve = valve
        for k in range(2):
            slot, c.gain[k], c.offset[k] = sources[min(k, len(sources) - 1)]
            c.source[k] = self.slot(slot)
        c.spool = spool is not None
        for k in range(4 if spool is not None else 0):
            c.m[k] = spool[k]
        c.k_in, c.k_out, c.leak, c.stiff = k_in, k_out, leak, stiff
        c.speed, c.spin = self.slot(speed), spin
        self.curve(&c.volume, volume)
        if c.volume.x[0] != 0.0 or c.volume.y[0] != 0.0:
            raise ValueError("volume: the first point is (0, 0)")
        c.energy = <double*>self.block(c.volume.n * sizeof(double))
        for k in range(1, c.volume.n):
            c.energy[k] = c.energy[k - 1] + 0.5 * (c.volume.y[k - 1] + c.volume.y[k]) * (c.volume.x[k] - c.volume.x[k - 1])

    def tick(self, sig) -> None:
        """One tick on a signal table (float64), for tests and tools."""
        cdef Py_buffer view
        cdef double* p = doubles_of(sig, &view, True)
        cdef Py_ssize_t n = view.len // 8
        if n == self.n_sig:
            hydraulics_tick(&self.m, p)
        PyBuffer_Release(&view)
        if n != self.n_sig:
            raise ValueError(f"signal table of {n}: allowed {self.n_sig}")
