"""Who sends what on a bus, as one node, or the rest of a bus, sees it: by the database, or as the rig file says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from torqueloop.core.describe.classes import dataclass


@dataclass(frozen=True)
class Traffic:
    """Whose messages are sent here, and which. Names are those of the database."""

    #: the nodes that are simulated here
    nodes: tuple[str, ...]
    #: messages sent; None: all that the database gives to these nodes
    send: tuple[str, ...] | None = None
    #: messages received besides those the database lists these nodes as receivers of
    receive: tuple[str, ...] = ()
    #: cycle time where the database has none, or another one [s]
    cycles_s: Mapping[str, float] = field(default_factory=dict)
    #: nothing that is sent may be left out: what is wrong with it is an error
    whole: bool = False

    @property
    def name(self) -> str:
        """The nodes as one text."""
        return ", ".join(self.nodes)

    @property
    def named(self) -> set[str]:
        """Messages that are requested by name: a mistake in them is an error."""
        return {*(self.send or ()), *self.receive, *self.cycles_s}

    def sends(self, message: Any) -> bool:
        """A message of cantools is sent here."""
        if self.send is not None:
            return message.name in self.send
        return message.name not in self.receive and any(n in self.nodes for n in message.senders)

    def receives(self, message: Any) -> bool:
        """It is received here."""
        return not self.sends(message) and (
            message.name in self.receive or any(n in self.nodes for n in message.receivers)
        )

    def others(self, message: Any) -> list[str]:
        """Other nodes that the database lists as senders."""
        return [] if self.send is not None else [n for n in message.senders if n not in self.nodes]
