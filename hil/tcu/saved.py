"""The soft TCU's state as plain data and back: for checkpoints. Only what is listed here is read or made; nothing is
unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torqueloop.hil.tcu.shift import Measured, Ramp, ShiftRunner
from torqueloop.hil.tcu.soft_tcu import SoftTcu
from torqueloop.hil.tcu.strategy import Commands

_TCU = ("mode", "fault", "_limp_gear", "refused", "_last_good", "_good_since", "_steps")
_TRANSMISSION = ("gear", "_line", "_steps")
_SELECTOR = ("_in_gear_s", "kick_down", "reverse_inhibited")
_LOCKUP = ("state", "pressure", "_spent", "_slip_ref", "_integral")
_RUNNER = (
    "_index",
    "_time",
    "_phase_begun",
    "_pressure",
    "_integral",
    "_start_ratio",
    "_old_ratio",
    "_entering",
    "timeouts",
    "done",
)


def save_tcu(tcu: SoftTcu) -> dict[str, Any]:
    """Everything of a soft TCU that changes."""
    transmission, runner = tcu.transmission, tcu.transmission.runner
    saved_runner = None
    if runner is not None:
        names = {"name": runner.name, "source": runner.source, "target": runner.target}
        ramps = {name: vars(ramp).copy() for name, ramp in runner._ramps.items()}
        saved_runner = {**names, "ramps": ramps, "fields": _take(runner, _RUNNER)}
    return {
        "fields": _take(tcu, _TCU),
        "codec": tcu.codec.save(),
        "now": vars(tcu.now).copy(),
        "commands": _commands(tcu.commands),
        "modes": [list(entry) for entry in tcu.mode_log],
        "transmission": _take(transmission, _TRANSMISSION),
        "transmission_commands": _commands(transmission.commands),
        "shifts": [list(entry) for entry in transmission.shift_log],
        "torque": transmission.torque.torque,
        "selector": _take(transmission.selector, _SELECTOR),
        "lockup": _take(transmission.lockup, _LOCKUP),
        "runner": saved_runner,
    }


def load_tcu(tcu: SoftTcu, data: Mapping[str, Any]) -> None:
    """Inverse of save_tcu on a unit of the same configuration; KeyError, TypeError or ValueError when it is none."""
    transmission = tcu.transmission
    tcu.codec.load(data["codec"])
    _give(tcu, _TCU, data["fields"])
    tcu.now, tcu.commands = Measured(**data["now"]), Commands(**data["commands"])
    tcu.mode_log[:] = [(float(t), str(mode), str(fault)) for t, mode, fault in data["modes"]]
    _give(transmission, _TRANSMISSION, data["transmission"])
    transmission.commands = Commands(**data["transmission_commands"])
    transmission.shift_log[:] = [(int(k), str(n), float(s), int(late)) for k, n, s, late in data["shifts"]]
    transmission.torque.torque = float(data["torque"])
    _give(transmission.selector, _SELECTOR, data["selector"])
    _give(transmission.lockup, _LOCKUP, data["lockup"])
    saved = data["runner"]
    transmission.runner = None
    if saved is not None:
        if saved["name"] not in tcu.config.shifts:
            raise ValueError(f"the control unit knows no shift {saved['name']!r}")
        runner = ShiftRunner(tcu.config, saved["name"], saved["source"], saved["target"], saved["fields"]["_pressure"])
        _give(runner, _RUNNER, saved["fields"])
        runner._ramps = {name: Ramp(**ramp) for name, ramp in saved["ramps"].items()}
        transmission.runner = runner


def _take(owner: object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: _copy(getattr(owner, name)) for name in names}


def _give(owner: object, names: tuple[str, ...], data: Mapping[str, Any]) -> None:
    for name in names:
        setattr(owner, name, _copy(data[name]))


def _copy(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else value


def _commands(commands: Commands) -> dict[str, Any]:
    return {name: _copy(value) for name, value in vars(commands).items()}
