"""Drivelines become arrays of the kernel."""

# whoever compiles a driveline may run it: steps that `torqueloop compile` has built are found from here on
from torqueloop.core.compile import user_steps as _user_steps  # noqa: F401
