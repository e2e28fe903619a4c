"""CAN codec of the tick: frames <-> signal table, with end-to-end checks. See codec.pyx for the rules.

Use in a tick (all nogil, no allocation, no exceptions):

    codec_rx_arm(c, rx, now_ns)                                  once, at arming
    status = codec_decode(c, &frame, table, rx, now_ns)          each received frame
    n_silent = codec_check_timeouts(c, rx, now_ns)               once a tick; rx.message[i].timed_out
    status = codec_encode(c, tx, message_index, table, &frame)   each message that is due
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from torqueloop.cython_kernels.can.crc cimport crc8_t, crc_t
from torqueloop.cython_kernels.can.protect cimport protect_t
from torqueloop.cython_kernels.can.word cimport field_t
from torqueloop.cython_kernels.rings.can_frame cimport can_frame_t

# Status of codec_decode and codec_encode.
cdef enum:
    CODEC_OK = 0
    CODEC_UNKNOWN = 1   # no received message has this identifier (also remote and error frames)
    CODEC_LENGTH = 2    # DLC differs from the database
    CODEC_CRC = 3       # checksum wrong
    CODEC_REPEAT = 4    # alive counter equals that of the last good frame
    CODEC_JUMP = 5      # alive counter ran further than max_delta, or has a value that is not allowed
    CODEC_RANGE = 6     # decode: a signal is outside the database's limits, or not finite
    CODEC_NAN = 7       # encode: a signal of the table is NaN; no frame is made
    CODEC_FORMAT = 8    # a classic frame where the database says CAN FD, or the other way round
    CODEC_N_STATUS = 9

# Kinds of raw values.
cdef enum:
    RAW_UNSIGNED = 0
    RAW_SIGNED = 1
    RAW_FLOAT32 = 2
    RAW_FLOAT64 = 3

cdef struct codec_signal_t:
    double scale         # value = raw * scale + offset, in SI
    double offset
    double raw_lo        # limits of the raw number: those of the database and of the bits, whichever is narrower
    double raw_hi
    uint64_t mask        # (1 << length) - 1
    uint64_t sign        # 1 << (length - 1) for signed numbers, else 0
    int32_t slot         # index in the signal table
    uint8_t at           # first byte of its 64-bit word; 0 in messages of up to 8 bytes
    uint8_t shift        # of the least significant bit, in the 64-bit word of its byte order
    uint8_t big_endian
    uint8_t kind         # RAW_*
    uint8_t check        # 1: decode refuses raw numbers outside raw_lo..raw_hi
    uint8_t nine         # 1: touches a ninth byte; big endian: `shift` is the number of its bits there
    uint8_t selector     # multiplexer: its number in the pages of its message, from 1; else 0
    int32_t first_invalid  # raw numbers that mean "invalid", in codec_t.invalid
    int32_t last_invalid

# A selector and its raw numbers: one of the conditions for a group of signals to be in a frame.
cdef struct codec_when_t:
    uint64_t mask
    uint8_t at
    uint8_t shift
    uint8_t big_endian
    int32_t first        # ranges first <= i < last in codec_t.range
    int32_t last

cdef struct codec_range_t:
    uint64_t lo
    uint64_t hi

# Signals that are in a frame together.
cdef struct codec_group_t:
    int32_t first        # signals
    int32_t last
    int32_t first_when   # all of these conditions must hold; none: always there
    int32_t last_when

cdef struct codec_message_t:
    uint32_t id          # with CAN_FRAME_EXTENDED for 29 bit
    int32_t first        # signals first <= i < last
    int32_t last
    int64_t timeout_ns   # received messages; 0: not watched
    int64_t cycle_ns     # 0: not cyclic
    field_t counter        # no parts: there is none
    uint32_t counter_min   # counts counter_min..counter_max without skip[first_skip..last_skip - 1], then anew
    uint32_t counter_max
    int64_t counter_n      # values it has
    int32_t first_skip
    int32_t last_skip
    int32_t first_group    # multiplexed, or with values that say "invalid": its groups of signals; else first == last
    int32_t last_group
    int32_t first_page     # sent multiplexed messages: raw numbers of its selectors, n_selectors for each page
    int32_t n_pages        # 0: the signal table says what the selectors are
    int32_t n_selectors
    protect_t* protect     # NULL: no checksum
    uint8_t has_counter
    uint8_t max_delta    # largest accepted step of the counter; 1: no frame may be lost
    uint8_t dlc          # data bytes
    uint8_t format       # CAN_FLAG_FD for CAN FD, else 0
    uint8_t send_flags   # format, and CAN_FLAG_BRS where the data goes at the second bit rate
    uint8_t wide         # 1: more than 8 bytes, so words are loaded at `at`
    uint8_t receive      # 1: we receive it, 0: we send it

# Constant after building.
cdef struct codec_t:
    int32_t n_messages
    int32_t n_signals
    int32_t n_slots            # length of the signal table
    int32_t n_extended
    codec_message_t* message
    codec_signal_t* signal
    codec_group_t* group
    codec_when_t* when
    codec_range_t* range
    uint64_t* invalid
    uint64_t* page
    uint32_t* skip
    protect_t* protect
    crc8_t* crc8
    crc_t* crc
    int16_t* standard          # [2048]: index of the received message with that 11-bit identifier, -1: none
    uint32_t* extended_id      # [n_extended], ascending
    int32_t* extended_message  # [n_extended]
    int32_t n_watched
    int32_t* watched           # [n_watched]: messages with a timeout

# One received message. Written by codec_decode (all but the last two) and codec_check_timeouts.
cdef struct rx_message_t:
    int64_t last_ok_ns         # now_ns of the last good frame; of arming before the first
    int64_t last_frame_ns      # now_ns of the last frame with a right checksum, good or not
    uint64_t count[9]          # frames by CODEC_* status; [0] = taken
    uint64_t lost              # frames missing before frames with an accepted counter
    uint32_t rejected          # frames of this message rejected since the last known counter (length, checksum)
    uint32_t bad               # frames refused since the last good one, for any reason; 0 and timed_out: nothing comes
    uint32_t counter           # of the last frame with a right checksum
    uint8_t seen               # a good frame came since arming
    uint8_t timed_out          # silent for longer than timeout_ns
    uint64_t timeouts          # how often timed_out became 1
    uint64_t invalid           # signals of taken frames that said "invalid" and kept their value

cdef struct rx_state_t:
    rx_message_t* message      # [n_messages]
    uint64_t unknown           # frames of no interest to us
    int32_t last_index         # message of the last codec_decode, -1: unknown

# One sent message. Written by codec_encode.
cdef struct tx_message_t:
    uint64_t sent              # frames made
    uint64_t saturated         # signals that were limited
    uint64_t refused           # frames not made because a signal was NaN
    uint32_t counter           # alive counter of the next frame
    uint32_t page              # of the next frame

cdef struct tx_state_t:
    tx_message_t* message      # [n_messages]

cdef int codec_find(const codec_t* c, uint32_t can_id) noexcept nogil
cdef int codec_decode(const codec_t* c, const can_frame_t* frame, double* table, rx_state_t* rx,
                      int64_t now_ns) noexcept nogil
cdef int codec_encode(const codec_t* c, tx_state_t* tx, int index, const double* table,
                      can_frame_t* out) noexcept nogil
cdef int codec_check_timeouts(const codec_t* c, rx_state_t* rx, int64_t now_ns) noexcept nogil
cdef uint32_t codec_counter_of(const codec_message_t* m, const uint8_t* data) noexcept nogil
cdef void codec_set_counter(const codec_message_t* m, uint8_t* data, uint32_t value) noexcept nogil
cdef uint64_t codec_raw_of(const codec_t* c, int signal, const double* table) noexcept nogil
cdef bint codec_set_raw(const codec_t* c, const codec_message_t* m, int signal, uint64_t raw,
                        uint8_t* data) noexcept nogil
cdef void codec_protect(const codec_message_t* m, uint8_t* data) noexcept nogil
cdef uint32_t codec_next_counter(const codec_t* c, const codec_message_t* m, uint32_t value) noexcept nogil
cdef void codec_rx_arm(const codec_t* c, rx_state_t* rx, int64_t now_ns) noexcept nogil

cdef class CodecTables:
    """Owner of a codec_t; `ptr` may be read from any thread."""
    cdef codec_t c
    cdef codec_t* ptr
    cdef readonly tuple messages
    cdef object _keep
    cdef _add_signal(self, codec_signal_t* s, message, signal)
    cdef _add_field(self, field_t* f, places)
    cdef _add_protection(self, protect_t* p, row, dict crcs)

cdef class RxState:
    """Owner of an rx_state_t."""
    cdef rx_state_t s
    cdef rx_state_t* ptr
    cdef readonly CodecTables tables

cdef class TxState:
    """Owner of a tx_state_t."""
    cdef tx_state_t s
    cdef tx_state_t* ptr
    cdef readonly CodecTables tables
