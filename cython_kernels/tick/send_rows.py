"""One message that is sent on a change or event, as Python hands it to the tick (sending.pxd sending_t)."""

from __future__ import annotations

from dataclasses import dataclass

from torqueloop.cython_kernels.tick.fault_rows import NEVER, Code


@dataclass(frozen=True)
class SendRow:
    """What sends a message. Times in ticks."""

    #: index in the codec of its bus
    message: int
    #: 0: not cyclic
    period: int = 0
    #: nothing is sent before this tick
    offset: int = 0
    #: numbers in the codec of the signals whose change sends it
    signals: tuple[int, ...] = ()
    #: condition that sends it each time it comes true
    when: Code = NEVER
    #: between two frames that are not cyclic, at least
    gap: int = 1
    #: frames more after a change or event
    repeats: int = 0
