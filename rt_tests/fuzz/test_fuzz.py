"""Every day some thousand inputs: the corpus, and mutations that are the same each time. As long as one likes, and
others each time: rt_tests/fuzz/fuzz TARGET --minutes N."""

from __future__ import annotations

import random
import runpy
from pathlib import Path

import mutate
import pytest
from engine import Target, corpus, one, run
from reached import PARSERS, ROOT
from targets import TARGETS


@pytest.mark.proof
@pytest.mark.parametrize("name", TARGETS)
def test_nothing_but_named_errors_comes_of_what_strangers_write(name: str) -> None:
    target = TARGETS[name]
    found = run(target, target.daily, None, seed=1)
    assert found.inputs >= target.daily
    assert not found.findings, "\n".join(f"{wrong}: {data[:200]!r}" for data, wrong in found.findings)


def test_every_target_is_attacked_and_names_its_parsers() -> None:
    attacks = runpy.run_path(str(Path(__file__).parent / "attacks"), run_name="attacks")["FUZZED"]
    assert sorted(name for names, *_ in attacks.values() for name in names) == sorted(TARGETS)
    assert set(PARSERS) == set(TARGETS)
    assert all((ROOT / file).is_file() for files in PARSERS.values() for file in files)


def test_a_traceback_and_a_hang_are_found() -> None:
    def read(data: bytes) -> None:
        if b"x" in data:
            raise KeyError("planted")
        while b"y" in data:
            pass

    planted = Target("planted", lambda: [b"aaa", b"yyy"], read, lambda data, rng: data.replace(b"a", b"x"),
                     cpu_s=0.2)  # fmt: skip
    assert "KeyError: 'planted'" in (one(planted, b"x") or "") and one(planted, b"a") is None
    found = run(planted, 20, None, 1)
    assert {wrong.split(":")[0] for _, wrong in found.findings} == {"KeyError", "Hang"}
    assert corpus(planted) == [b"aaa", b"yyy"]


def test_mutations_differ_and_are_the_same_for_a_seed() -> None:
    data = Path(__file__).read_bytes()
    for change in (mutate.binary, mutate.text):
        made = [change(data, random.Random(k)) for k in range(50)]
        # a mutation of some other line changes nothing now and then
        assert len(set(made)) > 25 and made == [change(data, random.Random(k)) for k in range(50)]
