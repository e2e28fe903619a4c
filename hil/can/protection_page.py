"""docs/can_protection.md: the page of the checksum rules, made from them.

python -m torqueloop.hil.can.protection_page > docs/can_protection.md
"""

from __future__ import annotations

from torqueloop.cython_kernels.can.protection import E2E_PROFILES, E2EProfile

_HEAD = """# Protection of CAN messages

Made by `python -m torqueloop.hil.can.protection_page`; do not edit.

A message gets its rule from attributes of the database (`E2EProfile`, `E2EDataID`, `E2ECrcSignal`, `E2ECounterSignal`
...) or, where
that has none, from the rig file:

    [bus.powertrain.e2e.Getriebe_11]
    profile = "AUTOSAR_P02"
    data_ids = [0x3F, 0x69, 0x39, 0xDC, 0x94, 0xF9, 0x14, 0x64, 0xD8, 0x6A, 0x34, 0xCE, 0xA2, 0x55, 0xB5, 0x2C]
    crc_signal = "CHECKSUM"
    counter_signal = "COUNTER"

A checksum or counter whose bits lie in several signals names them all with spaces between, the lowest bits first:
`E2ECrcSignal "WHL_SPD_Checksum_LSB WHL_SPD_Checksum_MSB"`.

Sent: counter and checksum are the codec's, like the whole header of AUTOSAR profiles 4 to 7; they are no signals.
Received: a frame is taken whole or not at all, in the order format, length, checksum, counter, range; the first that
is wrong is counted by its name (`can` in run.json), and nothing else of the receiver changes. The counter runs from
`counter_min` to `counter_max` without `counter_skips`; a step of up to `max_delta` is accepted (AUTOSAR
MaxDeltaCounter).

| profile | rule | checksum [bit] | counter up to | needs |
|---|---|---|---|---|
"""

_TAIL = """
`init` and `xorout` replace start value and final XOR of a rule (FCA and Rivian have a final XOR for each message, BMW
0x194 starts with 0). BMW_CRC8 and VW_MLB know the start values of some identifiers only; any other needs `init`
(attribute `E2EInit`). The 4-bit checksum of Hyundai's TCU11 and the 2-bit one of TCU12 are not public; these messages
go without.

Every rule is compared with `autosar-e2e` (profiles 1, 2, 4, 5, 6, 7, 11) or `opendbc` (its makers), or written out by
hand from the same sources, in `rt_tests/unit/test_protection.py`: our frames are right for the independent code, the
16 recorded frames of a VW MQB gearbox are right for ours, and each single flipped bit is refused by both. The same
between two processes over a bus: `rt_tests/judges/independent_receiver.py prove rules` (figures:
[disturbances.md](disturbances.md#a-receiver-in-another-process)).
"""


def page() -> str:
    """The whole page."""
    rows = [f"| `{name}` | {p.what} | {_widths(p)} | {_counter(p)} | {_needs(p)} |" for name, p in E2E_PROFILES.items()]
    return _HEAD + "\n".join(rows) + "\n" + _TAIL


def _widths(profile: E2EProfile) -> str:
    return " or ".join(map(str, profile.widths)) if profile.kind else ""


def _counter(profile: E2EProfile) -> str:
    return "its bits" if profile.counter_max is None else str(profile.counter_max)


def _needs(profile: E2EProfile) -> str:
    needs = [f"`data_id` of {profile.id_bits} bit"] if profile.id_bits else []
    needs += ["`data_ids`"] if profile.suffix == "list" else []
    if profile.header is not None:
        needs.append(f"{profile.header.size} bytes from `offset` on")
    elif profile.kind:
        needs.append("`crc_signal`")
    return ", ".join(needs)


if __name__ == "__main__":
    print(page(), end="")
