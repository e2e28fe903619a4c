"""A Modbus RTU module on a pseudo-terminal, as a process: `modbus_slave.py LINK LOG`.

Its outputs are wired to its inputs of the same number. LINK names the terminal. LOG gets a line for each request that
writes: coils, holding registers. SIGUSR1 makes each answer take 0.15 s.
"""

from __future__ import annotations

import os
import pty
import signal
import struct
import sys
import time
import tty

UNIT, SIZE = 7, 32


def crc16(data: bytes) -> bytes:
    c = 0xFFFF
    for byte in data:
        c ^= byte
        for _ in range(8):
            c = c >> 1 ^ 0xA001 if c & 1 else c >> 1
    return struct.pack("<H", c)


class Module:
    def __init__(self) -> None:
        self.coils, self.registers = [0] * SIZE, [0] * SIZE

    def answer(self, ask: bytes) -> bytes:
        function, at, n = struct.unpack(">BHH", ask[1:6])
        if function not in (2, 3, 4, 15, 16) or n < 1 or at + n > SIZE:
            return bytes([UNIT, function | 0x80, 2])
        if function == 2:
            data = sum(bit << k for k, bit in enumerate(self.coils[at : at + n])).to_bytes((n + 7) // 8, "little")
        elif function in (3, 4):
            data = struct.pack(f">{n}H", *self.registers[at : at + n])
        else:
            if function == 15:
                self.coils[at : at + n] = [ask[7 + k // 8] >> k % 8 & 1 for k in range(n)]
            else:
                self.registers[at : at + n] = struct.unpack(f">{n}H", ask[7 : 7 + 2 * n])
            return ask[:6]
        return bytes([UNIT, function, len(data)]) + data


def main(link: str, log: str) -> None:
    master, slave = pty.openpty()
    tty.setraw(slave)
    module, ask, delay = Module(), b"", [0.002]
    signal.signal(signal.SIGUSR1, lambda *_: delay.__setitem__(0, 0.7))
    with open(log, "w", buffering=1) as out:
        os.symlink(os.ttyname(slave), link)
        while True:
            ask += os.read(master, 300)
            # after a time in which it was stopped, there are several of them
            while len(ask) >= 8 and len(ask) >= (size := 9 + ask[6] if ask[1] > 6 else 8):
                one, ask = ask[:size], ask[size:]
                assert crc16(one[:-2]) == one[-2:], one
                if one[0] != UNIT:
                    continue
                answer = module.answer(one)
                until = time.monotonic() + delay[0]
                while time.monotonic() < until:
                    time.sleep(max(0.0, until - time.monotonic()))
                os.write(master, answer + crc16(answer))
                if one[1] > 6:
                    print(*module.coils, *module.registers, file=out)


if __name__ == "__main__":
    main(*sys.argv[1:])
