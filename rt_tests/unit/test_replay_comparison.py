"""What a replay compares: each sample of a recording with that of its tick, bit by bit, against a plain second
comparison over made-up samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.rig.run import replay as module
from torqueloop.hil.rig.run.replay import Difference, ReplayResult, _Comparison, _unbroken

NAMES = ["a", "b", "c"]


def samples(ticks: list[int], names: list[str] = NAMES) -> np.ndarray:
    """Signal k of tick t is t + k/10."""
    found = np.zeros(len(ticks), signal_dtype(len(names)))
    found["tick"] = ticks
    found["out"] = np.array(ticks)[:, None] + 0.1 * np.array([NAMES.index(n) for n in names])
    return found


def compared(
    monkeypatch: pytest.MonkeyPatch, pieces: list[np.ndarray], blocks: list[np.ndarray], part: list[str] | None = None
) -> ReplayResult:
    """The result for a recording in pieces and a replay in blocks; part: the signals that a part of a run kept."""
    names = NAMES if part is None else part
    ticks = np.concatenate([p["tick"] for p in pieces])
    monkeypatch.setattr(module, "read_signals", lambda _: SimpleNamespace(names=names, tick=ticks))
    monkeypatch.setattr(module.SignalPieces, "of", lambda _: iter(pieces))
    result = ReplayResult(0, 0, None, "")
    comparison = _Comparison(Path("run"), NAMES, 0.002, result, part is not None)
    for block in blocks:
        comparison.take(block.tobytes())
    return result


def blocks_of(whole: np.ndarray, *cuts: int) -> list[np.ndarray]:
    return np.split(whole, cuts)


def test_samples_are_compared_by_their_tick_however_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, again = samples(list(range(20))), samples(list(range(20)))
    for pieces, blocks in (([3, 11], [7]), ([], [1, 2, 19]), ([1], [])):
        result = compared(monkeypatch, blocks_of(recorded, *pieces), blocks_of(again, *blocks))
        assert (result.difference, result.compared) == (None, 20)
    # each third sample of the run was recorded, and 9 was lost
    kept = recorded[[0, 3, 6, 12, 15, 18]]
    result = compared(monkeypatch, blocks_of(kept, 2), blocks_of(again, 4, 13))
    assert (result.difference, result.compared) == (None, 6)


@pytest.mark.parametrize("tick", [0, 6, 7, 12, 19])
@pytest.mark.parametrize("wrong", [("a",), ("b", "c"), ("c",), ("status",)])
def test_the_first_other_value_is_named_with_its_tick_and_both_values(
    monkeypatch: pytest.MonkeyPatch, tick: int, wrong: tuple[str, ...]
) -> None:
    recorded, again = samples(list(range(20))), samples(list(range(20)))
    for name in wrong:
        if name == "status":
            recorded["status"][tick:] = 3
        else:
            recorded["out"][tick:, NAMES.index(name)] = -7.5
    result = compared(monkeypatch, blocks_of(recorded, 5), blocks_of(again, 7, 13))
    first = wrong[0]
    was, now = (3.0, 0.0) if first == "status" else (-7.5, tick + 0.1 * NAMES.index(first))
    # a sample is written at the end of its tick of 2 ms
    assert result.difference == Difference(tick, pytest.approx((tick + 1) * 0.002), first, was, pytest.approx(now))
    assert result.compared == tick and not result.passed
    text = f"tick {tick} (t = {0.002 * (tick + 1):.4f} s): {first} was {was!r}, replayed "
    assert str(result.difference).startswith(text) and str(result.difference).endswith(repr(result.difference.replayed))


def test_numbers_are_compared_by_their_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, again = samples([0, 1, 2]), samples([0, 1, 2])
    recorded["out"][1, 0] = again["out"][1, 0] = np.nan
    assert compared(monkeypatch, [recorded], [again]).difference is None
    recorded["out"][2, 1], again["out"][2, 1] = 0.0, -0.0
    found = compared(monkeypatch, [recorded], [again]).difference
    assert found is not None and (found.tick, found.name) == (2, "b")


def test_of_a_part_of_a_run_the_signals_that_it_kept_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    part = ["c", "a"]
    recorded, again = samples(list(range(4, 9)), part), samples(list(range(12)))
    assert compared(monkeypatch, [recorded], [again], part).compared == 5
    recorded["out"][3, 0] = 1.0
    found = compared(monkeypatch, [recorded], [again], part).difference
    assert found is not None and (found.tick, found.name, found.recorded) == (7, "c", 1.0)


@pytest.mark.parametrize(
    ("names", "ticks", "remark"),
    [
        (["a", "b"], [0, 1], "the recorded signals are not those of the rig file: only the hash is compared"),
        (NAMES, [0, 1, 1], "the recorded ticks do not rise: only the hash is compared"),
    ],
)
def test_a_recording_that_fits_nothing_is_compared_by_its_hash_alone(
    monkeypatch: pytest.MonkeyPatch, names: list[str], ticks: list[int], remark: str
) -> None:
    monkeypatch.setattr(module, "read_signals", lambda _: SimpleNamespace(names=names, tick=np.array(ticks)))
    result = ReplayResult(0, 0, None, "")
    _Comparison(Path("run"), NAMES, 0.002, result).take(samples([0, 1]).tobytes())
    assert (result.remarks, result.compared, result.difference) == ([remark], 0, None)


@pytest.mark.parametrize(
    ("compared", "recorded", "passed"), [(5, "ab", True), (0, "ab", True), (0, None, False), (5, None, True),
                                         (5, "cd", False)],
)  # fmt: skip
def test_a_replay_passes_with_equal_bits_where_something_could_be_compared(
    compared: int, recorded: str | None, passed: bool
) -> None:
    assert ReplayResult(99, compared, recorded, "ab").passed is passed


def chunks(numbers: list[int], closed: bool = True) -> tuple[list[bytes], list[str]]:
    def numbered() -> Iterator[tuple[int, bytes]]:
        return ((n, b"%d" % n) for n in numbers)

    result = ReplayResult(0, 0, None, "")
    stream: Any = SimpleNamespace(numbered=numbered, closed=closed)
    return list(_unbroken(stream, result)), result.remarks


def test_inputs_are_replayed_up_to_the_first_hole() -> None:
    assert chunks([4, 5, 6]) == ([b"4", b"5", b"6"], [])
    assert chunks([4, 5, 7, 8]) == ([b"4", b"5"], ["inputs are missing after chunk 5: replayed up to there"])
    assert chunks([0, 1], closed=False) == (
        [b"0", b"1"], ["the input recording has no end mark: replayed up to its end"])  # fmt: skip
