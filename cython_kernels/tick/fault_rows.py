"""One row of the tick's table of faults, as Python hands it over (faults.pxd fault_t)."""

from __future__ import annotations

from dataclasses import dataclass

#: operation, slot, value: a condition as code (conditions.pyx); (): none
Code = tuple[tuple[str, int, float], ...]
NEVER: Code = ()


@dataclass(frozen=True)
class FaultRow:
    """What acts, on what, when."""

    #: "input", "output", "command" (of a solenoid), "sensor", "frame", "bus"
    stage: str
    kind: str
    #: slot of a signal; index of a message in the codec of its bus
    target: int = 0
    #: number of the bus
    bus: int = 0
    value: float = 0.0
    #: the fault is given in x; signal = gain * x + offset
    gain: float = 1.0
    offset: float = 0.0
    #: raw number of a signal, XOR of a checksum
    raw: int = 0
    #: index in the codec of the signal that gets a raw number
    signal: int = 0
    can_id: int = 0
    #: first of the two signals of the fault; 0: it has none
    slot: int = 0
    from_tick: int = 0
    #: None: never
    until_tick: int | None = None
    #: bit that switches it; None: not by hand
    switch: int | None = None
    #: condition that opens its window; (): not by a condition
    when: Code = NEVER
    #: condition that closes it
    until: Code = NEVER
    #: 0: not by time since it opened
    lasts_ticks: int = 0
    #: actions after which it closes, windows of a run; 0: any number
    count: int = 0
    times: int = 0
    #: acts on each n-th frame or tick of the window
    every: int = 1
    #: probability that it acts
    chance: float = 1.0
    #: way back of a signal
    back_ticks: int = 0
    seed: int = 0
