"""Whether a step carries the universal joints of a model: a fork that turns too far in it is refused before the run."""

from __future__ import annotations

import math

from torqueloop.core.compile.compiler import CompiledModel
from torqueloop.core.describe.errors import RangeError

#: rad over the room of a joint: how far its fork turns within one trial of the step (joints.pxi)
TURN_LIMIT = 0.3
#: trials that a step is divided into at most (joints.pxi)
JOINT_PARTS = 100


def check_joint_steps(model: CompiledModel, h: float) -> None:
    """RangeError for a universal joint whose start speed asks for more trials than a step of h is divided into.

    A joint bent by beta passes the speed w of one shaft on as up to w/cos(beta), and where it turns so fast its fork
    may go TURN_LIMIT/sin(beta) within a trial, so w tan(beta) h <= JOINT_PARTS*TURN_LIMIT. (What is met in the run,
    and joints whose bend is an input, are counted: `joint_parts`, `steep_unsolved`.)
    """
    a = model.arrays
    for part, joint in zip(model.parts.joints.shafts, a.jo, strict=True):
        for end, row in ((0, int(joint["row_a"])), (1, int(joint["row_b"]))):
            if not joint["hooke"][end] or joint["bend_in"][end] >= 0:
                continue
            entries = slice(int(a.row_ptr[row]), int(a.row_ptr[row + 1]))
            w = abs(float(a.row_val[entries] @ a.u0[a.row_idx[entries]]))
            rate = w * abs(math.tan(float(joint["bend"][end])))
            if rate * h > JOINT_PARTS * TURN_LIMIT:
                bend = math.degrees(abs(float(joint["bend"][end])))
                raise RangeError(
                    f"a step of {{key}} = {{value}} s does not carry the universal joint {part.owner!r}, "
                    f"bent by {bend:.4g} deg, at its start speed of {w:.6g} rad/s", key="h", value=h,
                    allowed=f"at most {JOINT_PARTS * TURN_LIMIT / rate:.3g} s",
                )  # fmt: skip
