"""A drum on a spring with a damper, braked in pulses and driven, whatever its natural frequency: energy closes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from torqueloop.core.components import Brake, Fixed, Inertia, SpringDamper, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Pulse, Sine
from torqueloop.core.simulate.offline import Simulation

#: s
H = 1e-3
#: h*omega from which on no trial is truncated (RESOLVED, derive.py), and how far energy closes below it and above it,
#: of the energy turned over: below it springs keep what truncations cost, up to TRUNCATION_TOL_2 and TRUNCATION_TOL_4
#: (accept.pxi) each; above it, per unit of h*omega above 1, rounding of forces that hold a spring
LIMIT, BELOW, ABOVE = 0.25, 1.5e-4, 1e-12

tenths = st.floats(-2.0, 0.0)


@examples(100)
@given(
    swing=st.floats(-2.0, 1.0).map(lambda x: 10.0**x),
    damping=st.one_of(st.just(0.0), st.floats(-3.0, 0.5).map(lambda x: 10.0**x)),
    J=st.sampled_from([1e-4, 1e-2, 1.0]),
    grip=tenths,
    drive=tenths,
    period=st.floats(0.004, 0.03),
    order=st.sampled_from([2, 4]),
)
def test_energy_of_a_braked_drum_closes(
    swing: float, damping: float, J: float, grip: float, drive: float, period: float, order: int
) -> None:
    """The brake takes 10**grip of the spring's greatest torque, the torque from outside is 10**drive of it."""
    omega = swing / H
    c, torque = J * omega**2, J * omega * 20.0
    d = Driveline("drum", order=order)
    d.add("J", Inertia(J=J, w0=20.0))
    d.add("S", SpringDamper(c=c, d=2.0 * damping * np.sqrt(c * J)))
    d.add("F", Fixed())
    d.add("B", Brake(fn_max=torque * 10.0**grip, mue_pos=1.0))
    d.add("T", Torque())
    d.connect("J.flange_a", "S.flange_a", "B.flange_a", "T.flange")
    d.connect("S.flange_b", "F.flange")
    pulses = Pulse(amplitude=1.0, width=40.0, period=period)
    inputs = {"B.f_normalized": pulses, "T.tau": Sine(amplitude=torque * 10.0**drive, f=31.0)}
    r = Simulation(d, h=H).run(0.2, inputs=inputs)
    energy = r["energy.kinetic"] + r["energy.potential"] + r["B.heat"] + r["S.loss"] - r["T.work"]
    turned = energy[0] + np.abs(np.diff(r["T.work"])).sum()
    closes = BELOW if swing <= LIMIT else ABOVE * max(1.0, swing) ** 2
    assert np.abs(energy - energy[0]).max() <= closes * turned
    assert np.diff(r["B.heat"]).min() >= 0.0
    assert np.diff(r["S.loss"]).min() >= (0.0 if swing > LIMIT else -closes * turned)
