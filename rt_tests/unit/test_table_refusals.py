"""Values that tables of a rig, study or scenario refuse: the whole message, with the value and what is allowed."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.variants import OUTSIDE
from torqueloop.hil.common.config_file import ConfigTable, validate
from torqueloop.hil.rig.devices.io import Io
from torqueloop.hil.rig.schema.fault_tables import Fault
from torqueloop.hil.rig.schema.rig_file import Clock, Limit, Output
from torqueloop.hil.scenario import offline, random_drive
from torqueloop.hil.study import parameter_paths
from torqueloop.hil.study.repeats import points, table
from torqueloop.hil.study.work import Line, Outcome
from torqueloop.hil.vehicle.vehicle_tables import Road


def io(channel: dict[str, Any], outputs: bool = True) -> dict[str, Any]:
    return {"library": "card.so", ("outputs" if outputs else "inputs"): {"a": channel}}


CRC = {"message": "M", "kind": "crc"}
#: table, its keys, the message without its place
REFUSED: list[tuple[type[ConfigTable], dict[str, Any], str]] = [
    (Clock, {"tick_s": 0.002, "spin_us": 1001.0}, "spin_us = 1001.0 is more than half a tick; allowed: 0 .. 1000"),
    (Output, {"signal": "x", "min": 5.0, "max": 3.0}, "max = 3.0 is below min; allowed: >= 5.0"),
    (Limit, {"min": 5.0, "max": 4.5}, "max = 4.5 is not above min; allowed: > 5.0"),
    (Limit, {"max": 5.0, "unit": "rpmm"}, "unit 'rpmm' is not known; did you mean 'rpm'?"),
    (Io, io({"low": 4.0, "high": 3.5}, False), "high = 3.5 is not above low; allowed: > 4.0"),
    (Io, io({"signal": "x", "low": -3.0, "high": -1.0}),
     "safe = 0.0 is outside the range of the channel; allowed: -3.0 .. -1.0"),
    (Io, io({"signal": "x", "low": 2.0, "high": 5.0, "safe": 1.5}),
     "safe = 1.5 is outside the range of the channel; allowed: 2.0 .. 5.0"),
    (Fault, {**CRC, "value": 2.0**53}, "value = 9007199254740992.0 is out of range; allowed: 1 .. 9007199254740991"),
    (Fault, {**CRC, "value": 0.0}, "value = 0.0 is out of range; allowed: 1 .. 9007199254740991"),
    (Fault, {"element": "C4", "kind": "leak", "value": 1.5}, "value = 1.5 is out of range; allowed: 0 .. 1"),
    (Fault, {"message": "M", "kind": "dlc", "value": 2.5}, "value = 2.5 is no whole number"),
    (Fault, {"signal": "s", "kind": "gain", "value": 2.0, "from_s": 3.0, "until_s": 3.0},
     "until_s = 3.0 ends before it begins; allowed: > from_s = 3"),
    (Road, {"grade_percent": [[0, 0], [9.0, -100.5]]}, "grade_percent: grade -100.5 %; allowed: -100 .. 100"),
    (Road, {"grade_percent": [[0, 100.5]]}, "grade_percent: grade 100.5 %; allowed: -100 .. 100"),
    (Road, {"grade_percent": [[0, 1], [5.0, 2], [5.0, 3]]},
     "grade_percent: distances do not increase at 5.0; allowed: strictly increasing s_m"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "keys", "words"), REFUSED, ids=lambda x: x[:24] if isinstance(x, str) else "")
def test_a_value_is_refused_with_what_is_allowed(kind: type[ConfigTable], keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(keys, kind, "rig.toml")
    assert re.sub(r"^rig\.toml: | in \[.*?\]", "", str(caught.value)) == words


@pytest.mark.parametrize(
    ("kind", "keys"),
    [(Clock, {"tick_s": 0.002, "spin_us": 1000.0}), (Output, {"signal": "x", "min": 3.0, "max": 3.0}),
     (Output, {"signal": "x", "max": 3.0}), (Limit, {"min": 4.0, "max": 5.0}),
     (Io, io({"signal": "x", "low": -3.0, "high": -1.0, "safe": -1.0})),
     (Io, io({"signal": "x", "low": -3.0, "high": 5.0, "safe": 1.0})), (Road, {"grade_percent": [[0, -100], [1, 100]]}),
     (Fault, {**CRC, "value": 2.0**53 - 1}), (Fault, {"element": "C4", "kind": "leak", "value": 1})],
)  # fmt: skip
def test_a_value_at_the_end_of_its_range_is_taken(kind: type[ConfigTable], keys: dict[str, Any]) -> None:
    validate(keys, kind, "rig.toml")


@pytest.mark.parametrize(("driver", "taken"), [({"brake": 0.0, "lever": "D"}, False), ({"pedal": 0.0}, True)])
def test_random_drives_need_a_pedal(monkeypatch: pytest.MonkeyPatch, driver: dict[str, Any], taken: bool) -> None:
    config = SimpleNamespace(driver=driver, vehicle=None)
    monkeypatch.setattr(random_drive, "load_rig_config", lambda *_: config)
    monkeypatch.setattr(random_drive, "standing_driver", lambda *_: {})
    if taken:
        assert random_drive.prepare(Path("rig.toml")).driver == ("pedal",)
        return
    with pytest.raises(ConfigError) as caught:
        random_drive.prepare(Path("rig.toml"))
    assert (caught.value.table, caught.value.key, caught.value.file) == ("driver", "pedal", "rig.toml")


@pytest.mark.parametrize(("inner", "named"), [(None, "set, car"), ("components.c", "set, components.c")])
def test_a_value_that_a_scenario_sets_in_its_driveline_is_refused_at_its_table_set(
    monkeypatch: pytest.MonkeyPatch, inner: str | None, named: str
) -> None:
    def load(*_: Any) -> None:
        raise ConfigError("{key} = {value} is no mass", file=OUTSIDE, table=inner, key="m_kg", value=-1)

    monkeypatch.setattr(offline, "load", load)
    config = SimpleNamespace(scenario=SimpleNamespace(powertrain="car"))
    scenario: Any = SimpleNamespace(
        path=Path("s.toml"), driveline=lambda: Path("car.toml"), overrides={}, config=config
    )
    with pytest.raises(ConfigError) as caught:
        offline.compiled(scenario)
    assert (caught.value.file, caught.value.table) == ("s.toml", named)


def test_a_study_of_a_scenario_of_a_rig_may_change_what_the_rig_and_its_control_units_have(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The rig is read as the scenario changes it."""
    (tmp_path / "s.toml").write_text('kind = "scenario"\n[scenario]\nname = "s"\n')
    asked: list[Any] = []

    def load_rig_config(*given: Any) -> Any:
        asked.append(given)
        return SimpleNamespace(ecu={"tcu": None, "engine": None})

    made = SimpleNamespace(rig=Path("rig.toml"), overrides={"clock.substeps": 2})
    monkeypatch.setattr(parameter_paths, "load_scenario", lambda path: made)
    monkeypatch.setattr(parameter_paths, "load_rig_config", load_rig_config)
    found = parameter_paths.target_of(tmp_path / "study.toml", "s.toml")
    assert found.kind == "rig scenario" and found.owners == ("model", "rig", "parameter", "vehicle", "tcu", "engine")
    assert asked == [(Path("rig.toml"), {"clock.substeps": 2})]


def test_a_point_tells_how_many_of_its_runs_failed_and_which_metrics_nothing_is_known_of() -> None:
    def run(k: int, a: float, **metrics: float) -> Outcome:
        return Outcome(Line(k, k, {"a": a}), dict(metrics), error="" if metrics else "no such car")

    runs = [run(0, 1.0, m=2.0, n=1.0), run(1, 1.0, m=4.0, n=1.0), run(2, 2.0), run(3, 2.0, n=5.0)]
    job: Any = SimpleNamespace(config=SimpleNamespace(study=SimpleNamespace(repeats=2), vary={"a": None}))
    head, rows = table(points(job, runs, ["m", "n"]), ["m", "n"])
    assert head == ("a", "runs", "m: mean", "5 … 95 %", "least … most", "n: mean", "5 … 95 %", "least … most")
    assert rows == [
        (1.0, "2", "3", "2.1 … 3.9", "2 … 4", "1", "1 … 1", "1 … 1"),
        (2.0, "2, 1 failed", "–", "–", "–", "5", "5 … 5", "5 … 5"),
    ]
