"""The command line: `torqueloop`, `python -m torqueloop.hil.cli`."""

from torqueloop.hil.cli.commands import app, main

__all__ = ["app", "main"]
