class CouplingSums:
    count: int
    max_step: int
    max_mps: float
    sum_sq: float
    energy_J: float
    turned_over_J: float
    def add(self, step: int, speed: float, impulse: float, other_speed: float) -> float: ...
