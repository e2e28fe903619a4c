"""The most work that a step of a model can make, in evaluations of its forces.

The work of a step is bounded by the limits of docs/theory.md, section 14. Beyond them the step ends with an impulse
step, or with joint shafts at rest until its end; both are counted in `fallbacks`, with which a run fails.

evaluations of a trial     2 with two points, 6 with three; 12 and 24 with joint shafts on rigid bodies, whose speeds
                           are found with those of the shafts
events                     MAX_SPLITS, and one more, which ends the step in one piece
refused trials             the last one, after which the step ends in one piece; with three points one more, after
                           which it takes two; with joint shafts one for each part of the step
search for an event        REFINE trials of other lengths for each event and each refused trial
other trials               the end of the step; one of its own length where a truncated one would leave energy open; one
                           for each part between joints, and for each piston that becomes full
"""

from __future__ import annotations

import numpy as np

from torqueloop.core.compile.compiler import CompiledModel
from torqueloop.core.describe.kernel_numbers import FILL_TIME

#: events in a step; trials that search for one event; parts of a step with joint shafts
MAX_SPLITS, REFINE, JOINT_PARTS = 12, 16, 100
#: passes of a trial of two points; of three; of either with joint shafts on rigid bodies
PASSES_TWO, PASSES, BODY_PASSES = 2, 3, 12
#: evaluations beside the trials: at the start, at the end, after a fallback, and two of a step that was taken for quiet
INSTANTS = 5


def most_evaluations(model: CompiledModel) -> int:
    """Evaluations of all forces that one step makes at most if the inputs are held during the step, as those of a rig
    are. Inputs that change within a step divide it where a pressure or a ratio has a breakpoint, and each part has
    one more trial and one more evaluation."""
    a = model.arrays
    three = a.order == 4
    passes = BODY_PASSES if len(a.wr) else PASSES if three else PASSES_TWO
    parts = JOINT_PARTS if len(a.jo) else 0
    full = int(np.count_nonzero(a.act["kind"] == FILL_TIME))
    events = MAX_SPLITS + 1
    refused = 1 + three + parts
    trials = events + refused + REFINE * (events + refused) + 2 + parts + full
    return passes * (2 if three else 1) * trials + INSTANTS + full
