"""Disturbances of what a rig sends on a maker's bus (VW MQB), as a receiver sees them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgetools.judge import DIFFER, Judge
from judgetools.lockstep import PLACE, Lockstep, free_ports

#: fault, message it is seen of, what is said of it: one of these
Case = tuple[dict[str, Any], str, set[str]]
IDLE, BUS = "Motor_20.MO_Solldrehz_Leerlauf", {"bus": "car", "bitrate": 500000}
ESP, MOTOR = {"message": "ESP_21"}, {"message": "Motor_20"}
#: what it says while nothing is wrong [1/min]
IDLE_VALUE = 760.0
#: what is done -> what the receiver must say of it (one of these, of that message)
CASES: list[Case] = [
    ({**ESP, "kind": "crc"}, "ESP_21", {"checksum"}),
    ({**ESP, "kind": "crc_random"}, "ESP_21", {"checksum"}),
    ({**ESP, "kind": "counter"}, "ESP_21", {"repeat"}),
    ({**ESP, "kind": "counter_random"}, "ESP_21", {"repeat", "jump"}),
    ({**ESP, "kind": "counter_offset", "value": 3}, "ESP_21", {"jump"}),
    ({**ESP, "kind": "dlc", "value": 6}, "ESP_21", {"length"}),
    ({**ESP, "kind": "drop"}, "ESP_21", {"cycle", "jump"}),
    ({**MOTOR, "kind": "delay", "value": 0.012}, "Motor_20", {"cycle"}),
    ({**MOTOR, "kind": "jitter", "value": 0.015, "seed": 5}, "Motor_20", {"cycle"}),
    ({**MOTOR, "kind": "duplicate"}, "Motor_20", {"repeat"}),
    ({"node": "ESP", "kind": "silent"}, "ESP_21", {"cycle", "jump"}),
    ({"bus": "car", "kind": "bus_off"}, "Motor_20", {"cycle", "jump"}),
    ({**BUS, "kind": "load", "value": 0.3}, "0x7ff", {"unknown"}),
    ({**BUS, "kind": "babble", "value": 0.3}, "0x0", {"unknown"}),
    *(({"signal": IDLE, "kind": kind, "value": value}, "Motor_20", {"value of MO_Solldrehz_Leerlauf"})
      for kind, value in (("value", 1000.0), ("offset", 200.0), ("gain", 1.5), ("noise", 300.0), ("ramp", 5000.0),
                          ("raw", 200))),
]  # fmt: skip

#: windows, one after the other [s]
FIRST_S, STEP_S, LASTS_S = 0.4, 0.25, 0.13
#: a late frame, and the one that shows a gap or jump, come up to so long after the window
AFTER_S = 0.06
CONFIGS = Path(__file__).resolve().parents[3] / "configs"


def windows(n: int) -> list[tuple[float, float]]:
    """Begin and end of each."""
    return [(FIRST_S + STEP_S * k, FIRST_S + STEP_S * k + LASTS_S) for k in range(n)]


@dataclass
class Seen:
    """What the receiver said of a case."""

    fault: dict[str, Any]
    message: str
    wanted: set[str]
    #: (message, what) -> how often
    said: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def on(self) -> str:
        """What it acts on."""
        return next(str(self.fault[k]) for k in ("message", "signal", "node", "bus") if k in self.fault)

    @property
    def passed(self) -> bool:
        """What it is, and of no other message than those it acts on."""
        everything = "node" in self.fault or "bus" in self.fault
        if any(what.startswith(DIFFER) for _, what in self.said):
            return False
        others = {message for message, _ in self.said} - {self.message}
        return bool({w for m, w in self.said if m == self.message} & self.wanted) and (everything or not others)


def sort(findings: Iterable[tuple[float, str, str]], cases: Sequence[Case]) -> tuple[list[Seen], list[str]]:
    """What was said (time, message, what), by the window it fell in; and what fell in none."""
    seen, outside = [Seen(*case) for case in cases], []
    places = windows(len(cases))
    for after, name, what in findings:
        at = [k for k, (begin, end) in enumerate(places) if begin - 1e-3 <= after <= end + AFTER_S]
        if at:
            seen[at[0]].said[name, what] += 1
        else:
            outside.append(f"{after:.3f} s: {name}: {what}")
    return seen, outside


def watched(folder: Path, cases: Sequence[Case]) -> tuple[list[Seen], list[str], Judge]:
    """The rig alone on its buses, this process as the receiver: what it said, what outside of all windows."""
    ports = dict(zip(("powertrain", "car"), free_ports(2), strict=True))
    lines = [f'extends = "{CONFIGS / "rigs" / "desk_vw_mqb.toml"}"',
             """without = ["ecu", "vehicle", "gates", "limits", 'inputs."road.F"', 'inputs."road.F_hold"']""",
             "bus.powertrain.rx_timeout_s = { TCU_Pressure_1 = 1000.0, TCU_Pressure_2 = 1000.0 }",
             "bus.car.rx_timeout_s = { Getriebe_11 = 1000.0, Getriebe_12 = 1000.0, Getriebe_13 = 1000.0 }",
             "inputs.'road.F' = 0.0", "inputs.'road.F_hold' = 0.0"]  # fmt: skip
    lines += [f"bus.{name}.{line}" for name, port in ports.items() for line in PLACE.format(port=port).splitlines()]
    for (fault, _, _), (begin, end) in zip(cases, windows(len(cases)), strict=True):
        table = {**fault, "from_s": round(begin, 3), "until_s": round(end, 3)}
        lines.append("[[faults]]")
        lines += [f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v!r}" for k, v in table.items()]
    rig_file = folder / "sent.toml"
    rig_file.write_text("\n".join(lines) + "\n")
    judge = Judge(CONFIGS / "can" / "vw_mqb.dbc", {IDLE: IDLE_VALUE})
    findings = []
    with Lockstep(rig_file, round(1e3 * (windows(len(cases))[-1][1] + 0.2)), ports) as rig:
        while rig.now < rig.ticks:
            now = rig.now * 1e-3
            for frame in rig.tick({})["car"]:
                frame.timestamp = now
                findings += [(now, *found) for found in judge.take(frame)]
    return *sort(findings, cases), judge
