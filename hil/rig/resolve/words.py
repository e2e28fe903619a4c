"""[outputs] with words: each becomes a curve over the number of the lever's position, or of the gear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.can.load import SignalInfo
from torqueloop.hil.can.units import si_unit, to_si
from torqueloop.hil.common.levers import words_of
from torqueloop.hil.rig.devices.sensors import Sensor, Sensors
from torqueloop.hil.rig.schema.rig_file import Output, RigConfig


def with_words(path: Path, config: RigConfig, databases: Mapping[str, CanDatabase]) -> RigConfig:
    """The same with sensor.SIGNAL in the place of signals by words; ConfigError for a word the database has not."""
    known = {s.full_name: s for d in databases.values() for s in d.signals}
    known |= {f"{bus}.{s.full_name}": s for bus, d in databases.items() for s in d.signals}
    outputs, sensors = dict(config.outputs), dict(Sensors.tables_of(config).sensors)
    for key, link in config.outputs.items():
        if not link.words or link.signal is None or key not in known:
            continue
        try:
            _all_known(link, config.driver.get(link.signal.removeprefix("driver."), []))
            curve = Sensor(kind="curve", signal=link.signal, points=_points(link, known[key]))
            # any unit of a database, not only those that one writes
            sensors[key] = curve.model_copy(update={"unit": known[key].si_unit})
        except ConfigError as error:
            raise error.located(file=str(path), table="outputs", key=key) from None
        outputs[key] = link.model_copy(update={"signal": f"sensor.{key}", "words": {}})
    return config.model_copy(update={"outputs": outputs, "sensors": sensors})


def _all_known(link: Output, points: Sequence[tuple[float, float]]) -> None:
    """ConfigError for a word that the driver's table has and the output has not."""
    used = {number for _, number in points}
    missing = [
        word for word, number in words_of(link.signal or "").items() if number in used and word not in link.words
    ]
    if missing and link.otherwise is None:
        raise ConfigError(
            "words: {value}, which [driver] has, is missing", value=missing[0],
            allowed=f"a number for {missing[0]}, or otherwise = what is sent for all other words",
        )  # fmt: skip


def _points(link: Output, info: SignalInfo) -> list[tuple[float, float]]:
    """(number of a word, value of the signal in SI), rising."""

    def value(given: float | str) -> float:
        unit = si_unit(info.unit)
        if isinstance(given, str):
            return info.value_of(given)
        return given if unit is None else to_si(given, unit, with_offset=True)

    words = words_of(link.signal or "")
    return sorted((number, value(link.words.get(word, link.otherwise or 0.0))) for word, number in words.items())
