"""Full load and closed throttle of a petrol engine from what its maker states.

Full load: the parabola with its top at the stated torque that passes through the stated power,
T = T_max - a (n - n_T)^2 with a = (T_max - T_P)/(n_P - n_T)^2. Where the torque is stated from one speed to another, it
is constant between them and below them: a supercharged engine, whose pressure is there at once. It holds from IDLE_RPM
up; from standstill to there it is a straight line; above the stated power another, so that the stated power is the
largest (to 0.1 %). It is 0 at the limiter and continues to the torque at closed throttle: the limiter cuts the fuel.

Closed throttle: T = -(fmep + pmep) V/(4 pi). fmep = 0.97 + 0.15 n + 0.05 n^2 bar, n in 1000 rpm: friction of a warm
engine (Heywood, Internal Combustion Engine Fundamentals, 1988, after Barnes-Moss). pmep = 0.65 bar: the intake at
0.35 bar instead of 1.0. Both are mean pressures: the torque is smoothed over a cycle.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError

RPM = math.pi / 30.0
#: coefficients of fmep [bar] over n [1000 rpm]
FMEP_BAR = (0.97, 0.15, 0.05)
#: pumping work: pressure of the surroundings less that of the intake at closed throttle [bar]
PMEP_BAR = 0.65
#: below this speed no engine runs at full load; friction is full from CRANK_RPM on
IDLE_RPM, CRANK_RPM = 600.0, 200.0
GRID_RPM = 250.0
STATED = re.compile(
    r"# stated: ([\d.]+) l; ([\d.]+) Nm at (?:([\d.]+) to )?([\d.]+) rpm; ([\d.]+) kW at ([\d.]+) rpm; "
    r"limiter ([\d.]+) rpm"
)


@dataclass(frozen=True)
class StatedEngine:
    """What a maker states of an engine, and the speed at which its limiter has taken the torque away."""

    displacement_l: float
    torque_Nm: float
    torque_rpm: float
    power_kW: float
    power_rpm: float
    limiter_rpm: float
    #: begin of the speeds of the stated torque, which end at torque_rpm; None: it is stated at one speed
    from_rpm: float | None = None

    @property
    def power_torque_Nm(self) -> float:
        """Torque at the speed of the stated power: T = P/w."""
        return 1e3 * self.power_kW / (self.power_rpm * RPM)

    @property
    def bend_Nm_per_rpm2(self) -> float:
        """Coefficient of the parabola of full load."""
        return (self.torque_Nm - self.power_torque_Nm) / (self.power_rpm - self.torque_rpm) ** 2

    def full_load_Nm(self, rpm: float) -> float:
        """Torque at full load."""
        at = min(max(rpm, IDLE_RPM if self.from_rpm is None else self.torque_rpm), self.power_rpm)
        parabola = self.torque_Nm - self.bend_Nm_per_rpm2 * (at - self.torque_rpm) ** 2
        left = (self.limiter_rpm - rpm) / (self.limiter_rpm - self.power_rpm)
        return max(parabola * min(1.0, rpm / IDLE_RPM, left), self.closed_throttle_Nm(rpm))

    def closed_throttle_Nm(self, rpm: float) -> float:
        """Torque at closed throttle, negative: friction and pumping."""
        n = 1e-3 * max(rpm, CRANK_RPM)
        pressure = 1e5 * (FMEP_BAR[0] + FMEP_BAR[1] * n + FMEP_BAR[2] * n * n + PMEP_BAR)
        return 0.0 - pressure * 1e-3 * self.displacement_l / (4.0 * math.pi) * min(1.0, rpm / CRANK_RPM)

    def rows(self) -> list[tuple[float, float, float]]:
        """Speed [rad/s], full load [Nm], closed throttle [Nm]: from standstill to 1000 rpm above the limiter."""
        own = {0.0, CRANK_RPM, IDLE_RPM, self.torque_rpm, self.power_rpm, self.limiter_rpm}
        grid = {GRID_RPM * k for k in range(3, int((self.limiter_rpm + 1000.0) / GRID_RPM) + 1)}
        return [(n * RPM, self.full_load_Nm(n), self.closed_throttle_Nm(n)) for n in sorted(own | grid)]


def stated_engine(path: Path) -> StatedEngine:
    """The line `# stated: ...` in the head of a file of engine curves."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := STATED.match(line):
            volume, torque, begin, at, power, power_at, limiter = found.groups()
            return StatedEngine(float(volume), float(torque), float(at), float(power), float(power_at), float(limiter),
                                None if begin is None else float(begin))  # fmt: skip
    form = "# stated: V l; T Nm at n rpm (or n to n rpm); P kW at n rpm; limiter n rpm"
    raise ConfigError("the head of this file does not say what the engine's maker states", file=str(path), allowed=form)
