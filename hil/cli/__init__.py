"""The command line: `torqueloop`, `python -m torqueloop.hil.cli`."""

import os

from torqueloop.hil.common.blas_threads import with_one_thread

# before anything imports NumPy
os.environ.update(with_one_thread(dict(os.environ)))

from torqueloop.hil.cli.commands import app, main

__all__ = ["app", "main"]
