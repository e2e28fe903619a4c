"""Precompiled steps of contacts with an exponent beside a clutch and losses: equal to the generic step, to the bit."""

from __future__ import annotations

from typing import Any

import pytest
from built_steps import same_bits, scratch_suffices
from gap_models import Bounce

from torqueloop.core.components import Clutch, IdealGearR2T, Inertia, LossyGear
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Pulse

LOSSES = [[0.0, 0.95, 0.9, 0.1, 0.2], [50.0, 0.9, 0.85, 0.2, 0.3]]
INPUTS: dict[str, Any] = {"F0.f": -9.81, "F1.f": -3.0, "k.f_normalized": Pulse(amplitude=1.0, period=0.06, width=50.0)}


def gaps(order: int) -> Driveline:
    """Masses on gaps with an exponent, one of them in the teeth of a lossy rack with a clutch behind it."""
    d = Bounce(n=1.5, d=5.0, c=(2e6, 1e3)).driveline(order)
    parts = {"rack": IdealGearR2T(ratio=10), "P": Inertia(J=1e-3), "gear": LossyGear(ratio=2, lossTable=LOSSES),
             "k": Clutch(fn_max=5.0, mue_pos=0.4), "W": Inertia(J=0.01, w0=20.0)}  # fmt: skip
    for name, part in parts.items():
        d.add(name, part)
    for pair in (("W.flange_b", "k.flange_a"), ("k.flange_b", "gear.flange_a"), ("gear.flange_b", "P.flange_a"),
                 ("P.flange_b", "rack.flangeR"), ("rack.flangeT", "M0.flange_b")):  # fmt: skip
        d.connect(*pair)
    return d


@pytest.mark.proof
@pytest.mark.parametrize("order", [2, 4])
def test_a_precompiled_step_has_the_bits_of_the_generic_one(order: int) -> None:
    same_bits(gaps, order, INPUTS, 400)


@pytest.mark.parametrize("order", [2, 4])
def test_scratch_memory_is_given_back_and_suffices(order: int) -> None:
    scratch_suffices(gaps(order), INPUTS, 2.0)
