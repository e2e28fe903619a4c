"""docs/monitors.md: what every drive is held to by itself, from the catalogue of the monitors."""

from __future__ import annotations

from torqueloop.hil.monitors.catalogue import CLOSED_SHARE, GEAR_S, MONITORS, PERIOD_S, SETTLE_S, Monitor

PAGE = """# Monitors

Made by `python -m torqueloop.hil.catalogue docs`; do not edit.

Every drive is judged by what the files of gearbox, car and rig say, without a line written for it: which closed
elements are which gear, what the control unit reports and requests, what it receives. Monitors are on in every run:
real and virtual clock, scenarios, studies, offline runs. The report opens with what the gearbox did in one sentence,
the gears over time, the shifts, and the monitors that failed.

    In D the car drove backwards from 2.45 s on: A+B+D are closed, which is R.

## Verdict

| state | meaning |
|---|---|
| passed | It was looked at, and its limit was kept. |
| failed | The run fails (exit status 1). |
| follows | It failed, and another failure that began before explains it; the text names it. The run fails by that. |
| waived | It failed, and the rig file says why this does not count. The report shows the reason. |
| not reached | There was nothing to look at: no signal of this kind, or no such situation in the run. |

Each monitor is a case in the suite `monitors` of `junit.xml`; follows, waived and not reached are skipped cases.

    [monitors]
    limit = {{ shift_hard = 4.0 }}                             # moved
    waive = {{ lock_up = "this car has no lock-up clutch" }}   # does not count
    reaches = "top"                                          # the whole drive comes to the highest gear

All keys: [rig_file.md](rig_file.md). `reaches` concerns the rig file's own drive to its end, not a run that is cut
short, a scenario or another driver. Limits that only the user knows are gates.

## In the tick

These are computed in the tick of a rig, every {period:g} ms; they take 269 of its 9 319 instructions at the start of a
drive and 298 of 8 889 in a shift (`python scripts/bench/step_baseline.py`). `monitor.NAME` is a signal that is 0 and
latches at 1; `monitor.gear` is the gear that is engaged (-1: reverse, 0: none). Conditions of steps, checks, faults and
tests may name them: `when = "monitor.tie_up == 1"`. The report computes them anew from the recording, by the same code.

An element is closed from {share:g} % of its largest capacity on. Closed elements are a gear of the file, too few (the
output is not driven), too many (they work against each other) or another ratio; the ideal gear train of the gearbox
file tells which. Free wheels count where they hold. A gear is engaged where |w_in - i w_out| <= 0.002 |w_in| + 0.2
rad/s for {gear:g} ms; with too few elements closed it only stays engaged. At standstill, and where a free wheel is
overrun, the closed elements tell which gear it is.
Elements have {settle:g} s after a change of the lever.

{online}
## From the recording

{recorded}
A drive with faults injected on purpose is judged like any other; a speed that a fault of the rig file
changes is not compared with the true one. In the safe state, where the rig opens the elements itself, nothing is
judged, and the report opens with the cause of the safe state. The first sentence on a run that the machine
interrupted begins with "Inconclusive" ([safe_state.md](safe_state.md)). Signals that are not recorded (`[record]
signals`) make their monitors "not reached".

## How they are tested

`python rt_tests/hil/planted.py` plants 31 defects, one after the other, in control units in C and in soft ones, and
prints which monitors fail and with which sentence; each defect fails one monitor, alone. `--clock real` does the same
in real time, and repeats a run that the machine interrupted. `torqueloop scenario --random 200 --seed 7 --rig
desk_6hp26` drives a rig at random, over hills in every second drive: no monitor may fail there.
"""


def pages() -> dict[str, str]:
    """File name -> page."""
    online = _table([m for m in MONITORS if m.online])
    recorded = _table([m for m in MONITORS if not m.online])
    text = PAGE.format(share=100 * CLOSED_SHARE, gear=1e3 * GEAR_S, period=1e3 * PERIOD_S, settle=SETTLE_S,
                       online=online, recorded=recorded)  # fmt: skip
    return {"monitors.md": text}


def _table(monitors: list[Monitor]) -> str:
    rows = ["| monitor | judged by | limit | held for | reason |", "|---|---|---|---|---|"]
    for m in monitors:
        unit = "" if m.unit == "1" else f" {m.unit}"
        hold = f"{m.hold_s:g} s" if m.hold_s else ""
        rows.append(f"| `{m.name}` | {m.value} | {m.limit:g}{unit} | {hold} | {m.reason} |")
    return "\n".join(rows) + "\n"
