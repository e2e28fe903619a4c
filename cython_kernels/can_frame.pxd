"""The CAN frame as it travels between gateway, socket, ring and codec.

24 bytes, no padding holes that matter, copied by value. Classic CAN only (up to 8 data bytes).
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
        uint8_t  dlc;      /* number of data bytes, 0..8 */
        uint8_t  flags;    /* bit 0: remote frame, bit 1: error frame; both 0 for a data frame */
        uint8_t  data[8];  /* bytes beyond dlc are 0 */
    } can_frame_t;
    #define CAN_FRAME_EXTENDED 0x80000000u
    #endif
    """
    ctypedef struct can_frame_t:
        int64_t t_ns
        uint32_t id
        uint8_t dlc
        uint8_t flags
        uint8_t data[8]
    const uint32_t CAN_FRAME_EXTENDED
