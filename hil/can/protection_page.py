"""docs/can_protection.md: the page of the checksum rules, made from them.

python -m torqueloop.hil.can.protection_page > docs/can_protection.md
"""

from __future__ import annotations

from torqueloop.cython_kernels.can.protection import E2E_PROFILES, E2EProfile

_HEAD = """# Protection of CAN messages

Made by `python -m torqueloop.hil.can.protection_page`; do not edit.

The attributes of the database give the rule of a message (`E2EProfile`, `E2EDataID`, `E2ECrcSignal`,
`E2ECounterSignal` and others). A table of the rig file replaces them, or gives the rule where the database has none:

    [bus.powertrain.e2e.Getriebe_11]
    profile = "AUTOSAR_P02"
    data_ids = [0x3F, 0x69, 0x39, 0xDC, 0x94, 0xF9, 0x14, 0x64, 0xD8, 0x6A, 0x34, 0xCE, 0xA2, 0x55, 0xB5, 0x2C]
    crc_signal = "CHECKSUM"
    counter_signal = "COUNTER"

The bits of a checksum or of an alive counter may lie in several signals. The attribute or key then names all of these
signals, separated by spaces, and the first one holds the lowest bits:
`E2ECrcSignal "WHL_SPD_Checksum_LSB WHL_SPD_Checksum_MSB"`.

When the rig sends a frame, the codec computes the counter and the checksum. For AUTOSAR profiles 4 to 7 it writes the
whole header. These fields are not signals, so `[outputs]` cannot set them.

When the rig receives a frame, it checks the format, the length, the checksum, the counter and the ranges of the
signals, in this order. If a check fails, the rig refuses the whole frame: it counts the name of this check (`can` in
run.json), and no signal changes. The counter runs from `counter_min` to `counter_max`, leaves out the values in
`counter_skips`, and begins again. From one frame to the next it may advance by at most `max_delta` (`MaxDeltaCounter`
of AUTOSAR).

| profile | rule | checksum [bit] | highest counter | needs |
|---|---|---|---|---|
"""

_TAIL = """
The keys `init` and `xorout` replace the start value and the final XOR of a rule. FCA and Rivian use another final XOR
in each message, and BMW's message 0x194 starts with 0. `BMW_CRC8` and `VW_MLB` contain the start values of some
identifiers; every other identifier needs `init` (attribute `E2EInit`). The 4-bit checksum of Hyundai's TCU11 and the
2-bit checksum of TCU12 are not public, so the rig neither computes nor checks them.

`rt_tests/unit/test_protection.py` compares every rule with an independent implementation: `autosar-e2e` (profiles 1, 2,
4, 5, 6, 7 and 11), `opendbc` (its makers), or a second implementation written by hand from the same sources. The
independent code accepts the frames that the codec sends. The codec accepts the 16 recorded frames of a VW MQB gearbox.
Both refuse every frame in which a single bit is flipped. `rt_tests/judges/independent_receiver.py prove rules` makes
the same comparison between two processes on a bus; [disturbances.md](disturbances.md#a-receiver-in-another-process)
has its figures.
"""


def page() -> str:
    """The whole page."""
    rows = [f"| `{name}` | {p.what} | {_widths(p)} | {_counter(p)} | {_needs(p)} |" for name, p in E2E_PROFILES.items()]
    return _HEAD + "\n".join(rows) + "\n" + _TAIL


def _widths(profile: E2EProfile) -> str:
    return " or ".join(map(str, profile.widths)) if profile.kind else ""


def _counter(profile: E2EProfile) -> str:
    return "all its bits" if profile.counter_max is None else str(profile.counter_max)


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
