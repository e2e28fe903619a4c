"""What can go wrong with the machine, and the exit statuses that say so."""

from __future__ import annotations

#: no such machine can run here (missing rights, tools or network); tests skip
SKIPPED = 77
TIMED_OUT = 124
#: the machine ended without a status of the command
BROKEN = 125


class Unavailable(Exception):
    """The machine cannot run here; the text says what is missing."""
