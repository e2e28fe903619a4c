"""A raw CAN socket as the tick uses it. See socketcan.pyx for the rules.

Use in a tick (all nogil, no allocation, no blocking call, no exceptions):

    n = port_receive(p, limit, now_ns)       messages read at once: 0 none left, -1 an error was taken off the socket
    kind = port_frame(p, i, &frame)          0 <= i < n; PORT_* says what it is
    port_received(p, now_ns)                 after the last one
    port_send(p, &frame)                     True: taken by the kernel
    port_word(p, now_ns, &word)              what reaches the signals of the rig
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from torqueloop.cython_kernels.rings.can_frame cimport can_frame_t
from torqueloop.cython_kernels.clock.histogram cimport hist_t
from torqueloop.cython_kernels.can.stamps cimport stamps_t

cdef extern from "<sys/uio.h>" nogil:
    cdef struct iovec:
        void* iov_base
        size_t iov_len

cdef extern from "<sys/socket.h>" nogil:
    cdef struct msghdr:
        iovec* msg_iov
        size_t msg_iovlen
        void* msg_control
        size_t msg_controllen
        int msg_flags
    cdef struct mmsghdr:
        msghdr msg_hdr
        unsigned int msg_len

cdef enum:
    PORT_BATCH = 32             # messages read with one system call
    PORT_PENDING = 64           # sent frames waited for
    PORT_CONTROL = 192          # bytes of ancillary data: drop count and four times
    PORT_WIRE = 72              # bytes of the longest frame, struct canfd_frame

# What a message of the socket is.
cdef enum:
    PORT_DATA = 0               # data frame of another node
    PORT_OWN = 1                # our frame back from the bus: it was sent
    PORT_STOLEN = 2             # data frame of another node with an identifier of ours
    PORT_ERROR = 3              # error frame of the controller
    PORT_OTHER = 4              # remote frame, or no CAN frame at all

# Value of the signal can.state.
cdef enum:
    BUS_ACTIVE = 0
    BUS_WARNING = 1
    BUS_PASSIVE = 2
    BUS_OFF = 3
    BUS_DOWN = 4                # the network interface is down or gone

# Classes of errors that are counted: bits 0..8 of an error frame's identifier, then kinds of controller trouble.
cdef enum:
    N_ERR_BITS = 9
    ERR_RX_OVERFLOW = 9
    ERR_TX_OVERFLOW = 10
    ERR_RX_WARNING = 11
    ERR_TX_WARNING = 12
    ERR_RX_PASSIVE = 13
    ERR_TX_PASSIVE = 14
    N_ERR = 15

# All of the port that reaches signals: part of the input record of a tick whenever it has changed.
cdef struct bus_word_t:
    int32_t state               # BUS_*
    uint32_t tx_errors          # error counters of the controller, as its last error frame reported
    uint32_t rx_errors
    uint32_t tx_lost_in_row     # frames refused in a row while the bus was there
    uint64_t rx_dropped         # frames the kernel dropped because they were not read in time
    uint64_t error_frames
    uint64_t tx_lost            # frames not sent
    int64_t down_since_ns       # now_ns of the tick that first saw bus off or interface down; 0: it is there

cdef struct canport_t:
    int32_t fd                  # -1: not open, frames come through the rings
    int32_t fd_frames           # CAN FD frames may be sent
    int32_t n_own
    uint32_t* own               # (n_own) identifiers we send, ascending
    # ---- one batch ----
    mmsghdr msg[PORT_BATCH]
    iovec vec[PORT_BATCH]
    uint8_t wire[PORT_BATCH][PORT_WIRE]
    uint8_t control[PORT_BATCH][PORT_CONTROL]
    int64_t read_ns             # when the batch was read
    stamps_t stamps
    # ---- state of the bus ----
    int32_t state               # BUS_*
    int32_t worst               # largest state since arming
    uint32_t tx_errors
    uint32_t rx_errors
    int64_t down_since_ns
    # ---- sent frames that have not come back ----
    int32_t n_pending
    uint32_t pending_id[PORT_PENDING]
    uint64_t pending_mark[PORT_PENDING] # of their data
    int64_t pending_ns[PORT_PENDING]
    int64_t pending_age_max_ns  # largest age of the oldest one
    uint64_t forgotten          # given up: a later one came back, the interface went down, too many were waiting
    # ---- counters since arming ----
    uint64_t rx                 # data frames of others
    uint64_t rx_dropped
    uint32_t overflow           # the kernel's own count (it wraps)
    uint64_t rx_limited         # ticks that left frames in the socket
    uint64_t rx_failed          # errors of reading other than a missing interface
    uint64_t malformed
    uint64_t remote
    uint64_t confirmed
    uint64_t foreign
    uint32_t foreign_id          # first identifier of ours that another node sent; never cleared
    int32_t foreign_any
    uint64_t error_frames
    uint64_t errors[N_ERR]
    uint64_t tx
    uint64_t tx_enobufs         # queue of the interface full
    uint64_t tx_again           # send buffer of the socket full
    uint64_t tx_down            # interface down
    uint64_t tx_failed          # any other refusal
    uint32_t tx_lost_in_row
    int32_t last_errno
    int32_t stamped             # 0: no stamps, 1: of the kernel, 2: of the adapter
    hist_t receive_latency      # stamp -> read by the tick
    hist_t send_latency         # handed to the kernel -> seen on the bus

cdef int port_receive(canport_t* p, int limit, int64_t now_ns) noexcept nogil
cdef int port_wait(canport_t* p) noexcept nogil
cdef int port_frame(canport_t* p, int i, can_frame_t* frame) noexcept nogil
cdef void port_received(canport_t* p, int64_t now_ns) noexcept nogil
cdef bint port_send(canport_t* p, const can_frame_t* frame) noexcept nogil
cdef void port_word(canport_t* p, int64_t now_ns, bus_word_t* word) noexcept nogil
cdef void port_arm(canport_t* p) noexcept nogil

cdef class NativePort:
    """Owner of a canport_t."""
    cdef canport_t* p
    cdef int listener(self) except -1
