"""What the control channel and the tick share: one transaction at a time, signals held, images of a whole rig.

The control thread fills the transaction while its state is CTL_FREE and posts it; the tick takes it whole at its top
and gives it back at its end. Everything is preallocated; nothing here is freed while a transaction is out.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from torqueloop.cython_kernels.model.model cimport tl_model, tl_state
from torqueloop.cython_kernels.tick.faults cimport fault_state_t, queued_t

cdef enum:
    CTL_WRITES = 128            # writes in one transaction
    CTL_HELD = 128              # signals held at a time
    CTL_GAINS = 8               # terms of the momentum of the car
    CTL_VEHICLE = 16            # MAX_VEHICLE of tick.pxd
    CTL_STORED = 4              # outputs that are stored energy

# Who has the transaction: the lower bits of `state`. Above them the number of the transaction, so that a tick that has
# looked at one takes that one: between look and taking it may be taken back and another one posted in its place.
cdef enum:
    CTL_FREE = 0                # the control thread
    CTL_POSTED = 1              # waits for a tick
    CTL_TAKEN = 2               # the running tick
    CTL_WHO = 3                 # mask
    CTL_NEXT = 4                # one more transaction

# Kinds of writes.
cdef enum:
    CTL_SET = 0                 # the signal gets a value once; it stays where nothing else writes
    CTL_HOLD = 1                # from now on the signal is held at a value, whatever writes it
    CTL_RELEASE = 2             # and no more

# What else a transaction does (bits).
cdef enum:
    CTL_MODEL = 1               # the model gives way to another one of the same structure
    CTL_RESTORE = 2             # the rig takes over an image
    CTL_LINKS = 4               # with its counters of the bus and stamps of the vehicle: the peers go back as well
    CTL_IMAGE = 8               # an image is taken

# How it went.
cdef enum:
    CTL_OK = 0
    CTL_REFUSED = 1             # model or image not taken: in the safe state or disarming

cdef struct ctl_write_t:
    int32_t slot
    int32_t kind
    double value

# One signal that is held: stage 0 before the wiring copies signals to model inputs, 1 after that (model inputs).
cdef struct ctl_hold_t:
    int32_t slot
    int32_t stage
    double value
    double own                  # what it would be; back in the table between two ticks' inputs

# Control chunk of an input record; then n_writes ctl_write_t.
cdef struct control_chunk_t:
    int32_t n_writes
    int32_t what
    int64_t ref                 # entry in control/journal.jsonl with the model or image, 0: none

# One received message as it counts in the next tick.
cdef struct image_rx_t:
    uint32_t rejected
    uint32_t bad
    uint32_t counter
    uint8_t seen
    uint8_t pad[3]

cdef struct image_head_t:
    int64_t tick                # simulated ticks so far
    uint64_t hash
    double I_wheel
    double momentum_last
    double force_last
    double work
    double vehicle[CTL_VEHICLE]
    int64_t n_queued
    int64_t n_held
    ctl_hold_t held[CTL_HELD]

# State of a whole rig between two ticks.
cdef struct image_t:
    int64_t n_sig
    int64_t nx                  # state proper of the kernel, 0: rig without physics
    int64_t nk
    int64_t n_messages
    int64_t n_driver
    int64_t n_guard
    int64_t n_fault
    int64_t n_queue
    int64_t n_sending           # words
    image_head_t* head
    double* sig
    double* x
    int64_t* k
    image_rx_t* rx
    int64_t* tx                 # of the next frames: alive counter, above it (<< 32) the page of a multiplexed one
    int64_t* hint               # driver tables
    double* guard_last          # limits of what is sent
    int64_t* guard_seen
    fault_state_t* fault        # injected faults
    queued_t* queue             # frames they hold back, head.n_queued of them
    int64_t* sending            # of each bus: sending_state_t, then raw numbers of its signals

cdef struct ctl_t:
    int32_t state               # atomic: CTL_WHO and number
    # ---- the transaction ----
    int32_t what
    int32_t n_write
    int32_t n_gain              # new factors of the momentum, with CTL_MODEL
    int64_t at_tick             # not before this simulated tick; below 0: with the next one. Atomic: read before taking
    int64_t ref
    ctl_write_t write[CTL_WRITES]
    const tl_model* model       # CTL_MODEL: the new model and memory for its state
    tl_state* model_state
    double gain[CTL_GAINS]
    const image_t* source       # CTL_RESTORE
    image_t* target             # CTL_IMAGE
    # ---- the answer, valid when state is CTL_FREE again ----
    int64_t done_tick           # simulated tick in which it took effect
    int64_t done_now_ns
    int32_t result
    int32_t n_stored
    int32_t stored[CTL_STORED]  # outputs of the model (from 0) that are stored energy
    # ---- the tick's own ----
    double work                 # done by changes of parameters: what the stored energy jumped by, J
    int32_t recorded            # bits of `what` that took effect
    int32_t n_held
    ctl_hold_t held[CTL_HELD]
