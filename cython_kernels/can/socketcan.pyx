"""SocketCAN in the tick: one non-blocking raw socket, read in batches, written frame by frame, everything counted.

Receiving. recvmmsg reads up to PORT_BATCH messages at a time until the socket is empty or the tick's limit is reached;
the rest waits in the socket. When its buffer is full, the kernel drops the newest frames and counts them (SO_RXQ_OVFL:
`rx_dropped`). The kernel's filters let through data frames with the identifiers we receive or send, and error frames.

Own frames come back (CAN_RAW_RECV_OWN_MSGS, MSG_CONFIRM) once they were on the bus: the time since `send` is the send
latency. What has not come back is `unconfirmed`. A frame with an identifier of ours that is not ours is `foreign`.

Error frames are counted by class, each in constant time, and tell the state of the bus:

    active <-> warning <-> passive     as the controller reports (CAN_ERR_CRTL)
    bus off                            until the controller says it was restarted or active, or the interface came back
    down                               reading or sending said ENETDOWN, ENODEV, ENXIO; until a frame goes or comes again

Sending. One send per frame with MSG_DONTWAIT. A frame the kernel does not take is lost and counted by reason: ENOBUFS
(queue of the interface full), EAGAIN (send buffer of the socket full), interface down, anything else. It is not tried
again: the next frame of the message carries a newer state, and a queue of old states helps nobody. Its alive counter is
used up, so the receiver sees the loss.

Errors of a socket (interface down) are reported by the kernel once; the frames behind them are read at the next try.
"""

from libc.errno cimport EAGAIN, EINTR, ENETDOWN, ENOBUFS, ENODEV, ENXIO, errno
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memmove, memset
from posix.time cimport timespec

from torqueloop.cython_kernels.rings.can_frame cimport (
    CAN_FLAG_BRS,
    CAN_FLAG_ERROR,
    CAN_FLAG_ESI,
    CAN_FLAG_FD,
    CAN_FLAG_REMOTE,
    CAN_FRAME_EXTENDED,
)
from torqueloop.cython_kernels.clock.clock cimport monotonic_ns
from torqueloop.cython_kernels.clock.histogram cimport Histogram, hist_add, hist_clear
from torqueloop.cython_kernels.can.stamps cimport stamps_arrival, stamps_init, stamps_refresh

cdef extern from "<sys/socket.h>" nogil:
    cdef struct cmsghdr:
        size_t cmsg_len
        int cmsg_level
        int cmsg_type
    cmsghdr* CMSG_FIRSTHDR(msghdr* m)
    cmsghdr* CMSG_NXTHDR(msghdr* m, cmsghdr* c)
    unsigned char* CMSG_DATA(cmsghdr* c)
    size_t CMSG_LEN(size_t n)
    int recvmmsg(int fd, mmsghdr* msg, unsigned int n, int flags, timespec* timeout)
    ssize_t recvmsg(int fd, msghdr* msg, int flags)
    ssize_t send(int fd, const void* data, size_t n, int flags)
    int SOL_SOCKET, SO_RXQ_OVFL, SCM_TIMESTAMPING, SCM_TIMESTAMPNS
    int MSG_DONTWAIT, MSG_TRUNC, MSG_CONFIRM, MSG_NOSIGNAL

cdef enum:
    # sizes of struct can_frame and struct canfd_frame, and where their data begins
    CLASSIC_BYTES = 16
    FD_BYTES = 72
    WIRE_DATA = 8
    # bits of the identifier and of the flags of a CAN FD frame (linux/can.h)
    WIRE_REMOTE = 0x40000000
    WIRE_ERROR = 0x20000000
    WIRE_BRS = 1
    WIRE_ESI = 2
    WIRE_FDF = 4
    # classes of an error frame (linux/can/error.h) that change the state
    ERR_CRTL = 0x004
    ERR_BUSOFF = 0x040
    ERR_RESTARTED = 0x100
    ERR_CNT = 0x200
    CRTL_WARNING = 0x04 | 0x08
    CRTL_PASSIVE = 0x10 | 0x20
    CRTL_ACTIVE = 0x40

cdef int64_t NS_PER_S = 1_000_000_000

#: names of the counters of errors, by number (socketcan.pxd)
ERROR_NAMES = (
    "tx_timeout", "arbitration_lost", "controller", "protocol", "transceiver", "ack", "bus_off", "bus_error",
    "restarted",
    "rx_overflow", "tx_overflow", "rx_warning", "tx_warning", "rx_passive", "tx_passive",
)
#: values of the signal can.state, by number
BUS_STATES = ("active", "warning", "passive", "bus off", "interface down")
#: bytes of struct can_frame and struct canfd_frame
WIRE_BYTES, WIRE_FD_BYTES = CLASSIC_BYTES, FD_BYTES
#: what a message of the socket is, in the order of PORT_* (socketcan.pxd)
DATA, OWN, STOLEN, ERROR, OTHER = range(5)


include "socketcan_tick.pxi"


cdef class NativePort:
    """Memory of one port. Opened and closed by the session; between the two the tick owns the socket.

    `own_ids`: identifiers we send, bit 31 set for 29-bit ones.
    """

    def __cinit__(self, own_ids=()):
        cdef int i
        ids = sorted(set(own_ids))
        self.p = <canport_t*>calloc(1, sizeof(canport_t))
        if self.p == NULL:
            raise MemoryError("CAN port")
        self.p.fd = -1
        self.p.own = <uint32_t*>calloc(len(ids) + 1, sizeof(uint32_t))
        if self.p.own == NULL:
            raise MemoryError("CAN port")
        self.p.n_own = len(ids)
        for i, can_id in enumerate(ids):
            self.p.own[i] = can_id
        for i in range(PORT_BATCH):
            self.p.vec[i].iov_base = self.p.wire[i]
            self.p.vec[i].iov_len = PORT_WIRE
            self.p.msg[i].msg_hdr.msg_iov = &self.p.vec[i]
            self.p.msg[i].msg_hdr.msg_iovlen = 1
            self.p.msg[i].msg_hdr.msg_control = self.p.control[i]

    def __dealloc__(self):
        if self.p != NULL:
            free(self.p.own)
            free(self.p)

    cdef int listener(self) except -1:
        if self.p.fd < 0:
            raise ValueError("the CAN port is not open")
        return self.p.fd

    def open(self, fd: int, fd_frames: bool = False, state: int = 0) -> None:
        """Take over a connected or bound datagram socket that carries struct can_frame and struct canfd_frame.
        state: of the bus now (index of BUS_STATES); error frames tell changes only."""
        if not 0 <= state < len(BUS_STATES):
            raise ValueError(f"state {state} of the bus: allowed 0..{len(BUS_STATES) - 1}")
        stamps_init(&self.p.stamps)
        self.p.overflow = 0
        self.p.state = state
        port_arm(self.p)
        self.p.fd_frames = fd_frames
        self.p.fd = fd

    def close(self) -> None:
        """Let go of the socket (which is closed by its owner)."""
        self.p.fd = -1

    @property
    def is_open(self) -> bool:
        """A socket is there; else frames come through the rings."""
        return self.p.fd >= 0

    @property
    def state(self) -> int:
        """State of the bus now, index of BUS_STATES."""
        return self.p.state

    @property
    def foreign_id(self):
        """First identifier of ours that another node has sent, bit 31 set for 29-bit ones; None: none."""
        return self.p.foreign_id if self.p.foreign_any else None

    def receive(self, limit: int = 64) -> list:
        """Read without the tick (before it runs, tests): [(kind PORT_*, can_id, data, t_ns, flags)], limit messages."""
        cdef can_frame_t frame
        cdef int n, i, kind, left = limit
        cdef int64_t now = monotonic_ns()
        self.listener()
        found = []
        for _ in range(left // PORT_BATCH + 3):
            if left <= 0:
                self.p.rx_limited += 1
                break
            n = port_receive(self.p, left, now)
            if n == 0:
                break
            for i in range(n):
                kind = port_frame(self.p, i, &frame)
                found.append((kind, frame.id, (<char*>frame.data)[:frame.dlc], frame.t_ns, frame.flags))
            left -= max(0, n)
        port_received(self.p, now)
        return found

    def send(self, can_id: int, data: bytes, flags: int = 0) -> bool:
        """As port_send."""
        cdef can_frame_t frame
        cdef const uint8_t* raw = data
        cdef Py_ssize_t n = len(data)
        self.listener()
        if n > (64 if flags & CAN_FLAG_FD else 8):
            raise ValueError(f"frame 0x{can_id:X}: {n} data bytes")
        memset(&frame, 0, sizeof(frame))
        frame.id, frame.dlc, frame.flags = can_id, <uint8_t>n, <uint8_t>flags
        memcpy(frame.data, raw, n)
        return port_send(self.p, &frame)

    def word(self, now_ns: int) -> dict:
        """As port_word."""
        cdef bus_word_t word
        port_word(self.p, now_ns, &word)
        return word

    def arm(self) -> None:
        """As port_arm."""
        port_arm(self.p)

    def counters(self) -> dict:
        """Everything counted since arming, for the report; see socketcan.pxd. Latencies in us."""
        cdef canport_t* p = self.p
        cdef Histogram receive = Histogram(), sent = Histogram()
        memcpy(&receive.h, &p.receive_latency, sizeof(receive.h))
        memcpy(&sent.h, &p.send_latency, sizeof(sent.h))
        oldest = max(0, monotonic_ns() - p.pending_ns[0]) if p.n_pending else 0
        return {
            "bus_state": BUS_STATES[p.state], "bus_state_worst": BUS_STATES[p.worst],
            "bus_tx_errors": p.tx_errors, "bus_rx_errors": p.rx_errors,
            "rx_taken": p.rx, "rx_dropped": p.rx_dropped, "rx_limited_ticks": p.rx_limited, "rx_failed": p.rx_failed,
            "malformed": p.malformed, "remote_frames": p.remote, "foreign_frames": p.foreign,
            "tx_taken": p.tx, "tx_confirmed": p.confirmed, "tx_enobufs": p.tx_enobufs, "tx_again": p.tx_again,
            "tx_down": p.tx_down, "tx_failed": p.tx_failed,
            "tx_lost": p.tx_enobufs + p.tx_again + p.tx_down + p.tx_failed,
            "unconfirmed": p.n_pending, "unconfirmed_age_us": oldest / 1e3,
            "unconfirmed_age_max_us": p.pending_age_max_ns / 1e3, "unconfirmed_forgotten": p.forgotten,
            "error_frames": p.error_frames,
            "errors": {name: p.errors[k] for k, name in enumerate(ERROR_NAMES)},
            "last_errno": p.last_errno, "timestamps": ("none", "kernel", "hardware")[p.stamped],
            "receive_latency_us": receive.summary(), "send_latency_us": sent.summary(),
        }
