"""The tick and the loop that schedules it: everything between the first wake and the stop, without the GIL.

Order of a tick, the same on every clock (real, virtual, replay):

    latch     command word and causes from outside, received frames -> codec -> signals, timeouts, vehicle value,
    driver tables
    inputs    wiring copies signals to model inputs; the safe state overrides them
    step      n substeps of the model, inputs held over the tick
    outputs   model outputs -> signals, checked for NaN and limits; impulse for the vehicle
    tx        messages that are due are encoded and pushed
    publish   vehicle slot, sample, input, bus and mode records into their rings

Tick k takes simulated time from k*T to (k+1)*T; its record and the frames it sends hold the state at (k+1)*T.

Clock words, used alike in counters, report and gates. The grid is t_arm + k*T on the monotonic clock.

    lateness   time from a grid point to the wake-up that serves it
    overrun    a tick whose work ends after its next grid point (whether it took long or began late)
    missed     a grid point whose tick began one period T late or more, or was never run
    slip       T times the grid points never run: simulated time is behind wall time by it. Physics always advances by
    T per tick run
    margin     time between the end of a tick and its next grid point

Policies after a stall. catch_up: late ticks run at once, one after the other, at most max_catch_up of them; what is
further
behind is dropped (slip). skip: all grid points passed are dropped, the tick runs once and the next one is on the grid
again.
stop: a missed grid point latches the safe state and ends the run.

Replay: a tick depends on nothing but its input record (time of waking, frames, vehicle value, cause from outside), so a
recorded real-time run gives the same state hash when its input records are fed through the same function.
"""

from libc.math cimport isfinite
from libc.string cimport memcpy, memset
from posix.unistd cimport write

from torqueloop.cython_kernels.atomic cimport (
    fetch_and_u32,
    fetch_or_u32,
    load_acquire_i32,
    load_acquire_u32,
    store_relaxed_i64,
    store_release_i32,
    store_release_i64,
    swap_if_i32,
)
from torqueloop.cython_kernels.clock cimport monotonic_ns, sleep_until_ns, spin_ns
from torqueloop.cython_kernels.codec cimport (
    CODEC_NAN,
    CODEC_OK,
    CODEC_UNKNOWN,
    codec_check_timeouts,
    codec_decode,
    codec_encode,
    codec_rx_arm,
)
from torqueloop.cython_kernels.histogram cimport hist_add, hist_clear
from torqueloop.cython_kernels.model cimport tl_outputs, tl_step
from torqueloop.cython_kernels.ring cimport data_push, frames_pop, frames_push, slot_read, slot_write

#: upper bits of a frame's flags in the bus log (hil/record/bus_log.py): sent by the rig; received, but refused
cdef uint8_t BUS_TX = 0x80
cdef uint8_t BUS_REFUSED = 0x40
cdef uint64_t HASH_SEED = 0xCBF29CE484222325U
cdef uint64_t HASH_FACTOR = 0x9E3779B97F4A7C15U
cdef int64_t NS_PER_MS = 1_000_000


# --- safe state ----------------------------------------------------------------------------------------------


cdef void rig_latch(rig_t* r, int32_t cause, int64_t detail) noexcept nogil:
    """Latch the safe state with its first cause; later causes change nothing. real-time: yes."""
    cdef int i
    if r.safe_latched:
        return
    r.cause = cause
    r.cause_detail = detail
    r.cause_tick = r.tick
    if cause == CAUSE_NOT_FINITE or cause == CAUSE_SOLVER:
        # the state is not usable any more: no further step, and nothing is sent that nobody can vouch for
        r.frozen = 1
    for i in range(r.n_safe):
        r.safe[i].start = r.sig[r.safe[i].slot]
        if not isfinite(r.safe[i].start):
            r.safe[i].start = r.safe[i].target
    store_release_i32(&r.safe_latched, 1)


cdef bint rig_external(rig_t* r, int32_t cause, int64_t detail) noexcept nogil:
    """Ask for the safe state from any thread; taken over (and recorded) by the next tick. True if it was the first."""
    if swap_if_i32(&r.ext_cause, CAUSE_NONE, -1):
        # -1 reserves the word while the detail is written
        store_relaxed_i64(&r.ext_detail, detail)
        store_release_i32(&r.ext_cause, cause)
        return True
    return False


cdef void rig_command(rig_t* r, uint32_t set_bits, uint32_t clear_bits) noexcept nogil:
    """Change bits of the command word from any thread."""
    if clear_bits:
        fetch_and_u32(&r.command, ~clear_bits)
    if set_bits:
        fetch_or_u32(&r.command, set_bits)


# --- phases of a tick ----------------------------------------------------------------------------------------


include "tick_latch.pxi"


cdef void _inputs(rig_t* r) noexcept nogil:
    cdef int i
    cdef double x
    cdef double* inp
    for i in range(r.n_in_copy):
        r.sig[r.in_copy[i].dst] = r.in_copy[i].gain * r.sig[r.in_copy[i].src] + r.in_copy[i].offset
    if r.safe_latched:
        for i in range(r.n_safe):
            x = (r.tick - r.cause_tick) * r.tick_s
            x = x / r.safe[i].ramp_s if x < r.safe[i].ramp_s else 1.0
            r.sig[r.safe[i].slot] = r.safe[i].start + (r.safe[i].target - r.safe[i].start) * x
    if r.model != NULL and r.n_in > 0:
        inp = r.state.inp
        for i in range(3):
            memcpy(inp + i * r.n_in, r.sig + r.in_slot, r.n_in * sizeof(double))


cdef void _step(rig_t* r) noexcept nogil:
    cdef int i, status
    for i in range(r.substeps):
        status = tl_step(r.model, r.state)
        if status != 0:
            rig_latch(r, CAUSE_NOT_FINITE if status == 1 else CAUSE_SOLVER, status)
            return


cdef double _combine(const rig_t* r, const copy_t* terms, int n) noexcept nogil:
    cdef double total = 0.0
    cdef int i
    for i in range(n):
        total += terms[i].gain * r.sig[terms[i].src]
    return total


cdef void _outputs(rig_t* r) noexcept nogil:
    cdef int i
    cdef double momentum, force, value
    if r.model != NULL and not r.frozen:
        tl_outputs(r.model, r.state, r.out_new)
        for i in range(r.n_out):
            if not isfinite(r.out_new[i]):
                rig_latch(r, CAUSE_NOT_FINITE, r.out_slot + i)
                break
        if not r.frozen:
            # after a fault the last good outputs stay in the table
            memcpy(r.sig + r.out_slot, r.out_new, r.n_out * sizeof(double))
    # Impulse of the tractive force: m dv/dt = F_wheel + F_road  =>  I += d(m v) - T * mean(F_road) over the tick
    momentum = _combine(r, r.momentum, r.n_momentum)
    force = _combine(r, r.force, r.n_force)
    value = (momentum - r.momentum_last) + r.tick_s * 0.5 * (force + r.force_last)
    r.I_wheel += value
    r.momentum_last = momentum
    r.force_last = force
    r.sig[r.slot_F_wheel] = value / r.tick_s
    r.sig[r.slot_I_wheel] = r.I_wheel
    for i in range(r.n_limit):
        value = r.sig[r.limit[i].slot]
        if not (r.limit[i].lo <= value <= r.limit[i].hi):
            rig_latch(r, CAUSE_LIMIT, i)
            break
    r.sig[r.slot_time] = (r.tick + 1) * r.tick_s
    r.sig[r.slot_tick] = <double>r.tick
    r.sig[r.slot_status] = RIG_FAULT if r.frozen else RIG_SAFE if r.safe_latched else RIG_RUNNING
    r.sig[r.slot_cause] = r.cause
    for i in range(r.n_out_copy):
        r.sig[r.out_copy[i].dst] = r.out_copy[i].gain * r.sig[r.out_copy[i].src] + r.out_copy[i].offset


cdef void _send(rig_t* r, int64_t now_ns, uint32_t* flags) noexcept nogil:
    cdef can_frame_t frame
    cdef tx_t* due
    cdef int i, status
    cdef bint any_sent = False
    cdef uint64_t one = 1
    if r.frozen:
        return
    for i in range(r.n_tx):
        due = &r.tx_plan[i]
        if r.tick < due.offset or (r.tick - due.offset) % due.period != 0:
            continue
        status = codec_encode(r.codec, r.tx, due.message, r.sig, &frame)
        if status == CODEC_NAN:
            rig_latch(r, CAUSE_ENCODE, due.message)
            continue
        frame.t_ns = now_ns
        if frames_push(r.tx_ring, &frame):
            r.tx_frames += 1
            r.tx_dropped_in_row = 0
            any_sent = True
            _log_frame(r, &frame, now_ns, BUS_TX)
        else:
            r.tx_dropped += 1
            r.tx_dropped_in_row += 1
            flags[0] |= FLAG_TX_DROPPED
            if r.tx_dropped_in_row >= <uint64_t>r.tx_drop_limit:
                rig_latch(r, CAUSE_BUS, <int64_t>r.tx_dropped_in_row)
    if any_sent and r.bell_fd > 0:
        # wake the sending thread; an eventfd never blocks the writer (it is non-blocking), a lost ring costs its next
        # look
        write(r.bell_fd, &one, sizeof(one))


cdef void _publish_modes(rig_t* r) noexcept nogil:
    cdef mode_t record
    cdef tl_state* s = r.state
    cdef int64_t at
    cdef int n = 0
    if s.log_n - r.mode_seen > s.log_size:
        r.mode_seen = s.log_n - s.log_size
    while r.mode_seen < s.log_n and n < MODES_PER_TICK:
        at = r.mode_seen % s.log_size
        record.step = s.log_step[at]
        record.t_s = s.log_t[at]
        record.element = s.log_el[at]
        record.mode = s.log_mode[at]
        data_push(r.mode_ring, &record, sizeof(mode_t))
        r.mode_seen += 1
        n += 1


cdef void _publish(rig_t* r, int64_t now_ns, int64_t begin_ns, input_head_t* head, uint32_t flags) noexcept nogil:
    cdef double value[N_RIG]
    cdef sample_t* sample = &r.sample
    cdef uint64_t h = r.hash
    cdef const uint64_t* word = <const uint64_t*>r.sig
    cdef int i
    for i in range(r.n_sig):
        h = (h ^ word[i]) * HASH_FACTOR
        h ^= h >> 29
    r.hash = h
    if r.veh_out != NULL:
        value[0] = <double>(r.tick + 1)
        value[1] = r.sig[r.slot_time]
        value[2] = r.sig[r.slot_F_wheel]
        value[3] = r.I_wheel
        value[4] = r.sig[r.out_speed]
        value[5] = r.sig[r.out_s]
        value[6] = r.sig[r.out_brake]
        slot_write(r.veh_out, value, now_ns)
    if r.sample_ring != NULL and r.tick % r.rec_every == 0:
        sample.tick = r.tick
        sample.t_wall_ns = now_ns
        sample.wake_lateness_ns = r.lateness_ns
        sample.flags = flags
        sample.status = STATUS_ARMED | (STATUS_SAFE if r.safe_latched else 0) | (STATUS_FROZEN if r.frozen else 0)
        sample.status |= <uint32_t>r.cause << 8
        for i in range(r.n_rec):
            sample.out[i] = r.sig[r.rec_slot[i]]
        sample.compute_ns = <int32_t>min(monotonic_ns() - begin_ns, <int64_t>0x7FFFFFFF)
        data_push(r.sample_ring, sample, <uint32_t>(32 + 8 * r.n_rec))
    if r.input_ring != NULL:
        head.n_bytes = <uint32_t>(sizeof(input_head_t) + head.n_frames * sizeof(can_frame_t))
        if head.flags & 1:
            head.n_bytes += 8 + N_VEHICLE * sizeof(double)
        memcpy(r.input_record, head, sizeof(input_head_t))
        data_push(r.input_ring, r.input_record, head.n_bytes)
    if r.mode_ring != NULL and r.model != NULL:
        _publish_modes(r)


cdef inline int64_t _phase(rig_t* r, int phase, int64_t since) noexcept nogil:
    cdef int64_t now = monotonic_ns()
    r.phase_sum_ns[phase] += now - since
    if now - since > r.phase_max_ns[phase]:
        r.phase_max_ns[phase] = now - since
    return now


cdef void rig_tick(rig_t* r, int64_t now_ns) noexcept nogil:
    """One tick; now_ns is the time of waking (an input: ages and timeouts are counted from it). real-time: yes."""
    cdef int64_t begin = monotonic_ns()
    cdef int64_t t = begin
    cdef uint32_t flags = r.flags_next
    cdef input_head_t head
    cdef int32_t cause
    r.flags_next = 0
    memset(&head, 0, sizeof(head))
    head.tick = r.tick
    head.now_ns = now_ns
    cause = load_acquire_i32(&r.ext_cause)
    if cause > CAUSE_NONE and not r.safe_latched:
        head.cause = cause
        head.detail = r.ext_detail
        rig_latch(r, cause, r.ext_detail)
    if r.codec != NULL:
        _latch_can(r, now_ns, &head, &flags)
    if r.veh_in != NULL:
        _latch_vehicle(r, now_ns, &head, &flags)
    _latch_driver(r)
    t = _phase(r, PHASE_LATCH, t)
    _inputs(r)
    t = _phase(r, PHASE_INPUTS, t)
    if r.inject_ns > 0 and r.inject_tick <= r.tick < r.inject_tick + r.inject_count:
        spin_ns(r.inject_ns)
    if r.model != NULL and not r.frozen:
        _step(r)
    t = _phase(r, PHASE_STEP, t)
    _outputs(r)
    t = _phase(r, PHASE_OUTPUTS, t)
    if r.codec != NULL:
        _send(r, now_ns, &flags)
    t = _phase(r, PHASE_TX, t)
    _publish(r, now_ns, begin, &head, flags)
    store_release_i64(&r.tick, r.tick + 1)
    t = _phase(r, PHASE_PUBLISH, t)
    hist_add(r.compute, t - begin)


# --- life of the loop ----------------------------------------------------------------------------------------


cdef void rig_arm(rig_t* r, int64_t now_ns) noexcept nogil:
    """Begin: signals at their start values, counters at zero, ages counted from now. Nothing was sent before.
    real-time: yes."""
    cdef can_frame_t frame
    cdef int i
    if r.codec != NULL:
        # what came before arming is not part of the run (a replay could not know it)
        while frames_pop(r.rx_ring, &frame):
            r.idle_frames += 1
        codec_rx_arm(r.codec, r.rx, now_ns)
    memcpy(r.sig, r.sig0, r.n_sig * sizeof(double))
    if r.model != NULL:
        tl_outputs(r.model, r.state, r.sig + r.out_slot)
        r.mode_seen = r.state.log_n
    for i in range(r.n_driver):
        r.driver[i].hint = 0
    r.tick = 0
    r.hash = HASH_SEED
    r.veh_version = 0
    r.veh_stamp_ns = now_ns
    r.I_wheel = 0.0
    r.momentum_last = _combine(r, r.momentum, r.n_momentum)
    r.force_last = _combine(r, r.force, r.n_force)
    hist_clear(r.lateness)
    hist_clear(r.compute)
    memset(r.phase_max_ns, 0, sizeof(r.phase_max_ns))
    memset(r.phase_sum_ns, 0, sizeof(r.phase_sum_ns))
    r.margin_min_ns = r.period_ns
    r.arm_ns = now_ns
    store_release_i32(&r.armed, 1)


cdef bint rig_finished(const rig_t* r) noexcept nogil:
    """The run has its ticks, or the safe state has lasted as long as it was to be shown."""
    if r.n_ticks >= 0 and r.tick >= r.n_ticks:
        return True
    return r.safe_latched and r.safe_stop_ticks >= 0 and r.tick - r.cause_tick > r.safe_stop_ticks


cdef void _drop(rig_t* r, int64_t* grid, int64_t n) noexcept nogil:
    grid[0] += n * r.period_ns
    r.dropped += n
    r.missed += n
    r.flags_next |= FLAG_SLIPPED | FLAG_MISSED


cdef void rig_run(rig_t* r) noexcept nogil:
    """The loop on the real clock, until stop, end or POLICY_STOP. real-time: yes.
    Own thread, GIL released throughout."""
    cdef int64_t grid, now, late, behind
    cdef can_frame_t frame
    cdef bint last = False
    r.running = 1
    now = monotonic_ns()
    r.first_wake_ns = now
    grid = now + r.period_ns
    while not last:
        sleep_until_ns(grid)
        now = monotonic_ns()
        store_release_i64(&r.heartbeat, r.heartbeat + 1)
        if load_acquire_u32(&r.command) & CMD_STOP:
            break
        if not r.armed:
            if not (load_acquire_u32(&r.command) & CMD_ARM):
                # idle wakes warm up code, caches and the timer; frames are only counted, nothing is sent
                if r.codec != NULL:
                    while frames_pop(r.rx_ring, &frame):
                        r.idle_frames += 1
                grid = (grid if now - grid < r.period_ns else now) + r.period_ns
                continue
            rig_arm(r, now)
            grid = now
        late = now - grid
        hist_add(r.lateness, late)
        r.lateness_ns = <int32_t>min(late, <int64_t>0x7FFFFFFF)
        behind = late // r.period_ns
        if behind > 0:
            if r.policy == POLICY_SKIP:
                _drop(r, &grid, behind)
            else:
                if r.policy == POLICY_STOP:
                    rig_external(r, CAUSE_OVERRUNS, behind)
                    last = True
                elif behind > r.max_catch_up:
                    _drop(r, &grid, behind - r.max_catch_up)
                r.missed += 1
                r.late_started += 1
                r.flags_next |= FLAG_MISSED
        rig_tick(r, now)
        grid += r.period_ns
        late = monotonic_ns() - grid
        if -late < r.margin_min_ns:
            r.margin_min_ns = -late
        if late > 0:
            r.overruns += 1
            r.overruns_in_row += 1
            r.flags_next |= FLAG_OVERRUN
            if r.overruns_in_row > r.overruns_in_row_max:
                r.overruns_in_row_max = r.overruns_in_row
            if r.overrun_limit > 0 and r.overruns_in_row >= r.overrun_limit:
                rig_external(r, CAUSE_OVERRUNS, r.overruns_in_row)
        else:
            r.overruns_in_row = 0
        if rig_finished(r):
            break
    r.end_ns = monotonic_ns()
    store_release_i32(&r.running, 0)
