"""Second definition of every field on the buses of a rig, against the recorded plant: sign, scale, unit, validity.

Frames are decoded by cantools. What the rig sends is the signal its file names, in the unit of the database, in the
tick in which it was sent. What a control unit sends follows from what it was told last (frames before), and what it
says of the gearbox must be true of the plant. What the rig takes from a control unit must be in the recorded signal at
once, in SI. A field without a source keeps the database's start value. Nothing of torqueloop is imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cantools.database.can import Message, Signal
from golden_metrics import Golden
from golden_recorded import Frame
from golden_told import Told
from golden_units import UNITS, from_si, si

LEVERS = ("P", "R", "N", "D", "M")
#: words in names of checksums and of bits that guard others
GUARDS = ("crc", "chk", "checksum", "parity", "toggle", "counter", "alive", "zaehler")
OWN_PRESSURE, OWN_STATUS = "TCU_Pressure", "TCU_Status"


@dataclass
class Judged:
    """What came of the fields: comparisons by field, and what is wrong."""

    seen: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    #: fields without a definition
    undefined: set[str] = field(default_factory=set)

    def compare(self, name: str, t_s: float, found: float, low: float, high: float) -> None:
        """A field must be within these."""
        self.seen[name] += 1
        if not low <= found <= high:
            self.wrong.append(f"{name} = {found:g} at {t_s:.3f} s, must be {low:g} .. {high:g}")


class Fields:
    """The buses of a run."""

    def __init__(self, g: Golden) -> None:
        self.g, self.run, self.rig = g, g.run, g.run.rig
        self.judged = Judged()
        self.soft = {n: e for n, e in self.rig["ecu"].items() if e.get("kind") == "soft_tcu"}
        (unit,) = self.soft.values()
        self.tcu = self.run.layers(self.run.file(unit["start"]))
        options = unit.get("options", {})
        self.interface: dict[str, Any] = {}
        if "interface" in options:
            self.interface = self.run.layers(self.run.file(options["interface"]))
        self.reduction = options.get("set", {}).get("torque_reduction", self.tcu.get("torque_reduction"))
        self.told = Told(self.interface.get("receive", {}))
        #: newest values of the unit's own messages, as sent
        self.status: dict[str, Any] = {}
        self.pressures: dict[str, float] = {}
        #: the last status before, for what changes between two of them
        self.before: dict[str, Any] = {}
        self._counts: dict[str, float] = {}
        #: the mode was normal once
        self._normal = False

    def judge(self) -> Judged:
        """All frames of all buses, in their order."""
        for frame in self.run.frames:
            message = self.run.databases[frame.bus].get(frame.can_id)
            if message is None:
                self.judged.wrong.append(f"{frame.bus}: no message has the identifier {frame.can_id:#x}")
                continue
            raw = message.decode(frame.data, decode_choices=False, allow_truncated=True)
            values = {name: float(x) for name, x in raw.items() if isinstance(x, (int, float))}
            self._direction(frame, message)
            if frame.sent:
                self._sent(frame, message, values)
            else:
                self._received(frame, message, values)
        return self.judged

    def _direction(self, frame: Frame, message: Message) -> None:
        """A message that the rig sends is not one of the control unit's."""
        units = {e.get("node", "TCU") for e in self.rig["ecu"].values()} | {self.interface.get("node", "TCU")}
        if message.senders and frame.sent == bool(set(message.senders) & units):
            self.judged.wrong.append(
                f"{message.name} is sent by {message.senders}, went {'out' if frame.sent else 'in'}"
            )

    # --- what the rig sends
    def _sent(self, frame: Frame, message: Message, values: Mapping[str, float]) -> None:
        k = frame.t_ns // round(self.run.tick_s * 1e9)
        for s in message.signals:
            name = f"{message.name}.{s.name}"
            if name in self.rig["outputs"] and s.name in values:
                wanted = self._output(self.rig["outputs"][name], s, k)
                self._compare(name, frame, s, values[s.name], [wanted])
            elif s.name in values:
                self._rest(name, frame, message, s, values[s.name])
        self.told.take(message, values)

    def _output(self, given: Any, s: Signal, k: int) -> float:
        """What the rig file says of a field, in the unit of the database."""
        table = given if isinstance(given, dict) else {"signal" if isinstance(given, str) else "value": given}
        if "signal" in table:
            x = float(self.run[table["signal"]][k]) * table.get("gain", 1.0) + table.get("offset", 0.0)
            wanted = from_si(x, s.unit)
            low = s.minimum if s.minimum is not None else -np.inf
            high = s.maximum if s.maximum is not None else np.inf
            return float(min(max(wanted, low), high))
        value = table["value"]
        return float(next(n for n, word in (s.choices or {}).items() if str(word) == value)
                     if isinstance(value, str) else value)  # fmt: skip

    def _compare(
        self, name: str, frame: Frame, s: Signal, found: float, wanted: list[float], slack: float = 0.0
    ) -> None:
        """A field within half a step of one of these, or between the first and the last of them."""
        step = abs(float(s.scale)) * 0.5 + 1e-9 * abs(found) + slack
        self.judged.compare(name, frame.t_ns * 1e-9, found, min(wanted) - step, max(wanted) + step)

    def _rest(self, name: str, frame: Frame, message: Message, s: Signal, found: float) -> None:
        """Counters count, checksums are somebody else's (test_independent_receiver), the rest has its start value."""
        attributes = {k: a.value for k, a in ((message.dbc and message.dbc.attributes) or {}).items()}
        if s.is_multiplexer:
            self.judged.seen[name] += 1
        elif s.name == attributes.get("E2ECrcSignal") or any(word in s.name.lower() for word in GUARDS):
            self.judged.seen[name] += 1
        elif s.name == attributes.get("E2ECounterSignal"):
            before = self._counts.get(name)
            self._counts[name] = found
            self.judged.seen[name] += 1
            if before is not None and found not in (before + 1, 0.0, 1.0):
                self.judged.wrong.append(f"{name} counts {before:g}, {found:g}")
        else:
            self._compare(name, frame, s, found, [self._start(s)])

    @staticmethod
    def _start(s: Signal) -> float:
        """The value of a field nobody fills: the start value, else 0 in SI, in the range of the field."""
        if s.raw_initial is not None:
            return float(s.raw_initial) * float(s.scale) + float(s.offset)
        zero = from_si(0.0, s.unit)
        return float(
            np.clip(zero, s.minimum if s.minimum is not None else zero, s.maximum if s.maximum is not None else zero)
        )

    # --- what the control units send
    def _received(self, frame: Frame, message: Message, values: Mapping[str, float]) -> None:
        self._recorded(frame, message, values)
        if message.name.startswith(OWN_PRESSURE):
            self._pressures(frame, message, values)
        elif message.name == OWN_STATUS:
            self._status(frame, message, values)
        elif any(name.startswith(f"{message.name}.") for name in self.interface.get("send", {})):
            self._makers(frame, message, values)
        elif message.name == "SLC_Pedal":
            self._limiter(frame, message, values)
        else:
            for s in message.signals:
                if s.name in values:
                    self._rest(f"{message.name}.{s.name}", frame, message, s, values[s.name])

    def _recorded(self, frame: Frame, message: Message, values: Mapping[str, float]) -> None:
        """The tick that took the frame has the value in SI, and the model's inputs have it from there."""
        k = frame.t_ns // round(self.run.tick_s * 1e9)
        for s in message.signals:
            name = f"{message.name}.{s.name}"
            if name not in self.run or s.name not in values:
                continue
            wanted = si(values[s.name], s.unit)
            found = float(self.run[name][k])
            outside = (s.minimum is not None and values[s.name] < s.minimum) or (
                s.maximum is not None and values[s.name] > s.maximum
            )
            if abs(found - wanted) > 1e-9 * max(1.0, abs(wanted)) and not outside:
                self.judged.wrong.append(f"{name} is {found:g} at {frame.t_ns * 1e-9:.3f} s, the frame says {wanted:g}")

    def _pressures(self, frame: Frame, message: Message, values: Mapping[str, float]) -> None:
        """In a steady gear its elements, and no others, have the line pressure; the fields carry bar."""
        t = frame.t_ns * 1e-9
        for s in message.signals:
            name, x = f"{message.name}.{s.name}", values[s.name]
            if s.name.startswith("p_"):
                self.pressures[s.name[2:]] = si(x, s.unit)
                self.judged.seen[name] += 1
            elif s.name.startswith("Mode"):
                self._mode(name, t, s, x)
            else:
                self._rest(name, frame, message, s, x)

    def _mode(self, name: str, t: float, s: Signal, x: float) -> None:
        """Off until it has heard of everything once, a fifth of a second at most; then normal."""
        word = str((s.choices or {}).get(int(x)))
        self.judged.seen[name] += 1
        heard = {"w_engine", "w_out", "pedal"} <= set(self.told.numbers)
        self._normal |= word == "normal"
        if word != "normal" and (word != "off" or self._normal or t > 0.2) or (word == "normal" and not heard):
            self.judged.wrong.append(f"{name} says {word} at {t:.3f} s")

    def _status(self, frame: Frame, message: Message, values: Mapping[str, float]) -> None:
        """What the unit says of itself."""
        t, n = frame.t_ns * 1e-9, self.told.numbers
        words = {s.name: str(s.choices.get(int(values[s.name]))) for s in message.signals if s.choices}
        self.before, self.status = self.status, {**values, **words, "t": t}
        for s in message.signals:
            name, x = f"{message.name}.{s.name}", values[s.name]
            if s.name == "slip_lockup":
                slip = from_si(n.get("w_engine", 0.0) - n.get("w_turbine", 0.0), s.unit)
                self._compare(name, frame, s, x, [float(np.clip(slip, s.minimum or 0.0, s.maximum or 0.0))])
            elif s.name == "lever_echo":
                self._is(name, t, words[s.name], self.told.lever)
            elif s.name.startswith("Mode"):
                self._mode(name, t, s, x)
            elif s.name == "gear_actual":
                self.judged.seen[name] += 1
                self._gear(name, t, words)
            elif s.name == "gear_target":
                # the gear it is on the way to; the other one only while it shifts
                self.judged.seen[name] += 1
                if not values["shift_active"] and words[s.name] != words["gear_actual"]:
                    self.judged.wrong.append(f"{name} = {words[s.name]} at {t:.3f} s without a shift")
            elif s.name == "shift_active":
                self._is(name, t, x > 0, words["shift_phase"] != "none")
            elif s.name == "shift_phase":
                self.judged.seen[name] += 1
                self._phase(name, t, words)
            elif s.name == "lockup_state":
                self.judged.seen[name] += 1
                self._lockup(name, t, words[s.name])
            elif s.name == "fault_code":
                self._compare(name, frame, s, x, [0.0])
            elif s.name == "tau_limit" and values.get("tau_limit_active"):
                self._limit(name, frame, s, x)
            elif s.name == "tau_limit":
                self.judged.seen[name] += 1
            elif s.name == "tau_limit_active":
                self._active(name, t, x > 0)
            else:
                self._rest(name, frame, message, s, x)
        self._steady(t, words)

    def _is(self, name: str, t: float, found: Any, wanted: Any) -> None:
        self.judged.seen[name] += 1
        if found != wanted:
            self.judged.wrong.append(f"{name} says {found} at {t:.3f} s, must be {wanted}")

    def _true_gear(self, t: float) -> str | None:
        """The engaged gear by the speeds of the plant, where it has held for a while and goes on to; plain number."""
        for gear, begin, end in self.g.engaged:
            if begin + 0.05 <= t <= end - 0.05:
                return gear.partition("_")[0]
        return None

    def _gear(self, name: str, t: float, words: Mapping[str, str]) -> None:
        """The gear it says is in is the one the shafts have, outside a shift; on the way, the old one."""
        true, moving = self._true_gear(t), abs(self.g.w_out[int(t / self.run.tick_s)]) > 2.0
        if true and moving and words["shift_phase"] == "none" and words["gear_actual"] != true:
            self.judged.wrong.append(f"{name} = {words['gear_actual']} at {t:.3f} s, the shafts have {true}")

    def _phase(self, name: str, t: float, words: Mapping[str, str]) -> None:
        """While the ratio is that of the old gear it fills or takes over torque; in between it is the inertia phase."""
        true, wanted = self._true_gear(t), words["shift_phase"]
        upward = words["gear_actual"].isdigit() and words["gear_target"].isdigit()
        if upward and words["gear_target"] > words["gear_actual"]:
            old = true == words["gear_actual"]
            if (old and wanted == "closing") or (true == words["gear_target"] and wanted in ("filling", "torque")):
                self.judged.wrong.append(f"{name} = {wanted} at {t:.3f} s, the shafts have gear {true}")

    def _lockup(self, name: str, t: float, word: str) -> None:
        """Closed: no slip; open: no pressure."""
        k = int(round(t / self.run.tick_s))
        slip = abs(self.run["lockup.w_rel"][k]) if "lockup.w_rel" in self.run else 0.0
        if word == "closed" and slip > 15.0:
            self.judged.wrong.append(f"{name} = closed at {t:.3f} s with {slip:g} rad/s of slip")
        if (
            word == "open"
            and k > 100
            and "lockup.w_rel" in self.run
            and slip < 1e-9
            and self.run["lockup.tau"][k] != 0.0
        ):
            self.judged.wrong.append(f"{name} = open at {t:.3f} s, it is stuck")

    def _steady(self, t: float, words: Mapping[str, str]) -> None:
        """Pressures between shifts: the elements of the gear at one pressure, the others at none."""
        calm = words["shift_phase"] == self.before.get("shift_phase") == "none"
        gear = words["gear_actual"]
        if not calm or gear != self.before.get("gear_actual") or t < 0.05:
            return
        tables = [self.tcu["gears"][g] for g in (gear, f"{gear}E") if g in self.tcu["gears"]]
        on = {e for e, p in self.pressures.items() if p > 0.0 and e != "LU"}
        if on not in [set(table.get("elements", ())) for table in tables]:
            self.judged.wrong.append(f"gear {gear} at {t:.3f} s: pressure on {sorted(on)}")
        if len({round(self.pressures[e], 3) for e in on}) > 1:
            self.judged.wrong.append(f"gear {gear} at {t:.3f} s: pressures {self.pressures}")

    # --- torque requests
    def _driver_torque(self, k: int) -> float:
        """What the engine would give without a request [Nm]."""
        return float(
            self.run["engine_control.tau_driver" if "engine_control.tau_driver" in self.run else "engine.tau"][k]
        )

    def _limit(self, name: str, frame: Frame, s: Signal, found: float) -> None:
        """(1 - reduction) of the driver's torque in the inertia phase, up to the driver's torque on the way back; its
        engine map against the plant's: a tenth."""
        k = frame.t_ns // round(self.run.tick_s * 1e9)
        low = min(self._driver_torque(max(0, k - d)) for d in (0, 15, 30)) * (1.0 - self.reduction["reduction"])
        high = max(self._driver_torque(max(0, k - d)) for d in (0, 15, 30))
        inertia = self.status.get("shift_phase") == self.before.get("shift_phase") == "inertia"
        most = high * (1.0 - self.reduction["reduction"]) if inertia else high
        self._compare(name, frame, s, found, [from_si(low * 0.9, s.unit), from_si(most * 1.1, s.unit)], slack=5.0)

    def _active(self, name: str, t: float, active: bool) -> None:
        """In the inertia phase of a shift up under power, and for return_s behind it; not without one."""
        self.judged.seen[name] += 1
        phases = (self.status.get("shift_phase"), self.before.get("shift_phase"))
        up = str(self.status.get("gear_target")) > str(self.status.get("gear_actual"))
        k = int(round(t / self.run.tick_s))
        asks = self.reduction is not None and phases == ("inertia", "inertia") and up and self._driver_torque(k) > 60.0
        if asks and not active:
            self.judged.wrong.append(f"{name} asks for nothing at {t:.3f} s, in the inertia phase of a shift up")
        if active and (self.reduction is None or not (up or phases[0] == "closing" or self._just_shifted(t))):
            self.judged.wrong.append(f"{name} asks for torque at {t:.3f} s without a shift up")

    def _just_shifted(self, t: float) -> bool:
        k = int(round(t / self.run.tick_s))
        return bool(np.any(self.run["TCU_Status.shift_active"][max(0, k - 400) : k + 1]))

    # --- a maker's bus
    def _makers(self, frame: Frame, message: Message, values: Mapping[str, float]) -> None:
        for s in message.signals:
            name = f"{message.name}.{s.name}"
            given = self.interface["send"].get(name)
            if s.name not in values:
                continue
            if given is None:
                self._rest(name, frame, message, s, values[s.name])
                continue
            table = given if isinstance(given, dict) else {"of": given}
            if "value" in table:
                self._compare(name, frame, s, values[s.name], [table["value"]])
            elif table.get("toggle_s"):
                self._is(name, frame.t_ns * 1e-9, values[s.name] in (0.0, table.get("gain", 1.0)), True)
            elif "words" in table:
                wanted = [table["words"].get(w, table.get("otherwise", 0.0)) for w in self._words(table["of"])]
                self.judged.seen[name] += 1
                if values[s.name] not in wanted:
                    self.judged.wrong.append(
                        f"{name} = {values[s.name]:g} at {frame.t_ns * 1e-9:.3f} s, must be of {wanted}"
                    )
            else:
                self._number(name, frame, s, values[s.name], table)

    def _words(self, of: str) -> set[str]:
        """A word of the unit now, or in its last status: it may have changed since."""
        key = {"gear_actual": "gear_actual", "gear_target": "gear_target", "lockup": "lockup_state"}.get(of)
        if of == "lever":
            return {self.told.lever}
        if of == "mode":
            return {"off" if not self.told.numbers else "normal"}
        return {str(found.get(key)) for found in (self.status, self._next_status())}

    def _next_status(self) -> dict[str, Any]:
        """The status at the end of the tick in which the next one is due: from the recorded signals."""
        k = min(int(round((self.status["t"] + 0.01) / self.run.tick_s)), len(self.g.t) - 1)
        message = next(m for ms in self.run.databases.values() for m in ms.values() if m.name == OWN_STATUS)
        found: dict[str, Any] = {}
        for s in message.signals:
            if f"{OWN_STATUS}.{s.name}" not in self.run:
                continue  # counters and checksums are nobody's signals
            x = from_si(float(self.run[f"{OWN_STATUS}.{s.name}"][k]), s.unit)
            found[s.name] = str(s.choices.get(round(x))) if s.choices else x
        return found

    def _number(self, name: str, frame: Frame, s: Signal, found: float, table: Mapping[str, Any]) -> None:
        """A number of the unit, in the unit of the database."""
        active_now = bool(self.status.get("tau_limit_active")) or self._request_due()
        values, slack = self._quantity(table["of"], frame)
        wanted = [from_si(table.get("gain", 1.0) * x + table.get("offset", 0.0), s.unit) for x in values]
        if "inactive" in table:
            if abs(found - from_si(table["inactive"], s.unit)) <= abs(s.scale) / 2:
                self.judged.seen[name] += 1
                return
            self._is(name, frame.t_ns * 1e-9, active_now, True)
        if "neutral" in table and self._words("gear_actual") & {"P", "N"}:
            wanted.append(table["neutral"])
        low = s.minimum if s.minimum is not None else -np.inf
        high = s.maximum if s.maximum is not None else np.inf
        self._compare(name, frame, s, found, [float(np.clip(w, low, high)) for w in wanted],
                      slack * abs(table.get("gain", 1.0)) * abs(1.0 / UNITS[s.unit or ""][0]))  # fmt: skip

    def _request_due(self) -> bool:
        """Torque may be asked for now: in or just behind a shift."""
        return self.reduction is not None and self._just_shifted(self.status.get("t", 0.0) + 0.01)

    def _quantity(self, of: str, frame: Frame) -> tuple[list[float], float]:
        """Values a number may have now, SI, and what its estimate may be off."""
        n, k = self.told.numbers, frame.t_ns // round(self.run.tick_s * 1e9)
        both = (self.status, self._next_status())
        ratios = [abs(self.tcu["gears"][g["gear_actual"]].get("ratio", 0.0)) for g in both]
        if of in ("w_engine", "w_turbine", "w_out", "pedal", "T_oil"):
            # its start value stands until the first message has come
            return [n.get(of, {"T_oil": 353.15}.get(of, 0.0))], 0.0
        if of == "slip":
            return [n.get("w_engine", 0.0) - n.get("w_turbine", 0.0)], 0.0
        if of == "ratio":
            return ratios, 0.0
        if of == "w_synchron":
            target = [
                max(0.0, n.get("w_out", 0.0) * self.tcu["gears"][g["gear_target"]].get("ratio", 0.0)) for g in both
            ]
            return [x * bool(g["shift_active"]) for x, g in zip(target, both, strict=True)], 0.0
        if of == "shifting":
            return [float(g["shift_active"]) for g in both], 0.0
        if of == "torque_limit_active":
            return [float(g["tau_limit_active"]) for g in both], 0.0
        if of == "torque_limit":
            torque = [self._driver_torque(max(0, k - d)) for d in (0, 15, 30)]
            return [min(torque) * (1.0 - self.reduction["reduction"]) * 0.9, max(torque) * 1.1], 5.0
        if of == "torque_driver":
            return [self._driver_torque(max(0, k - d)) for d in (0, 15, 30)], 15.0
        if of == "torque_turbine":
            # an estimate from speeds and the converter's characteristic, slower than the plant
            torque = self.run["converter.tau_turbine"][max(0, k - 300) : k + 1]
            return [float(torque.min()), float(torque.max())], 60.0
        if of == "pressure":
            return [min(self.pressures.values(), default=0.0), max(self.pressures.values(), default=0.0)], 1e5
        if of == "lockup_closed":
            return [float(g["lockup_state"] == "closed") for g in both], 0.0
        if of == "limp_home":
            return [0.0], 0.0
        if of == "v_vehicle":
            # by the output speed it was told last: 1/min of the shaft for each km/h are a number of its file
            per_kmh = self.tcu["garage"]["output_rpm_per_kmh"]
            return [n.get("w_out", 0.0) * 30.0 / np.pi / per_kmh / 3.6], 0.0
        self.judged.undefined.add(of)
        return [0.0], 0.0

    # --- the other units
    def _limiter(self, frame: Frame, message: Message, values: Mapping[str, float]) -> None:
        """The speed limiter: never more than the driver's pedal; its error is the set speed less the car's."""
        k = frame.t_ns // round(self.run.tick_s * 1e9)
        for s in message.signals:
            name, x = f"{message.name}.{s.name}", values[s.name]
            if s.name == "pedal":
                pedal = max(self.run["driver.pedal"][max(0, k - 30) : k + 1])
                self._compare(name, frame, s, x, [0.0, from_si(float(pedal), s.unit)])
            elif s.name == "v_error":
                errors = [
                    self.run["driver.v_set_kmh"][max(0, k - d)] / 3.6 - self.g.v[max(0, k - d)] for d in (0, 10, 30)
                ]
                wanted = [0.0] if k < 30 else [from_si(float(e), s.unit) for e in errors]
                self._compare(name, frame, s, x, wanted, slack=abs(s.scale) + (100.0 if k < 30 else 0.02))
            elif s.name == "limiting":
                self._is(name, frame.t_ns * 1e-9, x in (0.0, 1.0), True)
            else:
                self._rest(name, frame, message, s, x)


def fields_of(g: Golden) -> Iterator[str]:
    """Names of all fields of the messages that were seen."""
    for bus in g.run.rig["bus"]:
        seen = {of.name: of for _, of in g.run.on(bus)}
        for message in seen.values():
            yield from (f"{message.name}.{s.name}" for s in message.signals)
