from torqueloop.cython_kernels.tick.blocks import Blocks
from torqueloop.cython_kernels.tick.send_rows import SendRow

class Sendings(Blocks):
    @property
    def n_sig(self) -> int: ...
    def __init__(self, n_sig: int, rows: list[SendRow]) -> None: ...
