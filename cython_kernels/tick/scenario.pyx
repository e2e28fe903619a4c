"""The steps of a scenario in the tick, and the tables they are made of.

Step k begins in the first tick in which

    its condition has held for `for_ticks`, the step before began `hold_ticks` ago or more, and at_tick has come;

the moves of the step then begin: each signal goes linearly from the value it has to its target. One step begins per
tick at most. If it has not begun `within_ticks` after the hold of the step before was over, the scenario has timed
out. It is done `hold_ticks` after its last step began. Conditions see the signals of the tick before, received ones
those of this tick.
"""

from torqueloop.cython_kernels.tick.conditions cimport fill_condition, holds

STATES = ("running", "done", "timed out")
#: signals of a scenario, in their order
SIGNALS = ("step", "state", "begun", "held", "repeats")
#: and of each signal that it moves
RAMP_SIGNALS = ("from", "to", "begun", "ticks")
assert len(SIGNALS) == N_SCEN and len(RAMP_SIGNALS) == N_RAMP
assert STATES[SCENARIO_TIMED_OUT] == "timed out"


# --- in the tick -------------------------------------------------------------------------------------------------


cdef void scenario_arm(const scenario_t* m, double* sig) noexcept nogil:
    """Nothing has begun, nothing is moved. real-time: yes."""
    cdef double* s = sig + m.first_slot
    cdef int32_t k
    s[SCEN_STEP] = s[SCEN_BEGUN] = s[SCEN_REPEATS] = 0.0
    s[SCEN_STATE] = SCENARIO_RUNNING
    s[SCEN_HELD] = -1.0
    for k in range(m.n_moved):
        s[N_SCEN + k * N_RAMP + RAMP_TICKS] = -1.0


cdef void _begin(const scenario_t* m, double* sig, int32_t k, int64_t tick) noexcept nogil:
    cdef double* s = sig + m.first_slot
    cdef const step_t* step = &m.step[k]
    cdef double* ramp
    cdef int32_t i
    if step.back_to >= 0:
        if s[SCEN_REPEATS] < step.times:
            s[SCEN_REPEATS] += 1.0
            k = step.back_to
            step = &m.step[k]
        else:
            s[SCEN_REPEATS] = 0.0
    s[SCEN_STEP] = k + 1
    s[SCEN_BEGUN] = tick
    s[SCEN_HELD] = -1.0
    for i in range(step.first_move, step.first_move + step.n_move):
        ramp = s + N_SCEN + m.move[i].signal * N_RAMP
        ramp[RAMP_FROM] = sig[m.moved[m.move[i].signal]]
        ramp[RAMP_TO] = m.move[i].target
        ramp[RAMP_BEGUN] = tick
        ramp[RAMP_TICKS] = m.move[i].ticks


cdef void _advance(const scenario_t* m, double* sig, int64_t tick) noexcept nogil:
    """Begin the next step if it is time."""
    cdef double* s = sig + m.first_slot
    cdef int32_t k = <int32_t>s[SCEN_STEP]
    cdef int64_t since = tick - <int64_t>s[SCEN_BEGUN]
    cdef const step_t* step
    if k > 0:
        since -= m.step[k - 1].hold_ticks
    if k == m.n_step:
        if since >= 0:
            s[SCEN_STATE] = SCENARIO_DONE
        return
    step = &m.step[k]
    if not holds(&step.when, sig):
        s[SCEN_HELD] = -1.0
    elif s[SCEN_HELD] < 0.0:
        s[SCEN_HELD] = tick
    if since >= 0 and tick >= step.at_tick and s[SCEN_HELD] >= 0.0 and tick - s[SCEN_HELD] >= step.for_ticks:
        _begin(m, sig, k, tick)
    elif since >= step.within_ticks:
        s[SCEN_STATE] = SCENARIO_TIMED_OUT


cdef void scenario_tick(const scenario_t* m, double* sig, int64_t tick) noexcept nogil:
    """The steps of this tick, and the signals they move. real-time: yes."""
    cdef const double* ramp = sig + m.first_slot + N_SCEN
    cdef double part
    cdef int32_t k
    if sig[m.first_slot + SCEN_STATE] == SCENARIO_RUNNING:
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


cdef class Scenario(Blocks):
    """The tables of a scenario for a signal table of `n_sig` slots; `first_slot`: of its own SIGNALS and those of the
    signals it moves, `moved`: slots of these."""

    def __cinit__(self, n_sig: int, first_slot: int, moved: list):
        self.n_sig = n_sig
        end = first_slot + N_SCEN + N_RAMP * len(moved)
        if first_slot < 2 or end > n_sig:
            raise IndexError(f"slots {first_slot}..{end - 1} of a scenario: allowed 2..{n_sig - 1}")
        self.m.first_slot, self.m.n_moved = first_slot, len(moved)
        self.m.moved = <int32_t*>self.block(len(moved) * sizeof(int32_t))
        for k, slot in enumerate(moved):
            if not 2 <= slot < n_sig:
                raise IndexError(f"moved signal {slot}: allowed 2..{n_sig - 1}")
            self.m.moved[k] = slot

    def set_steps(self, steps: list) -> None:
        """steps: (code of the condition, moves, back_to, times, for_ticks, at_tick, within_ticks, hold_ticks);
        moves: (index of the moved signal, target, ticks)."""
        cdef step_t* s
        moves = [v for step in steps for v in step[1]]
        self.m.step = <step_t*>self.block(len(steps) * sizeof(step_t))
        self.m.move = <move_t*>self.block(len(moves) * sizeof(move_t))
        for k, (signal, target, ticks) in enumerate(moves):
            if not 0 <= signal < self.m.n_moved or ticks < 0:
                raise IndexError(f"move {k}: signal {signal}, {ticks} ticks; allowed 0..{self.m.n_moved - 1}, >= 0")
            self.m.move[k].signal, self.m.move[k].target, self.m.move[k].ticks = signal, target, ticks
        first_move = 0
        for k, (code, own_moves, back_to, times, for_ticks, at_tick, within, hold) in enumerate(steps):
            if not -1 <= back_to < k:
                raise IndexError(f"step {k} goes back to {back_to}; allowed: a step before it, or -1")
            s = &self.m.step[k]
            fill_condition(&s.when, self, code, self.n_sig)
            s.first_move, s.n_move = first_move, len(own_moves)
            s.back_to, s.times = back_to, times
            s.for_ticks, s.at_tick, s.within_ticks, s.hold_ticks = for_ticks, at_tick, within, hold
            first_move += len(own_moves)
        self.m.n_step = len(steps)

    def arm(self, double[::1] signals not None) -> None:
        """Nothing has begun, nothing is moved. `signals`: all `n_sig` values, for a simulation without a rig."""
        self._fits(signals)
        scenario_arm(&self.m, &signals[0])

    def tick(self, double[::1] signals not None, int64_t tick) -> None:
        """The steps of this tick, and the signals they move, as the tick of a rig does it."""
        self._fits(signals)
        scenario_tick(&self.m, &signals[0], tick)

    def _fits(self, double[::1] signals) -> None:
        if signals.shape[0] != self.n_sig:
            raise IndexError(f"{signals.shape[0]} signals; allowed: {self.n_sig}")
