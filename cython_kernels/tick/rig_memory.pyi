from torqueloop.cython_kernels.can.codec import CodecTables, RxState, TxState
from torqueloop.cython_kernels.can.socketcan import NativePort
from torqueloop.cython_kernels.rings.ring import FrameRing, LatestSlot
from torqueloop.cython_kernels.tick.blocks import Blocks
from torqueloop.cython_kernels.tick.sending import Sendings

class RigMemory(Blocks):
    def __init__(self, n_sig: int, tick_s: float) -> None: ...
    def add_bus(
        self,
        codec: CodecTables,
        rx: RxState,
        tx: TxState,
        rx_ring: FrameRing,
        tx_ring: FrameRing,
        required: list[int],
        plan: list[tuple[int, int, int]],
        drop_limit: int = 10,
    ) -> int: ...
    def set_port(self, bus: int, port: NativePort, first_slot: int, down_limit_s: float) -> None: ...
    def set_sendings(self, bus: int, sendings: Sendings) -> None: ...
    def sending_words(self, bus: int) -> int: ...
    def set_bell(self, bus: int, fd: int) -> None: ...
    def add_pins(self, slot: LatestSlot, first: int) -> int: ...
