"""The command line: `torqueloop`, `python -m torqueloop.hil.cli`."""

import gc
import os

from torqueloop.hil.common.blas_threads import with_one_thread

# before anything imports NumPy
os.environ.update(with_one_thread(dict(os.environ)))

from torqueloop.hil.cli.commands import app, main

# All that is imported stays: looking through it for garbage takes 20 % of the time of a short command.
gc.set_threshold(100_000)

__all__ = ["app", "main"]
