"""Engine control in the tick, before the model's inputs are taken. With full(w) and closed(w), the torque at full and at
closed throttle:

    T_driver = closed + pedal (full - closed)
    charge   tau x' = x_wanted - x, exactly over a tick; x_wanted = pedal, or less where a slow request asks for less;
             with a turbocharger x is the sum of two parts: up to x_b tau is that of the intake, beyond it tau_b, in which the
             pressure of the charger follows
    spark    eta = (T_limit - closed) / (x (full - closed)), within [eta_min, 1]: at once
    pedal of the engine = eta x        so that its torque closed + eta x (full - closed) is T_limit, if eta_min lets it

A request holds while its switch says so and its message comes: when that stays away for longer than its timeout, the
driver's demand is all there is. Requests are held to the least torque and never ask for more than the driver.
"""

from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.rings.buffer cimport PyBuffer_Release, doubles_of

#: (name, unit)
ENGINE_SIGNALS = (("pedal", "1"), ("air", "1"), ("spark", "1"), ("tau_driver", "Nm"), ("tau_limit", "Nm"),
                  ("intervention", "1"), ("silent", "1"), ("boost", "1"))


cdef inline void _torques(const engine_control_t* m, double w, double* full, double* closed) noexcept nogil:
    cdef int k = 0
    cdef double q
    if not w > m.w[0]:
        full[0], closed[0] = m.full[0], m.closed[0]
        return
    if w >= m.w[m.n - 1]:
        full[0], closed[0] = m.full[m.n - 1], m.closed[m.n - 1]
        return
    while w >= m.w[k + 1]:
        k += 1
    q = (w - m.w[k]) / (m.w[k + 1] - m.w[k])
    full[0] = m.full[k] + q * (m.full[k + 1] - m.full[k])
    closed[0] = m.closed[k] + q * (m.closed[k + 1] - m.closed[k])


cdef inline double _share(double torque, double full, double closed) noexcept nogil:
    """Share of the full torque, 0..1."""
    cdef double x = (torque - closed) / (full - closed) if full > closed else 0.0
    return 0.0 if not x > 0.0 else 1.0 if x > 1.0 else x


cdef void engine_control_tick(const engine_control_t* m, double* sig, int64_t now_ns) noexcept nogil:
    """One tick: signals are read from `sig`, its own written there."""
    cdef double* own = sig + m.first_slot
    cdef double full, closed, pedal = sig[m.pedal], limit, wanted, base, said = sig[m.active], eta = 1.0
    cdef bint silent = m.message != NULL and (not m.message.seen or now_ns - m.message.last_ok_ns > m.timeout_ns)
    cdef bint asked = not silent and (m.always or (said == m.active_value if m.active_value >= 0.0 else said != 0.0))
    _torques(m, sig[m.speed], &full, &closed)
    pedal = 0.0 if not pedal > 0.0 else 1.0 if pedal > 1.0 else pedal
    own[ENG_DRIVER] = closed + pedal * (full - closed)
    own[ENG_LIMIT] = own[ENG_DRIVER]
    own[ENG_SILENT] = silent
    wanted = pedal
    if asked and m.slow > 0:
        limit = m.slow_gain * sig[m.slow] + m.slow_offset
        limit = _share(limit if limit > m.least else m.least, full, closed)
        wanted = limit if limit < pedal else pedal
    base = wanted if wanted < m.boost_from else m.boost_from
    own[ENG_AIR] = base + (own[ENG_AIR] - own[ENG_BOOST] - base) * m.air_keep
    own[ENG_BOOST] = wanted - base + (own[ENG_BOOST] - (wanted - base)) * m.boost_keep
    own[ENG_AIR] += own[ENG_BOOST]
    if asked:
        limit = m.limit_gain * sig[m.limit] + m.limit_offset
        limit = limit if limit > m.least else m.least
        if limit < own[ENG_DRIVER]:
            own[ENG_LIMIT] = limit
        limit = _share(limit, full, closed)
        if limit < own[ENG_AIR]:
            eta = limit / own[ENG_AIR]
            if eta < m.spark_least:
                eta = m.spark_least
    own[ENG_INTERVENTION] = asked and (eta < 1.0 or wanted < pedal)
    own[ENG_SPARK] = eta
    own[ENG_PEDAL] = eta * own[ENG_AIR]


cdef class EngineControl(Blocks):
    """Its tables, for a signal table of `n_sig` slots; `first_slot`: of its own signals."""

    def __cinit__(self, int n_sig, int first_slot, double tick_s):
        self.n_sig = n_sig
        if first_slot < 2 or first_slot + N_ENG > n_sig:
            raise IndexError(f"signals of the engine control from slot {first_slot} on: the table has {n_sig}")
        self.m.first_slot, self.m.tick_s = first_slot, tick_s
        # until a request is set, none holds: the signal of slot 0 is always 0
        self.m.active_value = -1.0
        self.set_torque([(0.0, 1.0, 0.0), (1.0, 1.0, 0.0)])

    cdef int32_t slot(self, index) except -1:
        if not 0 <= index < self.n_sig:
            raise IndexError(f"signal slot {index}: allowed 0..{self.n_sig - 1}")
        return index

    def set_torque(self, rows: list) -> None:
        """(speed [rad/s], torque at full, at closed throttle [Nm]), speeds rising."""
        cdef int k
        if len(rows) < 2 or any(b[0] <= a[0] for a, b in zip(rows, rows[1:])):
            raise ValueError("torque over speed: allowed: two rows or more, speeds rising")
        self.m.n = len(rows)
        self.m.w = <double*>self.block(self.m.n * sizeof(double))
        self.m.full = <double*>self.block(self.m.n * sizeof(double))
        self.m.closed = <double*>self.block(self.m.n * sizeof(double))
        for k in range(self.m.n):
            self.m.w[k], self.m.full[k], self.m.closed[k] = rows[k]

    def set_paths(
        self, *, pedal: int, speed: int, air_s: float, spark_least: float, least: float,
        boost_from: float = 1.0, boost_s: float = 0.0,
    ) -> None:
        """Demand, speed, and what the two paths can."""
        self.m.pedal, self.m.speed = self.slot(pedal), self.slot(speed)
        self.m.air_keep = exp(-self.m.tick_s / air_s) if air_s > 0.0 else 0.0
        self.m.spark_least, self.m.least = spark_least, least
        self.m.boost_from = boost_from
        self.m.boost_keep = exp(-self.m.tick_s / boost_s) if boost_s > 0.0 else 0.0

    def set_request(self, *, limit: tuple, active: int, always: bool, active_value: float, slow: tuple | None) -> None:
        """(slot, gain, offset) of the request and of the slow one; slot and value of its switch."""
        self.m.limit, self.m.limit_gain, self.m.limit_offset = self.slot(limit[0]), limit[1], limit[2]
        self.m.active, self.m.always, self.m.active_value = self.slot(active), always, active_value
        if slow is not None:
            self.m.slow, self.m.slow_gain, self.m.slow_offset = self.slot(slow[0]), slow[1], slow[2]

    def watch(self, RxState rx not None, int message, int64_t timeout_ns) -> None:
        """The received message whose silence ends a request."""
        if not 0 <= message < rx.tables.c.n_messages:
            raise IndexError(f"message {message} of {rx.tables.c.n_messages}")
        self.m.message, self.m.timeout_ns = &rx.ptr.message[message], timeout_ns
        self._keep = rx

    def tick(self, sig, now_ns: int = 0) -> None:
        """One tick on a signal table (float64), for tests and tools."""
        cdef Py_buffer view
        cdef double* p = doubles_of(sig, &view, True)
        cdef Py_ssize_t n = view.len // 8
        if n == self.n_sig:
            engine_control_tick(&self.m, p, now_ns)
        PyBuffer_Release(&view)
        if n != self.n_sig:
            raise ValueError(f"signal table of {n}: allowed {self.n_sig}")
