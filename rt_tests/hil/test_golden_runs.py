"""What people read of a run, against a second definition computed from its recording (golden_*.py)."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from golden_faults import Faulty
from golden_metrics import TOLD, About, Golden
from golden_names import all_told
from golden_recorded import Recorded
from golden_runs import FAULTS, Run, chosen, golden_run
from golden_screens import (
    MODES,
    RECEIVED,
    console_shift_rows,
    energy_rows,
    follows,
    quality_rows,
    received_rows,
    series,
    shift_rows,
    shows,
    spans,
    strip_is_wrong,
    tiles,
)
from page_text import Page
from test_assumed_numbers import numbers_of

SECOND = (
    "golden_recorded",
    "golden_metrics",
    "golden_screens",
    "page_text",
    "golden_units",
    "golden_fields",
    "golden_told",
    "golden_faults",
)


@cache
def golden(rig: str) -> Golden:
    return (Faulty if rig == FAULTS else Golden)(Recorded.of(golden_run(rig).path))


@pytest.fixture(params=[FAULTS, *chosen()], scope="module")
def rig(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def run(rig: str) -> Run:
    return golden_run(rig)


@pytest.fixture
def g(rig: str) -> Golden:
    return golden(rig)


def test_the_second_definitions_share_no_code_with_torqueloop() -> None:
    for name in SECOND:
        tree = ast.parse(Path(__file__).with_name(f"{name}.py").read_text())
        named = [a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names]
        named += [str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert not [n for n in named if n.partition(".")[0] in ("torqueloop", "rig_help", "golden_runs")], name


def test_every_metric_has_a_second_definition_and_is_that(run: Run, g: Golden) -> None:
    metrics = json.loads((run.path / "report.json").read_text())["metrics"]
    told = all_told(g.run.stats)
    wrong = {name: (metrics.get(name), value) for name, value in told.items()
             if metrics.get(name) != value and not name.endswith("last_ok_ns")}  # fmt: skip
    assert not wrong, "metrics that are not what run.json tells"
    for name, value in metrics.items():
        is_so = g.meaning(name)
        if value is None and is_so is None:
            continue  # not measured on this clock
        if is_so is TOLD:
            assert value == told.get(name), f"{name} is in no table of run.json"
            continue
        assert is_so is not None, f"{name} = {value} has no second definition: write it in golden_metrics.py"
        is_so = is_so if isinstance(is_so, About) else About(is_so)
        assert is_so.fits(value), f"{name} = {value}, must be {is_so}"


def rows_are(found: Sequence[Sequence[str]], wanted: Sequence[Sequence[Any]], what: str) -> None:
    """A table shows these rows, in any order."""
    assert len(found) == len(wanted), (what, found, wanted)
    left = list(wanted)
    for row in found:
        fits = [w for w in left if len(w) == len(row) and all(map(shows, row, w))]
        assert fits, f"{what}: {row} is none of {left}"
        left.remove(fits[0])


# --- files ------------------------------------------------------------------------------------------------------------


def test_report_json_has_shifts_criteria_and_energy(run: Run, g: Golden) -> None:
    data = json.loads((run.path / "report.json").read_text())
    assert data["passed"] == g.passes, "the shipped rig drives as its schedule asks"
    assert data["exit_status"] == (not g.passes) and data["incomplete"] == data["rebuilt_from_recording"] == []
    assert len(data["shifts"]) == len(data["shift_quality"]) == len(g.shifts)
    for found, quality, s in zip(data["shifts"], data["shift_quality"], g.shifts, strict=True):
        assert (found["gear_from"], found["gear_to"]) == (s.old, s.new) == (quality["gear_from"], quality["gear_to"])
        values = [found[k] for k in ("begin_s", "end_s", "a_min_mps2", "a_max_mps2")]
        assert values == pytest.approx([s.begin_s, s.end_s, s.a_min, s.a_max], rel=1e-9)
        assert (quality["begin_s"], quality["end_s"]) == pytest.approx((s.command_s, s.end_s), rel=1e-12)
        for name in ("time", "fill", "flare", "tie_up", "jerk", "energy", "energy_max"):
            assert quality[name] == pytest.approx(getattr(s, name), rel=1e-6, abs=1e-9), (s, name)
        assert quality["vdv"] == pytest.approx(s.vdv, rel=0.01) and quality["comfort"] == pytest.approx(
            s.comfort, abs=0.02
        )
    for kind, terms in g.energy.items():
        found = data["energy"][f"{kind}_J"]
        assert set(found) == set(terms)
        slack = {n: abs(g.run[n][2] - g.run[n][0]) if kind == "stored" else 0.0 for n in terms}
        assert all(abs(found[n] - x) <= slack[n] + 1e-9 * abs(x) for n, x in terms.items()), (kind, found, terms)
    assert data["run"]["stats"]["hash"] == g.run.stats["hash"] and data["run"]["clock"] == "virtual"


def test_junit_has_every_gate_and_check_with_its_verdict(run: Run) -> None:
    data = json.loads((run.path / "report.json").read_text())
    suites = {s.get("name"): s for s in ElementTree.parse(run.path / "junit.xml").getroot()}
    for name, key in (("gates", "text"), ("checks", "name")):
        listed = {e[key]: e for e in data[name]}
        cases = {c.get("name"): c for c in suites[name].iter("testcase")}
        assert set(cases) == set(listed) and suites[name].get("tests") == str(len(listed))
        for text, case in cases.items():
            kinds = [child.tag for child in case]
            counts = listed[text].get("counts", True)
            assert kinds == ([] if listed[text]["passed"] else ["failure" if counts else "skipped"]), text
        for tag, attribute in (("failure", "failures"), ("skipped", "skipped")):
            assert suites[name].get(attribute) == str(len(list(suites[name].iter(tag))))
        properties = {p.get("name"): p.get("value") for p in suites[name].iter("property")}
        known = data["metrics"] | {"degraded": "; ".join(data["run"]["stats"]["degraded"]) or "no"}
        assert properties and all(str(known[k]) == v for k, v in properties.items())


#: operators of gates, for a second look at each
OPERATORS = {"==": lambda a, b: a == b, "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b,
             "<": lambda a, b: a < b, ">": lambda a, b: a > b}  # fmt: skip


def test_every_gate_is_true_of_the_metrics_it_names(run: Run) -> None:
    data = json.loads((run.path / "report.json").read_text())
    assert [g["text"] for g in data["gates"]] == list(data["run"]["gates"].values())
    for gate in data["gates"]:
        name, sign, limit = gate["text"].split()
        assert gate["passed"] == OPERATORS[sign](data["metrics"][name], float(limit)), gate
        assert gate["values"] == {name: data["metrics"][name]}
    assert data["passed"] == all(e["passed"] for e in [*data["gates"], *(c for c in data["checks"] if c["counts"])])


def test_what_the_monitors_say_is_what_was_driven(run: Run, g: Golden) -> None:
    """Of those that tell numbers of the drive."""
    texts = {c["name"]: c["text"] for c in json.loads((run.path / "report.json").read_text())["checks"]}
    if (gears := texts.get("gears as the schedule asks for")) is not None:
        assert gears.partition(";")[0] == "engaged " + " ".join(gear for gear, *_ in g.engaged)
    if (shifts := texts.get("shifts in time")) is not None and g.shifts:
        longest = max(g.shifts, key=lambda s: s.end_s - s.begin_s)
        assert shifts.startswith(f"longest {longest.old}→{longest.new}: {longest.end_s - longest.begin_s:.2f} s")
    if (acceleration := texts.get("acceleration in range")) is not None:
        peak = g.a[np.abs(g.a).argmax()]
        assert acceleration.startswith(f"peak {peak:+.2f} m/s²")


# --- page -------------------------------------------------------------------------------------------------------------


def test_tiles_of_the_page(run: Run, g: Golden) -> None:
    known = tiles(g)
    found = Page(run.html).tiles
    assert [name for name, *_ in found] == list(known)
    for name, value, unit, below in found:
        value_right, its_unit, below_right = known[name]
        value = value.strip().removesuffix(unit).strip()
        assert value_right(value) and unit == its_unit and below_right(below), (name, value, unit, below)


def test_every_table_of_the_page_has_a_second_definition_and_shows_it(run: Run, g: Golden) -> None:
    sections = Page(run.html).sections
    data = json.loads((run.path / "report.json").read_text())
    stats = data["run"]["stats"]
    buses = list(g.run.rig["bus"])
    titles = {f"CAN received on {b}" if len(buses) > 1 else "CAN received": b for b in buses}
    for title, section in sections.items():
        if title == "Shifts":
            rows_are(section.tables[0][1], shift_rows(g), title)
        elif title == "Shift quality":
            rows_are(section.tables[0][1], quality_rows(g), title)
        elif title == "Monitors":
            rows = [[m["state"], m["name"], m["value"]] for m in data["monitors"]]
            assert [r[:3] for r in section.tables[0][1]] == rows
        elif title == "Gates and checks":
            rows = [
                ["pass" if e["passed"] else "FAIL" if e.get("counts", True) else "note", e.get("text", "")]
                for e in data["gates"]
            ]
            rows += [["pass" if c["passed"] else "FAIL" if c["counts"] else "note", c["name"]] for c in data["checks"]]
            assert [r[:2] for r in section.tables[0][1]] == rows
        elif title == "Energy":
            rows_are(section.tables[0][1], energy_rows(g), title)
        elif title in titles:
            bus = titles[title]
            rows_are(section.tables[0][1], received_rows(g, bus), title)
            assert section.tables[0][0] == ["received", *RECEIVED]
            counts = {"rx_frames": g.counted(bus), "rx_bad": g.bad(bus), "tx_frames": g.counted(bus, sent=True)}
            assert all(shows(section.pairs[name], n) for name, n in counts.items()), section.pairs
            assert shows(section.pairs["tx_dropped"], 0) and shows(section.pairs["rx_ring_dropped"], 0)
            _known_messages(g, bus, section)
        elif title == "Real time":
            _real_time(section, stats["clock"], g.run.info["realtime"])
        elif title == "Vehicle link":
            vehicle = stats["vehicles"]["vehicle"]
            flat = {**vehicle, **vehicle["link"]}
            assert section.pairs and all(shows(v, flat[k]) for k, v in section.pairs.items()), section.pairs
        elif title == "Solver":
            assert section.pairs == {k: v for k, v in section.pairs.items() if shows(v, stats["solver"][k])}
            assert set(section.pairs) == set(stats["solver"])
        elif title == "Recording":
            head = section.tables[0][0][1:]
            rows_are(section.tables[0][1], [[n, *(s[k] for k in head)] for n, s in stats["recording"].items()], title)
        elif title == "Sent signals held to their limits":
            assert set(section.pairs) == set(stats["outputs_limited"])
            assert all(shows(v, stats["outputs_limited"][k]) for k, v in section.pairs.items())
        elif title == "Assumed numbers":
            said = numbers_of(run.path)
            wanted = sorted([file, name, f"{value:g}"] for file, name, value, word in said if word == "assumed")
            assert sorted(row[:3] for row in section.tables[-1][1]) == wanted
            assert f"{len(wanted)} of the {len(said)} numbers" in section.text
        elif title == "This run":
            for key in ("rig", "clock", "state", "tick_s", "powertrain", "duration_s"):
                assert shows(section.pairs[key], g.run.info[key]), key
        elif title == "All metrics":
            rows_are(section.tables[0][1], [[k, v] for k, v in sorted(data["metrics"].items()) if v is not None], title)
        elif title.lower() in stats["participants"]:
            told = stats["participants"][title.lower()]["reported"]
            assert all(shows(section.pairs[f"reported.{k}"], v) for k, v in told.items() if isinstance(v, (int, str)))
        else:
            assert title in ("", "Element states", "Element torques", "Pressures", *g.own_sections), (
                f"section {title!r} has no second definition"
            )


def _known_messages(g: Golden, bus: str, section: Any) -> None:
    """How each message is known: a row for each of the interface file."""
    rows = stats_known(g, bus)
    assert [r[0] for r in section.tables[1][1]] == list(rows) if rows else len(section.tables) == 1


def stats_known(g: Golden, bus: str) -> dict[str, Any]:
    return dict(g.run.stats["buses"][bus]["known"])


def _real_time(section: Any, clock: dict[str, Any], measures: list[dict[str, Any]]) -> None:
    """Percentiles, phases with their shares, worst ticks, real-time measures."""
    names = {"p99.9": "p999", "p99.99": "p9999", "p0.1": "p0_1"}
    total = sum(p["mean"] for p in clock["phase_us"].values())
    for head, rows in section.tables:
        if head[0] == "µs":
            wanted = [["compute time", *(clock["compute_us"][names.get(h, h)] for h in head[1:])]]
        elif head[0] == "phase µs":
            wanted = [[name, *(p[names.get(h, h)] for h in head[1:-1])] for name, p in clock["phase_us"].items()]
            shares = [float(row.pop().removesuffix(" %")) for row in rows]
            assert shares == pytest.approx([100 * p["mean"] / total for p in clock["phase_us"].values()], abs=0.06)
        elif head[0] == "of":
            wanted = [[m["of"], m["name"], m["wanted"], m["ok"], m["in_force"], m["remedy"]] for m in measures]
        else:
            words = {"minor faults": "minor_faults", "major faults": "major_faults", "sleeps": "voluntary_switches",
                     "taken off": "involuntary_switches"}  # fmt: skip
            wanted = [[str(w["tick"]), w["lateness_us"], w["compute_us"], w["margin_us"],
                       *(w["phase_us"][p] for p in clock["phase_us"]), *(w[k] for k in words.values())]
                      for w in clock["worst"]["by_compute"]]  # fmt: skip
            assert head[4:] == [*clock["phase_us"], *words]
        rows_are(rows, wanted, head[0])
    shown = {"ticks": "ticks", "missed": "missed", "overruns": "overruns", "lost s": "lost_time_s", "policy": "policy"}
    assert all(shows(section.pairs[k], clock[name]) for k, name in shown.items())


# --- console ----------------------------------------------------------------------------------------------------------


def blocks(console: str) -> dict[str, list[list[str]]]:
    """Title -> rows of cells of each table on the console; a cell ends where two blanks stand."""
    found: dict[str, list[list[str]]] = {}
    for block in re.split(r"\n\s*\n", console):
        lines = [line.strip() for line in block.splitlines() if line.strip()]
        if lines:
            found[lines[0]] = [re.split(r"\s{2,}", line) for line in lines[1:]]
    return found


def test_the_console_shows_head_shifts_buses_energy_and_judgement(run: Run, g: Golden) -> None:
    found = blocks(run.console)
    data = json.loads((run.path / "report.json").read_text())
    first, rest = next(iter(found.items()))
    head = f"{first} {' '.join(' '.join(r) for r in rest)}"
    verdict = "PASSED" if data["passed"] else "FAILED"
    assert head.startswith(verdict) and g.run.info["rig"] in head and "virtual clock" in head
    assert f"{len(g.t) * g.run.tick_s:.3f} s" in head and g.run.stats["hash"] in head
    assert f"{len(g.t):,} ticks".replace(",", " ") in head
    if g.shifts:
        rows_are(found["shifts"][1:], console_shift_rows(g), "shifts")
    _gears_on_the_console(run, g, data)
    buses = list(g.run.rig["bus"])
    for bus in buses:
        title = f"CAN received on {bus}" if len(buses) > 1 else "CAN received"
        messages = received_rows(g, bus)
        rows_are(found[title][1 : 1 + len(messages)], messages, title)
        counts = dict(re.findall(r"(\w+) (\d[\d ]*\d|\d)", "  ".join(found[title][-1])))
        assert shows(counts["rx_frames"], g.counted(bus)) and shows(counts["tx_frames"], g.counted(bus, sent=True))
    columns = {"supplied": 1, "lost": 2, "stored": 3}
    for name, kind, kilojoules, share in energy_rows(g):
        if share.value and abs(share.value) > 2e-4:
            line = next(line for line in run.console.splitlines() if line.strip().startswith(f"{name} "))
            heading = next(line for line in run.console.splitlines() if line.strip().startswith("kJ "))
            cell = re.search(r"-?\d+\.\d{3}", line)
            assert cell is not None and shows(cell[0], kilojoules), (line, kilojoules)
            # a number stands right aligned below its heading
            assert cell.end() == heading.index(kind) + len(kind), (line, kind, columns)
    marks = [(m[1], m[2]) for m in re.finditer(r"^\s*(pass|FAIL|note)  (.+)$", run.console, re.M)]
    told = [*({**m, "passed": False} for m in data["monitors"] if m["state"] == "failed"), *data["gates"]]
    told += [c for c in data["checks"] if not c["passed"]]
    wanted = [(_mark(e), e.get("name") or e["text"]) for e in told]
    passed = sum(c["passed"] for c in data["checks"])
    assert f"{passed} of {len(data['checks'])} checks of every run passed" in run.console
    assert len(marks) == len(wanted)
    left = sorted(wanted)
    assert all(mark == m and text.startswith(t) for (mark, text), (m, t) in zip(sorted(marks), left, strict=True))


def _gears_on_the_console(run: Run, g: Golden, data: dict[str, Any]) -> None:
    """The sentence, the strip of gears, and how many monitors passed."""
    assert data["summary"] and data["summary"] in re.sub(r"\s+", " ", run.console)
    rows = dict(re.findall(r"^(asked|reported|engaged) +(\S{64})$", run.console, re.M))
    assert "engaged" in rows and not strip_is_wrong(g, rows, g.run.ratios)
    assert "".join(dict.fromkeys(c for c in rows["engaged"] if c.isdigit())), "a gear was engaged"
    states = [m["state"] for m in data["monitors"]]
    assert f"{states.count('passed')} of {len(states)} monitors passed" in run.console


def _mark(entry: dict[str, Any]) -> str:
    return "pass" if entry["passed"] else "FAIL" if entry.get("counts", True) else "note"


# --- figures ----------------------------------------------------------------------------------------------------------

#: figures of the loop's time, with their own test; that of the first fault has one in test_golden_faults.py
OF_THE_LOOP = ("compute_us", "exceedance", "worst")


def test_every_drawn_series_has_a_second_definition_and_is_that(run: Run, g: Golden) -> None:
    drawn = list(run.drawn.figures)
    assert {"drive", "states", "torques", "pressures", "energy", "link"} <= set(drawn)
    assert len([n for n in drawn if n == "zoom" or n.startswith("shift")]) == len(g.shifts)
    seen = 0
    for name in drawn:
        for line in run.drawn.lines(name) if name not in (*OF_THE_LOOP, "first_fault") else ():
            is_so = series(g, line)
            assert is_so is not None, f"{name}: line {line.label!r} over {line.unit!r} has no second definition"
            why = follows(is_so, line)
            assert not why, f"{name}: {line.label!r} over {line.unit!r}: {why}"
            seen += 1
    assert seen > 20


def test_any_recorded_signal_is_in_the_page_to_a_millionth_of_its_range(run: Run, g: Golden) -> None:
    names = [name for name, *_ in run.drawn.blocks[0]["columns"]]
    assert set(run.report.run.signals.names) < set(names)
    for name in names[1:40]:
        if name in g.run:
            y, exact = run.drawn.by_name(name)
            spread = float(np.ptp(g.run[name]))
            assert exact <= 1e-6 * spread or (g.run[name] == np.rint(g.run[name])).all()
            assert np.abs(y - g.run[name]).max() <= exact + 1e-12 * np.abs(g.run[name]).max(), name


def test_the_shaded_gears_and_the_element_states_are_those_of_the_recording(run: Run, g: Golden) -> None:
    drawn = spans(run, "states")
    assert set(run.drawn.figures["states"]["colours"].values()) == set(MODES.values()), "every mode is named"
    assert list(drawn) == g.elements
    for element, by_mode in drawn.items():
        mode = np.rint(g.run[f"{element}.mode"])
        for value, stretches_ in by_mode.items():
            inside = np.zeros(len(g.t), bool)
            for begin, end in stretches_:
                inside |= (g.t >= begin - 1e-7) & (g.t < end - 1e-7)
            # the last sample begins no stretch
            assert (inside[:-1] == (mode[:-1] == value)).all(), (element, value)
    # shaded: gears that are engaged
    assert [(a, b) for a, b, _ in run.drawn.gears] == [pytest.approx((a, b)) for _, a, b in g.engaged]
    assert [name for *_, name in run.drawn.gears] == [gear for gear, *_ in g.engaged]
    assert run.drawn.figures["drive"]["gears"] and run.drawn.figures["torques"]["gears"]


def test_the_figure_of_a_shift_shows_all_of_it(run: Run, g: Golden) -> None:
    windows = [(f["begin"], f["end"]) for n, f in run.drawn.figures.items() if n == "zoom" or n.startswith("shift")]
    for s in g.shifts:
        assert [w for w in windows if w[0] <= s.begin_s < s.end_s <= w[1] <= g.t[-1] + 0.01], (s.old, s.new, windows)


def test_the_strip_of_gears_on_the_page_is_that_of_the_recording_and_of_the_console(run: Run, g: Golden) -> None:
    rows = dict(run.drawn.rows("gears"))
    shifts = [(pytest.approx(s.begin_s), pytest.approx(s.end_s), f"{s.old}→{s.new}") for s in g.shifts]
    assert [(begin, end, text) for begin, end, _, text in rows.pop("shifts")] == shifts
    rows.pop("marks", None)
    console = dict(re.findall(r"^(asked|reported|engaged) +(\S{64})$", run.console, re.M))
    assert set(rows) == set(console)
    for name, row in rows.items():
        middles = [(k + 0.5) / 64 * g.t[-1] for k in range(64)]
        cells = "".join(next((text[0] for a, b, _, text in row if a <= t <= b), "·") for t in middles)
        assert not strip_is_wrong(g, {name: cells}, g.run.ratios), name
        assert sum(x != y for x, y in zip(cells, console[name], strict=True)) <= 2, (name, cells, console[name])


def test_the_bars_of_the_energy_are_what_came_in_and_where_it_went(run: Run, g: Golden) -> None:
    rows = run.drawn.rows("energy")
    signs = {"supplied": 1.0, "lost": -1.0, "stored": -1.0}
    terms = {n: signs[kind] * x for kind, found in g.energy.items() for n, x in found.items()}
    assert [name for name, _ in rows] == ["came from", "went to"] and run.drawn.figures["energy"]["x"] == "kJ"
    for (_, row), sign in zip(rows, (1.0, -1.0), strict=True):
        widths = [end - begin for begin, end, *_ in row]
        wanted = sorted((sign * x / 1e3 for x in terms.values() if sign * x > 0), reverse=True)
        assert widths == pytest.approx(wanted, rel=1e-3, abs=g.turned_over * 1e-8)
        assert [end for _, end, *_ in row[:-1]] == pytest.approx([begin for begin, *_ in row[1:]]), "side by side"
        for *_, text in row:
            name, value, unit = text.split(" ")
            assert unit == "kJ" and shows(value, About(abs(terms[name]) / 1e3, 1e-3)), text
    for side, sign in (("came from", 1.0), ("went to", -1.0)):
        all_of = {name: sign * x for name, x in terms.items() if sign * x > 0}
        small = {name: x for name, x in all_of.items() if 2e-5 < x / sum(all_of.values()) <= 0.05}
        wanted = sorted(small, key=lambda name: all_of[name], reverse=True)[:9]
        told = re.findall(rf'<p class="small">{side}, small ones \[kJ\]: (.+?)</p>', run.html)
        found = [word.split(" ") for text in told for word in text.split(", ")]
        assert [name for name, _ in found] == wanted
        assert all(shows(value, About(small[name] / 1e3, 0.05)) for name, value in found)


def test_the_figures_of_the_loop_show_its_histogram(run: Run, g: Golden) -> None:
    drawn, compute = run.drawn, g.run.stats["clock"]["compute_us"]
    (bars,) = drawn.lines("compute_us")
    right = drawn.figures["compute_us"]["panels"][0]["lines"][0]["right"]
    assert drawn.figures["compute_us"]["log"] and bars.style == "bars"
    assert bars.y.sum() == compute["count"] == len(g.t)
    most = max(edge for edge, _ in compute["hist"])
    assert max(bars.x) <= most <= max(right) * 1.001
    marks = [(m["text"].split(" ")[0], m["x"]) for m in drawn.figures["compute_us"]["marks"]]
    assert marks[:4] == [(name, compute[name.replace(".", "")]) for name in ("p50", "p99", "p99.9", "max")]
    step = next(drawn.lines("exceedance"))
    share = np.cumsum([n for _, n in compute["hist"]][::-1])[::-1] / compute["count"]
    assert step.style == "step" and step.y[-len(share) :] == pytest.approx(share[-len(step.y) :])
    rows = drawn.rows("worst")
    worst = g.run.stats["clock"]["worst"]["by_compute"][: len(rows)]
    assert [name for name, _ in rows] == [str(w["tick"]) for w in worst]
    assert [row[-1][1] for _, row in rows] == pytest.approx([sum(w["phase_us"].values()) for w in worst])
