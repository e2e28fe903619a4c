"""Everything one rig needs in a tick, as one C struct, and the functions that work on it.
See tick.pyx for the rules."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from torqueloop.cython_kernels.clock.account cimport account_t
from torqueloop.cython_kernels.rings.can_frame cimport can_frame_t
from torqueloop.cython_kernels.can.codec cimport codec_t, rx_state_t, tx_state_t
from torqueloop.cython_kernels.tick.first_fault cimport first_fault_t
from torqueloop.cython_kernels.clock.heartbeat cimport heartbeat_t
from torqueloop.cython_kernels.clock.loop_clock cimport script_t
from torqueloop.cython_kernels.model.model cimport tl_model, tl_state
from torqueloop.cython_kernels.rings.ring cimport slot_t, spsc_t
from torqueloop.cython_kernels.tick.controllers cimport controllers_t
from torqueloop.cython_kernels.tick.faults cimport faults_t
from torqueloop.cython_kernels.tick.engine_control cimport engine_control_t
from torqueloop.cython_kernels.tick.hydraulics cimport hydraulics_t
from torqueloop.cython_kernels.tick.io cimport io_device_t
from torqueloop.cython_kernels.tick.scenario cimport scenario_t
from torqueloop.cython_kernels.tick.safety cimport safety_t
from torqueloop.cython_kernels.tick.sending cimport sendings_t
from torqueloop.cython_kernels.tick.monitors cimport monitors_t
from torqueloop.cython_kernels.tick.sensors cimport sensors_t
from torqueloop.cython_kernels.can.socketcan cimport bus_word_t, canport_t
from torqueloop.cython_kernels.tick.transaction cimport CTL_WRITES, control_chunk_t, ctl_t, ctl_write_t

# Overrun policies.
cdef enum:
    POLICY_CATCH_UP = 0
    POLICY_SKIP = 1
    POLICY_STOP = 2

# Command word, written by the session, read once per tick.
cdef enum:
    CMD_ARM = 1
    CMD_STOP = 2
    CMD_DISARM = 4

# First cause of the safe state.
cdef enum:
    CAUSE_NONE = 0
    CAUSE_NOT_FINITE = 1        # a model output or the state is NaN or infinite; detail: output slot
    CAUSE_LIMIT = 2             # a signal left its limits; detail: index of the limit
    CAUSE_OVERRUNS = 3          # too many overruns in a row; detail: how many
    CAUSE_TCU_SILENT = 4        # a required message stayed away; detail: on_bus(bus, index of the message in its codec)
    CAUSE_VEHICLE_SILENT = 5    # no vehicle value for age_limit + hold + ramp; detail: age in ms
    CAUSE_VEHICLE_DATA = 6      # too many vehicle values refused; detail: how many
    CAUSE_SOLVER = 7            # steps in a row that could not be resolved; detail: ticks in a row
    CAUSE_HUNG = 8              # the watchdog saw no heartbeat; detail: ms
    CAUSE_THREAD = 9            # a thread the rig depends on has died
    CAUSE_BUS = 10              # detail: on_bus(bus, x); x > 0: frames in a row that could not be sent; < 0: -BUS_OFF,
                                # -BUS_DOWN for too long
    CAUSE_REQUEST = 11          # asked for by the operator or the session
    CAUSE_TCU_FRAMES = 12       # a required message came, but was refused until it timed out; detail: as TCU_SILENT
    CAUSE_ENCODE = 13           # a signal to send is NaN; detail: as TCU_SILENT
    CAUSE_OUTPUT = 14           # a signal to send left its limits, on_limit = "safe"; detail: index of the limited output
    CAUSE_MISSED = 15           # policy stop: a tick began whole periods late; detail: how many
    CAUSE_IO = 16               # an I/O device; detail: its number << 3 | IO_* of io.pxd
    N_CAUSES = 17

# `flags` of a sample record: what happened in the ticks since the record before (docs/clock.md).
cdef enum:
    FLAG_OVERRUN = 1            # the tick before ended after its next grid point
    FLAG_MISSED = 2             # started a period or more late, or grid points were dropped before it
    FLAG_VEHICLE_NEW = 4
    FLAG_VEHICLE_STALE = 8
    FLAG_VEHICLE_REFUSED = 16
    FLAG_BAD_FRAME = 32
    FLAG_TX_DROPPED = 64
    FLAG_SLIPPED = 128          # grid points were dropped: simulated time fell behind wall time
    FLAG_GRACE = 256            # the tick belongs to the start-up grace
    FLAG_FAULT = 512            # an injected fault acted
    FLAG_LIMITED = 1024         # a signal to send was held to its range or slew

# `status` of a sample record: state of the rig after the tick; bits 8..15 hold the cause.
cdef enum:
    STATUS_ARMED = 1
    STATUS_SAFE = 2
    STATUS_FROZEN = 4           # physics stopped: state not usable
    STATUS_DISARMING = 8        # ramping down, silent after that

# Whether the armed rig is to be silent again: see tick_arm.pxi.
cdef enum:
    DISARM_NO = 0
    DISARM_RAMP = 1             # the inputs of the safe state ramp to their targets, ticks and frames go on
    DISARM_SILENT = 2           # no tick and no frame until it is armed again

# Value of the signal rig.status.
cdef enum:
    RIG_OFF = 0
    RIG_RUNNING = 2             # 1 (armed, not yet running) is never sent: nothing is sent before the first tick
    RIG_SAFE = 3
    RIG_FAULT = 4

# Limits of work per tick and sizes of scratch.
cdef enum:
    RX_PER_TICK = 64            # frames of a bus latched per tick; the rest waits for the next tick
    RX_AT_ARMING = 2048         # messages thrown away at arming, at most
    FRAME_BYTES = 80            # longest packed frame (can_frame.pxd)
    SAMPLE_HEAD = 32            # bytes of sample_t before `out`
    BUS_WORD_BYTES = 56         # bus_entry_t
    MAX_BUS = 16
    MAX_ROUND = 65536           # ticks: longer rounds of sending have no calendar
    MODES_PER_TICK = 256        # mode changes published per tick; the rest waits
    MAX_VEHICLE = 16
    MAX_PINS = 256              # doubles a control unit sends directly
    MAX_MORE = 64               # signals sent to the vehicle besides those of RIG_SLOT

# Signals of the native bus, in this order.
cdef enum:
    BUS_STATE = 0               # 0 active, 1 warning, 2 passive, 3 bus off, 4 interface down
    BUS_TX_ERRORS = 1
    BUS_RX_ERRORS = 2
    BUS_ERROR_FRAMES = 3
    BUS_RX_DROPPED = 4
    BUS_TX_LOST = 5
    N_BUS = 6

# Layout of the vehicle slots, as in hil/link/messages.py (VEHICLE_SLOT, RIG_SLOT).
cdef enum:
    VEH_STEP = 0
    N_VEHICLE = 8
    N_RIG = 7

# sig[dst] = gain * sig[src] + offset
cdef struct copy_t:
    int32_t src
    int32_t dst
    double gain
    double offset

# Copies, one after the other. Those with gain 1 and offset 0 come first, as far as the order of the rows leaves it open.
cdef struct wiring_t:
    int32_t n
    int32_t n_plain             # so many rows at its beginning have gain 1 and offset 0
    copy_t* row

# sig[slot] = piecewise linear y over simulated time t; held outside
cdef struct driver_t:
    int32_t slot
    int32_t n
    int32_t hint                # segment used last (speed only)
    const double* t             # its n points
    const double* y

# neighbouring signals first .. first + n - 1
cdef struct range_t:
    int32_t first
    int32_t n

cdef struct limit_t:
    int32_t slot
    double lo
    double hi

# Reaction of one signal in the safe state: ramp from the value at latching to target within ramp_s, then hold.
cdef struct safe_t:
    int32_t slot
    double target
    double ramp_s
    double start                # value at latching (written by the tick)

# One message to send every period_ticks, first at offset_ticks.
cdef struct tx_t:
    int32_t message             # index in the codec
    int32_t period
    int32_t offset              # 0 <= offset < period
    int32_t first               # not before this tick

cdef struct sample_t:
    int64_t tick
    int64_t t_wall_ns
    int32_t wake_lateness_ns
    int32_t compute_ns
    uint32_t status
    uint32_t flags
    double out[1]               # as many as signals are recorded

cdef struct mode_t:
    int64_t step
    double t_s
    int32_t element
    int32_t mode

# `flags` of an input record, and what it holds behind its head, in this order.
cdef enum:
    INPUT_VEHICLE = 1           # behind these: stamp and doubles of a vehicle value read in this tick
    INPUT_DISARM = 2            # disarming began in this tick
    INPUT_ARM = 4               # armed again in this tick
    INPUT_BUS = 8               # behind the frames: how many (int64), then a bus_entry_t of each bus whose state changed
    INPUT_PINS = 64             # behind the vehicle value: how many (int64), then of each: its number (int64), its doubles
    INPUT_CONTROL = 32          # behind all else: control_chunk_t of the transaction of this tick, and its writes
    INPUT_IO = 128              # behind the pins: how many (int64), then of each: its number, state (int64), its doubles
    INPUT_SWITCHES = 16         # bits from this one on: the faults switched on by hand

# A native bus whose state has changed, in an input record.
cdef struct bus_entry_t:
    int64_t bus
    bus_word_t word

# Head of an input record (replay): then n_frames packed frames (can_frame.pxd), then what `flags` says.
cdef struct input_head_t:
    uint32_t n_bytes            # whole record
    uint32_t n_frames
    uint32_t flags              # INPUT_*
    int32_t cause               # cause latched from outside before this tick (0: none) and its detail
    int64_t tick
    int64_t now_ns
    int64_t detail

# What rig_feed says of an input record.
cdef enum:
    FEED_OK = 0
    FEED_HEAD = 1               # head cut off
    FEED_LENGTH = 2             # its length is not that of what it holds
    FEED_TICK = 3               # not of the next tick
    FEED_LINK = 4               # it holds values of a link this rig does not have
    FEED_FRAME = 5              # a frame is cut off, or something follows the last part
    FEED_CONTROL = 6            # it holds a transaction this rig does not take

# One CAN bus.
cdef struct bus_t:
    const codec_t* codec
    rx_state_t* rx
    tx_state_t* tx
    spsc_t* rx_ring
    spsc_t* tx_ring
    int32_t index               # in rig_t.bus
    int32_t n_required
    int32_t* required           # indices of messages whose silence latches the safe state
    int32_t n_tx
    tx_t* tx_plan
    int64_t round               # ticks after which all sending repeats; 0: too many, each tick looks at all messages
    int32_t* due_at             # [round + 1]: in tick t of a round, due[due_at[t]] .. due[due_at[t + 1] - 1] are due
    int32_t* due                # numbers in tx_plan, ascending within a tick
    sendings_t* sendings        # sent on a change or event; NULL: none
    int32_t bell_fd             # eventfd of the sending thread, 0: none
    int32_t tx_drop_limit       # frames in a row that found the ring full before the bus counts as dead
    uint64_t idle_frames        # frames seen before arming
    uint64_t rx_frames
    uint64_t rx_bad
    uint64_t tx_frames
    uint64_t tx_dropped
    uint64_t tx_dropped_in_row
    canport_t* port             # native SocketCAN (NULL, or not open: frames come and go through the rings)
    bus_word_t word             # state of the native bus as the signals show it
    int32_t state_slot          # first of N_BUS signals; 0: none
    int64_t down_limit_ns       # bus off or interface down for longer latches the safe state

# Numbers a control unit sends directly: sig[first] ... sig[first + n - 1], held until it sends others.
cdef struct pins_t:
    slot_t* slot
    int32_t first
    int32_t n
    uint64_t version

# Signals that a control unit reads directly, published at the end of each tick.
cdef struct sensed_t:
    slot_t* slot
    int32_t n
    int32_t* source             # [n] signal slots

cdef struct plant_t:
    # the driveline that a rig integrates; model NULL and substeps 0 for a rig without physics (bus tests)
    const tl_model* model
    tl_state* state
    int32_t substeps
    int32_t n_in
    int32_t n_out
    int32_t in_slot             # first input slot; inputs are contiguous
    int32_t out_slot            # first output slot; outputs are contiguous
    double* out_new             # (n_out) outputs of this tick before they are found good

cdef struct own_slots_t:
    # slots of the signals of the rig itself
    int32_t time
    int32_t tick
    int32_t status
    int32_t cause
    int32_t I_wheel
    int32_t F_wheel

cdef struct vehicle_t:
    # the link to the vehicle model
    slot_t* received            # NULL: no vehicle link
    slot_t* sent
    int32_t slot                # first of N_VEHICLE signals
    int32_t ramped              # index in `received` of the value that is ramped to 0 (F)
    int64_t age_limit_ns
    int64_t hold_ns
    int64_t ramp_ns
    int32_t refuse_limit
    uint64_t version
    int64_t stamp_ns
    uint64_t taken
    uint64_t refused
    uint64_t refused_in_row
    uint64_t stale_ticks
    int64_t age_max_ns
    int64_t echo_max            # oldest rig step a vehicle value was made from, in ticks
    double last[MAX_VEHICLE]
    int32_t n_momentum
    copy_t* momentum            # I_wheel += change of sum(gain * sig[src]) + T * mean of sum(force gain * sig[src])
    int32_t n_force
    copy_t* force
    double momentum_last
    double force_last
    double I_wheel
    int32_t out_speed           # slots sent to the vehicle
    int32_t out_s
    int32_t out_brake
    int32_t n_more              # more signals that are sent to the vehicle: moments on its bodies
    int32_t* more

cdef struct grid_t:
    # when ticks are due, and when they end
    int64_t period_ns
    double tick_s
    int32_t policy
    int32_t max_catch_up
    int64_t spin_ns             # sleep until so long before the grid point, then look at the clock until it is reached
    int32_t overrun_limit
    int64_t safe_stop_ticks     # end so many ticks after the safe state was latched; -1: go on
    int64_t n_ticks             # end after so many ticks; -1: run until stopped
    int64_t inject_tick         # fault injection: burn inject_ns in ticks inject_tick <= k < inject_tick + inject_count
    int64_t inject_count
    int64_t inject_ns
    script_t* script            # NULL: the real clock

cdef struct latch_t:
    # the safe state: why and when it was latched
    int32_t latched
    int32_t cause
    int64_t detail
    int64_t tick
    int32_t reacting            # its reactions override the inputs, since react_tick
    int64_t react_tick

cdef struct records_t:
    # what the tick hands to the threads that record
    int32_t n
    int32_t n_range             # the same slots as ranges of neighbours, in the order they are recorded
    range_t* range
    int32_t every
    spsc_t* sample_ring         # NULL: nothing is recorded
    first_fault_t* first_fault  # NULL: not kept
    spsc_t* input_ring
    spsc_t* bus_ring
    spsc_t* mode_ring
    int64_t mode_seen           # entries of the kernel's mode log handed over so far
    sample_t* sample
    size_t input_at             # bytes of the input record in use
    uint8_t* input_record       # room for all that a tick can take in

cdef struct rig_t:
    plant_t plant
    # ---- signal table: all values that travel, SI; slot 0 is a dummy that reads 0 ----
    int32_t n_sig
    double* sig
    double* sig0                # values at arming
    own_slots_t own
    # ---- wiring ----
    wiring_t in_copy            # latched signals -> model inputs
    wiring_t out_copy           # outputs -> signals to send
    wiring_t solenoid_copy      # commands of solenoids that have faults
    # ---- parts; NULL: none ----
    int32_t n_driver
    driver_t* driver
    const scenario_t* scenario
    const controllers_t* controllers
    const hydraulics_t* hydraulics
    const engine_control_t* engine_control
    const sensors_t* sensors
    const monitors_t* monitors
    safety_t* safety
    faults_t* faults
    ctl_t* ctl                  # control channel
    int32_t n_limit
    limit_t* limit
    int32_t n_safe
    safe_t* safe
    # ---- participants: on buses, without a bus between, behind I/O devices, the vehicle ----
    int32_t n_bus
    bus_t* bus
    int32_t n_pins
    pins_t* pins
    int32_t n_sensed
    sensed_t* sensed
    int32_t n_io
    io_device_t* io
    vehicle_t veh
    # ---- clock ----
    grid_t grid
    heartbeat_t beat            # what the watchdog sees, and what is asked for from outside
    # ---- written by other threads (atomic) ----
    uint32_t command
    # ---- written by the tick, read by other threads ----
    int64_t tick                # ticks done since arming
    int64_t tick_from           # simulated ticks before the first: above 0 after a restore (simulated: tick + tick_from)
    int64_t step_from           # the same for the stamps to the vehicle, which go back only if the vehicle does
    int32_t armed
    int32_t disarm              # DISARM_*
    int64_t age_from_ns         # arming, or arming again: no age is counted from before it
    latch_t latch
    int32_t frozen
    uint64_t hash               # over the whole signal table of every tick
    int64_t first_wake_ns
    int64_t arm_ns
    int64_t end_ns
    # ---- accounting ----
    uint32_t flags_next         # flags of the next tick, set by the loop
    uint32_t flags_kept         # flags of ticks without a sample record, for the next record
    int32_t late_in_row         # ticks run late one after the other (catch_up)
    account_t* account
    records_t rec

cdef inline int64_t on_bus(int32_t bus, int32_t value) noexcept nogil:
    """A number and the bus it belongs to as one: what causes of the safe state and faults on frames refer to."""
    return <int64_t>bus << 32 | <uint32_t>value

cdef void rig_arm(rig_t* r, int64_t now_ns) noexcept nogil
cdef int rig_feed(rig_t* r, const uint8_t* raw, size_t size, input_head_t* head) noexcept nogil
cdef void rig_tick(rig_t* r, int64_t now_ns) noexcept nogil
cdef bint rig_finished(const rig_t* r) noexcept nogil
cdef void rig_run(rig_t* r) noexcept nogil
cdef void rig_latch(rig_t* r, int32_t cause, int64_t detail) noexcept nogil
cdef bint rig_external(rig_t* r, int32_t cause, int64_t detail) noexcept nogil
cdef void rig_command(rig_t* r, uint32_t set_bits, uint32_t clear_bits) noexcept nogil
