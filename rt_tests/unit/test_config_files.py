"""Where a mistake of a configuration file is said to stand: file, table, key and index, with what is allowed there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from torqueloop.core.describe.errors import ConfigError, MissingValueError, RangeError, UnknownKeyError
from torqueloop.core.describe.reading import parse_toml
from torqueloop.hil.common.config_file import ConfigTable, Curve, validate
from torqueloop.hil.common.config_layers import blamed_on, load_config, read_layers


class Wheel(ConfigTable):
    """A table in a list."""

    radius_m: Annotated[float, Field(gt=0.0, le=2.0)]
    name: str = ""


class Axle(ConfigTable):
    """A table under a name."""

    wheels: list[Wheel] = []
    offsets: list[float] = []
    gauge: Annotated[int, Field(ge=3)] = 3


class Car(ConfigTable):
    """A whole file."""

    axle: dict[str, Axle] = {}
    pedal: Curve = []
    seats: int = 4


WHEELS = {"front": {"wheels": [{"radius_m": 0.3}, {"radius_m": 0.3}]}}
MISTAKES: list[tuple[dict[str, Any], type[ConfigError], str | None, str, Any, str | None, str | None]] = [
    # data, kind, table, key, value, allowed, hint
    ({"seats": "five"}, RangeError, None, "seats", "five", "a valid integer", None),
    ({"axle": {"front": {"gauge": 2}}}, RangeError, "axle.front", "gauge", 2, ">= 3", None),
    ({"axle": {"front": {"wheels": [{"radius_m": 0.3}, {"radius_m": -1.0}]}}}, RangeError, "axle.front.wheels.1",
     "radius_m", -1.0, "> 0.0", None),
    ({"axle": {"front": {"wheels": [{"radius_m": 0.3}, {}]}}}, MissingValueError, "axle.front.wheels.1", "radius_m",
     None, "a number > 0.0, <= 2.0", None),
    ({"axle": {"rear": {"offsets": [1.0, 2.0, "x"]}}}, RangeError, "axle.rear", "offsets[2]", "x", "a valid number",
     None),
    ({"pedal": [[0.0, 1.0], [1.0, "x"]]}, RangeError, None, "pedal[1][1]", "x", "a valid number", None),
    ({"pedal": [[0.0, 1.0], [0.0, 2.0]]}, ConfigError, None, "pedal", 0.0, "strictly rising", None),
    ({"axle": {"front": {"wheels": [{"radius_m": 0.3, "nme": "a"}]}}}, UnknownKeyError, "axle.front.wheels.0", "nme",
     "a", None, "did you mean 'name'?"),
    ({"seats": "five", "axle": {"front": {"gauge": 2, "offsets": ["x"]}}}, RangeError, "axle.front", "offsets[0]", "x",
     "a valid number", "2 more mistake(s) in this file"),
    ({"seets": 5, "axle": {"front": {"gauge": 2}}}, UnknownKeyError, None, "seets", 5, None,
     "did you mean 'seats'?; 1 more mistake(s) in this file"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "kind", "table", "key", "value", "allowed", "hint"), MISTAKES)
def test_a_mistake_names_its_place(
    data: dict[str, Any], kind: type[ConfigError], table: str, key: str, value: Any, allowed: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(data, Car, "car.toml")
    error = caught.value
    assert type(error) is kind and (error.file, error.table, error.key) == ("car.toml", table, key)
    assert (error.value, error.allowed, error.hint) == (value, allowed, hint)


def files(folder: Path, **texts: str) -> dict[str, Path]:
    made = {name: folder / f"{name}.toml" for name in texts}
    for name, path in made.items():
        path.write_text(texts[name])
    return made


#: what is set from outside, and what stands there then
SET: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"seats": 2}, {"seats": 2}),
    ({"axle.front.wheels.1.radius_m": 0.4}, {"axle": {"front": {"wheels": [{"radius_m": 0.3}, {"radius_m": 0.4}]}}}),
    ({"axle.front.wheels.1": {"radius_m": 0.5}},
     {"axle": {"front": {"wheels": [{"radius_m": 0.3}, {"radius_m": 0.5}]}}}),
    ({"axle.rear.gauge": 7}, {"axle": {**WHEELS, "rear": {"gauge": 7}}}),
    ({"axle.front.wheels": None, "axle.front.gauge": 5}, {"axle": {"front": {"gauge": 5}}}),
]  # fmt: skip
CAR = "seats = 5\n[[axle.front.wheels]]\nradius_m = 0.3\n[[axle.front.wheels]]\nradius_m = 0.3\n"


@pytest.mark.parametrize(("overrides", "wanted"), SET)
def test_values_from_outside_replace_those_of_the_file(
    overrides: dict[str, Any], wanted: dict[str, Any], tmp_path: Path
) -> None:
    path = files(tmp_path, car=CAR)["car"]
    layers = read_layers(path, Car, overrides)
    assert layers.data == {"seats": 5, "axle": WHEELS} | wanted
    for key, value in overrides.items():
        place = (*key.split("."), *(value if isinstance(value, dict) else ()))
        # what was taken away is missing in the file, what was set stands on the command line
        assert layers.file_of(place) == (str(path) if value is None else f"--set {key}")
    assert read_layers(path, Car).data == {"seats": 5, "axle": WHEELS}


@pytest.mark.parametrize(
    ("overrides", "said", "hint"),
    [
        ({"axle.front.wheels.7": {"radius_m": 1.0}}, "axle.front.wheels.7 is no table", None),
        ({"axle.front.wheels.7.radius_m": 1.0}, "axle.front.wheels.7 is no table", None),
        ({"seats.number": 1}, "seats is no table", None),
        ({"axle.front.weels": None}, "there is no 'axle.front.weels' to take away", "did you mean 'wheels'?"),
        ({"axle.frnt": None}, "there is no 'axle.frnt' to take away", "did you mean 'front'?"),
        ({"seets": None}, "there is no 'seets' to take away", "did you mean 'seats'?"),
    ],
)
def test_a_place_that_is_not_there_is_named(
    overrides: dict[str, Any], said: str, hint: str | None, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_layers(files(tmp_path, car=CAR)["car"], Car, overrides)
    assert said in str(caught.value) and caught.value.hint == hint
    assert caught.value.file == f"--set {next(iter(overrides))}"


@pytest.mark.parametrize(
    ("base", "top", "in_file"),
    [
        ("axle.front.gauge = 1", "seats = 3", "base"),
        ("axle.front.gauge = 5", "axle.front.gauge = 1", "top"),
        ("axle.front.gauge = 1", "axle.front.offsets = [1.0]", "base"),
        # an empty table of the base is none of its own any more once the top has put something in it
        ("axle = {}\n", "[[axle.front.wheels]]\nname = 'no radius'", "top"),
        ("[[axle.front.wheels]]\nname = 'no radius'", "seats = 3", "base"),
    ],
)
def test_a_mistake_stands_in_the_file_that_says_so(base: str, top: str, in_file: str, tmp_path: Path) -> None:
    made = files(tmp_path, base=base, top=f'extends = "base.toml"\n{top}')
    with pytest.raises(ConfigError) as caught:
        load_config(made["top"], Car)
    assert caught.value.file is not None and Path(caught.value.file).name == f"{in_file}.toml"


@pytest.mark.parametrize(
    ("raised", "file", "table"),
    [
        ({"file": "rig.toml", "table": "clock", "key": "tick_s"}, "--set clock.tick_s", "clock"),
        ({"file": "rig.toml", "table": "clock", "key": "cpu"}, "rig.toml", "clock"),
        ({"file": "rig.toml", "key": "clock"}, "--set clock.tick_s", None),
        ({"file": "other.toml", "table": "clock", "key": "tick_s"}, "other.toml", "clock"),
        # set by the rig file in another file
        ({"file": "--set gears", "table": "shift", "key": "gears"}, "rig.toml", "set, shift"),
        ({"file": "--set gears", "key": "gears"}, "rig.toml", "set"),
    ],
)
def test_an_override_is_blamed_for_its_own_place_only(raised: dict[str, str], file: str, table: str | None) -> None:
    with pytest.raises(ConfigError) as caught, blamed_on({"clock.tick_s": 3.0}, "rig.toml"):
        raise ConfigError("wrong", **raised)  # type: ignore[arg-type]
    assert (caught.value.file, caught.value.table, caught.value.key) == (file, table, raised["key"])


def test_what_replaces_a_table_or_is_replaced_by_one_stands_in_the_file_that_extends(tmp_path: Path) -> None:
    """Nothing of the extended file is left at a place at which the extending one has a value of its own."""
    (tmp_path / "base.toml").write_text("a = 1\nseats = 2\n[b]\nc = 2\n[d]\ne = 3\n")
    top = tmp_path / "top.toml"
    top.write_text('extends = "base.toml"\nb = 3\n[a]\nd = 4\n[d]\nf = 5\n')
    read = read_layers(top, Car)
    assert read.data == {"a": {"d": 4}, "seats": 2, "b": 3, "d": {"e": 3, "f": 5}}
    wanted = {("a",): "top", ("a", "d"): "top", ("a", "x"): "top", ("b",): "top", ("b", "c"): "top", ("seats",): "base",
              ("d", "e"): "base", ("d", "f"): "top", ("d", "x"): "top"}  # fmt: skip
    assert {place: Path(read.file_of(place)).stem for place in wanted} == wanted


def test_what_one_reader_changes_is_not_there_for_the_next() -> None:
    text = "list = [1, [2]]\n[table]\nkey = 1\n"
    first = parse_toml(text)
    first["list"][1].append(3)
    first["table"]["key"] = first["other"] = 2
    assert parse_toml(text) == {"list": [1, [2]], "table": {"key": 1}}
