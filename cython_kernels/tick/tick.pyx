"""The tick and the loop that schedules it: everything between the first wake and the stop, without the GIL.

Order of a tick, the same on every clock (real, virtual, replay):

    control   cause from outside; what the control channel has posted takes effect as a whole; windows of injected faults
    latch     disarming and arming again, received frames -> codec -> signals, timeouts, vehicle value, I/O devices
              are read, driver tables, steps of a scenario; the hydraulic unit makes pressures of commands, the engine control a pedal
    inputs    wiring copies signals to model inputs; held signals; injected faults; the safe state overrides all three
    step      n substeps of the model, inputs held over the tick
    outputs   model outputs -> signals, checked for NaN and limits; impulse for the vehicle; sensors; injected faults;
              range and slew of what is sent
    tx        messages that are due are encoded and pushed; I/O devices are written
    publish   vehicle slot, sample, input, bus and mode records into their rings

Tick k takes simulated time from k*T to (k+1)*T; its record and the frames it sends hold the state at (k+1)*T.

The clock's words and rules (grid, lateness, overrun, missed, slip, margin, policies, grace) are those of docs/clock.md.

Replay: a tick depends on nothing but its input record (time of waking, frames, vehicle value, cause from outside,
transaction of the control channel), so a recorded real-time run gives the same state hash when its input records are
fed through the same function.
"""

from libc.math cimport NAN, isfinite
from libc.string cimport memcmp, memcpy, memset
from posix.unistd cimport write

cdef extern from "<sys/syscall.h>" nogil:
    long SYS_gettid
cdef extern from "<unistd.h>" nogil:
    long syscall(long number, ...)

from torqueloop.cython_kernels.clock.account cimport (
    PHASE_INPUTS,
    PHASE_LATCH,
    PHASE_OUTPUTS,
    PHASE_PUBLISH,
    PHASE_STEP,
    PHASE_TX,
    account_clear,
    account_end,
    account_grid,
    account_missed,
    account_open,
    account_phase,
    account_wake,
)
from torqueloop.cython_kernels.clock.atomic cimport (
    fetch_and_u32,
    fetch_or_u32,
    load_acquire_i32,
    load_acquire_u32,
    load_relaxed_i64,
    store_relaxed_i64,
    store_release_i32,
    store_release_i64,
    swap_if_i32,
)
from torqueloop.cython_kernels.rings.can_frame cimport (
    CAN_FLAG_ERROR,
    CAN_FLAG_REMOTE,
    CAN_FRAME_HEAD,
    can_frame_packed,
)
from torqueloop.cython_kernels.clock.clock cimport monotonic_ns
from torqueloop.cython_kernels.can.codec cimport (
    CODEC_NAN,
    CODEC_OK,
    CODEC_UNKNOWN,
    codec_check_timeouts,
    codec_counter_of,
    codec_decode,
    codec_encode,
    codec_find,
    codec_message_t,
    codec_next_counter,
    codec_raw_of,
    codec_rx_arm,
    codec_set_counter,
    codec_set_raw,
    codec_t,
    rx_message_t,
)
from torqueloop.cython_kernels.can.protect cimport protect_spoil
from torqueloop.cython_kernels.tick.first_fault cimport first_fault_keep, first_fault_place
from torqueloop.cython_kernels.clock.heartbeat cimport heartbeat_ask
from torqueloop.cython_kernels.clock.loop_clock cimport clock_burn, clock_now, clock_sleep, clock_spend, clock_spin
from torqueloop.cython_kernels.model.fingerprint cimport fingerprint
from torqueloop.cython_kernels.kernel.kernel cimport tl_outputs, tl_state_take, tl_step
from torqueloop.cython_kernels.model.model cimport TL_C_FALLBACKS, tl_state
from torqueloop.cython_kernels.rings.ring cimport data_keep, data_place, data_push, frames_pop, frames_push, slot_read, slot_version, slot_write
from torqueloop.cython_kernels.tick.conditions cimport holds
from torqueloop.cython_kernels.tick.controllers cimport controllers_tick
from torqueloop.cython_kernels.tick.engine_control cimport engine_control_tick
from torqueloop.cython_kernels.clock.histogram cimport hist_add, hist_t
from torqueloop.cython_kernels.tick.hydraulics cimport hydraulics_tick
from torqueloop.cython_kernels.tick.io cimport (
    IO_NAN,
    IO_OK,
    IO_OLD,
    IO_READ,
    IO_REASON_BITS,
    IO_SLOW,
    IO_STALE,
    IO_TAKEN,
    IO_WATCH_IDLE,
    IO_WATCH_RUNS,
    IO_WATCH_SAFE,
    IO_WRITE,
    io_device_t,
)
from torqueloop.cython_kernels.tick.scenario cimport (
    SCEN_STATE,
    SCENARIO_RUNNING,
    scenario_arm,
    scenario_tick,
)
from torqueloop.cython_kernels.tick.faults cimport (
    BEGIN_CONDITION,
    BEGIN_SWITCH,
    CHANCE_ALWAYS,
    FAULT_BUS_OFF,
    FAULT_COUNTER,
    FAULT_COUNTER_OFFSET,
    FAULT_COUNTER_RANDOM,
    FAULT_CRC,
    FAULT_CRC_RANDOM,
    FAULT_DELAY,
    FAULT_DROP,
    FAULT_DUPLICATE,
    FAULT_GAIN,
    FAULT_JITTER,
    FAULT_LAG,
    FAULT_LENGTH,
    FAULT_LOAD,
    FAULT_LOG,
    FAULT_NAN,
    FAULT_NOISE,
    FAULT_OFFSET,
    FAULT_RAMP,
    FAULT_RAW,
    FAULT_STUCK,
    FAULT_VALUE,
    STAGE_BUS,
    STAGE_COMMAND,
    STAGE_FRAME,
    STAGE_INPUT,
    STAGE_OUTPUT,
    STAGE_SENSOR,
    fault_log_t,
    fault_state_t,
    fault_t,
    faults_t,
    queued_t,
)
from torqueloop.cython_kernels.tick.safety cimport band_t, guard_t
from torqueloop.cython_kernels.tick.monitors cimport monitors_arm, monitors_tick
from torqueloop.cython_kernels.tick.sensors cimport sensors_tick
from torqueloop.cython_kernels.tick.sending cimport sending_state_t, sending_t, sendings_t
from torqueloop.cython_kernels.tick.words cimport all_between, copy, copy_twice, not_finite
from torqueloop.cython_kernels.can.socketcan cimport (
    BUS_OFF,
    PORT_BATCH,
    PORT_DATA,
    PORT_ERROR,
    PORT_STOLEN,
    port_arm,
    port_frame,
    port_receive,
    port_received,
    port_send,
    port_word,
)
from torqueloop.cython_kernels.tick.transaction cimport (
    CTL_FREE,
    CTL_HELD,
    CTL_HOLD,
    CTL_IMAGE,
    CTL_LINKS,
    CTL_MODEL,
    CTL_OK,
    CTL_POSTED,
    CTL_REFUSED,
    CTL_RELEASE,
    CTL_RESTORE,
    CTL_SET,
    CTL_TAKEN,
    CTL_WHO,
    CTL_WRITES,
    control_chunk_t,
    ctl_hold_t,
    ctl_t,
    ctl_write_t,
    image_head_t,
    image_t,
)

#: upper bits of a frame's flags in the bus log (hil/record/bus_log.py): sent by the rig; received, but refused
cdef uint8_t BUS_TX = 0x80
cdef uint8_t BUS_REFUSED = 0x40
cdef uint64_t HASH_SEED = 0xCBF29CE484222325U
cdef uint64_t HASH_FACTOR = 0x9E3779B97F4A7C15U
cdef int64_t NS_PER_MS = 1_000_000
#: random alive counters are fewer values than this ahead of the right one
cdef int64_t MOST_STEPS = 4096


include "tick_arm.pxi"


# --- safe state ----------------------------------------------------------------------------------------------


cdef void rig_latch(rig_t* r, int32_t cause, int64_t detail) noexcept nogil:
    """Latch the safe state with its first cause; later causes change nothing. real-time: yes."""
    if r.latch.latched:
        return
    r.latch.cause = cause
    r.latch.detail = detail
    r.latch.tick = r.tick
    if cause == CAUSE_NOT_FINITE or cause == CAUSE_SOLVER:
        # the state is not usable any more: no further step, and nothing is sent that nobody can vouch for
        r.frozen = 1
    _begin_reaction(r)
    store_release_i32(&r.latch.latched, 1)


cdef bint rig_external(rig_t* r, int32_t cause, int64_t detail) noexcept nogil:
    """Ask for the safe state from any thread; taken over (and recorded) by the next tick. True if it was the first."""
    return heartbeat_ask(&r.beat, cause, detail)


cdef void rig_command(rig_t* r, uint32_t set_bits, uint32_t clear_bits) noexcept nogil:
    """Change bits of the command word from any thread."""
    if clear_bits:
        fetch_and_u32(&r.command, ~clear_bits)
    if set_bits:
        fetch_or_u32(&r.command, set_bits)


# --- phases of a tick ----------------------------------------------------------------------------------------


include "tick_control.pxi"
include "tick_faults.pxi"
include "tick_safety.pxi"
include "tick_can.pxi"
include "tick_io.pxi"
include "tick_send.pxi"
include "tick_latch.pxi"
include "tick_outputs.pxi"
include "tick_publish.pxi"


cdef inline int64_t _phase(rig_t* r, int phase, int64_t since) noexcept nogil:
    cdef int64_t now
    clock_spend(r.grid.script, phase)
    now = clock_now(r.grid.script)
    account_phase(r.account, phase, now - since)
    return now


cdef void rig_tick(rig_t* r, int64_t now_ns) noexcept nogil:
    """One tick; now_ns is the time of waking (an input: ages and timeouts are counted from it). real-time: yes."""
    cdef int64_t begin = clock_now(r.grid.script)
    cdef int64_t t = begin
    cdef uint32_t flags = r.flags_next
    cdef input_head_t head
    cdef int32_t cause
    cdef int64_t in_row
    r.flags_next = 0
    account_open(r.account, r.tick)
    if r.account.book == &r.account.grace:
        flags |= FLAG_GRACE
    memset(&head, 0, sizeof(head))
    head.tick = r.tick
    head.now_ns = now_ns
    r.rec.input_at = sizeof(input_head_t)
    if r.n_io > 0:
        _read_io(r)
    cause = load_acquire_i32(&r.beat.asked)
    if cause > CAUSE_NONE and not r.latch.latched:
        head.cause = cause
        head.detail = r.beat.asked_detail
        rig_latch(r, cause, r.beat.asked_detail)
    if r.ctl != NULL:
        _take_control(r, now_ns, &head)
    _take_arming(r, now_ns, &head)
    if r.faults != NULL:
        _fault_windows(r, &head)
    if r.n_bus > 0:
        _latch_can(r, now_ns, &head, &flags)
    if r.veh.received != NULL:
        _latch_vehicle(r, now_ns, &head, &flags)
    if r.n_pins > 0:
        _latch_pins(r, &head)
    if r.n_io > 0:
        _latch_io(r, &head, &flags)
    _latch_driver(r)
    if r.scenario != NULL:
        scenario_tick(r.scenario, r.sig, sim_tick(r))
    if r.controllers != NULL and not r.frozen:
        controllers_tick(r.controllers, r.sig, sim_tick(r))
    if r.hydraulics != NULL and not r.frozen:
        if r.faults != NULL:
            _copy(r.sig, &r.solenoid_copy)
            _signal_faults(r, STAGE_COMMAND, &flags)
        hydraulics_tick(r.hydraulics, r.sig)
    if r.engine_control != NULL and not r.frozen:
        engine_control_tick(r.engine_control, r.sig, now_ns)
    t = _phase(r, PHASE_LATCH, t)
    _inputs(r, &flags)
    t = _phase(r, PHASE_INPUTS, t)
    if r.grid.inject_ns > 0 and r.grid.inject_tick <= r.tick < r.grid.inject_tick + r.grid.inject_count:
        clock_burn(r.grid.script, r.grid.inject_ns)
    if r.plant.model != NULL and not r.frozen:
        _step(r)
    t = _phase(r, PHASE_STEP, t)
    _outputs(r, &flags)
    _safe_outputs(r, &flags)
    if r.n_io > 0:
        _guard_io(r)
    if r.monitors != NULL and not r.frozen:
        monitors_tick(r.monitors, r.sig, sim_tick(r))
    t = _phase(r, PHASE_OUTPUTS, t)
    _send(r, now_ns, &flags)
    if r.n_io > 0:
        _write_io(r)
    t = _phase(r, PHASE_TX, t)
    _publish(r, now_ns, begin, &head, flags)
    _end_disarming(r)
    store_release_i64(&r.tick, r.tick + 1)
    if r.ctl != NULL:
        _end_control(r.ctl)
    t = _phase(r, PHASE_PUBLISH, t)
    in_row = account_end(r.account, begin, t)
    if r.account.now.margin_ns < 0:
        r.flags_next |= FLAG_OVERRUN
    if r.grid.overrun_limit > 0 and in_row >= r.grid.overrun_limit:
        rig_external(r, CAUSE_OVERRUNS, in_row)


include "tick_loop.pxi"
include "tick_feed.pxi"
