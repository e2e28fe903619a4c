"""How many numbers of a run's configuration are assumed, and which of them matter most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.provenance import Known, Statement, statements
from torqueloop.core.describe.reading import read_json

#: what `torqueloop report DIR --weigh` leaves in the run directory: {"table.key": {metric: relative change}}
WEIGHTS = "weights.json"
#: weights that are shown
SHOWN = 10


@dataclass(frozen=True)
class AssumedNumbers:
    """Numbers with a source in the files of a run, and those of them that are assumed."""

    said: int
    numbers: list[Statement] = field(default_factory=list)
    #: "table.key" -> relative change of each metric by 10 % more of the number; empty: not weighed
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def weightiest(self) -> list[tuple[Statement, Mapping[str, float]]]:
        """Weighed numbers with their changes."""
        weighed = [(s, self.weights[name]) for s in self.numbers if (name := f"{s.table}.{s.key}") in self.weights]
        return sorted(weighed, key=lambda pair: -max(map(abs, pair[1].values()), default=0.0))[:SHOWN]


def assumed_numbers(run_dir: Path) -> AssumedNumbers:
    """Read from the copies of the inputs in config/; files that cannot be read say nothing."""
    said: list[Statement] = []
    for file in sorted((run_dir / "config").rglob("*.toml")):
        try:
            said += statements(file)
        except ConfigError:
            continue
    return AssumedNumbers(len(said), [s for s in said if s.known is Known.ASSUMED], _weights(run_dir / WEIGHTS))


def _weights(path: Path) -> dict[str, dict[str, float]]:
    try:
        found = read_json(path)
    except (ConfigError, OSError):
        return {}
    if not isinstance(found, dict) or not all(isinstance(changes, dict) for changes in found.values()):
        return {}
    return {
        str(name): {str(metric): float(x) for metric, x in changes.items() if isinstance(x, (int, float))}
        for name, changes in found.items()
    }
