# The files of the step in the order in which they may call each other: a function, constant or struct is used in its own file
# and in files that stand below it here, never above. core/compile/step_files.py reads this list for precompiled steps, for
# docs/step_files.md and for the test that holds the order (rt_tests/unit/test_step_files.py).
#
# A precompiled step has straight lines in the places of rows_generic.pxi and each_generic.pxi.

# --- values: what everything else is formed from
include "step_imports.pxi"
include "rows_generic.pxi"
include "points.pxi"
include "polynomial.pxi"
include "roots.pxi"
include "linear.pxi"

# --- laws: forces, capacities and states of the elements at one time
include "pressures.pxi"
include "bodies.pxi"
include "poses.pxi"
include "joints.pxi"
include "friction.pxi"
include "each_generic.pxi"
include "forces.pxi"
include "dogs.pxi"
include "contacts.pxi"
include "relaxing.pxi"
include "box.pxi"
include "ratios.pxi"
include "look_ups.pxi"
include "driven.pxi"
include "losses.pxi"
include "jumps.pxi"

# --- trial: the motion over a step with the modes held
include "stages.pxi"
include "fast_modes.pxi"
include "governors.pxi"
include "gaps.pxi"
include "row_laws.pxi"
include "rows.pxi"
include "trial.pxi"

# --- events: where the trial ends, and taking it
include "events.pxi"
include "accept.pxi"
include "thermal.pxi"

# --- instant: what follows from an event or a jump
include "settle.pxi"
include "impact.pxi"
include "decide_losses.pxi"
include "decide.pxi"
include "instant.pxi"
include "inputs.pxi"

# --- step: the order of all this
include "guards.pxi"
include "impulse.pxi"
include "shortened.pxi"
include "quiet.pxi"
include "advance.pxi"
