"""The energy balance of a run.

    engine work + other sources + energy stored at the beginning
        = energy stored at the end + heat of each friction element + converter loss + damper heat + road load

All terms in J. residual = left - right; residual_rel = residual / turned over, the turned over energy being the larger
of the sum of all positive supplies and the sum of all losses and stores.
"""

from __future__ import annotations

import numpy as np

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.results.run import EnergyStats


@dataclass(frozen=True)
class EnergyBalance:
    """Terms of the balance over the run [J]."""

    #: work done on the driveline: engine, torque sources; negative = taken out
    supplied_J: dict[str, float]
    #: heat and road load: what left for good
    lost_J: dict[str, float]
    #: change of kinetic and potential energy
    stored_J: dict[str, float]
    #: supplied - lost - stored
    residual_J: float

    @property
    def turned_over_J(self) -> float:
        terms = [*self.supplied_J.values(), *(-v for v in self.lost_J.values()), *(-v for v in self.stored_J.values())]
        return max(sum(v for v in terms if v > 0), sum(-v for v in terms if v < 0), 1e-300)

    @property
    def residual_rel(self) -> float:
        return self.residual_J / self.turned_over_J


def energy_balance(stats: EnergyStats | None, signals: Signals | None) -> EnergyBalance | None:
    """From the statistics of the run; without them from recorded energy signals."""
    if stats is not None and (stats.supplied or stats.lost or stats.stored):
        return _balance(dict(stats.supplied), dict(stats.lost), dict(stats.stored))
    return _from_signals(signals) if signals is not None else None


def _balance(supplied: dict[str, float], lost: dict[str, float], stored: dict[str, float]) -> EnergyBalance:
    residual = sum(supplied.values()) - sum(lost.values()) - sum(stored.values())
    return EnergyBalance(supplied, lost, stored, residual)


def _from_signals(signals: Signals) -> EnergyBalance | None:
    """Recorded energies `<component>.<what>` with unit J; their change over the recording counts."""
    supplied: dict[str, float] = {}
    lost: dict[str, float] = {}
    stored: dict[str, float] = {}
    for name in signals.names:
        if signals.units.get(name) != "J" or not signals.n:
            continue
        values = signals[name]
        change = float(values[-1] - values[0])
        if not np.isfinite(change):
            return None
        last = name.rsplit(".", 1)[-1].lower()
        if any(word in name.lower() for word in ("kinetic", "potential")):
            stored[name] = change
        elif any(word in last for word in ("heat", "loss", "dissipat")):
            lost[name] = change
        else:
            supplied[name] = change
    return _balance(supplied, lost, stored) if supplied and (lost or stored) else None
