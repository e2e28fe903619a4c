"""Two shafts and a clutch, joined in Python; the clutch closes and both turn with one speed."""

import torqueloop as tl
from torqueloop.core.components import Clutch, Inertia

line = tl.Driveline("two shafts")
line.add("J1", Inertia(J=1.0, w0=10.0))
line.add("J2", Inertia(J=2.0))
line.add("clutch", Clutch(fn_max=160.0, mue_pos=0.5))
line.connect("J1.flange_b", "clutch.flange_a")
line.connect("clutch.flange_b", "J2.flange_a")

result = tl.Simulation(line, h=1e-3).run(1.0, inputs={"clutch.f_normalized": 1.0})
print(f"J1 {result['J1.w'][-1]:.6f} rad/s, J2 {result['J2.w'][-1]:.6f} rad/s (momentum: {10.0 / 3.0:.6f})")
assert abs(result["J2.w"][-1] - 10.0 / 3.0) < 1e-9
