"""Inputs over time, with one-sided limits at jumps and the times of all jumps and kinks.

`sample(t, side)`: side < 0 the limit from the left, > 0 from the right (0: as from the right). `event_times(t0, t1)`:
sorted instants with t0 < t < t1 at which the signal or its slope is discontinuous; a simulation splits its steps there.
`derivative()`: the exact derivative as a signal, for sources that force a motion; a signal that jumps has none.
Names and parameters are those of Modelica.Blocks. Signals carry SI values of the input they feed.
"""

from __future__ import annotations

from torqueloop.core.signals.base import (
    Array,
    Constant,
    Difference,
    Formula,
    Function,
    Product,
    Quotient,
    Scaled,
    Signal,
    SignalLike,
    Sum,
    as_signal,
    equal_until,
    foreseeable,
)
from torqueloop.core.signals.integral import Integral
from torqueloop.core.signals.periodic import Periodic, Pulse, SawTooth, Trapezoid
from torqueloop.core.signals.piecewise import Piecewise, Ramp, Step, Table, clock, kinematic_ptp, time_table
from torqueloop.core.signals.selection import Choice, absolute, larger, limited, sign, smaller
from torqueloop.core.signals.waves import Applied, Exponentials, ExpSine, Sinc, Sine, cosine

__all__ = [
    "Applied", "Array", "Choice", "Constant", "Difference", "ExpSine", "Exponentials", "Formula", "Function",
    "Integral", "Periodic", "Piecewise", "Product", "Pulse", "Quotient", "Ramp", "SawTooth", "Scaled", "Signal",
    "SignalLike", "Sinc", "Sine", "Step", "Sum", "Table", "Trapezoid", "absolute", "as_signal", "clock", "cosine",
    "equal_until", "foreseeable", "kinematic_ptp", "larger", "limited", "sign", "smaller", "time_table",
]  # fmt: skip
