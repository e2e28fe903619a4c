from collections.abc import Sequence

from torqueloop.cython_kernels.link.lockstep import StepPeer

GRAVITY: float

class RoadMotion(StepPeer):
    speed: float
    distance: float
    own_step: int
    restarts: int
    before: tuple[int, float, float, float, float, float, float] | None
    def __init__(
        self,
        mass: float,
        half_rho_cdA: float,
        head_wind: float,
        rolling: float,
        brake_max: float,
        step_s: float,
        slopes: Sequence[tuple[float, float]],
    ) -> None: ...
    def angle(self, s: float) -> float: ...
    def told(
        self, step: int, t: float, F_wheel: float, I_wheel: float, speed: float, s: float, brake: float
    ) -> tuple[int, int, float, float, float, float, float, float]: ...
    def _active(self, speed: float, slope: float) -> float: ...
    def _holds(self, slope: float, brake: float) -> float: ...
    def _proceed(self, tractive: float, brake: float, duration: float) -> None: ...
