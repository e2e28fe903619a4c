"""A TCU file for any gearbox: gears and torques from the statics, shifts from what changes between gears."""

from __future__ import annotations

import math
from pathlib import Path

from torqueloop.core.analyse.gearbox_report import GearboxReport, gearbox_report
from torqueloop.core.components.laminar import Laminar
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.ecu.gears import gear_number, is_variant, neighbours, top_gear
from torqueloop.hil.new.car_facts import RPM, CarFacts
from torqueloop.hil.new.shift_plan import PlannedShift, TcuGear, engaged_elements, shift_plan, tcu_gears

#: friction coefficient of a sliding pack, in the middle of the table of the gearbox files
MU = 0.13
#: the kiss point lies this far above the return spring, so that a filled piston stays filled [bar]
KISS_ABOVE = 0.05
#: an element holds this multiple of its torque at line pressure
MARGIN = 1.4
#: turbine speed of a shift up over the pedal [percent, share of the speed of largest power]. At full pedal below
#: it: the engine goes on rising for some 0.4 s until the oncoming element holds it, in first gear by 700 rpm
UP_SHARE = ((0.0, 0.30), (20.0, 0.31), (60.0, 0.44), (85.0, 0.92), (100.0, 0.92))
#: a shift up takes at least this long [s], and so long that the torque that brakes engine and turbine down is at most
#: this share of the engine's largest torque: the car feels it on top
UP_TIME_S, UP_PUSH = 0.4, 0.8
#: speed of a shift down over that of the shift up, at small and at full pedal
DOWN_SHARE, DOWN_SHARE_FULL, KICK_SHARE = 0.66, 0.72, 0.85


@dataclass(frozen=True)
class ElementFacts:
    """What the control unit knows of an element."""

    torque_per_bar_Nm: float
    kiss_bar: float
    fill_bar: float
    fill_s: float


def element_facts(pack: Laminar) -> ElementFacts:
    """From the plates and the piston: T = cgeo mu A (p - p_return)."""
    kiss = 1e-5 * float(pack.p_return) + KISS_ABOVE
    fills = pack.actuator == "fill_time"
    fill_s = float(pack.t_fill) if fills else max(0.75 * float(pack.tau_rise), 0.0)
    assert pack.area is not None
    per_bar = float(pack.geometry()) * MU * float(pack.area) * 1e5
    return ElementFacts(per_bar, kiss, kiss + (0.7 if fills else 0.8), fill_s)


def tcu_text(report: GearboxReport, car: CarFacts, name: str) -> str:
    """The TCU file, commented."""
    gears, elements = tcu_gears(report), _elements(report, car.driveline)
    plan = shift_plan(gears)
    parts = [
        _head(report, car, name),
        _element_tables(elements),
        _gear_tables(gears),
        _pressure(gears, elements, car.driveline),
        _torque_model(car),
        _schedule(gears, car),
        _lockup(gears, car),
        _rest(gears, car),
        (Path(__file__).parent / "templates" / "profiles.toml").read_text(encoding="utf-8"),
        _shift_lines(plan, gears, car),
    ]
    return "\n".join(parts)


def make_tcu(car: CarFacts, name: str) -> str:
    """The TCU file of a car with its gearbox."""
    return tcu_text(gearbox_report(car.driveline), car, name)


def _elements(report: GearboxReport, driveline: Driveline) -> dict[str, ElementFacts]:
    found = {}
    for name in engaged_elements(report):
        pack = driveline.components[name]
        if not isinstance(pack, Laminar):
            raise ConfigError(f"element {name} is a {pack.kind}, not pressed by oil", table=f"components.{name}",
                              key="kind", value=pack.kind, allowed="LaminarClutch, LaminarBrake")  # fmt: skip
        found[name] = element_facts(pack)
    return found


def _head(report: GearboxReport, car: CarFacts, name: str) -> str:
    return f"""\
# Soft TCU of {car.name}. Written by `torqueloop new tcu` from the statics of the gearbox file and the data
# of the car: a calibration to begin with, not that of any real TCU. Every value may be changed.
# Units in the names: bar, rpm of the output shaft, percent of the pedal.
kind = "tcu"
name = "{name}"
# turbine torque above which a shift counts as power-on; below, FROM-TO.coast is taken
power_on_torque_Nm = 15.0
# laws over torque use at least this turbine torque
torque_min_Nm = 25.0
# another gear wanted while the element is still being filled: the shift is given up
cancel_in_filling = true

[timing]
# control step and period of the pressure messages
period_s = 5e-3
# a status message every so many steps
status_every = 2
# a message of the rig that stays away longer is lost: limp-home
rx_timeout_s = 0.1
"""


def _element_tables(elements: dict[str, ElementFacts]) -> str:
    lines = [
        "# ---------------------------------------------------------------- elements",
        f"# torque_per_bar_Nm: faces x mean radius x piston area x mu {MU:g}. kiss_bar: return spring",
        f"# + {KISS_ABOVE:g} bar (a filled piston stays filled). fill_bar for fill_s fills the piston, then kiss_bar.",
        "[elements]",
    ]
    for name, e in elements.items():
        lines.append(
            f"{name} = {{ torque_per_bar_Nm = {e.torque_per_bar_Nm:.4g}, kiss_bar = {e.kiss_bar:.2f}, "
            f"fill_bar = {e.fill_bar:.2f}, fill_s = {e.fill_s:.3g} }}"
        )
    return "\n".join([*lines, ""])


def _gear_tables(gears: dict[str, TcuGear]) -> str:
    lines = [
        "# ---------------------------------------------------------------- gears",
        "# elements pressed, ratio, |torque| of each element per Nm of the turbine (statics). N presses what 1st and",
        "# reverse have in common, so that one element closes the torque path. E: with engine braking (lever in that",
        "# position, or manual gate).",
    ]
    for name, g in gears.items():
        listed = ", ".join(f'"{e}"' for e in g.elements)
        wheels = f"   # and {', '.join(g.free_wheels)}" if g.free_wheels else ""
        lines += [f"[gears.{name}]", f"elements = [{listed}]{wheels}"]
        if g.ratio:
            torque = ", ".join(f"{e} = {t:.5f}" for e, t in g.torque.items())
            lines += [f"ratio = {g.ratio:.5f}", f"torque = {{ {torque} }}"]
    return "\n".join([*lines, ""])


def _pressure(gears: dict[str, TcuGear], elements: dict[str, ElementFacts], driveline: Driveline) -> str:
    def needed(g: TcuGear) -> float:
        return max((MARGIN * t / elements[e].torque_per_bar_Nm for e, t in g.torque.items()), default=0.0)

    forward = max(needed(g) for name, g in gears.items() if gear_number(name))
    reverse = max(1.0, min(5.0, needed(gears["R"]) / forward))
    assert driveline.gearbox is not None
    low, high = 1e-5 * driveline.gearbox.line_min, 1e-5 * driveline.gearbox.line_max
    return f"""\
# ---------------------------------------------------------------- line pressure
# base + per_torque |T_turbine| + pedal_gain pedal: every element holds {MARGIN:g} x its torque in every forward gear;
# in R the torque part is multiplied. Lowest and highest: the gearbox file.
[line_pressure]
min_bar = {low:.1f}
max_bar = {high:.1f}
base_bar = {low:.1f}
per_torque_bar_per_Nm = {forward:.4f}
pedal_gain_bar = 1.0
reverse_factor = {reverse:.2f}
# the main regulator is slow
rate_bar_per_s = 60.0
"""


def _torque_model(car: CarFacts) -> str:
    lines = [
        "# ---------------------------------------------------------------- what the turbine torque is estimated from",
        "# the same files as the car's: spoil them to see what a wrong estimate does",
        "[torque_model]",
    ]
    for key in ("converter_csv", "converter_coast_csv", "engine_csv"):
        lines.append(f'{key} = "{car.curves[key].stem}"')
    lines += [
        "filter_s = 0.03",
        "# engine, converter and turbine: what `regulate` slows [kg m2]",
        f"inertia_kgm2 = {car.engine_side_kgm2:.3g}",
    ]
    return "\n".join([*lines, ""])


def _up_rpm(gears: dict[str, TcuGear], low: str, car: CarFacts) -> list[tuple[float, float]]:
    ratio = gears[low].ratio
    return [(pedal, share * car.power_rpm / ratio) for pedal, share in UP_SHARE]


def _curve(points: list[tuple[float, float]]) -> str:
    return "[" + ", ".join(f"[{pedal:.1f}, {rpm:.0f}.0]" for pedal, rpm in points) + "]"


def _schedule(gears: dict[str, TcuGear], car: CarFacts) -> str:
    pairs = neighbours(gears)
    up = {f"{low}-{high}": _up_rpm(gears, low, car) for low, high in pairs}
    down, kick = {}, {}
    for low, high in pairs:
        line = up[f"{low}-{high}"]
        down[f"{high}-{low}"] = [(p, (DOWN_SHARE if p < 85 else DOWN_SHARE_FULL) * rpm) for p, rpm in line]
        kick[f"{high}-{low}"] = KICK_SHARE * line[-1][1]
    first = up["1-2"][0][1] if up else 400.0
    shares = ", ".join(f"{pedal:g} %: {share:g}" for pedal, share in UP_SHARE)
    lines = [
        "# -------------------------------------------------------- shift schedule: [pedal percent, output rpm]",
        f"# {car.rpm_per_kmh:.1f} rpm are 1 km/h. Up: turbine speed in the lower gear over the engine's speed of",
        f"# largest power ({car.power_rpm:.0f} rpm), {shares}.",
        f"# Down: {DOWN_SHARE:g} of it ({DOWN_SHARE_FULL:g} at full pedal); kick-down: {KICK_SHARE:g}.",
        "[schedule]",
        "min_gear_time_s = 0.8",
        "kick_down_gear_time_s = 0.4",
        "kick_down_on_percent = 95.0",
        "kick_down_off_percent = 90.0",
        "# the down line is at least this far below the up line",
        f"hysteresis_min_rpm = {min(60.0, 0.25 * first):.0f}.0",
        "# no shift down that would turn the turbine faster; up whatever the lever says above the second one",
        f"turbine_max_rpm = {0.97 * car.power_rpm:.0f}.0",
        f"turbine_force_up_rpm = {1.03 * car.power_rpm:.0f}.0",
    ]
    lines += ["[schedule.up]", *(f"{name} = {_curve(points)}" for name, points in up.items())]
    lines += ["[schedule.down]", *(f"{name} = {_curve(points)}" for name, points in down.items())]
    lines += ["[schedule.kick_down]", *(f"{name} = {rpm:.0f}.0" for name, rpm in kick.items())]
    return "\n".join([*lines, ""])


def _lockup(gears: dict[str, TcuGear], car: CarFacts) -> str:
    top = top_gear(gears)
    chosen = ", ".join(f'"{n}"' for n in range(top // 2 + 1, top + 1))
    kiss, locked = 0.3, 8.0
    if car.lockup is not None:
        assert car.lockup.area is not None
        kiss = 1e-5 * float(car.lockup.p_return)
        locked = kiss + MARGIN * car.torque_Nm / (float(car.lockup.geometry()) * MU * float(car.lockup.area) * 1e5)
    close = 60.0 * car.rpm_per_kmh
    return f"""\
# ---------------------------------------------------------------- converter clutch
# filled, then a slip controller lets the slip fall by slip_rate to slip_rpm (0: it locks), then locked_bar,
# which holds {MARGIN:g} x the largest torque of the engine.
# Open in every shift.
[lockup]
gears = [{chosen}]
close_rpm = {close:.0f}.0
open_rpm = {0.9 * close:.0f}.0
close_pedal_percent = 60.0
open_pedal_percent = 75.0
fill_bar = {kiss + 1.2:.2f}
fill_s = 0.06
kiss_bar = {kiss:.2f}
slip_rate_rpm_per_s = 400.0
slip_kp_bar_per_100rpm = 0.4
slip_ki_bar_per_100rpm_s = 2.0
slip_rpm = 0.0
lock_slip_rpm = 20.0
locked_bar = {locked:.1f}
ramp_bar_per_s = 40.0
"""


def _rest(gears: dict[str, TcuGear], car: CarFacts) -> str:
    forward = [n for n in gears if gear_number(n) and not is_variant(n)]
    limp = min(forward, key=lambda n: abs(gears[n].ratio - 1.0))
    return f"""\
# ---------------------------------------------------------------- when the turbine speed counts as that of a gear
[synchronisation]
tolerance_rpm = 40.0
leave_rpm = 60.0

[garage]
# reverse engages below this speed only
reverse_max_kmh = 8.0
output_rpm_per_kmh = {car.rpm_per_kmh:.2f}

# speeds lost and lever forward: this gear (the one nearest to direct drive) at this pressure; back when all is well
# and the lever is in P or N
[limp_home]
forward_gear = "{limp}"
pressure_bar = 10.0
recover_s = 1.0

# ------------------------------------------- learning from shifts up under power; without this table: none
[adaptation]
fill_step_s = 0.005
fill_limit_s = 0.06
flare_rpm = 40.0
early_share = 0.4
pressure_step_bar = 0.02
pressure_limit_bar = 0.3
time_tolerance = 0.35
"""


def up_time_s(before: float, after: float, car: CarFacts) -> float:
    """Time of a shift up at full pedal: J dw over the torque allowed, in steps of 0.05 s."""
    slowed = UP_SHARE[-1][1] * car.power_rpm * RPM * (1.0 - after / before)
    return max(UP_TIME_S, math.ceil(20.0 * car.engine_side_kgm2 * slowed / (UP_PUSH * car.torque_Nm)) / 20.0)


def _shift_lines(plan: list[PlannedShift], gears: dict[str, TcuGear], car: CarFacts) -> str:
    lines = [
        "# ---------------------------------------------------------------- shifts",
        "# on: pressed in the new gear only; off: in the old one only (both follow from [gears];",
        "# on = [...] changes that). change.PHASE = { ... } gives one shift other values than its profile; phases of",
        "# its own ([[shifts.2-3.phases]]) anything.",
        "[shifts]",
    ]
    for shift in plan:
        body = f'via = "{shift.via}"' if shift.via else f'profile = "{shift.profile}"'
        source, _, target = shift.name.removesuffix(".coast").partition("-")
        if shift.profile == "up":
            time = up_time_s(gears[source].ratio, gears[target].ratio, car)
            body += f", change.inertia = {{ duration_s = {time:g}, inertia_s = {time:g} }}" if time > UP_TIME_S else ""

        def torques(names: tuple[str, ...], gear: str) -> str:
            return " ".join(f"{n} ({gears[gear].torque.get(n, 0.0):.2f})" for n in names) or "-"

        name = f'"{shift.name}"' if "." in shift.name else shift.name
        note = f"; {shift.note}" if shift.note else ""
        exchange = f"# on {torques(shift.on, target)}, off {torques(shift.off, source)}{note}"
        lines.append(f"{name} = {{ {body} }}".ljust(46) + exchange)
    return "\n".join([*lines, ""])
