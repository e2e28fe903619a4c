"""The animation of a run: what the file holds, what it needs of a run, and in a real browser without a network."""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.util
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import wait_for

import torqueloop as tl
from torqueloop.core.analyse.chain_section import behind, chain, chain_section
from torqueloop.core.analyse.gear_section import Coupling
from torqueloop.core.analyse.shaft_motion import integral, motion
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.animate import animate as animation
from torqueloop.hil.animate.content import LOCKED, OPEN, SLIPPING, _colours, content, states
from torqueloop.hil.animate.page import page
from torqueloop.hil.animate.stage import Stage, stage
from torqueloop.hil.runs.recorded_run import RecordedRun
from torqueloop.hil.views import LICENCES, PAGE

CONFIGS = Path(tl.__file__).parent / "configs"
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
#: drawn by the processor where there is no graphics card
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RecordedRun:
    return tl.run("desk_4hp22", duration=9.0, out=tmp_path_factory.mktemp("animate") / "run", gates="missed == 0")


@pytest.fixture(scope="module")
def drawn(run: RecordedRun) -> Path:
    return animation.animate(run, run.path / "animation.html")


@pytest.fixture(scope="module")
def made(run: RecordedRun) -> Stage:
    return stage(animation.driveline_of(run))


def inside(file: Path) -> dict[str, Any]:
    text = file.read_text(encoding="utf-8")
    return dict(json.loads(text.partition('id="content">')[2].partition("</script>")[0]))


def floats(text: str, kind: str = "<f4") -> np.ndarray[Any, Any]:
    return np.frombuffer(base64.b64decode(text), kind).astype(float)


@pytest.mark.proof
def test_teeth_pass_alike_on_both_sides_of_every_planet(drawn: Path) -> None:
    """From the angles and speeds in the file: sun and planet, planet and ring, at any sample of the run."""
    made = inside(drawn)
    tau = 2 * np.pi
    for found in made["sets"]:
        wheels = {w["name"]: w for w in found["wheels"]}
        sun, planet, ring = wheels["sun"], wheels["planet"], wheels["ring"]
        track = [made["tracks"][k] for k in (sun["track"], planet["track"], ring["track"], found["carrier"]["track"])]
        s, p, r, c = (floats(x["angle"]) for x in track)
        ws, wp, wr, wc = (floats(x["speed"]) for x in track)
        top = np.abs(ws).max() * sun["teeth"]
        assert np.abs(sun["teeth"] * (ws - wc) + planet["teeth"] * (wp - wc)).max() < 1e-5 * top
        assert np.abs(planet["teeth"] * (wp - wc) - ring["teeth"] * (wr - wc)).max() < 1e-5 * top
        # in pitches; the carrier's whole turns carry whole numbers of teeth only for all wheels together
        for offset in (
            sun["teeth"] * (s - c) + planet["teeth"] * (p - c),
            planet["teeth"] * (p - c) - ring["teeth"] * (r - c),
        ):
            pitches = offset / tau
            assert np.abs(pitches - np.round(pitches)).max() < 1e-3, found["name"]


def test_sets_stand_beside_each_other_on_the_page(drawn: Path) -> None:
    """Rows of wheels are equally wide, and none reaches into the set behind it."""
    sets = sorted(inside(drawn)["sets"], key=lambda found: found["x"])
    assert len(sets) > 2 and {found["width"] for found in sets} == {sets[0]["width"]} and sets[0]["width"] > 0
    for one, behind_it in zip(sets, sets[1:], strict=False):
        assert one["x"] + one["rows"] * one["width"] <= behind_it["x"]


def test_between_samples_the_page_stays_on_the_recorded_angles(run: RecordedRun, drawn: Path) -> None:
    """The cubic through angles and speeds, as data.js has it, against all ticks of the recording."""
    made = inside(drawn)
    t = floats(made["t"], "<f8")
    x = next(k for k in made["tracks"] if k["name"] == "S12")
    angle, speed = floats(x["angle"]), floats(x["speed"])
    tick = run.t[(run.t >= t[0]) & (run.t < t[-1])]
    k = np.searchsorted(t, tick, "right") - 1
    h = t[k + 1] - t[k]
    s, v0, v1 = (tick - t[k]) / h, speed[k] * h, speed[k + 1] * h
    rest = angle[k + 1] - angle[k] - 0.5 * (v0 + v1)
    d = 0.5 * (v0 + v1) + rest - 2 * np.pi * np.round(rest / (2 * np.pi))
    found = angle[k] + s * (v0 + s * (3 * d - 2 * v0 - v1 + s * (v0 + v1 - 2 * d)))
    true = run["S12.phi"][: len(tick)] - run["S12.phi"][0]
    off = (found - true + np.pi) % (2 * np.pi) - np.pi
    assert np.abs(off).max() < np.radians(0.5)


def test_states_are_those_of_the_modes(run: RecordedRun, drawn: Path) -> None:
    made = {s["name"]: s for s in inside(drawn)["states"]}
    for name in ("C4", "C7", "C12", "F14", "F15"):
        at, state = floats(made[name]["t"], "<f8"), floats(made[name]["state"], "i1")
        shown = state[np.searchsorted(at, run.t, "right") - 1]
        assert np.array_equal(shown == LOCKED, run[f"{name}.mode"] == 0)
        slips = (np.abs(run[f"{name}.mode"]) == 1) & (np.abs(run[f"{name}.tau"]) > 1e-9)
        assert np.array_equal(shown == SLIPPING, slips)
    t, found = states(np.arange(4.0), np.array([2.0, 1.0, 1.0, 0.0]), np.array([0.0, 0.0, 3.0, 5.0]))
    assert list(t) == [0.0, 2.0, 3.0] and list(found) == [OPEN, SLIPPING, LOCKED]


def test_a_stretch_has_the_gears_shifts_and_curves_of_its_own_time(run: RecordedRun, tmp_path: Path) -> None:
    """From 3 to 7 s: gears by the ratio of the speeds, the shift between them, the curves in the units of the page."""
    made = inside(animation.animate(run, tmp_path / "part.html", from_s=3.0, until_s=7.0))
    assert made["subtitle"].endswith(" · 3.000 to 7.000 s")
    first, second = made["gears"]
    assert (first[2], second[2]) == ("1", "2") and first[0] < 3.0 and second[1] > 7.0
    ratio = run["turbine.w"] / np.maximum(run["out.w"], 1e-3)
    off = [abs(ratio / exact - 1.0) for exact in (181 / 73, 108 / 73)]
    at = [np.searchsorted(run.t, x) for x in (first[1], second[0])]
    assert 3.0 < first[1] < second[0] < 7.0 and off[0][at[0]] < 0.01 and off[1][at[1]] < 0.01
    assert off[0][at[0] + 100] > 0.02 and off[1][at[1] - 100] > 0.02
    assert made["shifts"] == [["1→2", first[1], second[0]]]
    plots = {p["title"]: p for p in made["plots"]}
    for title, unit, suffix, factor in (
        ("Speeds", "1/min", "w", 30.0 / np.pi), ("Torques of elements", "Nm", "tau", 1.0),
        ("Pressures", "bar", "p", 1e-5), ("Acceleration of the car", "m/s²", "a", 1.0),
    ):  # fmt: skip
        plot = plots[title]
        t = floats(plot["t"], "<f8")
        assert plot["unit"] == unit and (t[0], t[-1]) == pytest.approx((3.0, 7.0), abs=0.02)
        for line in plot["lines"]:
            values = np.interp(t, run.t, run[f"{line['name']}.{suffix}"]) * factor
            assert floats(line["values"]) == pytest.approx(values, rel=1e-5, abs=1e-6), line["name"]
    assert [line["name"] for line in plots["Speeds"]["lines"]] == ["engine", "turbine", "out"]


class Fewer(Mapping[str, Any]):
    """Some of the signals of a run."""

    def __init__(self, run: RecordedRun, *names: str) -> None:
        self.run, self.names = run, names

    def __getitem__(self, name: str) -> Any:
        return self.run[name]

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Any:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


@pytest.mark.proof
def test_too_few_signals_name_the_key_and_what_to_record(run: RecordedRun, made: Stage) -> None:
    with pytest.raises(ConfigError, match="too few signals were recorded") as error:
        motion(made.parts, made.topology, made.shafts, run.t, Fewer(run, "engine.w", "S3.w", "X.phi"), 4)
    told = str(error.value)
    assert "record" in told and "signals" in told and "S12.phi" in told and "in" in told
    more = ("in.phi", "S12.phi")
    found = motion(made.parts, made.topology, made.shafts, run.t, Fewer(run, "engine.w", "S3.w", "X.phi", *more), 4)
    assert set(found.integrated) == {"engine.w", "S3.w"}
    full = motion(made.parts, made.topology, made.shafts, run.t, run.signals, 4)
    assert full.integrated == ()
    for shaft in made.shafts:
        scale = np.ptp(full.angle[shaft]) + 1.0
        assert np.abs(found.angle[shaft] - full.angle[shaft]).max() < 2e-5 * scale, shaft


def test_the_integral_is_of_order_four() -> None:
    off = []
    for n in (100, 200):
        t = np.linspace(0.0, 2.0, n + 1)
        off.append(abs(integral(t, np.cos(3 * t))[n // 2] - np.sin(3.0) / 3))
    assert off[0] / off[1] > 12 and off[0] < 1e-7


def test_attitude_from_rates_is_that_of_a_steady_turn_and_of_a_cone() -> None:
    """About one axis; and rates that go round with t, whose attitude is the product of two steady turns."""
    t = np.linspace(0.0, 3.0, 3001)
    q = animation.turned(t, np.tile([0.0, 0.7, 0.0], (len(t), 1)))
    assert q[-1] == pytest.approx([np.cos(1.05), 0.0, np.sin(1.05), 0.0], abs=1e-12)
    # R(t) = Rz(a t) Rx(b t): along the axes of the body w = (b, a sin(b t), a cos(b t))
    a, b = 0.9, 1.7
    q = animation.turned(t, np.stack([np.full_like(t, b), a * np.sin(b * t), a * np.cos(b * t)], 1))
    z, x = a * t[-1] / 2, b * t[-1] / 2
    wanted = [np.cos(z) * np.cos(x), np.cos(z) * np.sin(x), np.sin(z) * np.sin(x), np.sin(z) * np.cos(x)]
    assert q[-1] == pytest.approx(wanted, abs=1e-10)


@pytest.mark.proof
def test_a_body_on_mounts_rolls_in_the_picture(tmp_path: Path) -> None:
    """The block of the 528i: its quaternion, its mounts, a factor that makes the roll of a degree visible."""
    script = Path(__file__).resolve().parents[2] / "examples" / "figures" / "mounted_4hp22.py"
    if not script.is_file():
        pytest.skip("examples are in the repository only")
    spec = importlib.util.spec_from_file_location("mounted_4hp22", script)
    assert spec is not None and spec.loader is not None
    mounted = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mounted)
    line = mounted.car(True)
    result = tl.Simulation(line).run(1.5, inputs=mounted.inputs())
    made = inside(tl.animate(result, tmp_path / "a.html", line))
    assert [m[0] for m in made["body"]["mounts"]] == ["left", "right", "rear"]
    q = floats(made["body"]["q"]).reshape(-1, 4)
    roll = 2 * np.arctan2(result["block.q1"], result["block.q0"])
    assert np.degrees(np.ptp(roll)) > 0.3
    assert 2 * np.arctan2(q[-1, 1], q[-1, 0]) == pytest.approx(roll[-1], abs=1e-3)
    drawn = made["body"]["factor"] * np.ptp(roll)
    assert np.radians(4.0) < drawn < np.radians(20.0)
    assert any(f"{made['body']['factor']:g} times as large" in note for note in made["notes"])
    assert made["gears"][-1][2] == "1"


def test_the_page_carries_the_licences_of_the_libraries_inside() -> None:
    """The MIT licence asks for its notice in every copy, with the name of the holder, for both libraries."""
    text = html.unescape(page({"title": "t", "subtitle": "s"}))
    for library, holder in (("three.js", "three.js authors"), ("uPlot", "Leon Sorokin")):
        assert re.search(rf"<h2>{library}</h2>\s*<pre>[^<]*Copyright[^<]*{holder}[^<]*The above copyright notice", text)


def test_joints_are_drawn_with_their_forks_in_line(tmp_path: Path) -> None:
    """Propeller shaft: two crosses, bends and planes of the model; both forks of the tube are rigid to it."""
    line = tl.load(CONFIGS / "examples" / "propeller_shaft.toml")
    result = tl.Simulation(line).run(0.05, inputs={"gearbox.tau": 300.0})
    made = inside(tl.animate(result, tmp_path / "a.html", line))
    shaft, drive = sorted(made["couplings"], key=lambda c: c["x"])
    assert (shaft["name"], shaft["kind"], drive["name"]) == ("shaft", "joint", "drive") and drive["joint"] is None
    joint = shaft["joint"]
    assert joint["joints"] == 2 and [end["hooke"] for end in joint["ends"]] == [1, 1]
    assert [end["bend"] for end in joint["ends"]] == pytest.approx([np.arctan2(157, 1500)] * 2, rel=1e-9)
    names = [track["name"] for track in made["tracks"]]
    assert (names[shaft["outer"]], names[shaft["inner"]]) == ("output", "axle")
    # y = x + atan((1 - cos b) sin x cos x / (cos b cos^2 x + sin^2 x), as the page takes it, from either end
    from_end = []
    for end in joint["ends"]:
        x, b = end["fork"], end["bend"]
        size = np.cos(b) * np.cos(x) ** 2 + np.sin(x) ** 2
        from_end.append(x + np.arctan2((1 - np.cos(b)) * np.sin(x) * np.cos(x), size))
    apart = from_end[0] - (joint["planes"] + from_end[1])
    assert apart / np.pi == pytest.approx(round(apart / np.pi), abs=1e-9), "forks in line"


@pytest.mark.proof
def test_joints_behind_a_gearbox_are_drawn_behind_its_housing() -> None:
    line = tl.load(CONFIGS / "powertrains" / "car_4hp22_axle_rig.toml")
    plain = stage(tl.load(CONFIGS / "powertrains" / "car_4hp22_rig.toml")).section
    found = stage(line)
    section = found.section
    assert section.inside == plain.length == plain.inside < section.length and section.couplings[:-1] == plain.couplings
    shaft = section.couplings[-1]
    assert (shaft.name, shaft.kind, shaft.outer) == ("propeller", "joint", "out") and shaft.x > section.inside
    assert set(found.joints) == {"propeller"} and {"out", shaft.inner} <= set(found.shafts)
    # the output leaves the housing in one piece
    out = next(s for s in section.shafts if s.name == "out")
    assert any(a <= section.inside and b == pytest.approx(shaft.x) for _, a, b in out.tubes)
    line_on = [Coupling("a", "joint", "y", "x"), Coupling("b", "joint", "y", "z"), Coupling("c", "spring", "z", "w")]
    on = behind(line_on, "x")
    assert [(c.name, turned) for c, turned in on] == [("a", True), ("b", False)]
    assert behind([Coupling("a", "joint", "x", "y"), Coupling("b", "joint", "x", "z")], "x") == [], "a branch"


def test_lines_are_drawn_in_the_order_they_are_joined_in() -> None:
    joined = [Coupling("c", "spring", "w", "z"), Coupling("a", "joint", "x", "y"), Coupling("b", "gear", "w", "y")]
    line = chain(joined, ["x", "y", "w", "z"])
    assert line is not None and [(c.name, turned) for c, turned in line] == [("a", False), ("b", True), ("c", False)]
    drawn = chain_section(line, {"a": 2})
    assert [(c.outer, c.inner) for c in drawn.couplings] == [("x", "y"), ("y", "w"), ("w", "z")]
    assert {s.name for s in drawn.shafts} == set("xywz") and drawn.couplings[0].width > drawn.couplings[2].width
    assert chain([*joined, Coupling("d", "spring", "y", "z")], ["x", "y", "w", "z"]) is None, "branches"
    assert chain([*joined, Coupling("d", "brake", "z", None)], ["x", "y", "w", "z"]) is None, "the housing"


@pytest.mark.proof
def test_display_refines_what_is_drawn(tmp_path: Path) -> None:
    """Order of the sets, colours, planets; mistakes with file, table, key; nothing that is computed changes."""
    file = tmp_path / "box.toml"
    text = """
include = ["zf_4hp22"]
[display]
order = ["P3", "P1"]
colours = { out = "#123456" }
planets = { P1 = 2 }
"""
    file.write_text(text)
    plain, line = tl.load(CONFIGS / "gearboxes" / "zf_4hp22.toml"), tl.load(file)
    before, after = stage(plain), stage(line)
    assert [s.wheels.name for s in before.section.sets] == ["P1", "P2", "P3"]
    assert [s.wheels.name for s in after.section.sets] == ["P3", "P1", "P2"]
    count = {s.wheels.name: len(s.wheels.wheel("planet").places) for s in after.section.sets}
    assert count["P1"] == 2 and count["P2"] == len(before.section.sets[1].wheels.wheel("planet").places)
    assert _colours(after)["out"] == "#123456" != _colours(before)["out"]
    assert line != plain and line.connections == plain.connections
    for old, new, words in (
        ('["P3", "P1"]', '["P3", "C4"]', ["display", "order", "'C4'", "no gear set"]),
        ('["P3", "P1"]', '["P3", "P9"]', ["box.toml", "display", "order", "P9"]),
        ("#123456", "blue", ["box.toml", "display", "colours.out", "#rrggbb"]),
        ("P1 = 2", "P1 = 0", ["box.toml", "display", "planets.P1", "1 .. 12"]),
        ("P1 = 2", "P1 = 12", ["display.planets", "P1", "as many as fit"]),
        ("colours", "colors", ["box.toml", "display", "colors"]),
    ):
        file.write_text(text.replace(old, new))
        with pytest.raises(ConfigError) as error:
            stage(tl.load(file))
        assert all(word in str(error.value) for word in words), str(error.value)


def test_text_of_a_run_stays_text(run: RecordedRun, made: Stage) -> None:
    signals = animation._signals(run, 1.0, 2.0)
    moved = motion(made.parts, made.topology, made.shafts, signals.t, signals, 4)
    recorded = animation._recorded(run, made, moved, signals, 4)
    evil = "</script><script>alert(1)</script>"
    text = page(content(made, moved, replace(recorded, title=evil, subtitle=evil, notes=[evil])))
    assert text.count("<script>") == 8 and evil not in text and "alert(1)</script>" not in text.replace("\\u003c", "")
    assert text.count("&lt;/script&gt;") >= 2


def test_what_is_shipped_of_three_js_is_what_was_built() -> None:
    """examples/figures/three_bundle writes both; the licence goes along."""
    digest = hashlib.sha256((PAGE / "libraries/three.min.js").read_bytes()).hexdigest()
    assert digest == "8758178b5c213b0f081380bff4f726ebd994ceb76fbb5d5b136bd838cfb24348"
    assert "three.js authors" in LICENCES["three.js"].read_text(encoding="utf-8")


@pytest.mark.proof
@pytest.mark.parametrize("name", ["car_6hp26_rig", "car_zf_8hp45_rig"])
def test_a_simulation_of_other_gearboxes_is_drawn(name: str, tmp_path: Path) -> None:
    line = tl.load(name)
    result = tl.Simulation(line).run(0.3)
    made = inside(tl.animate(result, tmp_path / "a.html", line))
    assert len(made["sets"]) == (3 if "6hp26" in name else 4)
    assert {c["name"] for c in made["couplings"]} == set("ABCDE")
    assert all(w["track"] >= 0 or w["shaft"] == "housing" for s in made["sets"] for w in s["wheels"])
    with pytest.raises(ConfigError, match="does not contain its driveline"):
        tl.animate(result, tmp_path / "b.html")
    with pytest.raises(ConfigError, match="fewer than two samples"):
        tl.animate(result, tmp_path / "b.html", line, from_s=5.0)


@pytest.mark.parametrize(("dt_s", "span_s", "every"), [
    # 15 000 samples, at most 250 and at least 60 a second
    (1e-3, 1.0, 4), (1e-3, 60.0, 4), (1e-3, 120.0, 8), (1e-3, 250.0, 16), (1e-3, 600.0, 16), (5e-3, 10.0, 1),
    (5e-3, 250.0, 3), (0.1, 10.0, 1), (2.5e-4, 30.0, 16),
    # ten steps of 1.05 ms are 952 a second
    (1.05e-3, 0.0105, 3),
])  # fmt: skip
def test_as_many_samples_are_drawn_as_a_page_holds(dt_s: float, span_s: float, every: int) -> None:
    t = 300.0 + np.arange(round(span_s / dt_s) + 1) * dt_s
    assert animation._every(t) == every


def test_what_a_result_has_is_said_where_nothing_of_it_is_asked_for(tmp_path: Path) -> None:
    line = tl.load("car_6hp26_rig")
    result = tl.Simulation(line).run(0.3)
    for from_s, until_s in ((5.0, None), (0.1004, 0.1006), (None, 0.0002)):
        with pytest.raises(ConfigError, match="fewer than two samples to show") as refused:
            tl.animate(result, tmp_path / "b.html", line, from_s=from_s, until_s=until_s)
        assert refused.value.allowed == f"recorded is {min(result.time):g} .. {max(result.time):g} s"
    with pytest.raises(ConfigError) as refused:
        tl.animate(result, tmp_path / "b.html", line, from_s=0.2, until_s=0.1)
    assert (refused.value.value, refused.value.allowed) == (0.1, "> from = 0.2 s")


def until(tab: Any, condition: str) -> None:
    """The page's own policy lets nobody evaluate text in it, so playwright's wait_for_function does not."""
    wait_for(lambda: tab.evaluate(condition))


@pytest.mark.proof
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium")
def test_in_a_browser_without_a_network(run: RecordedRun, drawn: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        tab = browser.new_page(viewport={"width": 700, "height": 560})
        said: list[str] = []
        asked: list[str] = []
        tab.on("console", lambda m: said.append(m.text) if m.type in ("error", "warning") else None)
        tab.on("pageerror", lambda e: said.append(str(e)))
        tab.on("request", lambda r: asked.append(r.url))
        tab.goto(drawn.as_uri(), timeout=300e3)  # drawn by the processor, beside other tests
        until(tab, "animation.frames > 0")
        assert not tab.locator("#sorry").is_visible(), "WebGL"
        tab.evaluate("animation.seek(8.5)")
        until(tab, "Math.abs(Number(document.getElementById('time').value) - 8.5) < 1e-9")
        # in second gear: C4, C7 and C11 or its free wheel hold
        shown = {x.inner_text(): x.get_attribute("class") for x in tab.locator("#elements li").all()}
        k = int(np.searchsorted(run.t, 8.5))
        assert all((shown[n] == "locked") == (run[f"{n}.mode"][k] == 0) for n in ("C4", "C5", "C7", "C11", "C12"))
        assert tab.locator("#gear").inner_text() == "2"
        wanted = (run["X.phi"][k] - run["X.phi"][0]) % (2 * np.pi)
        track = [x["name"] for x in inside(drawn)["tracks"]].index("X")
        turned = tab.evaluate(f"run.angle({track}, {float(run.t[k])!r}) % (2 * Math.PI)")
        assert abs((turned - wanted + np.pi) % (2 * np.pi) - np.pi) < 1e-3
        pixels = "scene.turning.filter(x => !x.planet).map(x => x.group.rotation.x)"
        before = tab.evaluate(pixels)
        tab.locator("#view").focus()
        tab.keyboard.press(" ")
        until(tab, "animation.time > 8.5")
        tab.keyboard.press(" ")
        assert tab.evaluate(pixels) != before and tab.locator("#play").get_attribute("aria-label") == "play"
        at = tab.evaluate("animation.time")
        tab.keyboard.press("ArrowRight")
        assert tab.evaluate("animation.time") > at
        # every field has a name; nothing is wider than a phone
        assert tab.evaluate(
            "[...document.querySelectorAll('input,select,button')].every(e => e.ariaLabel || e.labels?.length"
            " || e.textContent.trim())"
        )
        tab.set_viewport_size({"width": 380, "height": 800})
        assert tab.evaluate("document.documentElement.scrollWidth") <= 380
        browser.close()
    assert said == [] and asked == [drawn.as_uri()]
