"""Multiplexed messages of a CAN database: when a signal is in the frame, and the pages a sender goes through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from torqueloop.cython_kernels.can.codec_spec import Ranges

#: frames it may take until a sender has been through all pages of a message
PAGES_MAX = 1024

When = tuple[tuple[str, Ranges], ...]
Page = tuple[tuple[str, int], ...]


def ranges_of(values: Iterable[int]) -> Ranges:
    """Whole numbers as ascending ranges, both ends included."""
    ordered = sorted(set(values))
    firsts = [x for k, x in enumerate(ordered) if k == 0 or ordered[k - 1] != x - 1]
    lasts = [x for x, after in pairwise([*ordered, None]) if after != (x or 0) + 1]
    return tuple(zip(firsts, (x for x in lasts if x is not None), strict=True))


def conditions(message: Any, signal: Any) -> When:
    """(selector, its raw numbers) from the outermost one on; empty: always in the frame. ValueError if a multiplexed
    signal has no selector."""
    by_name = {s.name: s for s in message.signals}
    chain: list[tuple[str, Ranges]] = []
    seen: set[str] = set()
    while signal.multiplexer_ids is not None:
        name = signal.multiplexer_signal
        where = f"message {message.name}, signal {signal.name}"
        if name is None or name not in by_name:
            known = ", ".join(s.name for s in message.signals if s.is_multiplexer) or "none"
            raise ValueError(f"{where}: it is multiplexed, but its multiplexer is missing (signals marked M: {known})")
        if name in seen:
            raise ValueError(f"{where}: multiplexers that select each other")
        seen.add(name)
        chain.append((name, ranges_of(signal.multiplexer_ids)))
        signal = by_name[name]
    return tuple(reversed(chain))


def pages(name: str, when: Mapping[str, When]) -> tuple[Page, ...]:
    """What the selectors of a message are set to, one page after another, so that every signal is sent: of values that
    select the same signals the lowest. `when`: of all its signals. ValueError beyond PAGES_MAX."""
    found = tuple(_pages(when, ()))
    if len(found) > PAGES_MAX:
        raise ValueError(f"message {name}: {len(found)} pages; at most {PAGES_MAX}: bind its multiplexer to a signal")
    return found if found != ((),) else ()


def _pages(when: Mapping[str, When], outer: When) -> list[Page]:
    """Pages of what stands below the conditions `outer`, each selector with its choices, one after another."""
    depth = len(outer)
    selectors = dict.fromkeys(w[depth][0] for w in when.values() if len(w) > depth and _below(w, outer))
    made: list[Page] = [()]
    for selector in selectors:
        theirs: dict[frozenset[str], int] = {}
        users = {n: w[depth][1] for n, w in when.items()
                 if len(w) > depth and _below(w, outer) and w[depth][0] == selector}  # fmt: skip
        # the signals change only where a range begins or has ended
        for value in sorted({x for r in users.values() for lo, hi in r for x in (lo, hi + 1)}):
            active = frozenset(n for n, r in users.items() if any(lo <= value <= hi for lo, hi in r))
            if active:
                theirs.setdefault(active, value)
        inner = [
            ((selector, value), *rest)
            for value in sorted(theirs.values())
            for rest in _pages(when, (*outer, (selector, ((value, value),))))
        ]
        # selectors of one level are independent: the shorter list is repeated beside the longer one
        n = max(len(made), len(inner))
        made = [(*made[k % len(made)], *inner[k % len(inner)]) for k in range(n)]
    return made


def _below(when: When, outer: When) -> bool:
    """The conditions begin with those of `outer`, whose ranges are single values."""
    return all(
        name == selector and any(lo <= ours[0][0] <= hi for lo, hi in theirs)
        for (selector, theirs), (name, ours) in zip(when, outer, strict=False)
    )
