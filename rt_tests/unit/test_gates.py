"""Gates: the expression language, its errors, and what happens to metrics that were not measured."""

from __future__ import annotations

import math
import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.results.gates import evaluate, parse_gates, unknown_name

METRICS = {"missed": 0, "compute_p99_us": 150.0, "lost_time_s": 0.0, "clock": "real", "nothing": None, "bad": math.nan}


def passed(text: str) -> list[bool]:
    return [r.passed for r in evaluate(parse_gates(text), METRICS)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("missed==0, compute_p99_us<200", [True, True]),
        ("missed==0 and compute_p99_us<100", [False]),
        ("missed>0 or compute_p99_us<=150", [True]),
        ("not missed == 0", [False]),
        ("100 < compute_p99_us < 200", [True]),
        ("100 < compute_p99_us < 150", [False]),
        ("clock == 'real', clock != \"virtual\"", [True, True]),
        ("(missed + 2) * 3 - 1 == 5", [True]),
        ("-compute_p99_us / 2 == -75", [True]),
        ("max(missed, lost_time_s, 3) == 3, abs(-2e-3) < .1, min(missed, 4)==0", [True, True, True]),
        ("(missed == 0 or lost_time_s > 1) and (clock == 'real')", [True]),
        ("compute_p99_us < 0.151 ms, compute_p99_us < 149 us, compute_p99_us / 2 == 75 us", [True, False, True]),
        ("-1 us < lost_time_s < 1 ns, lost_time_s + 0.1 s == 100 ms", [True, True]),
        ("compute_p99_us > lost_time_s", [True]),
        ("(" * 5000 + "missed" + ")" * 5000 + " == 0", [True]),
        ("max(lost_time_s, compute_p99_us) == 150 us", [True]),
    ],
)
def test_gates_judge_as_written(text: str, expected: list[bool]) -> None:
    assert passed(text) == expected


def test_text_of_each_gate_is_kept() -> None:
    assert [g.text for g in parse_gates(" missed==0 ,  compute_p99_us < 200 ")] == ["missed==0", "compute_p99_us < 200"]


def test_gates_come_from_text_list_or_table() -> None:
    expected = [g.root for g in parse_gates("missed==0, lost_time_s<1")]
    assert [g.root for g in parse_gates(["missed==0", "lost_time_s<1"])] == expected
    table = parse_gates({"no_miss": "missed==0", "in_step": "lost_time_s<1"}, "rig.toml")
    assert [g.root for g in table] == expected and (table[0].source, table[0].name) == ("rig.toml", "no_miss")
    assert [r.source for r in evaluate(table, METRICS)] == ["rig.toml: no_miss", "rig.toml: in_step"]
    with pytest.raises(ConfigError, match=r"^rig\.toml: in_step = .* in \[gates\]"):
        parse_gates({"no_miss": "missed==0", "in_step": "lost_time_s<"}, "rig.toml")


@pytest.mark.parametrize("text", ["nothing == 0", "nothing != 0", "nothing < 1e300", "bad == bad", "not nothing > 3"])
def test_a_metric_that_was_not_measured_fails_its_gate(text: str) -> None:
    (result,) = evaluate(parse_gates(text), METRICS)
    assert not result.passed
    assert "not measured" in result.cause


def test_failed_gate_names_the_value() -> None:
    (result,) = evaluate(parse_gates("compute_p99_us<100"), METRICS)
    assert result.cause == "compute_p99_us = 150"


def test_unknown_name_fails_its_gate_with_the_closest_names_and_leaves_the_others_alone() -> None:
    wrong, right = evaluate(parse_gates("computep99_us < 3, compute_p99_us < 1000"), METRICS)
    assert not wrong.passed and wrong.unknown and "did you mean 'compute_p99_us'" in wrong.cause
    assert right.passed and not right.unknown


def test_unknown_name_is_told_the_nearest_or_where_all_stand() -> None:
    """Never all of them: a rig has some hundred."""
    (gate,) = parse_gates("zzz < 3", "command line")
    text = str(unknown_name(gate, "zzz", METRICS))
    assert "command line" in text and "report.json" in text and not any(name in text for name in METRICS)
    near = str(unknown_name(gate, "mised", ["missed", "compute_p99_us"]))
    assert "did you mean 'missed'?" in near and "compute_p99_us" not in near


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("missed = 0", "column 8"),
        ("missed == ", r"cannot be read at 'the end' \(column 11\).*allowed: a name, a number"),
        ("missed", "is no condition"),
        ("missed + 1", "is no condition"),
        ("missed == 0 lost_time_s < 1", r"unit 'lost_time_s' is not known \(column 13\)"),
        ("missed == 0 and clock == 'a' lost_time_s < 1", r"column 30.*allowed: .*`and`, `or`, `,`, the end"),
        ("(missed == 0", r"allowed: `\)`"),
        ("missed == 0 or 1", r"'1' is no condition \(column 16\)"),
        ("compute_p99_us < 5 Nm", "compute_p99_us is in s, not in Nm"),
        ("shifts < 3 s", "it is not known in which unit 'shifts < 3 s' is"),
        ("lost_time_s < coupling_speed_max_mps", "in s and coupling_speed_max_mps in m/s cannot be compared"),
        ("__import__('os').system('x') == 0", "column"),
        ("open(1) == 0", r"no function 'open' \(column 1\)"),
        ("abs(1, 2) == 0", "takes 1 argument"),
        ("missed == 0; lost_time_s == 0", "cannot be read at '; lost_time_s == 0'"),
        ("not " * 5000 + "missed == 1", "nested too deeply"),
        ("-" * 5000 + "1 == 1", "nested too deeply"),
        # it would vanish, and the run pass
        ("", "holds no condition"),
        (" \n", "holds no condition"),
    ],
)
def test_mistakes_are_named_with_their_column(text: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        parse_gates(text)


def test_text_has_no_order_against_numbers() -> None:
    (result,) = evaluate(parse_gates("clock < 3"), METRICS)
    assert not result.passed and "no order" in result.cause


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab1.<>=!(), '\"+-*/notrdm_", max_size=40))
def test_any_text_gives_gates_or_a_gate_error(text: str) -> None:
    try:
        gates = parse_gates(text)
    except ConfigError:
        return
    assert all(g.text for g in gates)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
def test_comparison_agrees_with_python(left: float, right: float, symbol: str) -> None:
    words = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
    (result,) = evaluate(parse_gates(f"x {symbol} y"), {"x": left, "y": right})
    assert result.passed == getattr(operator, words[symbol])(left, right)
