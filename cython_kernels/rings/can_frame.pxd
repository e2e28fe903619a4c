"""The CAN frame as it travels between socket, gateway, ring, codec and record.

80 bytes, copied by value: a classic frame has up to 8 data bytes, a CAN FD frame up to 64. Records (input record, bus
log) hold frames packed: the 16 bytes before `data`, then the data bytes rounded up to 8, at least 8. So a classic frame
is 24 bytes there, the longest FD frame 80.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef extern from *:
    """
    #ifndef TORQUELOOP_CAN_FRAME_H
    #define TORQUELOOP_CAN_FRAME_H
    #include <stdint.h>
    typedef struct {
        int64_t  t_ns;     /* receive: time of arrival; send: time of encoding. Clock of the rig's loop [ns] */
        uint32_t id;       /* identifier, 11 or 29 bit; bit 31 set = extended (29 bit), as in SocketCAN */
        uint8_t  dlc;      /* number of data bytes: 0..8; CAN FD also 12, 16, 20, 24, 32, 48, 64 */
        uint8_t  flags;    /* CAN_FLAG_*; 0: a classic data frame */
        uint8_t  bus;      /* in records of a rig: index of its bus; else 0 */
        uint8_t  spare;    /* 0 */
        uint8_t  data[64]; /* bytes beyond dlc are 0 */
    } can_frame_t;
    #define CAN_FRAME_EXTENDED 0x80000000u
    #define CAN_FLAG_REMOTE 1
    #define CAN_FLAG_ERROR 2    /* error frame of the controller: id = classes of errors as in linux/can/error.h */
    #define CAN_FLAG_FD 4       /* CAN FD frame */
    #define CAN_FLAG_BRS 8      /* FD: data at the second bit rate */
    #define CAN_FLAG_ESI 16     /* FD: the sender is error passive */
    #define CAN_FRAME_HEAD 16   /* bytes before data */
    static inline uint32_t can_frame_packed(uint8_t n_data)
    { return n_data <= 8 ? 24u : 16u + (((uint32_t)n_data + 7u) & ~7u); }
    #endif
    """
    ctypedef struct can_frame_t:
        int64_t t_ns
        uint32_t id
        uint8_t dlc
        uint8_t flags
        uint8_t bus
        uint8_t spare
        uint8_t data[64]
    const uint32_t CAN_FRAME_EXTENDED
    enum:
        CAN_FLAG_REMOTE
        CAN_FLAG_ERROR
        CAN_FLAG_FD
        CAN_FLAG_BRS
        CAN_FLAG_ESI
        CAN_FRAME_HEAD
    # bytes of a frame with so many data bytes in a record
    uint32_t can_frame_packed(uint8_t n_data) noexcept nogil
