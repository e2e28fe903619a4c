"""The rig as a Python object: owns the memory of a rig_t, is filled by the session, runs it without the GIL.

    rig = Rig(n_sig, tick_s)            then set_model, set_wiring, set_can, set_vehicle, set_safe_state, set_clock,
    set_record
    rig.arm(); rig.run()                real clock: blocks, in a thread of its own; stop() from any thread
    rig.arm(); rig.ticks(k, now_ns)     virtual clock: k ticks without wake; the session runs the peers in between
    rig.arm(); rig.replay(record)       one tick from its input record

All set_ functions allocate; nothing is allocated from arm() on.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free

from torqueloop.cython_kernels.account cimport Account
from torqueloop.cython_kernels.atomic cimport (
    load_acquire_i32,
    load_acquire_u32,
    load_relaxed_i64,
)
from torqueloop.cython_kernels.codec cimport CodecTables, RxState, TxState
from torqueloop.cython_kernels.control cimport Control
from torqueloop.cython_kernels.denormals cimport denormals_off, denormals_restore
from torqueloop.cython_kernels.first_fault cimport FirstFault
from torqueloop.cython_kernels.loop_clock cimport ClockScript
from torqueloop.cython_kernels.model cimport KernelModel, KernelState, tl_state_hash
from torqueloop.cython_kernels.ring cimport DataRing, FrameRing, LatestSlot
from torqueloop.cython_kernels.safety cimport STAGE_FRAME, Safety
from torqueloop.cython_kernels.socketcan cimport NativePort
from torqueloop.cython_kernels.tick cimport (
    CMD_ARM,
    CMD_DISARM,
    CMD_STOP,
    DISARM_NO,
    DISARM_SILENT,
    INPUT_CONTROL,
    MAX_RECORD,
    N_BUS,
    N_RIG,
    N_VEHICLE,
    POLICY_CATCH_UP,
    POLICY_SKIP,
    POLICY_STOP,
    copy_t,
    driver_t,
    input_head_t,
    limit_t,
    rig_arm,
    rig_command,
    rig_external,
    rig_feed,
    rig_finished,
    rig_run,
    rig_tick,
    safe_t,
    tx_t,
)

#: names of the causes of the safe state, by number (tick.pxd CAUSE_*)
CAUSES = (
    "none", "not_finite", "limit", "overruns", "tcu_silent", "vehicle_silent", "vehicle_data", "solver", "hung",
    "thread",
    "bus", "request", "tcu_frames", "encode", "output", "missed",
)
POLICIES = {"catch_up": POLICY_CATCH_UP, "skip": POLICY_SKIP, "stop": POLICY_STOP}
#: what is wrong with an input record (tick.pxd FEED_*)
FEED_TEXTS = (
    "", "head cut off", "{n} bytes are too few or too many for what it holds", "is tick {tick}; needed: tick {next}",
    "holds values of a link this rig does not have", "a frame is cut off", "holds a transaction this rig does not take",
)
#: size of the head of an input record (tick.pxd input_head_t) and of the fixed part of a sample record
INPUT_HEAD_BYTES = sizeof(input_head_t)
SAMPLE_HEAD_BYTES = 32


cdef class Rig:
    """One rig. Slots are indices into the signal table; slot 0 always reads 0, slot 1 is a sink that is never read."""

    def __cinit__(self, n_sig: int, tick_s: float):
        cdef Account account = Account()
        if not 2 <= n_sig <= 65536:
            raise ValueError(f"{n_sig} signals: allowed 2..65536")
        if not 1e-5 <= tick_s <= 1.0:
            raise ValueError(f"tick {tick_s} s: allowed 1e-5..1 s")
        self._keep, self._blocks = [], []
        self.account, self.lateness, self.compute = account, account.lateness, account.compute
        self.r.account = &account.a
        self.r.n_sig = n_sig
        self.r.sig = <double*>self.block(n_sig * sizeof(double))
        self.r.sig0 = <double*>self.block(n_sig * sizeof(double))
        self.r.tick_s = tick_s
        self.r.period_ns = round(tick_s * 1e9)
        self.r.n_ticks = self.r.safe_stop_ticks = -1
        self.r.rec_every = self.r.max_catch_up = 1
        self.r.tx_drop_limit = self.r.veh_refuse_limit = 1
        self.r.policy = POLICY_CATCH_UP
        # signals nobody asked for go to the sink, so that the tick has no special cases
        self.r.slot_time = self.r.slot_tick = self.r.slot_status = self.r.slot_cause = 1
        self.r.slot_I_wheel = self.r.slot_F_wheel = 1

    def __dealloc__(self):
        cdef size_t address
        for address in self._blocks or ():
            free(<void*>address)

    cdef void* block(self, size_t n_bytes) except NULL:
        """Zeroed memory that lives as long as the rig."""
        cdef void* p = calloc(1, n_bytes if n_bytes else 1)
        if p == NULL:
            raise MemoryError
        self._blocks.append(<size_t>p)
        return p

    cdef int32_t slot(self, index) except -1:
        if not 0 <= index < self.r.n_sig:
            raise IndexError(f"signal slot {index}: allowed 0..{self.r.n_sig - 1}")
        return index

    cdef copy_t* copies(self, rows) except NULL:
        cdef copy_t* out = <copy_t*>self.block(len(rows) * sizeof(copy_t))
        for k, (src, dst, gain, offset) in enumerate(rows):
            out[k].src, out[k].dst = self.slot(src), self.slot(dst)
            out[k].gain, out[k].offset = gain, offset
        return out

    # --- construction: before arming -------------------------------------------------------------------------

    def set_initial(self, values: dict) -> None:
        """Values of signals at arming: slot -> value in SI (all others 0)."""
        for slot, value in values.items():
            self.r.sig0[self.slot(slot)] = value
            self.r.sig[slot] = value

    def set_rig_slots(self, time: int, tick: int, status: int, cause: int) -> None:
        """Slots of the rig's own signals: simulated time at the end of the tick, tick, status (RIG_*), cause."""
        self.r.slot_time, self.r.slot_tick = self.slot(time), self.slot(tick)
        self.r.slot_status, self.r.slot_cause = self.slot(status), self.slot(cause)

    def set_model(self, KernelModel model not None, KernelState state not None, in_slot: int, out_slot: int,
            substeps: int):
        """Physics: inputs are n_in slots from in_slot on, outputs n_out slots from out_slot on."""
        if abs(model.h * substeps - self.r.tick_s) > 1e-12:
            wanted = self.r.tick_s / substeps
            raise ValueError(f"step h = {model.h} s, {substeps} substeps: allowed: h = tick_s / substeps = {wanted} s")
        self.r.model, self.r.state, self.r.substeps = model.ptr, state.ptr, substeps
        self.r.n_in, self.r.n_out = model.ptr.nin, model.ptr.nout
        self.r.in_slot, self.r.out_slot = in_slot, out_slot
        self.slot(in_slot + max(0, self.r.n_in - 1))
        self.slot(out_slot + max(0, self.r.n_out - 1))
        self.r.out_new = <double*>self.block(self.r.n_out * sizeof(double))
        self._keep += [model, state]

    def set_wiring(self, inputs: list, outputs: list, drivers: list) -> None:
        """inputs, outputs: (src, dst, gain, offset) copied before the step and before sending; drivers:
        (slot, [t_s], [y])."""
        cdef int32_t at = 0
        self.r.in_copy, self.r.n_in_copy = self.copies(inputs), len(inputs)
        self.r.out_copy, self.r.n_out_copy = self.copies(outputs), len(outputs)
        total = sum(len(t) for _, t, _ in drivers)
        self.r.driver = <driver_t*>self.block(len(drivers) * sizeof(driver_t))
        self.r.driver_t_s = <double*>self.block(total * sizeof(double))
        self.r.driver_y = <double*>self.block(total * sizeof(double))
        self.r.n_driver = len(drivers)
        for k, (slot, t, y) in enumerate(drivers):
            if not t or len(t) != len(y) or any(b < a for a, b in zip(t, t[1:])):
                raise ValueError(f"driver table of slot {slot}: times must not decrease and every time needs a value")
            self.r.driver[k].slot, self.r.driver[k].first, self.r.driver[k].n = self.slot(slot), at, len(t)
            for a, b in zip(t, y):
                self.r.driver_t_s[at], self.r.driver_y[at] = a, b
                at += 1

    def set_can(self, CodecTables codec not None, RxState rx not None, TxState tx not None, FrameRing rx_ring not None,
                FrameRing tx_ring not None, required: list, plan: list, drop_limit: int = 10) -> None:
        """Bus: required = indices of messages that must come;
        plan = (message index, period in ticks, offset in ticks)."""
        if codec.n_slots > self.r.n_sig:
            raise ValueError(f"codec writes {codec.n_slots} slots, the signal table has {self.r.n_sig}")
        self.r.codec, self.r.rx, self.r.tx = &codec.c, rx.ptr, tx.ptr
        self.r.rx_ring, self.r.tx_ring = &rx_ring.r, &tx_ring.r
        self.r.required = <int32_t*>self.block(len(required) * sizeof(int32_t))
        self.r.n_required = len(required)
        for k, index in enumerate(required):
            self.r.required[k] = index
        self.r.tx_plan = <tx_t*>self.block(len(plan) * sizeof(tx_t))
        self.r.n_tx = len(plan)
        for k, (message, period, offset) in enumerate(plan):
            if not 0 < period or not 0 <= offset < period:
                raise ValueError(
                    f"message {message}: period {period}, offset {offset} ticks; allowed: 0 <= offset < "
                    f"period")
            self.r.tx_plan[k].message, self.r.tx_plan[k].period, self.r.tx_plan[k].offset = message, period, offset
        self.r.tx_drop_limit = drop_limit
        self._keep += [codec, rx, tx, rx_ring, tx_ring]

    def set_port(self, NativePort port not None, first_slot: int, down_limit_s: float) -> None:
        """Native SocketCAN: while the port is open, it is the bus; first_slot: of the N_BUS signals of its state."""
        self.r.port = port.p
        self.r.bus_slot = self.slot(first_slot + N_BUS - 1) - N_BUS + 1
        self.r.bus_down_limit_ns = round(down_limit_s * 1e9)
        self._keep.append(port)

    def set_bell(self, fd: int) -> None:
        """eventfd that is rung when frames were queued (0 or less: none)."""
        self.r.bell_fd = max(0, fd)

    def set_vehicle(self, LatestSlot received not None, LatestSlot sent not None, first_slot: int, ramped: int,
            age_limit_s: float,
                    hold_s: float, ramp_s: float, refuse_limit: int, momentum: list, force: list, impulse_slot: int,
                    force_slot: int, speed_slot: int, distance_slot: int, brake_slot: int) -> None:
        """Vehicle link; momentum, force = (src, 0, gain, 0) rows whose sums give the impulse of the tractive force."""
        if received.s.n != N_VEHICLE or sent.s.n != N_RIG:
            raise ValueError(f"vehicle slots of {received.s.n} and {sent.s.n} doubles: allowed {N_VEHICLE} and {N_RIG}")
        self.r.veh_in, self.r.veh_out = &received.s, &sent.s
        self.r.veh_slot, self.r.veh_ramped = self.slot(first_slot + N_VEHICLE - 1) - N_VEHICLE + 1, ramped
        self.r.veh_age_limit_ns = round(age_limit_s * 1e9)
        self.r.veh_hold_ns = round(hold_s * 1e9)
        self.r.veh_ramp_ns = max(1, round(ramp_s * 1e9))
        self.r.veh_refuse_limit = refuse_limit
        self.r.momentum, self.r.n_momentum = self.copies(momentum), len(momentum)
        self.r.force, self.r.n_force = self.copies(force), len(force)
        self.r.slot_I_wheel, self.r.slot_F_wheel = self.slot(impulse_slot), self.slot(force_slot)
        self.r.out_speed, self.r.out_s = self.slot(speed_slot), self.slot(distance_slot)
        self.r.out_brake = self.slot(brake_slot)
        self._keep += [received, sent]

    def set_safe_state(self, reactions: list, limits: list, stop_after_ticks: int = -1) -> None:
        """reactions: (slot, target, ramp_s); limits: (slot, lo, hi);
        the run ends stop_after_ticks after latching (-1: goes on)."""
        self.r.safe = <safe_t*>self.block(len(reactions) * sizeof(safe_t))
        self.r.n_safe = len(reactions)
        for k, (slot, target, ramp_s) in enumerate(reactions):
            self.r.safe[k].slot, self.r.safe[k].target, self.r.safe[k].ramp_s = self.slot(slot), target, ramp_s
        self.r.limit = <limit_t*>self.block(len(limits) * sizeof(limit_t))
        self.r.n_limit = len(limits)
        for k, (slot, lo, hi) in enumerate(limits):
            self.r.limit[k].slot, self.r.limit[k].lo, self.r.limit[k].hi = self.slot(slot), lo, hi
        self.r.safe_stop_ticks = stop_after_ticks

    def set_safety(self, Safety safety not None) -> None:
        """Faults to inject and limits of what is sent."""
        if safety.n_sig != self.r.n_sig:
            raise ValueError(f"safety made for {safety.n_sig} signals, the rig has {self.r.n_sig}")
        for k in range(safety.s.n_fault):
            if safety.s.fault[k].stage == STAGE_FRAME and (
                    self.r.codec == NULL or safety.s.fault[k].target >= self.r.codec.n_messages):
                raise IndexError(f"fault {k}: message {safety.s.fault[k].target} is not in the codec")
        self.r.safety = &safety.s
        self._keep.append(safety)

    def set_clock(self, policy: str = "catch_up", max_catch_up: int = 5, overrun_limit: int = 0,
            n_ticks: int = -1, grace_ticks: int = 0, spin_us: float = 0.0) -> None:
        """Policy after a stall; overrun_limit overruns in a row latch the safe state (0: never); n_ticks: end (-1:
        none); grace_ticks: the first ticks, counted apart; spin_us: the last part of the wait looks at the clock."""
        if policy not in POLICIES:
            raise ValueError(f"policy {policy!r}: allowed {', '.join(POLICIES)}")
        self.r.policy, self.r.max_catch_up = POLICIES[policy], max_catch_up
        if not 0.0 <= spin_us * 1e-6 <= 0.5 * self.r.tick_s or grace_ticks < 0 or max_catch_up < 1:
            raise ValueError(
                f"spin_us {spin_us}, grace_ticks {grace_ticks}, max_catch_up {max_catch_up}: allowed 0 .. half a "
                "period, >= 0, >= 1")
        self.r.overrun_limit, self.r.n_ticks = overrun_limit, n_ticks
        self.r.account.grace_ticks, self.r.spin_ns = grace_ticks, round(spin_us * 1e3)

    def set_script(self, ClockScript script not None) -> None:
        """Run by a script instead of the real clock (tests of the clock's rules)."""
        script.s.arm_bit, script.s.stop_bit, script.s.disarm_bit = CMD_ARM, CMD_STOP, CMD_DISARM
        self.r.script = &script.s
        self._keep.append(script)

    def set_record(self, slots: list, DataRing samples, DataRing inputs, DataRing bus, DataRing modes,
            every: int = 1) -> None:
        """Rings for sample records of the given slots, input records, bus frames, mode changes (None:
        not published)."""
        if len(slots) > MAX_RECORD:
            raise ValueError(f"{len(slots)} recorded signals: allowed at most {MAX_RECORD}")
        self.r.rec_slot = <int32_t*>self.block(len(slots) * sizeof(int32_t))
        self.r.n_rec, self.r.rec_every = len(slots), every
        for k, slot in enumerate(slots):
            self.r.rec_slot[k] = self.slot(slot)
        self.r.sample_ring = &samples.r if samples is not None else NULL
        self.r.input_ring = &inputs.r if inputs is not None else NULL
        self.r.bus_ring = &bus.r if bus is not None else NULL
        self.r.mode_ring = &modes.r if modes is not None else NULL
        self._keep += [samples, inputs, bus, modes]

    def set_control(self, Control control not None) -> None:
        """Control channel: transactions posted there are taken at the top of a tick."""
        self.r.ctl = &control.c
        self._control = control

    def image_sizes(self) -> tuple:
        """Sizes of an Image of this rig."""
        nx = self.r.state.nx if self.r.model != NULL else 0
        nk = self.r.state.nk if self.r.model != NULL else 0
        guards = self.r.safety.n_guard if self.r.safety != NULL else 0
        faults = self.r.safety.n_fault if self.r.safety != NULL else 0
        messages = self.r.codec.n_messages if self.r.codec != NULL else 0
        return self.r.n_sig, nx, nk, messages, self.r.n_driver, guards, faults

    def set_first_fault(self, FirstFault ring not None) -> None:
        """Ring that keeps every tick of the recorded signals around the first fault; after set_record."""
        if ring.n_signals != self.r.n_rec:
            raise ValueError(f"first-fault ring for {ring.n_signals} signals, {self.r.n_rec} are recorded")
        self.r.first_fault = &ring.f
        self._keep.append(ring)

    def inject_busy(self, first_tick: int, count: int, busy_ns: int) -> None:
        """Fault injection: ticks first_tick .. first_tick+count-1 burn busy_ns of CPU before their step."""
        self.r.inject_tick, self.r.inject_count, self.r.inject_ns = first_tick, count, busy_ns

    # --- running ---------------------------------------------------------------------------------------------

    def arm(self) -> None:
        """Real clock: the next wake begins tick 0. Nothing is sent before. After disarm(): the next wake goes on with
        the tick after the last one, in the state kept."""
        rig_command(&self.r, CMD_ARM, CMD_DISARM)

    def disarm(self) -> None:
        """The next tick begins to ramp the inputs of the safe state to their targets; then no tick and no frame until
        arm(). In the safe state: no effect. From any thread."""
        rig_command(&self.r, CMD_DISARM, 0)

    def stop(self) -> None:
        """End the loop at its next wake. From any thread."""
        rig_command(&self.r, CMD_STOP, 0)

    def request_safe(self, cause: str, detail: int = 0) -> bool:
        """Ask for the safe state from outside; True if nobody asked before."""
        return rig_external(&self.r, CAUSES.index(cause), detail)

    def run(self) -> None:
        """The loop on the real clock; returns after stop(), the last tick, or the end of the safe state.
        No GIL inside."""
        cdef unsigned long long mode
        with nogil:
            mode = denormals_off()
            rig_run(&self.r)
            denormals_restore(mode)

    def begin(self, now_ns: int) -> None:
        """Virtual clock and replay: arm at this time of the rig's clock; tick 0 is the next one."""
        cdef int64_t now = now_ns
        cdef unsigned long long mode
        rig_command(&self.r, CMD_ARM, CMD_DISARM)
        with nogil:
            mode = denormals_off()
            rig_arm(&self.r, now)
            denormals_restore(mode)

    def ticks(self, k: int, now_ns: int) -> int:
        """Virtual clock: up to k ticks, the first at now_ns, each one period later; the number done (fewer:
        finished, stopped or disarmed)."""
        cdef int64_t now = now_ns
        cdef int n = k, done = 0
        cdef unsigned long long mode
        if not self.r.armed:
            raise RuntimeError("ticks() before begin()")
        with nogil:
            mode = denormals_off()
            while done < n and not rig_finished(&self.r) and not load_acquire_u32(&self.r.command) & CMD_STOP:
                if self.r.disarm == DISARM_SILENT and load_acquire_u32(&self.r.command) & CMD_DISARM:
                    break
                self.r.heartbeat += 1
                rig_tick(&self.r, now)
                now += self.r.period_ns
                done += 1
            denormals_restore(mode)
        return done

    def replay(self, record: bytes, offset: int = 0) -> int:
        """Run the tick of the input record at `offset` of `record`; the offset behind it."""
        cdef const unsigned char* raw = record
        cdef input_head_t head
        cdef size_t size = len(record)
        cdef size_t at = offset
        cdef unsigned long long mode
        status = rig_feed(&self.r, raw + at, size - at if at < size else 0, &head)
        if status:
            what = FEED_TEXTS[status].format(n=head.n_bytes, tick=head.tick, next=self.r.tick)
            raise ValueError(f"input record at byte {offset}: {what}")
        if head.flags & INPUT_CONTROL:
            self._control.post_record()
        at += head.n_bytes
        with nogil:
            mode = denormals_off()
            rig_tick(&self.r, head.now_ns)
            denormals_restore(mode)
        return at

    # --- reading: any thread, any time -----------------------------------------------------------------------

    @property
    def heartbeat(self) -> int:
        """Wakes so far; a loop whose heartbeat stands still is hung."""
        return load_relaxed_i64(&self.r.heartbeat)

    @property
    def tick(self) -> int:
        """Ticks done since arming."""
        return load_relaxed_i64(&self.r.tick)

    @property
    def sim_tick(self) -> int:
        """Simulated ticks done: those since arming, and those before the checkpoint the run went on from."""
        return load_relaxed_i64(&self.r.tick) + load_relaxed_i64(&self.r.tick_from)

    @property
    def tick_s(self) -> float:
        """Period in s."""
        return self.r.tick_s

    @property
    def armed(self) -> bool:
        """Tick 0 has begun."""
        return load_acquire_i32(&self.r.armed) != 0

    @property
    def running(self) -> bool:
        """run() is inside the loop."""
        return load_acquire_i32(&self.r.running) != 0

    @property
    def stopped(self) -> bool:
        """stop() was called."""
        return load_acquire_u32(&self.r.command) & CMD_STOP != 0

    @property
    def muted(self) -> bool:
        """The watchdog found the loop hung: nothing is sent any more in this run."""
        return load_acquire_i32(&self.r.muted) != 0

    @property
    def state(self) -> str:
        """off (before arming), armed, disarming (ramping down), disarmed (silent until arm()), safe."""
        if self.safe_latched:
            return "safe"
        if not self.armed:
            return "off"
        disarm = load_acquire_i32(&self.r.disarm)
        return "armed" if disarm == DISARM_NO else "disarmed" if disarm == DISARM_SILENT else "disarming"

    @property
    def finished(self) -> bool:
        """The run has its ticks or has shown its safe state long enough."""
        return rig_finished(&self.r)

    @property
    def safe_latched(self) -> bool:
        """The safe state is latched."""
        return load_acquire_i32(&self.r.safe_latched) != 0

    @property
    def idle_frames(self) -> int:
        """Frames that came before arming."""
        return self.r.idle_frames

    @property
    def state_hash(self) -> int:
        """64-bit hash over all signals of all ticks so far and the kernel's state; equal inputs give equal hashes."""
        cdef uint64_t h = self.r.hash
        if self.r.model != NULL:
            h = (h ^ tl_state_hash(self.r.model, self.r.state)) * <uint64_t>0x9E3779B97F4A7C15
        return h

    def value(self, slot: int) -> float:
        """Signal now (while the loop runs: of some recent tick)."""
        return self.r.sig[self.slot(slot)]

    def values(self, slots: list) -> list:
        """Several signals now."""
        return [self.r.sig[self.slot(slot)] for slot in slots]

    def cause(self) -> dict:
        """The safe state: latched, cause, its detail and tick. A hung loop cannot take over what the watchdog asked
        for: then that is the cause."""
        cdef int32_t asked = load_acquire_i32(&self.r.ext_cause)
        if self.r.muted and not self.safe_latched and asked > 0:
            return {
                "latched": True, "cause": CAUSES[asked], "detail": self.r.ext_detail, "tick": self.tick, "frozen": False,
            }
        return {
            "latched": self.safe_latched, "cause": CAUSES[self.r.cause], "detail": self.r.cause_detail,
            "tick": self.r.cause_tick if self.safe_latched else -1, "frozen": bool(self.r.frozen),
        }

    def counters(self) -> dict:
        """Everything the tick counted, in the words of docs/clock.md."""
        return {
            "ticks": self.r.tick, **self.account.counters(self.r.tick_s),
            "arm_ns": self.r.arm_ns, "end_ns": self.r.end_ns,
            "rx_frames": self.r.rx_frames, "rx_bad": self.r.rx_bad, "tx_frames": self.r.tx_frames,
            "tx_dropped": self.r.tx_dropped,
            "idle_frames": self.r.idle_frames, "vehicle_taken": self.r.veh_taken, "vehicle_refused": self.r.veh_refused,
            "vehicle_stale_ticks": self.r.veh_stale_ticks, "vehicle_age_max_ms": self.r.veh_age_max_ns / 1e6,
            "vehicle_echo_max_ticks": self.r.veh_echo_max,
            "rx_ring_dropped": self.r.rx_ring.dropped if self.r.rx_ring != NULL else 0,
        }
