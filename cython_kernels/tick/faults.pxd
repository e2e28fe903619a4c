"""Faults that are injected, as the tick sees them. Words: hil/rig/schema/fault_tables.py, docs/disturbances.md; the code:
tick_faults.pxi (windows, frames, buses) and tick_safety.pxi (signals)."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from torqueloop.cython_kernels.rings.can_frame cimport can_frame_t
from torqueloop.cython_kernels.tick.blocks cimport Blocks
from torqueloop.cython_kernels.tick.conditions cimport condition_t

# Kinds of faults. Below FAULT_FRAMES: on a signal; below FAULT_BUSES: on a frame, sent or received; then: on a bus.
cdef enum:
    FAULT_OFFSET = 0            # + value
    FAULT_GAIN = 1              # * value
    FAULT_STUCK = 2             # the value it had when the window opened
    FAULT_VALUE = 3             # value
    FAULT_NOISE = 4             # + value * (-1 .. 1), random
    FAULT_NAN = 5               # not a number
    FAULT_RAMP = 6              # + value * time since the window opened, in ticks
    FAULT_LAG = 7               # first order lag; value = 1 - exp(-T/tau)
    FAULT_FRAMES = 16
    FAULT_DROP = 16             # lost; its alive counter has run on
    FAULT_RAW = 17              # raw number of a signal, checksum right
    FAULT_COUNTER = 18          # alive counter stands still, checksum right
    FAULT_COUNTER_RANDOM = 19   # any other value of the counter, checksum right
    FAULT_COUNTER_OFFSET = 20   # so many values further on, checksum right
    FAULT_CRC = 21              # checksum XOR value
    FAULT_CRC_RANDOM = 22       # any wrong checksum
    FAULT_LENGTH = 23           # so many data bytes; below 0: so many fewer
    FAULT_DUPLICATE = 24        # value times more
    FAULT_DELAY = 25            # later by value ticks
    FAULT_JITTER = 26           # later by 0 .. value ticks, random; in their order
    FAULT_BUSES = 32
    FAULT_BUS_OFF = 32          # nothing goes out and nothing comes in
    FAULT_LOAD = 33             # value more frames in a tick, of one identifier

# Where a fault acts.
cdef enum:
    STAGE_INPUT = 0             # behind the wiring copies, before the reactions of the safe state
    STAGE_OUTPUT = 1            # behind the output copies, before the limits
    STAGE_COMMAND = 2           # before the hydraulic unit takes the commands of its solenoids
    STAGE_SENSOR = 3            # behind the sensors, before anything reads them
    STAGE_FRAME = 4             # between bus and codec
    STAGE_BUS = 5
    N_STAGES                    # one more than the last
    N_FIRST = N_STAGES + 1

# What opens the window of a fault.
cdef enum:
    BEGIN_TIME = 0
    BEGIN_SWITCH = 1
    BEGIN_CONDITION = 2

cdef enum:
    N_SWITCHES = 16             # faults switched by hand: bits of the switch word, which is part of the input record
    FAULT_LOG = 4096            # openings and closings that are kept

# Constant.
cdef struct fault_t:
    int32_t kind                # FAULT_*
    int32_t stage               # STAGE_*
    int32_t target              # slot of the signal, index of the message in the codec of its bus; buses: not used
    int32_t bus                 # of a message, or the bus itself
    int32_t slot                # signals of this fault: 1 while its window is open; how often it acted. 0: none
    int32_t begin               # BEGIN_*
    int32_t switch_bit
    int32_t own_end             # its window does not close because what opened it is over
    int64_t from_tick           # by time: from_tick <= tick < until_tick
    int64_t until_tick
    int64_t lasts_ticks         # the window closes so long after it opened; 0: does not
    int64_t count               # after so many actions; 0: any number
    int64_t times               # windows of a run; 0: any number
    int64_t every               # acts on each n-th frame or tick of the window
    uint64_t chance             # of 2**53 that it acts; 2**53: always
    int64_t back_ticks          # the way back of a signal to its true value
    condition_t when            # opens it
    condition_t until           # closes it
    double value
    double gain                 # the fault is given in x; sig[target] = gain * x + offset
    double offset
    uint64_t raw                # raw number, checksum XOR
    int32_t signal              # index of the signal in the codec
    uint32_t can_id             # of the frames of FAULT_LOAD
    uint64_t seed

# All of a fault that changes: part of an image of the rig.
cdef struct fault_state_t:
    int64_t begun               # tick in which the window opened; -1: it is shut
    int64_t ended               # tick in which it shut last; -1: never
    int64_t windows             # opened so far
    int64_t seen                # frames or ticks of this window
    int64_t acts                # of which it acted on so many
    int64_t total               # actions of all windows
    int64_t last_due            # tick in which the last frame that was held back comes
    uint64_t random             # state of its random numbers
    uint32_t counter            # alive counter that stands still
    int32_t active              # `held` is of this window
    int32_t spent               # the window has closed, what opened it still holds
    int32_t pad
    double held                 # x when the window opened
    double last                 # x it made of it last

# A frame that is held back.
cdef struct queued_t:
    int64_t due                 # tick
    int32_t bus
    int32_t received
    can_frame_t frame

cdef struct fault_log_t:
    int64_t tick
    int32_t fault
    int32_t opened              # 1: opened, 0: shut
    int64_t acts                # of the window

cdef struct faults_t:
    int32_t n_fault
    int32_t first[N_FIRST]            # first fault of each stage; they are sorted by it
    fault_t* fault
    fault_state_t* state
    int32_t n_queue             # room
    int32_t n_queued
    queued_t* queue             # in the order in which they were held back
    int64_t queue_lost          # frames that found it full
    int64_t n_log               # entries made so far, also those there was no room for
    fault_log_t* log
    uint32_t switches           # written by other threads (atomic): bit k: fault k of those switched by hand is on
    uint32_t switched           # of the running tick

cdef uint64_t CHANCE_ALWAYS

cdef class FaultTable(Blocks):
    cdef faults_t f
    cdef readonly int n_sig
    cdef list _order
