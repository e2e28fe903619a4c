"""Frames of digital sensors: SENT against the check values of SAE J2716, PSI5 against a division of polynomials."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rig_help import rig_file

from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.tick.sensors import Sensors
from torqueloop.hil.rig.devices.sensors import Sensors as SensorDevice
from torqueloop.hil.rig.resolve.plan import load_plan

RNG = np.random.default_rng(3)


def framed(check: str, values: list[float], fields: list[tuple[float, float, int, bool]]) -> int:
    """The frame of fields (gain, offset, bits, lowest_first) with these values."""
    made = Sensors(2 + len(values), 1, 1e-3)
    made.set_frame(0, out=1, check=check, fields=[(2 + k, *field) for k, field in enumerate(fields)])
    sig = np.array([0.0, 0.0, *values])
    made.tick(sig)
    return int(sig[1])


def remainder(number: int, g: int) -> int:
    """Of a division of polynomials whose coefficients are the bits of whole numbers."""
    while number.bit_length() >= g.bit_length():
        number ^= g << (number.bit_length() - g.bit_length())
    return number


def in_sent_order(data: int, n: int) -> int:
    """The n bits of a number whose lowest bit is sent first, as a polynomial whose highest power is sent first."""
    return int(f"{data:0{n}b}"[::-1], 2)


# six data nibbles and their check as SAE J2716 lists them for the recommended form
@pytest.mark.parametrize(
    ("nibbles", "check"), [("53E53E", 15), ("748748", 3), ("4AC4AC", 10), ("78F78F", 5), ("000000", 5)]
)
@pytest.mark.parametrize("status", [0, 9])
def test_the_check_of_sent_is_that_of_the_standard_and_leaves_the_status_out(
    nibbles: str, check: int, status: int
) -> None:
    fields = [(1.0, 0.0, 4, False), *[(1.0, 0.0, 4, False)] * 6]
    frame = framed("sent", [status, *(int(x, 16) for x in nibbles)], fields)
    assert f"{frame:08X}" == f"{status:X}{nibbles}{check:X}"


def test_every_frame_of_sent_is_divided_as_a_polynomial() -> None:
    for _ in range(200):
        bits = [4 * int(n) for n in RNG.integers(1, 4, size=2)]
        values = [int(RNG.integers(0, 1 << b)) for b in bits]
        frame = framed("sent", [5, *values], [(1.0, 0.0, 4, False), *[(1.0, 0.0, b, False) for b in bits]])
        n, data = sum(bits), values[0] << bits[1] | values[1]
        assert frame == 5 << (n + 4) | data << 4 | remainder(5 << (n + 4) | data << 4, 0b11101)


def test_the_second_channel_is_sent_from_its_lowest_nibble_on() -> None:
    frame = framed("sent", [0.0, 0xABC, 0x123], [(1.0, 0.0, 4, False), (1.0, 0.0, 12, False), (1.0, 0.0, 12, True)])
    assert f"{frame >> 4:07X}" == "0ABC321"


def test_the_division_of_this_test_gives_the_check_value_of_crc_3_rohc() -> None:
    # the same polynomial and order of bits: 6 for "123456789" (catalogue of parametrised CRC algorithms, G. Cook)
    data = in_sent_order(int.from_bytes(b"123456789", "little"), 72)
    assert in_sent_order(remainder(data << 3 ^ 7 << 72, 0b1011), 3) == 6


def test_the_check_of_psi5_follows_the_data_from_its_highest_power_on() -> None:
    for n in (10, 16, 20, 28):
        for _ in range(50):
            bits = [n // 2, n - n // 2]
            values = [int(RNG.integers(0, 1 << b)) for b in bits]
            frame = framed("psi5", list(map(float, values)), [(1.0, 0.0, b, False) for b in bits])
            data = values[0] | values[1] << bits[0]
            assert frame % (1 << n) == data
            check = remainder(7 << (n + 3) | in_sent_order(data, n) << 3, 0b1011)
            assert frame >> n == in_sent_order(check, 3)
            # what a receiver divides, from the first bit sent to the last, has no remainder
            assert remainder(7 << (n + 3) | in_sent_order(frame, n + 3), 0b1011) == 0


def test_parity_makes_the_number_of_ones_even() -> None:
    for _ in range(100):
        value = int(RNG.integers(0, 1 << 10))
        frame = framed("psi5_parity", [float(value)], [(1.0, 0.0, 10, False)])
        assert frame % 1024 == value and frame >> 10 == value.bit_count() % 2


def test_a_value_is_scaled_rounded_and_limited_to_its_field() -> None:
    for value, raw in ((0.0, 193), (1.0e6, 1193), (1.4e3, 194), (1.6e3, 195), (-1e9, 0), (1e9, 4095), (np.nan, 0)):
        frame = framed("sent", [0.0, value], [(1.0, 0.0, 4, False), (1e-3, 193.0, 12, False)])
        assert frame >> 4 == raw, value


def test_the_rig_file_says_signals_status_and_check(tmp_path: Path) -> None:
    add = """
[sensors.pressure]
kind = "sent"
status = "sensor.state"
[[sensors.pressure.data]]
signal = "sensor.state"
gain = 100.0
bits = 8
[[sensors.pressure.data]]
signal = "driver.pedal"
offset = 0x12
lowest_first = true
[sensors.fixed]
kind = "sent"
status = 7
data = [{ signal = "driver.pedal", bits = 4 }]
[sensors.wheel]
kind = "psi5"
parity = true
data = [{ signal = "driver.pedal", offset = 0x1E7, bits = 10 }]
[sensors.state]
kind = "curve"
signal = "driver.pedal"
points = [[0.0, 2.0], [1.0, 2.0]]
"""
    plan = load_plan(rig_file(tmp_path, add=add))
    made = Sensors(len(plan.table), 4, 1e-3)
    for k, (setter, arguments) in enumerate(plan.device(SensorDevice).rows):
        getattr(made, setter)(k, **arguments)
    sig = np.zeros(len(plan.table))
    made.tick(sig)
    frames = {name: int(sig[plan.table.slot(f"sensor.{name}")]) for name in ("pressure", "fixed", "wheel")}
    # the state is measured before the frame that carries it, in the same tick: 2 and 200 = 0xC8
    assert f"{frames['pressure'] >> 4:X}" == "2C8210" and frames["fixed"] >> 4 == 0x70
    # seven ones: the parity bit is set
    assert frames["wheel"] == 1 << 10 | 0x1E7


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('kind = "sent"', "have data"),
        ('kind = "teeth"\ndata = [{ signal = "driver.pedal" }]', "have data"),
        ('kind = "curve"\npoints = [[0.0, 0.0], [1.0, 1.0]]', "have a signal"),
        ('kind = "sent"\ndata = [{ signal = "driver.pedal", bits = 6 }]', "whole nibbles"),
        (
            'kind = "sent"\ndata = [{ signal = "driver.pedal", bits = 24 }, { signal = "driver.pedal", bits = 4 }]',
            "six",
        ),
        ('kind = "psi5"\ndata = [{ signal = "driver.pedal", bits = 8 }]', "10 .. 28"),
    ],
)
def test_a_frame_that_the_bus_does_not_have_is_refused(tmp_path: Path, keys: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_plan(rig_file(tmp_path, add=f"[sensors.n]\n{keys}\n"))
    assert words in str(caught.value)
