"""CRC-8 against the check values of AUTOSAR's specification and against a bit-by-bit division."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torqueloop.cython_kernels.can.crc import CRC8_PARAMETERS, Crc8

# AUTOSAR SWS CRC Library, tables of "data bytes -> result" of Crc_CalculateCRC8 and Crc_CalculateCRC8H2F
AUTOSAR_CHECKS = {
    "SAE_J1850": {
        "00000000": 0x59, "F20183": 0x37, "0FAA0055": 0x79, "00FF5511": 0xB8, "332255AABBCCDDEEFF": 0xCB,
        "926B55": 0x8C, "FFFFFFFF": 0x74, "313233343536373839": 0x4B,
    },
    "H2F": {
        "00000000": 0x12, "F20183": 0xC2, "0FAA0055": 0xC6, "00FF5511": 0x77, "332255AABBCCDDEEFF": 0x11,
        "926B55": 0x33, "FFFFFFFF": 0x6C, "313233343536373839": 0xDF,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", AUTOSAR_CHECKS)
def test_crc_gives_the_values_of_the_autosar_specification(name: str) -> None:
    crc = Crc8.named(name)
    assert {text: crc(bytes.fromhex(text)) for text in AUTOSAR_CHECKS[name]} == AUTOSAR_CHECKS[name]


def test_e2e_profile_1_example_of_autosar() -> None:
    # AUTOSAR PRS E2E, example of profile 1 with both data id bytes: id 0x0123, 8 bytes of data, all 0, counter 0
    assert Crc8.named("E2E_P01")(bytes([0x23, 0x01]) + bytes(7)) == 0xCC


def divide(data: bytes, poly: int, init: int, xorout: int) -> int:
    register = init
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register << 1 ^ poly if register & 0x80 else register << 1) & 0xFF
    return register ^ xorout


@given(st.binary(max_size=20), st.integers(0, 255), st.integers(0, 255), st.integers(0, 255))
def test_table_equals_bitwise_division(data: bytes, poly: int, init: int, xorout: int) -> None:
    assert Crc8(poly, init, xorout)(data) == divide(data, poly, init, xorout)


@given(st.binary(min_size=8, max_size=8), st.integers(0, 63), st.integers(1, 63))
def test_every_one_and_two_bit_error_in_a_frame_is_seen(data: bytes, first: int, distance: int) -> None:
    crc = Crc8.named("SAE_J1850")
    word = int.from_bytes(data, "big")
    for flipped in (word ^ (1 << first), word ^ (1 << first) ^ (1 << (first + distance) % 64)):
        assert crc(flipped.to_bytes(8, "big")) != crc(data)


def test_unknown_names_and_values_are_refused() -> None:
    with pytest.raises(ValueError, match="SAE_J1850"):
        Crc8.named("J1850")
    with pytest.raises(ValueError, match="poly"):
        Crc8(0x11D, 0, 0)
    assert set(CRC8_PARAMETERS) == {"SAE_J1850", "H2F", "E2E_P01"}
