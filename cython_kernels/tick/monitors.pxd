"""Monitors in the tick: what the gearbox does, judged by its own file. One record a monitor; all that changes while a
rig runs stands in the signal table, so that hash, checkpoint and replay hold it without more."""

from libc.stdint cimport int8_t, int32_t, int64_t

from torqueloop.cython_kernels.tick.blocks cimport Blocks

# What the monitors read: slots by these numbers; -1: there is no such signal.
cdef enum:
    F_W_IN = 0                  # turbine [rad/s]
    F_W_OUT = 1                 # output shaft [rad/s]
    F_V = 2                     # car [m/s]
    F_A = 3                     # car [m/s2]
    F_TAU_IN = 4                # torque of the converter on the turbine [Nm]
    F_TAU_LOCKUP = 5            # torque of the lock-up clutch on the engine: its opposite acts on the turbine [Nm]
    F_LOCKUP_MODE = 6           # 0: the lock-up clutch sticks
    F_ENGINE = 7                # speed of the engine [rad/s]
    F_PEDAL = 8                 # 0..1
    F_BRAKE = 9                 # 0..1
    F_LEVER = 10                # number of its position
    F_REPORTED = 11                 # gear that the control unit says is engaged
    F_ASKED = 12                # gear that it goes to
    F_REQUEST = 13              # anything but 0: it asks the engine for torque
    F_ANSWER = 14               # anything but 0: the engine acknowledges
    F_PARK = 15                 # anything but 0: it closes the park lock
    F_CAUSE = 16                # anything but 0: the rig is in its safe state
    N_FACT = 17

# Own signals, in this order; behind them two of each monitor.
cdef enum:
    M_GEAR = 0                  # gear that is engaged, by the speeds, at standstill by the closed elements; 0: none
    M_ENGAGED = 1               # number of the gear in the table, from 1; 0: none
    M_CANDIDATE = 2             # the same, not yet held for gear_ticks
    M_CANDIDATE_TICK = 3        # since when
    M_LAST = 4                  # the gear before
    M_CHANGED = 5               # tick of the last change of gear
    M_LAST_TICK = 6             # last tick with a gear
    M_LEVER = 7                 # position of the lever, and the tick of its last change
    M_LEVER_TICK = 8
    M_PEDAL = 9                 # pedal and brake at the driver's last change, and its tick
    M_BRAKE = 10
    M_DRIVER_TICK = 11
    M_CLOSED = 12               # closed elements, a bit each, and the tick of their last change
    M_CLOSED_TICK = 13
    M_ASKED = 14                # gear asked for, the one before, and the tick of the change
    M_ASKED_BEFORE = 15
    M_ASKED_TICK = 16
    M_REPORTED = 17                 # gear reported, and the tick of its change
    M_REPORTED_TICK = 18
    M_DIRECTION = 19            # of the last change of gear: 1 up, -1 down
    M_BACK = 20                 # ticks of the last two changes back to the gear before
    M_BACK_BEFORE = 21
    M_LEFT_OUT = 22             # gears left out in the last change of gear
    M_RADIUS = 23               # v / w_out [m]
    M_REST = 24                 # acceleration less that of the turbine torque, while one gear was closed [m/s2]
    M_TIED_TICK = 25            # since when elements are closed that block each other; -1: they are not
    M_IDLE_TICK = 26            # since when pedal and lever ask for a drive that is not there; -1: it is
    M_LOCKED_UP = 27            # the converter was locked once
    M_RAN = 28                  # the engine ran once
    M_REQUEST_TICK = 29         # since when a request waits; -1: there is none, -2: it is acknowledged
    M_GIVEN_UP = 30             # requests given up before they were acknowledged, one after the other
    M_POWER_TICK = 31           # since when lever and pedal ask for a drive forwards; -1: they do not
    M_SHIFT_TICK = 32           # since when the gear asked for before was asked for
    M_REPLACED = 33             # shifts whose gear was replaced by another one before it was engaged
    M_RACED = 34                # the engine was fast while no gear was to be engaged yet, and is so still
    N_OWN = 35

cdef enum:
    R_FAILED = 0                # 1: latched
    R_SINCE = 1                 # tick since which the limit is exceeded; -1: it is not
    N_ROW = 2

# What the closed elements are, where they are no gear of the table.
cdef enum:
    CLOSED_NEUTRAL = -1         # too few: the output is not driven
    CLOSED_BLOCKED = -2         # too many: they work against each other
    CLOSED_OTHER = -3           # a ratio that is no gear

# Numbers of gears that do not drive forwards.
cdef enum:
    GEAR_REVERSE = -1
    GEAR_PARK = -2
    GEAR_UNKNOWN = -99

cdef struct watched_t:
    int32_t capacity            # slot of its capacity
    double closed               # it is closed from this capacity on [Nm]

cdef struct gear_t:
    int32_t number              # 1, 2 ...; GEAR_REVERSE
    int32_t closed              # its elements, a bit each
    double ratio                # w_in / w_out

cdef struct word_t:
    double value                # of the signal
    double gear                 # what it means

cdef struct pair_t:
    int32_t reported                # slot of what is sent, of what it is made of
    int32_t source
    double low                  # range of the message
    double high

cdef struct row_t:
    int32_t kind                # MONITOR_*
    int64_t hold                # ticks that the limit must be exceeded
    double limit

# What the first failure of a monitor found; for Python, and no part of the state.
cdef struct evidence_t:
    int64_t reached             # ticks in which it could be looked at
    int64_t first               # tick in which it began; -1: it did not fail
    int64_t ticks               # beyond the limit, all together, where it held long enough
    int64_t worst_tick
    double worst
    double seen                 # worst value, failed or not
    int32_t closed              # at the first failure: closed elements, gears
    int32_t gear
    int32_t last
    double asked
    double reported
    double lever

cdef struct monitors_t:
    int32_t first_slot
    int32_t n_element
    int32_t n_gear
    int32_t n_row
    int32_t n_reported
    int32_t n_asked
    int32_t n_pair
    int32_t top                 # highest gear
    int32_t every               # they are computed in every so many ticks
    double tick_s
    double mass                 # of the car [kg]
    double engine_max           # speed the engine may have in a gear [rad/s]
    double engine_cut           # and without one: there its governor has cut the fuel [rad/s]
    double races                # so fast in N, it keeps a unit from engaging a gear [rad/s]
    double idle                 # its idle speed [rad/s]
    int64_t gear_ticks          # a gear holds this long to count
    int64_t settle_ticks        # elements move this long after a change of the lever, and in a shift at most
    int64_t answer_ticks        # from one message that acknowledges requests to the next
    int32_t[17] fact            # slots (N_FACT)
    watched_t* element
    gear_t* gear
    int8_t* closed_as           # by closed elements: index of the gear, or CLOSED_*
    int8_t* overruns            # by closed elements: a free wheel holds it, the input may turn slower
    word_t* reported
    word_t* asked
    pair_t* pair
    row_t* row
    evidence_t* evidence

cdef class Monitors(Blocks):
    cdef monitors_t m
    cdef readonly int n_sig

cdef void monitors_arm(const monitors_t* m, double* sig) noexcept nogil
cdef void monitors_tick(const monitors_t* m, double* sig, int64_t tick) noexcept nogil
