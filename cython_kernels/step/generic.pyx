"""The step for any driveline: sizes are read from the model. order.pxi has its files, advance.pxi the method."""

include "order.pxi"
