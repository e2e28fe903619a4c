"""Owner of the faults to inject (faults.pxd). Real-time: set before arming; only `switch` may be called during a run, from
any thread."""

from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from torqueloop.cython_kernels.clock.atomic cimport fetch_and_u32, fetch_or_u32, load_acquire_u32
from torqueloop.cython_kernels.tick.conditions cimport fill_condition

#: kind -> number; on signals, on frames sent or received, on buses
SIGNAL_FAULTS = {
    "offset": FAULT_OFFSET, "gain": FAULT_GAIN, "stuck": FAULT_STUCK, "value": FAULT_VALUE, "noise": FAULT_NOISE,
    "nan": FAULT_NAN, "ramp": FAULT_RAMP, "lag": FAULT_LAG,
}
FRAME_FAULTS = {
    "drop": FAULT_DROP, "raw": FAULT_RAW, "counter": FAULT_COUNTER, "counter_random": FAULT_COUNTER_RANDOM,
    "counter_offset": FAULT_COUNTER_OFFSET, "crc": FAULT_CRC, "crc_random": FAULT_CRC_RANDOM, "dlc": FAULT_LENGTH,
    "duplicate": FAULT_DUPLICATE, "delay": FAULT_DELAY, "jitter": FAULT_JITTER,
}
BUS_FAULTS = {"bus_off": FAULT_BUS_OFF, "load": FAULT_LOAD}
STAGES = {"input": STAGE_INPUT, "output": STAGE_OUTPUT, "command": STAGE_COMMAND, "sensor": STAGE_SENSOR,
          "frame": STAGE_FRAME, "bus": STAGE_BUS}
assert sorted(STAGES.values()) == list(range(N_STAGES))
KINDS = {"input": SIGNAL_FAULTS, "output": SIGNAL_FAULTS, "command": SIGNAL_FAULTS, "sensor": SIGNAL_FAULTS,
         "frame": FRAME_FAULTS, "bus": BUS_FAULTS}
#: faults that can be switched by hand in one rig
SWITCHES_MAX = N_SWITCHES
#: frames that can be held back at a time
QUEUE_MAX = 4096
#: openings and closings of windows that are kept
LOG_MAX = FAULT_LOG
cdef int64_t FOREVER = 0x7FFFFFFFFFFFFFFF
CHANCE_ALWAYS = <uint64_t>1 << 53
#: most data bytes of a frame, most frames of a bus in a tick
cdef enum:
    MOST_BYTES = 64
    MOST_LOAD = 4000


cdef class FaultTable(Blocks):
    """Faults of one rig with `n_sig` signals; handed to Rig.set_faults. `rows`: FaultRow of fault_rows.py. All numbers
    it tells are in their order."""

    def __cinit__(self, n_sig: int, rows: list):
        cdef uint64_t holds = 0
        self.n_sig = n_sig
        # the tick takes them stage by stage; of those on a frame the lost ones first, checksums behind what they cover
        order = sorted(range(len(rows)), key=lambda k: (STAGES[rows[k].stage], KINDS[rows[k].stage].get(rows[k].kind, 0)))
        self._order = [order.index(k) for k in range(len(rows))]
        sorted_rows = [rows[k] for k in order]
        self.f.fault = <fault_t*>self.block((len(rows)) * sizeof(fault_t))
        self.f.state = <fault_state_t*>self.block((len(rows)) * sizeof(fault_state_t))
        self.f.log = <fault_log_t*>self.block((FAULT_LOG if rows else 0) * sizeof(fault_log_t))
        for k, row in enumerate(sorted_rows):
            self._fill(k, row)
            holds += row.kind in ("delay", "jitter")
        for stage in range(N_FIRST):
            self.f.first[stage] = sum(STAGES[row.stage] < stage for row in rows)
        self.f.n_queue = QUEUE_MAX if holds else 0
        self.f.queue = <queued_t*>self.block((self.f.n_queue) * sizeof(queued_t))
        self.f.n_fault = len(rows)

    def _slot(self, k, slot):
        if not 0 <= slot < self.n_sig:
            raise IndexError(f"fault {k}: signal slot {slot}: allowed 0..{self.n_sig - 1}")
        return slot

    def _fill(self, int k, row):
        cdef fault_t* f = &self.f.fault[k]
        kinds = KINDS[row.stage]
        if row.kind not in kinds:
            raise ValueError(f"fault kind {row.kind!r} of stage {row.stage}: allowed {', '.join(kinds)}")
        if row.gain == 0.0 or not isfinite(row.gain) or not isfinite(row.value) or not isfinite(row.offset):
            raise ValueError(f"fault {k}: gain {row.gain}, value {row.value}: allowed: finite, gain not 0")
        if row.switch is not None and not 0 <= row.switch < N_SWITCHES:
            raise ValueError(f"fault {k}: switch {row.switch}: allowed 0..{N_SWITCHES - 1}")
        if min(row.lasts_ticks, row.count, row.times, row.back_ticks, row.every - 1) < 0 or not 0.0 <= row.chance <= 1.0:
            raise ValueError(f"fault {k}: count, times or ticks below 0, every below 1, or chance {row.chance}")
        if row.target < 0 or row.signal < 0 or (KINDS[row.stage] is SIGNAL_FAULTS and row.target >= self.n_sig):
            raise IndexError(f"fault {k}: target {row.target}: allowed 0..{self.n_sig - 1}")
        if row.kind == "load" and not 0.0 < row.value <= MOST_LOAD:
            raise ValueError(f"fault {k}: {row.value} frames in a tick: allowed up to {MOST_LOAD}")
        if row.kind in ("delay", "jitter", "duplicate") and not 0 <= row.value < 1 << 31:
            raise ValueError(f"fault {k}: value {row.value}: allowed 0 .. 2**31 - 1")
        if row.kind == "dlc" and not -MOST_BYTES <= row.value <= MOST_BYTES:
            raise ValueError(f"fault {k}: {row.value} data bytes: allowed up to {MOST_BYTES}")
        f.stage, f.kind, f.target, f.bus = STAGES[row.stage], kinds[row.kind], row.target, row.bus
        f.value, f.gain, f.offset = row.value, row.gain, row.offset
        f.raw, f.signal, f.can_id = row.raw, row.signal, row.can_id
        f.slot = row.slot
        if row.slot:
            self._slot(k, row.slot + 1)
        f.begin = BEGIN_CONDITION if row.when else BEGIN_TIME if row.switch is None else BEGIN_SWITCH
        f.switch_bit = row.switch if row.switch is not None else 0
        f.from_tick, f.until_tick = row.from_tick, FOREVER if row.until_tick is None else row.until_tick
        f.lasts_ticks, f.count, f.times, f.every = row.lasts_ticks, row.count, row.times, row.every
        f.own_end = bool(row.when) and bool(row.lasts_ticks or row.count or row.until)
        f.chance, f.back_ticks, f.seed = round(row.chance * <double>CHANCE_ALWAYS), row.back_ticks, row.seed
        fill_condition(&f.when, self, row.when, self.n_sig)
        fill_condition(&f.until, self, row.until, self.n_sig)

    def switch(self, bit: int, on: bool) -> None:
        """Switch the faults of this bit; taken over, and recorded, by the next tick."""
        if not 0 <= bit < N_SWITCHES:
            raise IndexError(f"switch {bit}: allowed 0..{N_SWITCHES - 1}")
        if on:
            fetch_or_u32(&self.f.switches, 1 << bit)
        else:
            fetch_and_u32(&self.f.switches, ~<uint32_t>(1 << bit))

    @property
    def switches(self) -> int:
        """Switch word: bit k is 1 while switch k is on."""
        return load_acquire_u32(&self.f.switches)

    def counts(self) -> list:
        """Ticks, or frames, each fault acted on so far."""
        return [self.f.state[<int>k].total for k in self._order]

    def active(self) -> list:
        """Faults whose window is open."""
        return [self.f.state[<int>k].begun >= 0 for k in self._order]

    def log(self) -> list:
        """(tick, number of the fault, opened, actions of the window so far), in their order; the first LOG_MAX."""
        own = {k: n for n, k in enumerate(self._order)}
        return [(self.f.log[k].tick, own[self.f.log[k].fault], bool(self.f.log[k].opened), self.f.log[k].acts)
                for k in range(min(self.f.n_log, FAULT_LOG))]

    @property
    def queue_lost(self) -> int:
        """Frames that were to be held back and found no room."""
        return self.f.queue_lost
