"""The rest of a bus from its database: every message of the simulated nodes with its cycle, first frames spread."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rig_help import CONFIGS

from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.can.codec_spec import MessageSpec
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.devices.phases import frame_bits, spread
from torqueloop.hil.rig.resolve.plan import load_plan

CYCLES = (10, 20, 50, 100, 200)


def database(path: Path, n: int, first_id: int) -> None:
    """A DBC with n protected messages of two nodes, 10 to 200 ms."""
    lines = ['VERSION ""', "BU_: A B TCU"]
    for i in range(n):
        lines.append(f"BO_ {first_id + i} M{i}: 8 {'AB'[i % 2]}")
        lines.append(' SG_ crc : 0|8@1+ (1,0) [0|0] "" TCU\n SG_ alive : 8|4@1+ (1,0) [0|0] "" TCU')
        lines.append(' SG_ v : 16|16@1+ (1,0) [0|0] "" TCU\n')
    lines.append('BA_DEF_ BO_ "GenMsgCycleTime" INT 0 10000;\nBA_DEF_DEF_ "GenMsgCycleTime" 0;')
    lines.append('BA_DEF_ SG_ "GenSigStartValue" FLOAT 0 65535;\nBA_DEF_DEF_ "GenSigStartValue" 0;')
    for i in range(n):
        lines.append(f'BA_ "GenMsgCycleTime" BO_ {first_id + i} {CYCLES[i % len(CYCLES)]};')
        lines.append(f'BA_ "GenSigStartValue" SG_ {first_id + i} v {i + 1};')
    path.write_text("\n".join(lines) + "\n")


def rig(folder: Path, sizes: tuple[int, ...], more: str = "") -> Path:
    """A rig that only sends: a flywheel and the rest of several buses."""
    text = f'[rig]\nname = "restbus"\n[plant]\npowertrain = "{CONFIGS / "examples" / "two_blocks.toml"}"\n'
    text += '[inputs]\n"u1.f" = { value = 0.0 }\n"u2.f" = { value = 0.0 }\n'
    for k, n in enumerate(sizes):
        database(folder / f"b{k}.dbc", n, 0x100)
        text += f'[bus.b{k}]\ndatabase = "b{k}.dbc"\nnode = "A"\nnodes = ["B"]\nrestbus = true\n{more}'
        text += "".join(
            f'[bus.b{k}.e2e.M{i}]\nprofile = "SAE_J1850"\ncrc_signal = "crc"\ncounter_signal = "alive"\n'
            for i in range(n)
        )
    (folder / "rig.toml").write_text(text)
    return folder / "rig.toml"


def test_spread_first_ticks_keep_the_fullest_tick_near_the_mean() -> None:
    rng = np.random.default_rng(1)
    rows = [(int(p), int(b), None) for p, b in zip(rng.choice([10, 20, 50, 100, 200], 200), rng.integers(60, 136, 200),
                                                   strict=True)]  # fmt: skip
    load = np.zeros(200)
    for (period, bits, _), first in zip(rows, spread(rows), strict=True):
        assert 0 <= first < period
        load[first::period] += bits
    together = np.zeros(200)
    for period, bits, _ in rows:
        together[0::period] += bits
    assert load.max() <= 1.25 * load.mean() and load.max() < 0.2 * together.max()


@pytest.mark.parametrize(("extended", "g"), [(False, 34), (True, 54)])
def test_a_frame_is_as_long_as_with_the_most_stuff_bits(extended: bool, g: int) -> None:
    """One stuff bit for each four bits behind the first one of the g + 8 n that are stuffed; 13 bits are not."""
    for n in range(9):
        frame = MessageSpec("m", 1, extended, n, False, ())
        assert frame_bits(frame) == g + 8 * n + 13 + (g + 8 * n - 1) // 4


def one_by_one(rows: list[tuple[int, int, int | None]]) -> list[int]:
    """First ticks by the rule of the documentation, in plain loops."""
    cycle = math.lcm(*(period for period, _, _ in rows))
    load = [0] * cycle
    found = [first or 0 for _, _, first in rows]

    def take(k: int) -> None:
        for tick in range(found[k] % rows[k][0], cycle, rows[k][0]):
            load[tick] += rows[k][1]

    for k, row in enumerate(rows):
        if row[2] is not None:
            take(k)
    free = [k for k, row in enumerate(rows) if row[2] is None]
    for _, _, k in sorted((rows[k][0], -rows[k][1], k) for k in free):
        period = rows[k][0]
        of = [load[first::period] for first in range(period)]
        best = [(max(of[f]), sum(of[f]), sum(of[f - 1]) + sum(of[(f + 1) % period]), f) for f in range(period)]
        found[k] = min(best)[3]
        take(k)
    return found


@given(st.lists(st.tuples(st.sampled_from([2, 3, 5, 6, 10]), st.integers(50, 140), st.none() | st.integers(0, 12)),
                min_size=1, max_size=9))  # fmt: skip
def test_messages_are_spread_by_the_rule_of_the_documentation(rows: list[tuple[int, int, int | None]]) -> None:
    assert spread(rows) == one_by_one(rows)


def test_given_first_ticks_stay_and_the_others_keep_away_from_them() -> None:
    assert spread([(10, 100, 0), (10, 100, 25), (10, 100, None)])[:2] == [0, 25]
    assert spread([(10, 100, 0), (10, 100, 25), (10, 100, None)])[2] not in (0, 5)
    assert spread([]) == []


def test_two_hundred_messages_on_three_buses_go_out_when_they_are_due_with_start_values(tmp_path: Path) -> None:
    plan = load_plan(rig(tmp_path, (70, 70, 60)))
    parts = build(plan, 10.0)
    parts.rig.begin(0)
    sent: list[dict[int, list[tuple[int, bytes]]]] = [{}, {}, {}]
    for tick in range(1000):
        parts.rig.ticks(1, tick * 1_000_000)
        for bus, found in zip(parts.buses, sent, strict=True):
            while (frame := bus.tx_ring.pop()) is not None:
                found.setdefault(frame[0], []).append((tick, frame[1]))
    for bus, found, n in zip(plan.buses, sent, (70, 70, 60), strict=True):
        assert len(found) == n == len(bus.send)
        load = np.zeros(1000)
        for index, period, first in bus.send:
            message = bus.database.messages[index]
            frames = found[message.can_id]
            number = int(message.name[1:])
            assert period == CYCLES[number % 5]
            assert [tick for tick, _ in frames] == list(range(first, 1000, period))
            # alive counters without a gap, the start value of the database
            assert [data[1] & 15 for _, data in frames] == [k % 16 for k in range(len(frames))]
            assert {int.from_bytes(data[2:4], "little") for _, data in frames} == {number + 1}
            load[first::period] += 1
        assert load.max() <= 1.3 * load.mean() + 1


def test_without_the_key_a_signal_without_a_source_is_a_mistake(tmp_path: Path) -> None:
    path = rig(tmp_path, (3,))
    path.write_text(path.read_text().replace("restbus = true\n", ""))
    with pytest.raises(ConfigError, match="without a source"):
        load_plan(path)


def test_a_start_delay_longer_than_the_cycle_holds_back_the_first_frame(tmp_path: Path) -> None:
    path = rig(tmp_path, (2,), "tx_offset_s = { M0 = 0.035 }\n")
    parts = build(load_plan(path), 1.0)
    parts.rig.begin(0)
    first: dict[int, int] = {}
    for tick in range(60):
        parts.rig.ticks(1, tick * 1_000_000)
        while (frame := parts.buses[0].tx_ring.pop()) is not None:
            first.setdefault(frame[0], tick)
    assert first[0x100] == 35 and first[0x101] < 20


def test_messages_are_chosen_and_given_cycles_in_the_rig_file(tmp_path: Path) -> None:
    plan = load_plan(rig(tmp_path, (8,), 'send = ["M1", "M6"]\ncycle_s = { M1 = 0.03 }\n'))
    named = {plan.buses[0].database.messages[i].name: period for i, period, _ in plan.buses[0].send}
    assert named == {"M1": 30, "M6": 20}
    for more, text in (('send = ["M99"]\n', "there is no message 'M99'"),
                       ("cycle_s = { M1 = 0.0305 }\n", "does not fit"),
                       ('nodes = ["C"]\n', "there is no node 'C'")):  # fmt: skip
        path = rig(tmp_path, (8,), more)
        path.write_text(path.read_text().replace('nodes = ["B"]\n', "") if "nodes" in more else path.read_text())
        with pytest.raises(ConfigError, match=text):
            load_plan(path)


def test_a_missing_cycle_time_is_named_with_its_remedies(tmp_path: Path) -> None:
    path = rig(tmp_path, (3,))
    dbc = tmp_path / "b0.dbc"
    dbc.write_text(dbc.read_text().replace('BA_ "GenMsgCycleTime" BO_ 257 20;', ""))
    with pytest.raises(ConfigError, match="message M1: there is no cycle time") as error:
        load_plan(path)
    assert "b0.dbc" in str(error.value) and "bus.b0.cycle_s" in str(error.value)
