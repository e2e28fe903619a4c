"""The steps of a manoeuvre in the tick, and the tables they are made of.

Step k begins in the first tick in which

    its condition has held for `for_ticks`, the step before began `hold_ticks` ago or more, and at_tick has come;

the moves of the step then begin: each signal goes linearly from the value it has to its target. One step begins per
tick at most. If it has not begun `within_ticks` after the hold of the step before was over, the manoeuvre has timed
out. It is done `hold_ticks` after its last step began. Conditions see the signals of the tick before, received ones
those of this tick.
"""

from libc.math cimport fabs

STATES = ("running", "done", "timed out")
OPERATORS = ("<", "<=", ">", ">=", "==", "!=")
#: signals of a manoeuvre, in their order
SIGNALS = ("step", "state", "begun", "held", "repeats")
#: and of each signal that it moves
RAMP_SIGNALS = ("from", "to", "begun", "ticks")
assert len(SIGNALS) == N_MAN and len(RAMP_SIGNALS) == N_RAMP and OPERATORS[OP_NE] == "!="
assert STATES[MANOEUVRE_TIMED_OUT] == "timed out"


# --- in the tick -------------------------------------------------------------------------------------------------


cdef void manoeuvre_arm(const manoeuvre_t* m, double* sig) noexcept nogil:
    """Nothing has begun, nothing is moved. real-time: yes."""
    cdef double* s = sig + m.first_slot
    cdef int32_t k
    s[MAN_STEP] = s[MAN_BEGUN] = s[MAN_REPEATS] = 0.0
    s[MAN_STATE] = MANOEUVRE_RUNNING
    s[MAN_HELD] = -1.0
    for k in range(m.n_moved):
        s[N_MAN + k * N_RAMP + RAMP_TICKS] = -1.0


cdef inline bint _true(const term_t* c, const double* sig) noexcept nogil:
    cdef double x = sig[c.slot]
    if c.op == OP_LT:
        return x < c.value
    if c.op == OP_LE:
        return x <= c.value
    if c.op == OP_GT:
        return x > c.value
    if c.op == OP_GE:
        return x >= c.value
    return (fabs(x - c.value) <= c.tol) == (c.op == OP_EQ)


cdef bint terms_met(const term_t* term, int32_t n, bint any_of, const double* sig) noexcept nogil:
    """All of n terms are true, or (any_of) one is; without terms: True. real-time: yes."""
    cdef int32_t k
    for k in range(n):
        if _true(&term[k], sig) == any_of:
            return any_of
    return n == 0 or not any_of


cdef inline bint _met(const manoeuvre_t* m, const step_t* step, const double* sig) noexcept nogil:
    """Its condition; one without terms always holds."""
    return terms_met(&m.term[step.first_term], step.n_term, step.any_of, sig)


cdef void _begin(const manoeuvre_t* m, double* sig, int32_t k, int64_t tick) noexcept nogil:
    cdef double* s = sig + m.first_slot
    cdef const step_t* step = &m.step[k]
    cdef double* ramp
    cdef int32_t i
    if step.back_to >= 0:
        if s[MAN_REPEATS] < step.times:
            s[MAN_REPEATS] += 1.0
            k = step.back_to
            step = &m.step[k]
        else:
            s[MAN_REPEATS] = 0.0
    s[MAN_STEP] = k + 1
    s[MAN_BEGUN] = tick
    s[MAN_HELD] = -1.0
    for i in range(step.first_move, step.first_move + step.n_move):
        ramp = s + N_MAN + m.move[i].signal * N_RAMP
        ramp[RAMP_FROM] = sig[m.moved[m.move[i].signal]]
        ramp[RAMP_TO] = m.move[i].target
        ramp[RAMP_BEGUN] = tick
        ramp[RAMP_TICKS] = m.move[i].ticks


cdef void _advance(const manoeuvre_t* m, double* sig, int64_t tick) noexcept nogil:
    """Begin the next step if it is time."""
    cdef double* s = sig + m.first_slot
    cdef int32_t k = <int32_t>s[MAN_STEP]
    cdef int64_t since = tick - <int64_t>s[MAN_BEGUN]
    cdef const step_t* step
    if k > 0:
        since -= m.step[k - 1].hold_ticks
    if k == m.n_step:
        if since >= 0:
            s[MAN_STATE] = MANOEUVRE_DONE
        return
    step = &m.step[k]
    if not _met(m, step, sig):
        s[MAN_HELD] = -1.0
    elif s[MAN_HELD] < 0.0:
        s[MAN_HELD] = tick
    if since >= 0 and tick >= step.at_tick and s[MAN_HELD] >= 0.0 and tick - s[MAN_HELD] >= step.for_ticks:
        _begin(m, sig, k, tick)
    elif since >= step.within_ticks:
        s[MAN_STATE] = MANOEUVRE_TIMED_OUT


cdef void manoeuvre_tick(const manoeuvre_t* m, double* sig, int64_t tick) noexcept nogil:
    """The steps of this tick, and the signals they move. real-time: yes."""
    cdef const double* ramp = sig + m.first_slot + N_MAN
    cdef double part
    cdef int32_t k
    if sig[m.first_slot + MAN_STATE] == MANOEUVRE_RUNNING:
        _advance(m, sig, tick)
    for k in range(m.n_moved):
        if ramp[RAMP_TICKS] >= 0.0:
            part = tick - ramp[RAMP_BEGUN]
            if part >= ramp[RAMP_TICKS]:
                sig[m.moved[k]] = ramp[RAMP_TO]
            else:
                sig[m.moved[k]] = ramp[RAMP_FROM] + (ramp[RAMP_TO] - ramp[RAMP_FROM]) * (part / ramp[RAMP_TICKS])
        ramp += N_RAMP


# --- tables ------------------------------------------------------------------------------------------------------


cdef class Manoeuvre(Blocks):
    """The tables of a manoeuvre for a signal table of `n_sig` slots; `first_slot`: of its own SIGNALS and those of the
    signals it moves, `moved`: slots of these."""

    def __cinit__(self, n_sig: int, first_slot: int, moved: list):
        self.n_sig = n_sig
        end = first_slot + N_MAN + N_RAMP * len(moved)
        if first_slot < 2 or end > n_sig:
            raise IndexError(f"slots {first_slot}..{end - 1} of a manoeuvre: allowed 2..{n_sig - 1}")
        self.m.first_slot, self.m.n_moved = first_slot, len(moved)
        self.m.moved = <int32_t*>self.block(len(moved) * sizeof(int32_t))
        for k, slot in enumerate(moved):
            if not 2 <= slot < n_sig:
                raise IndexError(f"moved signal {slot}: allowed 2..{n_sig - 1}")
            self.m.moved[k] = slot

    def set_steps(self, steps: list) -> None:
        """steps: (terms, any_of, moves, back_to, times, for_ticks, at_tick, within_ticks, hold_ticks);
        terms: (slot, operator, value, tol); moves: (index of the moved signal, target, ticks)."""
        cdef step_t* s
        terms = [t for step in steps for t in step[0]]
        moves = [v for step in steps for v in step[2]]
        self.m.step = <step_t*>self.block(len(steps) * sizeof(step_t))
        self.m.term = <term_t*>self.block(len(terms) * sizeof(term_t))
        self.m.move = <move_t*>self.block(len(moves) * sizeof(move_t))
        for k, (slot, operator, value, tol) in enumerate(terms):
            if not 0 <= slot < self.n_sig:
                raise IndexError(f"term {k}: slot {slot}; allowed 0..{self.n_sig - 1}")
            self.m.term[k].slot, self.m.term[k].op = slot, OPERATORS.index(operator)
            self.m.term[k].value, self.m.term[k].tol = value, tol
        for k, (signal, target, ticks) in enumerate(moves):
            if not 0 <= signal < self.m.n_moved or ticks < 0:
                raise IndexError(f"move {k}: signal {signal}, {ticks} ticks; allowed 0..{self.m.n_moved - 1}, >= 0")
            self.m.move[k].signal, self.m.move[k].target, self.m.move[k].ticks = signal, target, ticks
        first_term = first_move = 0
        for k, (own, any_of, own_moves, back_to, times, for_ticks, at_tick, within, hold) in enumerate(steps):
            if not -1 <= back_to < k:
                raise IndexError(f"step {k} goes back to {back_to}; allowed: a step before it, or -1")
            s = &self.m.step[k]
            s.first_term, s.n_term, s.any_of = first_term, len(own), bool(any_of) and len(own) > 0
            s.first_move, s.n_move = first_move, len(own_moves)
            s.back_to, s.times = back_to, times
            s.for_ticks, s.at_tick, s.within_ticks, s.hold_ticks = for_ticks, at_tick, within, hold
            first_term += len(own)
            first_move += len(own_moves)
        self.m.n_step = len(steps)
