"""Faults that are injected and limits that sent signals are held to, as the tick sees them. Words: hil/rig/describe/fault_plan.py,
docs/safe_state.md; the code: tick_safety.pxi."""

from libc.stdint cimport int32_t, int64_t, uint32_t

# Kinds of faults. Below FAULT_FRAMES: on a signal; from there on: on a frame the rig sends.
cdef enum:
    FAULT_OFFSET = 0            # + value
    FAULT_GAIN = 1              # * value
    FAULT_STUCK = 2             # the value it had when the fault began
    FAULT_VALUE = 3             # value
    FAULT_NOISE = 4             # + value * (-1 .. 1), a function of the tick alone
    FAULT_NAN = 5               # not a number
    FAULT_FRAMES = 16
    FAULT_DROP = 16             # not sent; its alive counter has run on
    FAULT_CRC = 17              # wrong checksum
    FAULT_COUNTER = 18          # alive counter stands still, checksum right
    FAULT_LENGTH = 19           # one byte short

# Where a fault on a signal acts.
cdef enum:
    STAGE_INPUT = 0             # behind the wiring copies, before the reactions of the safe state
    STAGE_OUTPUT = 1            # behind the output copies, before the limits
    STAGE_FRAME = 2

#: faults that are switched by hand: bits of the switch word, which is part of the input record
cdef enum:
    N_SWITCHES = 16

cdef struct fault_t:
    int32_t kind                # FAULT_*
    int32_t stage               # STAGE_*
    int32_t target              # slot of the signal, or index of the message in the codec of its bus
    int32_t bus                 # of a message
    int32_t switch_bit          # -1: by time
    int64_t from_tick           # by time: from_tick <= tick < until_tick
    int64_t until_tick
    double value
    double gain                 # the fault is given in x; sig[target] = gain * x + offset
    double offset
    # written by the tick
    int32_t active
    double held                 # x, or alive counter, when the fault began
    int64_t count               # ticks (signals) or frames it acted on

# Range and slew of a sent signal, SI.
cdef struct guard_t:
    double quiet_lo             # between these the signal goes out as it is and nothing is to be noted; quiet_lo >
    double quiet_hi             # quiet_hi: never (a slew needs the last value)
    int32_t slot
    int32_t safe                # 1: leaving the limits latches the safe state as well
    double lo
    double hi
    double tol                  # further outside counts: what the codec rounds back in does not
    double slew                 # largest change in a tick; 0: any
    # written by the tick
    int32_t seen
    double last
    int64_t count               # ticks it was held back in

cdef struct safety_t:
    int32_t n_fault
    fault_t* fault
    int32_t n_guard
    guard_t* guard
    int32_t solver_limit        # ticks in a row with a step the solver could not resolve latch the safe state; 0: never
    int32_t unresolved          # such ticks in a row so far (written by the tick)
    uint32_t switches           # written by other threads (atomic): bit k: fault k of those switched by hand is on
    uint32_t switched           # of the running tick

cdef class Safety:
    cdef safety_t s
    cdef readonly int n_sig
    cdef readonly double tick_s
