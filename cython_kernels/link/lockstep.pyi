from typing import Any

from torqueloop.cython_kernels.link.coupling import CouplingSums
from torqueloop.cython_kernels.link.form import Form
from torqueloop.cython_kernels.link.mailbox import Mailbox
from torqueloop.cython_kernels.rings.ring import LatestSlot

DONE: int
AGAIN: int
UNANSWERED: int
UNSENT: int

class StepPeer:
    def asked_by_numbers(self) -> bool: ...

class BoxedPeer(StepPeer):
    def __init__(self, box: Mailbox, asks: Form[Any], tells: Form[Any], patience_s: float) -> None: ...
    def asked_by_numbers(self) -> bool: ...
    @property
    def wait_max_s(self) -> float: ...

class SlotExchange:
    def __init__(self, rig: LatestSlot, vehicle: LatestSlot, peer: StepPeer, sums: CouplingSums) -> None: ...
    def forget(self) -> None: ...
    @property
    def step(self) -> int: ...
    def run(self, now_ns: int) -> int: ...

def serve(
    box: Mailbox, asks: Form[Any], tells: Form[Any], peer: StepPeer, timeout_s: float, most: int
) -> tuple[int, bytes | None]: ...
