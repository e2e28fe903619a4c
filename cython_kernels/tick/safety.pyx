"""Owner of the faults to inject and of the limits of sent signals (see safety.pxd). Real-time: set before arming; only
`switch` may be called during a run, from any thread."""

from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free

from torqueloop.cython_kernels.clock.atomic cimport fetch_and_u32, fetch_or_u32, load_acquire_u32

#: kind -> number; on signals, on frames the rig sends
SIGNAL_FAULTS = {
    "offset": FAULT_OFFSET, "gain": FAULT_GAIN, "stuck": FAULT_STUCK, "value": FAULT_VALUE, "noise": FAULT_NOISE,
    "nan": FAULT_NAN,
}
FRAME_FAULTS = {"drop": FAULT_DROP, "crc": FAULT_CRC, "counter": FAULT_COUNTER, "dlc": FAULT_LENGTH}
STAGES = {"input": STAGE_INPUT, "output": STAGE_OUTPUT, "frame": STAGE_FRAME}
#: faults that can be switched by hand in one rig
SWITCHES_MAX = N_SWITCHES
cdef int64_t FOREVER = 0x7FFFFFFFFFFFFFFF


cdef class Safety:
    """Faults and limits of one rig with `n_sig` signals and a tick of `tick_s`; handed to Rig.set_safety."""

    def __cinit__(self, n_sig: int, tick_s: float):
        self.n_sig, self.tick_s = n_sig, tick_s

    def __dealloc__(self):
        free(self.s.fault)
        free(self.s.guard)

    def set_faults(self, faults: list) -> None:
        """Once, before arming. Rows (stage, kind, target, value, gain, offset, from_tick, until_tick, switch, bus): stage
        "input", "output" (target: slot, fault in x with signal = gain * x + offset) or "frame" (target: message index
        on that bus); until_tick -1: for ever; switch: -1 by time, else the bit that switches it."""
        cdef fault_t* f
        if self.s.fault != NULL:
            raise RuntimeError("the faults of a rig are set once")
        self.s.fault = <fault_t*>calloc(len(faults) + 1, sizeof(fault_t))
        if self.s.fault == NULL:
            raise MemoryError
        for k, (stage, kind, target, value, gain, offset, from_tick, until_tick, bit, bus) in enumerate(faults):
            kinds = FRAME_FAULTS if stage == "frame" else SIGNAL_FAULTS
            if kind not in kinds:
                raise ValueError(f"fault kind {kind!r} of stage {stage}: allowed {', '.join(kinds)}")
            if gain == 0.0 or not isfinite(gain):
                raise ValueError(f"fault {k}: gain {gain}: allowed: not 0")
            if not -1 <= bit < N_SWITCHES:
                raise ValueError(f"fault {k}: switch {bit}: allowed -1..{N_SWITCHES - 1}")
            if target < 0 or (stage != "frame" and target >= self.n_sig):
                raise IndexError(f"fault {k}: target {target}: allowed 0..{self.n_sig - 1}")
            f = &self.s.fault[k]
            f.stage, f.kind, f.target, f.bus, f.switch_bit = STAGES[stage], kinds[kind], target, bus, bit
            f.value, f.gain, f.offset = value, gain, offset
            f.from_tick, f.until_tick = from_tick, until_tick if until_tick >= 0 else FOREVER
        self.s.n_fault = len(faults)

    def set_guards(self, guards: list) -> None:
        """Once, before arming. Rows (slot, lo, hi, tolerance, slew per s or 0, latch the safe state)."""
        cdef guard_t* g
        if self.s.guard != NULL:
            raise RuntimeError("the limits of a rig are set once")
        self.s.guard = <guard_t*>calloc(len(guards) + 1, sizeof(guard_t))
        if self.s.guard == NULL:
            raise MemoryError
        for k, (slot, lo, hi, tol, slew_per_s, safe) in enumerate(guards):
            if not 0 <= slot < self.n_sig:
                raise IndexError(f"signal slot {slot}: allowed 0..{self.n_sig - 1}")
            if not lo <= hi or slew_per_s < 0.0:
                raise ValueError(f"limits {lo}..{hi}, slew {slew_per_s}: allowed lo <= hi, slew >= 0")
            g = &self.s.guard[k]
            g.quiet_lo, g.quiet_hi = (lo, hi) if slew_per_s == 0.0 else (1.0, -1.0)
            g.slot, g.lo, g.hi, g.tol, g.slew, g.safe = slot, lo, hi, tol, slew_per_s * self.tick_s, safe
        self.s.n_guard = len(guards)

    def set_solver_limit(self, ticks: int) -> None:
        """So many ticks in a row with a step that only a plain impulse could finish latch the safe state; 0: never."""
        if ticks < 0:
            raise ValueError(f"solver limit {ticks} ticks: allowed 0 or more")
        self.s.solver_limit = ticks

    def switch(self, bit: int, on: bool) -> None:
        """Switch the faults of this bit; taken over, and recorded, by the next tick."""
        if not 0 <= bit < N_SWITCHES:
            raise IndexError(f"switch {bit}: allowed 0..{N_SWITCHES - 1}")
        if on:
            fetch_or_u32(&self.s.switches, 1 << bit)
        else:
            fetch_and_u32(&self.s.switches, ~<uint32_t>(1 << bit))

    @property
    def switches(self) -> int:
        """Switch word: bit k is 1 while switch k is on."""
        return load_acquire_u32(&self.s.switches)

    def fault_counts(self) -> list:
        """Ticks, or frames, each fault acted on so far."""
        return [self.s.fault[k].count for k in range(self.s.n_fault)]

    def faults_active(self) -> list:
        """Which faults acted in the last tick (frames: when the message was due last)."""
        return [bool(self.s.fault[k].active) for k in range(self.s.n_fault)]

    def guard_counts(self) -> list:
        """Ticks in which each limited signal was held back."""
        return [self.s.guard[k].count for k in range(self.s.n_guard)]
