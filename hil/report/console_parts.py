"""Small pieces of the report on the terminal: tables, numbers, histograms as a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.table import Table

from torqueloop.hil.report.metrics import rebinned

BLOCKS = " ▁▂▃▄▅▆▇█"


def sparkline(hist: Sequence[Sequence[float]], width: int = 28) -> str:
    """A histogram with logarithmic classes as one line; the height is the logarithm of the count."""
    per_decade = 20
    while True:
        count = np.array([c for _, c in rebinned(hist, per_decade)], dtype=float)
        if len(count) <= width or per_decade == 1:
            break
        per_decade -= 1
    if not len(count):
        return ""
    level = np.log10(count + 1)
    height = np.where(count > 0, np.maximum(np.ceil(level / level.max() * (len(BLOCKS) - 1)), 1), 0).astype(int)
    return "".join(BLOCKS[k] for k in height)


def table(title: str, *columns: str, box: Any = None) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box, pad_edge=False, show_edge=False)
    for k, name in enumerate(columns):
        table.add_column(name, justify="left" if k == 0 else "right", header_style="dim")
    return table


def number(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    if isinstance(value, float):
        return f"{value:,.1f}".replace(",", " ") if 0.1 <= abs(value) < 1e6 else f"{value:.3g}"
    return str(value)
