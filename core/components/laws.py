"""Forces over speed as curves: |x|, a regularised sign, and a hyperbola, for the speed-dependent sources.

The kernel has curves with linear interpolation, so smooth laws become polygons. RELATIVE_ERROR bounds the distance
between polygon and law: nodes are laid so that h^2/8*|y''| stays below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from torqueloop.core.describe.tables import Table1D

#: greatest distance of a polygon from its law: of the nominal value (sign), of the value (hyperbola). Smaller: more
#: nodes (they go with the inverse square root)
RELATIVE_ERROR = 1e-6
#: the hyperbola is followed up to this multiple of the speed of its nominal value; beyond it stays constant
HYPERBOLA_REACH = 1000.0
#: a jump is a ramp over this part of the speed it is at
JUMP = 1e-6

REGULARIZATIONS = ("Exp", "Sine", "Linear", "CoSine")


def absolute(nominal: float) -> Table1D:
    """|x|/nominal."""
    return Table1D((-nominal, 0.0, nominal), (1.0, 0.0, 1.0), extrapolation="linear")


def sign(reg: str, x0: float) -> Table1D:
    """sign(x) made continuous below x0: 2/(1 + exp(-x/(0.01*x0))) - 1 (Exp), sin, a line, or 1 - cos."""
    if reg == "Linear":
        return _odd([0.0, x0], [0.0, 1.0])
    if reg == "Exp":
        # the logistic curve is 1 in double precision from x = 37*0.01*x0 on
        return _odd(*_polygon(lambda x: math.tanh(x / (0.02 * x0)), 0.37 * x0, _logistic_bend(0.01 * x0)))
    bend = 0.5 * (math.pi / 2.0 / x0) ** 2 / 4.0  # y'' <= (pi/2/x0)^2, distance h^2/8*y''
    step = math.sqrt(RELATIVE_ERROR / bend)
    count = math.ceil(x0 / step)
    nodes = [x0 * k / count for k in range(count + 1)]
    turns = [math.pi / 2.0 * x / x0 for x in nodes[:-1]]
    values = [math.sin(q) if reg == "Sine" else 1.0 - math.cos(q) for q in turns]
    return _odd(nodes, [*values, 1.0])


def hyperbola(nominal: float, x0: float, even: bool) -> Table1D:
    """Even: nominal/|x|, constant for |x| < x0. Odd: nominal/x, and x/x0 for |x| < x0, with a jump at x0 in general."""
    reach = HYPERBOLA_REACH * max(nominal, x0)
    # between x and q*x the chord is at most (q - 1)^2/4 of the value above the hyperbola
    count = math.ceil(math.log(reach / x0) / math.log1p(2.0 * math.sqrt(RELATIVE_ERROR)))
    nodes = [x0 * (reach / x0) ** (k / count) for k in range(count + 1)]
    values = [nominal / x for x in nodes]
    if not even:
        foot = [x0 * (1.0 - JUMP)] if nominal != x0 else []
        return _odd([0.0, *foot, *nodes], [0.0, *(x / x0 for x in foot), *values])
    return Table1D((*(-x for x in reversed(nodes)), *nodes), (*reversed(values), *values))


def _odd(x: list[float], y: list[float]) -> Table1D:
    """The curve and its mirror image through the origin; constant outside."""
    return Table1D((*(-v for v in reversed(x[1:])), *x), (*(-v for v in reversed(y[1:])), *y))


def _logistic_bend(scale: float) -> Callable[[float], float]:
    """|y''| of tanh(x/(2*scale)), never quite 0."""

    def bend(x: float) -> float:
        t = math.tanh(x / (2.0 * scale))
        return max(abs(t) * (1.0 - t * t), 1e-12) / (2.0 * scale * scale)

    return bend


def _polygon(
    law: Callable[[float], float], end: float, bend: Callable[[float], float]
) -> tuple[list[float], list[float]]:
    """Nodes from 0 to `end`, each interval as long as the error allows with the bend at both of its ends."""
    nodes = [0.0]
    while nodes[-1] < end:
        x = nodes[-1]
        h = min(math.sqrt(8.0 * RELATIVE_ERROR / bend(x)), end / 50.0)
        while h * h / 8.0 * max(bend(x), bend(x + h / 2.0), bend(x + h)) > RELATIVE_ERROR:
            h *= 0.8
        nodes.append(min(x + h, end))
    return nodes, [law(x) for x in nodes]
