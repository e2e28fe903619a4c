"""A BMW 528i in first gear at full throttle, offline."""

import torqueloop as tl

BAR = 1e5
simulation = tl.Simulation("car_4hp22", h=1e-3)
result = simulation.run(5.0, inputs={"C4.p": 12 * BAR, "C11.p": 12 * BAR, "engine.pedal": 1.0})
balance = result.energy()
rpm = result["engine.w"][-1] * 30.0 / 3.14159
print(f"{3.6 * result['car.v'][-1]:.1f} km/h after {result.time[-1]:g} s, engine {rpm:.0f} 1/min")
print(f"{len(result.modes)} mode changes; energy closes to {balance.relative_residual:.0e}")
