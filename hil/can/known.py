"""How the messages of a maker's bus are known: tables [known.MESSAGE] of an interface file.

    [known.Getriebe_12]
    layout = "two_sources"              positions, scales and meanings of the signals
    period = "assumed"
    protection = "not_public"           counter and checksum
    signals = { GE_Aufnahmemoment = "one_source" }      what is known of a signal otherwise than of the layout
    source = "K-matrix DBC vw_mqb_2010"

Before a real bus is armed, the rig prints what is assumed, contradicted or not public (`doubts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from torqueloop.hil.common.config_file import ConfigTable

#: recorded: seen on a real bus; maker: published by the maker; contradicted: a recording says otherwise
Knowledge = Literal["recorded", "maker", "two_sources", "one_source", "assumed", "contradicted"]
#: knowledge -> as a person reads it
WORDS: dict[str, str] = {
    "recorded": "recorded", "maker": "published by its maker", "two_sources": "two independent sources",
    "one_source": "one source", "assumed": "assumed", "contradicted": "contradicted by a recording",
    "not_public": "not public", "none": "none", "event": "sent on events",
}  # fmt: skip
#: what is printed before a real bus is armed
DOUBTFUL = ("assumed", "contradicted", "not_public")


class Known(ConfigTable):
    """[known.MESSAGE]: how a message is known. `source` says from where."""

    #: How the places, scales and meanings of the signals are known.
    layout: Knowledge = "assumed"
    #: How the cycle time is known. event: the message has no cycle time.
    period: Knowledge | Literal["event"] = "assumed"
    #: How the counter and the checksum are known. not_public: the message has a checksum whose rule is not published.
    #: none: the message has no protection.
    protection: Knowledge | Literal["not_public", "none"] = "none"
    #: Signal -> how it is known, if this differs from the layout.
    signals: dict[str, Knowledge] = {}
    #: What a recording shows. `torqueloop bus scan --check FILE --write OWN` writes it.
    log: str = ""

    @property
    def doubts(self) -> list[str]:
        """What of it is assumed, contradicted or not public, in words."""
        found = [f"{what} {WORDS[of]}" for what, of in
                 (("layout", self.layout), ("period", self.period), ("checksum", self.protection))
                 if of in DOUBTFUL]  # fmt: skip
        return found + [f"{name} {WORDS[of]}" for name, of in self.signals.items() if of in DOUBTFUL]


def source_text(source: str | Mapping[str, str] | None) -> str:
    """The source of a table as one text."""
    return source if isinstance(source, str) else "; ".join(f"{k}: {v}" for k, v in (source or {}).items())


def doubts(known: Mapping[str, Known], messages: Iterable[str]) -> list[str]:
    """A line for each of these messages that is not known well: "Getriebe_12: period assumed"."""
    found = []
    for name in messages:
        of = known[name].doubts if name in known else ["nothing says how it is known"]
        if of:
            found.append(f"{name}: {', '.join(of)}")
    return found


def tally(known: Mapping[str, Known], messages: Iterable[str]) -> str:
    """How many messages are known how, by their layout: "7 recorded, 2 assumed"."""
    names = list(messages)
    ways = [known[n].layout if n in known else "assumed" for n in names]
    periods = sum(n not in known or known[n].period in DOUBTFUL for n in names)
    text = ", ".join(f"{ways.count(way)} {words}" for way, words in WORDS.items() if way in ways)
    return text + (f"; {periods} periods assumed or contradicted" if periods else "")
