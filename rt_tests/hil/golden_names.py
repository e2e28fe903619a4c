"""Names of the metrics that run.json tells: its tables flattened, by the rule of docs/report_page.md, a second time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

UNITS = ("us", "ns", "ms", "s", "J", "mps", "mps2", "Nm", "Pa", "percent", "Hz", "bytes")
#: tables of run.json whose entries are metrics without the table's own name, or not at all
INLINE, NOT = {"clock", "reported", "link", "native"}, {"worst", "hist", "known", "buses", "vehicles"}


def joined(name: str, key: str) -> str:
    """A unit at the end of a table's name goes to the end: compute_us.p99 is compute_p99_us; a count has none."""
    key = re.sub(r"\W", "_", key)
    head, _, unit = name.rpartition("_")
    own = key.rpartition("_")[2] if "_" in key else ""
    if head and unit in UNITS and key != "count" and own not in UNITS:
        return f"{head}_{key}_{unit}"
    return f"{name}_{key}" if name else key


def told(table: dict[str, Any], name: str = "") -> Iterator[tuple[str, Any]]:
    """(metric, value) of everything in a table of run.json."""
    for key, value in table.items():
        if key in NOT:
            continue
        path = name if key in INLINE else joined(name, key)
        if isinstance(value, dict):
            yield from told(value, path)
        elif value is not None:
            yield path, len(value) if isinstance(value, list) else int(value) if isinstance(value, bool) else value


def all_told(stats: dict[str, Any]) -> dict[str, Any]:
    """Metrics of run.json alone: its tables; buses and vehicles under `can_` and `vehicle_`, each by its name where
    there are several, then all of them together."""
    found = dict(told(stats))
    for prefix, tables in (("can", stats["buses"]), ("vehicle", stats["vehicles"])):
        for bus, table in tables.items():
            if len(tables) > 1:
                found |= told(table, f"{prefix}_{bus}")
            for name, value in told(table, prefix):
                summed = name in found and not isinstance(value, str)
                found[name] = found[name] + value if summed else value
    return found
