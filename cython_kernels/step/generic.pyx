"""The step for any driveline: sizes are read from the model. See advance.pxi for the method."""

include "step_imports.pxi"
include "gather_generic.pxi"
include "forces.pxi"
include "advance.pxi"
