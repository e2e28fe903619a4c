"""A CAN frame as Python code sees it, and the flags it may have. One place for both.

The same fields as `can_frame_t` (rings/can_frame.pxd), whose CAN_FLAG_* and CAN_FRAME_EXTENDED these are.
"""

from __future__ import annotations

from torqueloop.core.describe.classes import dataclass

#: bit 31 of an identifier: 29 bit long, as in SocketCAN and the frame rings
EXTENDED = 0x80000000
#: a remote frame: asks for data, has none
REMOTE_FLAG = 1
#: error frame of the controller
ERROR_FLAG = 2
#: CAN FD frame
FD_FLAG = 4
#: CAN FD: data at the second bit rate
BRS_FLAG = 8
#: CAN FD: the sender is error passive
ESI_FLAG = 16
#: numbers of data bytes that a CAN FD frame can have; a classic one has 0..8
FD_LENGTHS = frozenset((*range(9), 12, 16, 20, 24, 32, 48, 64))


@dataclass(frozen=True, slots=True)
class Frame:
    """One data frame between the rig and a control unit."""

    #: identifier; bit 31 set for 29 bit
    can_id: int
    data: bytes
    #: FD_FLAG, BRS_FLAG ...; 0: a classic data frame
    flags: int = 0
    #: which of the buses the control unit is on, counted from 0 in the order of its set-up
    bus: int = 0
