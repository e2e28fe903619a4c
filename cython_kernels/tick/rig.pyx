"""The rig as a Python object: owns the memory of a rig_t, is filled by the session, runs it without the GIL.

    rig = Rig(n_sig, tick_s)            then set_model, set_wiring, add_bus, set_vehicle, set_safe_state, set_clock,
    set_record
    rig.arm(); rig.run()                real clock: blocks, in a thread of its own; stop() from any thread
    rig.arm(); rig.ticks(k, now_ns)     virtual clock: k ticks without wake; the session runs the peers in between
    rig.arm(); rig.replay(record)       one tick from its input record

All set_ functions allocate; nothing is allocated from arm() on.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from torqueloop.cython_kernels.clock.account cimport Account
from torqueloop.cython_kernels.clock.atomic cimport (
    load_acquire_i32,
    load_acquire_u32,
    load_relaxed_i64,
)
from torqueloop.cython_kernels.can.codec cimport CodecTables, RxState, TxState
from torqueloop.cython_kernels.tick.control cimport Control
from torqueloop.cython_kernels.clock.denormals cimport denormals_off, denormals_restore
from torqueloop.cython_kernels.tick.first_fault cimport FirstFault
from torqueloop.cython_kernels.clock.heartbeat cimport Heartbeat
from torqueloop.cython_kernels.clock.loop_clock cimport ClockScript
from torqueloop.cython_kernels.kernel.kernel cimport KernelModel, KernelState, tl_state_hash
from torqueloop.cython_kernels.rings.ring cimport DataRing, FrameRing, LatestSlot
from torqueloop.cython_kernels.tick.faults cimport FaultTable
from torqueloop.cython_kernels.tick.hydraulics cimport Hydraulics
from torqueloop.cython_kernels.tick.scenario cimport Scenario
from torqueloop.cython_kernels.tick.rig_memory cimport RigMemory
from torqueloop.cython_kernels.tick.safety cimport Safety
from torqueloop.cython_kernels.can.socketcan cimport NativePort
from torqueloop.cython_kernels.tick.transaction cimport CTL_WRITES
from torqueloop.cython_kernels.tick.words cimport WORDS_BLOCK
from torqueloop.cython_kernels.tick.tick cimport (
    CAUSE_BUS,
    CAUSE_ENCODE,
    CAUSE_TCU_FRAMES,
    CAUSE_TCU_SILENT,
    CMD_ARM,
    CMD_DISARM,
    CMD_STOP,
    DISARM_NO,
    DISARM_SILENT,
    FRAME_BYTES,
    INPUT_CONTROL,
    MAX_BUS,
    MAX_PINS,
    MAX_MORE,
    MAX_VEHICLE,
    N_BUS,
    N_RIG,
    N_VEHICLE,
    POLICY_CATCH_UP,
    POLICY_SKIP,
    POLICY_STOP,
    RX_PER_TICK,
    SAMPLE_HEAD,
    bus_entry_t,
    bus_t,
    copy_t,
    driver_t,
    input_head_t,
    limit_t,
    pins_t,
    range_t,
    rig_arm,
    rig_command,
    rig_external,
    rig_feed,
    rig_finished,
    rig_run,
    rig_tick,
    safe_t,
    sample_t,
    tx_t,
)

#: names of the causes of the safe state, by number (tick.pxd CAUSE_*)
CAUSES = (
    "none", "not_finite", "limit", "overruns", "tcu_silent", "vehicle_silent", "vehicle_data", "solver", "hung",
    "thread", "bus", "request", "tcu_frames", "encode", "output", "missed", "io",
)
#: what is counted on each bus
BUS_COUNTERS = ("rx_frames", "rx_bad", "tx_frames", "tx_dropped", "idle_frames", "rx_ring_dropped")
POLICIES = {"catch_up": POLICY_CATCH_UP, "skip": POLICY_SKIP, "stop": POLICY_STOP}
#: what is wrong with an input record (tick.pxd FEED_*)
FEED_TEXTS = (
    "", "head cut off", "{n} bytes are too few or too many for what it holds", "is tick {tick}; needed: tick {next}",
    "holds values of a link this rig does not have", "a frame is cut off", "holds a transaction this rig does not take",
)
#: size of the head of an input record (tick.pxd input_head_t) and of the fixed part of a sample record
INPUT_HEAD_BYTES = sizeof(input_head_t)
SAMPLE_HEAD_BYTES = SAMPLE_HEAD


cdef class Rig(RigMemory):
    """One rig. Slots are indices into the signal table; slot 0 always reads 0, slot 1 is a sink that is never read."""

    def __cinit__(self, n_sig: int, tick_s: float):
        cdef Account account = Account()
        self.account, self.lateness, self.compute = account, account.lateness, account.compute
        self.r.account = &account.a
        self.r.grid.n_ticks = self.r.grid.safe_stop_ticks = -1
        self.r.rec.every = self.r.grid.max_catch_up = 1
        self.r.veh.refuse_limit = 1
        self.r.grid.policy = POLICY_CATCH_UP

    # --- construction: before arming -------------------------------------------------------------------------

    def set_initial(self, values: dict) -> None:
        """Values of signals at arming: slot -> value in SI (all others 0)."""
        for slot, value in values.items():
            self.r.sig0[self.slot(slot)] = value
            self.r.sig[slot] = value

    def set_rig_slots(self, time: int, tick: int, status: int, cause: int) -> None:
        """Slots of the rig's own signals: simulated time at the end of the tick, tick, status (RIG_*), cause."""
        self.r.own.time, self.r.own.tick = self.slot(time), self.slot(tick)
        self.r.own.status, self.r.own.cause = self.slot(status), self.slot(cause)

    def set_model(self, KernelModel model not None, KernelState state not None, in_slot: int, out_slot: int,
            substeps: int):
        """Physics: inputs are n_in slots from in_slot on, outputs n_out slots from out_slot on."""
        if abs(model.h * substeps - self.r.grid.tick_s) > 1e-12:
            wanted = self.r.grid.tick_s / substeps
            raise ValueError(f"step h = {model.h} s, {substeps} substeps: allowed: h = tick_s / substeps = {wanted} s")
        self.r.plant.model, self.r.plant.state, self.r.plant.substeps = model.ptr, state.ptr, substeps
        self.r.plant.n_in, self.r.plant.n_out = model.ptr.nin, model.ptr.nout
        self.r.plant.in_slot, self.r.plant.out_slot = in_slot, out_slot
        self.slot(in_slot + max(0, self.r.plant.n_in - 1))
        self.slot(out_slot + max(0, self.r.plant.n_out - 1))
        # whole blocks: see not_finite
        self.r.plant.out_new = <double*>self.block((self.r.plant.n_out // WORDS_BLOCK + 1) * WORDS_BLOCK * sizeof(double))
        self._keep += [model, state]

    def set_wiring(self, inputs: list, outputs: list, drivers: list) -> None:
        """inputs, outputs: (src, dst, gain, offset) copied before the step and before sending; drivers:
        (slot, [t_s], [y])."""
        cdef int32_t at = 0, total
        cdef double* points
        self.wire(&self.r.in_copy, inputs)
        self.wire(&self.r.out_copy, outputs)
        total = sum(len(t) for _, t, _ in drivers)
        self.r.driver = <driver_t*>self.block(len(drivers) * sizeof(driver_t))
        points = <double*>self.block(2 * total * sizeof(double))
        self.r.n_driver = len(drivers)
        for k, (slot, t, y) in enumerate(drivers):
            if not t or len(t) != len(y) or any(b < a for a, b in zip(t, t[1:])):
                raise ValueError(f"driver table of slot {slot}: times must not decrease and every time needs a value")
            self.r.driver[k].slot, self.r.driver[k].n = self.slot(slot), len(t)
            self.r.driver[k].t, self.r.driver[k].y = points + at, points + total + at
            for a, b in zip(t, y):
                points[at], points[total + at] = a, b
                at += 1

    def set_vehicle(self, LatestSlot received not None, LatestSlot sent not None, link) -> None:
        """Vehicle link; link: VehicleRows."""
        if len(link.more) > MAX_MORE:
            raise ValueError(f"{len(link.more)} signals for the vehicle: allowed {MAX_MORE}")
        if received.s.n != N_VEHICLE or sent.s.n != N_RIG + len(link.more):
            raise ValueError(f"vehicle slots of {received.s.n} and {sent.s.n}: {N_VEHICLE} and {N_RIG + len(link.more)}")
        self.r.veh.received, self.r.veh.sent = &received.s, &sent.s
        self.r.veh.slot = self.slot(link.first_slot + N_VEHICLE - 1) - N_VEHICLE + 1
        self.r.veh.ramped = link.ramped
        self.r.veh.age_limit_ns = round(link.age_limit_s * 1e9)
        self.r.veh.hold_ns = round(link.hold_s * 1e9)
        self.r.veh.ramp_ns = max(1, round(link.ramp_s * 1e9))
        self.r.veh.refuse_limit = link.refuse_limit
        self.r.veh.momentum, self.r.veh.n_momentum = self.copies(link.momentum), len(link.momentum)
        self.r.veh.force, self.r.veh.n_force = self.copies(link.force), len(link.force)
        self.r.own.I_wheel, self.r.own.F_wheel = self.slot(link.impulse_slot), self.slot(link.force_slot)
        self.r.veh.out_speed, self.r.veh.out_s = self.slot(link.speed_slot), self.slot(link.distance_slot)
        self.r.veh.out_brake = self.slot(link.brake_slot)
        self.r.veh.more, self.r.veh.n_more = <int32_t*>self.block(len(link.more) * sizeof(int32_t)), len(link.more)
        for k, slot in enumerate(link.more):
            self.r.veh.more[k] = self.slot(slot)
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
        self.r.grid.safe_stop_ticks = stop_after_ticks

    def set_hydraulics(self, Hydraulics unit not None) -> None:
        """The hydraulic unit, run before the model's inputs are copied."""
        self.made_for("hydraulic unit", unit.n_sig)
        self.r.hydraulics = &unit.m
        self._keep.append(unit)

    def set_scenario(self, Scenario scenario not None) -> None:
        """Steps that move driver signals; the run ends when they are over."""
        self.made_for("scenario", scenario.n_sig)
        self.r.scenario = &scenario.m
        self._keep.append(scenario)

    def set_safety(self, Safety safety not None) -> None:
        """Limits of what is sent."""
        self.made_for("safety", safety.n_sig)
        self.r.safety = &safety.s
        self._keep.append(safety)

    def set_faults(self, FaultTable faults not None) -> None:
        """Faults to inject; after add_bus."""
        self.made_for("faults", faults.n_sig)
        for k in range(faults.f.n_fault):
            self.check_fault(k, &faults.f.fault[<int>k])
        self.r.faults = &faults.f
        self._keep.append(faults)

    def set_clock(self, policy: str = "catch_up", max_catch_up: int = 5, overrun_limit: int = 0,
            n_ticks: int = -1, grace_ticks: int = 0, spin_us: float = 0.0) -> None:
        """Policy after a stall; overrun_limit overruns in a row latch the safe state (0: never); n_ticks: end (-1:
        none); grace_ticks: the first ticks, counted apart; spin_us: the last part of the wait looks at the clock."""
        if policy not in POLICIES:
            raise ValueError(f"policy {policy!r}: allowed {', '.join(POLICIES)}")
        self.r.grid.policy, self.r.grid.max_catch_up = POLICIES[policy], max_catch_up
        if not 0.0 <= spin_us * 1e-6 <= 0.5 * self.r.grid.tick_s or grace_ticks < 0 or max_catch_up < 1:
            raise ValueError(
                f"spin_us {spin_us}, grace_ticks {grace_ticks}, max_catch_up {max_catch_up}: allowed 0 .. half a "
                "period, >= 0, >= 1")
        self.r.grid.overrun_limit, self.r.grid.n_ticks = overrun_limit, n_ticks
        self.r.account.grace_ticks, self.r.grid.spin_ns = grace_ticks, round(spin_us * 1e3)

    def set_script(self, ClockScript script not None) -> None:
        """Run by a script instead of the real clock (tests of the clock's rules)."""
        script.s.arm_bit, script.s.stop_bit, script.s.disarm_bit = CMD_ARM, CMD_STOP, CMD_DISARM
        self.r.grid.script = &script.s
        self._keep.append(script)

    def set_record(self, slots: list, DataRing samples, DataRing inputs, DataRing bus, DataRing modes,
            every: int = 1) -> None:
        """Rings for sample records of the given slots, input records, bus frames, mode changes (None: not published)."""
        cdef range_t* last
        self.r.rec.sample = <sample_t*>self.block(sizeof(sample_t) + len(slots) * sizeof(double))
        self.r.rec.range = <range_t*>self.block(len(slots) * sizeof(range_t))
        self.r.rec.n, self.r.rec.every, self.r.rec.n_range = len(slots), every, 0
        for slot in slots:
            last = &self.r.rec.range[self.r.rec.n_range - 1]  # one before the first: not looked at
            if self.r.rec.n_range == 0 or self.slot(slot) != last.first + last.n:
                last += 1
                last.first = self.slot(slot)
                self.r.rec.n_range += 1
            last.n += 1
        self.r.rec.sample_ring = &samples.r if samples is not None else NULL
        self.r.rec.input_ring = &inputs.r if inputs is not None else NULL
        self.r.rec.bus_ring = &bus.r if bus is not None else NULL
        self.r.rec.mode_ring = &modes.r if modes is not None else NULL
        self._keep += [samples, inputs, bus, modes]

    def set_control(self, Control control not None) -> None:
        """Control channel: transactions posted there are taken at the top of a tick."""
        self.r.ctl = &control.c
        self._control = control

    def image_sizes(self) -> tuple:
        """Sizes of an Image of this rig."""
        nx = self.r.plant.state.nx if self.r.plant.model != NULL else 0
        nk = self.r.plant.state.nk if self.r.plant.model != NULL else 0
        guards = self.r.safety.n_guard if self.r.safety != NULL else 0
        faults = self.r.faults.n_fault if self.r.faults != NULL else 0
        sending = sum(self.sending_words(k) for k in range(self.r.n_bus))
        queue = self.r.faults.n_queue if self.r.faults != NULL else 0
        messages = sum(self.r.bus[k].codec.n_messages for k in range(self.r.n_bus))
        return self.r.n_sig, nx, nk, messages, self.r.n_driver, guards, faults, queue, sending

    def set_first_fault(self, FirstFault ring not None) -> None:
        """Ring that keeps every tick of the recorded signals around the first fault; after set_record."""
        if ring.n_signals != self.r.rec.n:
            raise ValueError(f"first-fault ring for {ring.n_signals} signals, {self.r.rec.n} are recorded")
        self.r.rec.first_fault = &ring.f
        self._keep.append(ring)

    def inject_busy(self, first_tick: int, count: int, busy_ns: int) -> None:
        """Fault injection: ticks first_tick .. first_tick+count-1 burn busy_ns of CPU before their step."""
        self.r.grid.inject_tick, self.r.grid.inject_count, self.r.grid.inject_ns = first_tick, count, busy_ns

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
                self.r.beat.beats += 1
                rig_tick(&self.r, now)
                now += self.r.grid.period_ns
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
        return load_relaxed_i64(&self.r.beat.beats)

    @property
    def pulse(self) -> Heartbeat:
        """The heartbeat itself, for a watchdog."""
        cdef Heartbeat found = Heartbeat()
        found.h, found.owner = &self.r.beat, self
        return found

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
        return self.r.grid.tick_s

    @property
    def armed(self) -> bool:
        """Tick 0 has begun."""
        return load_acquire_i32(&self.r.armed) != 0

    @property
    def running(self) -> bool:
        """run() is inside the loop."""
        return load_acquire_i32(&self.r.beat.running) != 0

    @property
    def stopped(self) -> bool:
        """stop() was called."""
        return load_acquire_u32(&self.r.command) & CMD_STOP != 0

    @property
    def muted(self) -> bool:
        """The watchdog found the loop hung: nothing is sent any more in this run."""
        return load_acquire_i32(&self.r.beat.muted) != 0

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
        return load_acquire_i32(&self.r.latch.latched) != 0

    @property
    def idle_frames(self) -> int:
        """Frames that came before arming, on all buses."""
        return sum(self.r.bus[k].idle_frames for k in range(self.r.n_bus))

    def bus_counters(self, bus: int) -> dict:
        """What the tick counted on one bus."""
        cdef bus_t* b = self.bus_of(bus)
        return {
            "rx_frames": b.rx_frames, "rx_bad": b.rx_bad, "tx_frames": b.tx_frames, "tx_dropped": b.tx_dropped,
            "idle_frames": b.idle_frames, "rx_ring_dropped": b.rx_ring.dropped,
        }

    @property
    def state_hash(self) -> int:
        """64-bit hash over all signals of all ticks so far and the kernel's state; equal inputs give equal hashes."""
        cdef uint64_t h = self.r.hash
        if self.r.plant.model != NULL:
            h = (h ^ tl_state_hash(self.r.plant.model, self.r.plant.state)) * <uint64_t>0x9E3779B97F4A7C15
        return h

    def value(self, slot: int) -> float:
        """Signal now (while the loop runs: of some recent tick)."""
        return self.r.sig[self.slot(slot)]

    def values(self, slots: list) -> list:
        """Several signals now."""
        return [self.r.sig[self.slot(slot)] for slot in slots]

    def cause(self) -> dict:
        """The safe state: latched, cause, its detail and tick; bus: number of the bus it is about, else -1. A hung loop
        cannot take over what the watchdog asked for: then that is the cause."""
        cdef int32_t asked = load_acquire_i32(&self.r.beat.asked)
        cdef int32_t cause = self.r.latch.cause
        cdef int64_t detail = self.r.latch.detail
        hung = self.r.beat.muted and not self.safe_latched and asked > 0
        if hung:
            cause, detail = asked, self.r.beat.asked_detail
        cdef int32_t on = <int32_t>(detail >> 32), low = <int32_t>detail
        bus = -1
        if cause in (CAUSE_BUS, CAUSE_TCU_SILENT, CAUSE_TCU_FRAMES, CAUSE_ENCODE):
            bus, detail = on, low
        latched = hung or self.safe_latched
        return {
            "latched": latched, "cause": CAUSES[cause], "detail": detail, "bus": bus,
            "tick": self.tick if hung else self.r.latch.tick if latched else -1,
            "frozen": bool(self.r.frozen) and not hung,
        }

    def counters(self) -> dict:
        """Everything the tick counted, in the words of docs/clock.md."""
        return {
            "ticks": self.r.tick, **self.account.counters(self.r.grid.tick_s),
            "arm_ns": self.r.arm_ns, "end_ns": self.r.end_ns,
            **{name: sum(self.bus_counters(k)[name] for k in range(self.r.n_bus)) for name in BUS_COUNTERS},
            "vehicle_taken": self.r.veh.taken, "vehicle_refused": self.r.veh.refused,
            "vehicle_stale_ticks": self.r.veh.stale_ticks, "vehicle_age_max_ms": self.r.veh.age_max_ns / 1e6,
            "vehicle_echo_max_ticks": self.r.veh.echo_max,
        }
