"""When each cyclic message is sent first, so that the load of a bus is even."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

import numpy as np

from torqueloop.cython_kernels.can.codec_spec import MessageSpec

#: ticks that are looked at where the cycles come round later than that
HORIZON = 20_000


def frame_bits(message: MessageSpec) -> int:
    """Longest frame of a message on the bus, interframe space and stuff bits included [bit at the first bit rate].

    Classic CAN, n data bytes: 55 + 10 n (11 bit) or 80 + 10 n (29 bit).
    CAN FD is counted with the same formula: only the relative weight of messages matters here.

    Source: Davis, Burns, Bril, Lukkien 2007, Controller Area Network schedulability analysis, section 2.
    """
    return (80 if message.extended else 55) + 10 * message.length


def spread(rows: Sequence[tuple[int, int, int | None]]) -> list[int]:
    """First ticks of messages given as (period in ticks, bits, first tick or None: any below the period).

    The one with the shortest period and the most bits first, each takes the tick whose fullest repetition is least
    full; of equal ones the one with the least load in all repetitions, then around them, then the earliest.
    """
    horizon = min(lcm(*(period for period, _, _ in rows)), HORIZON) if rows else 1
    load = np.zeros(horizon)
    found = [0 if first is None else first for _, _, first in rows]
    for period, bits, first in rows:
        if first is not None:
            load[first % period :: period] += bits
    free = [k for k, row in enumerate(rows) if row[2] is None]
    for k in sorted(free, key=lambda k: (rows[k][0], -rows[k][1], k)):
        period, bits, _ = rows[k]
        n = min(period, horizon)
        peaks = np.array([load[first::period].max() for first in range(n)])
        sums = np.array([load[first::period].sum() for first in range(n)])
        # the load a tick before and after breaks ties: neighbours share the bus
        around = np.roll(sums, 1) + np.roll(sums, -1)
        found[k] = int(np.lexsort((np.arange(n), around, sums, peaks))[0])
        load[found[k] :: period] += bits
    return found
