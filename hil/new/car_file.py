"""A car file: a gearbox as a part of a drive, on a road of its own or for a rig."""

from __future__ import annotations

_ROAD = """\
connections = [["car.flange_b", "resistance.flange"]]

# F = f0 + f1 v + f2 v^2: rolling (0.011 m g) and air (0.5 rho cdA)
[components.resistance]
kind = "CarResistance"
f0_N = 192.1
f1_Ns_per_m = 0.0
f2_Ns2_per_m2 = 0.393
source = "assumed: rolling coefficient 0.011 at 1780 kg, cdA 0.655 m2"
"""
_RIG = """\
connections = [["car.flange_b", "road.flange"]]

# the road is the vehicle process's: it sends the force road.F and the holding capacity road.F_hold
[components.road]
kind = "RoadLoad"
"""


def car_text(name: str, gearbox: str, drive: str, road: bool) -> str:
    """The car file."""
    include = drive if drive.endswith(".toml") else f"{drive}.toml"
    return f"""\
# A car with the gearbox {gearbox}. Written by `torqueloop new car`; everything may be changed.

kind = "driveline"
name = "{name}"
# a file, or the bare name of an installed gearbox (torqueloop list)
gearbox = "{gearbox}"
# engine, converter with lock-up clutch, final drive, half shafts, wheels, mass
include = ["{include if drive.endswith(".toml") else drive}"]

{_ROAD if road else _RIG}"""
