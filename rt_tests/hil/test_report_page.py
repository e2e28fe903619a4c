"""The page of a report: how numbers are packed, and what it does in a browser, from a file and served."""

from __future__ import annotations

import json
import shutil
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_runs import golden_run
from page_figures import PageFigures
from waiting import PATIENCE_S, wait_for

from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report.report import analyse
from torqueloop.hil.report.serve import ReportServer
from torqueloop.hil.views import LICENCES, scripts

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for name in BROWSERS if (path := shutil.which(name))), None)
RIG = "desk_4hp22"


def test_the_page_of_25_s_with_all_signals_is_small_and_carries_the_licence_of_uplot() -> None:
    run = golden_run(RIG)
    seconds, signals = run.report.metrics["duration_s"], len(run.drawn.blocks[0]["columns"])
    assert signals > 210 and len(run.html) * 25.0 / seconds < 2e6
    assert LICENCES["uPlot"].read_text() in run.html and all(script in run.html for script in scripts("report"))
    assert "http" not in run.html.replace("https://github.com/leeoniya/uPlot", "")


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReportServer]:
    """A recording that its page holds thinned, served."""
    monkeypatch.setattr("torqueloop.hil.views.figure.POINTS", 1000)
    server = ReportServer(analyse(golden_run(RIG).path))
    monkeypatch.undo()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def ask(server: ReportServer, query: str, token: str | None = None) -> tuple[int, Any]:
    url = f"http://127.0.0.1:{server.server_port}/samples?token={server.token if token is None else token}&{query}"
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_a_served_page_gives_every_sample_of_a_stretch(long: ReportServer) -> None:
    signals = long.report.run.signals
    assert isinstance(signals, Signals) and PageFigures(long.text).blocks[0]["group"] > 1
    status, answer = ask(long, "from=6.0&to=6.5&name=engine.w&name=C4.p")
    assert status == 200
    text = json.dumps({"blocks": answer["blocks"], "figures": {}, "gears": []})
    html = f'<script type="a" id="figures">{text}</script><script type="b" id="numbers">{answer["numbers"]}</script>'
    near = signals.between(6.0, 6.5)
    for name in ("engine.w", "C4.p"):
        found, exact = PageFigures(html).by_name(name)
        assert len(found) == near.n > 490 and np.abs(found - near[name]).max() <= exact + 1e-9
    assert ask(long, "from=6.0&to=6.5&name=engine.w", "wrong")[0] == 403
    for wrong in ("from=6&to=5&name=engine.w", "from=nan&to=5", "from=1", "from=1&to=2&name=../run.json"):
        assert ask(long, wrong)[0] == 400, wrong


def opened(playwright: Any, url: str, mistakes: list[str], **how: Any) -> Any:
    """A page that is ready; what goes wrong in it, and every address it asks for, is kept."""
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
    tab = browser.new_page(**{"viewport": {"width": 1400, "height": 1000}, **how})
    # the browser's advice on the reading of pixels, which only these tests do
    tab.on("console", lambda m: None if m.text.startswith("Canvas2D") else mistakes.append(m.text))
    tab.on("pageerror", lambda error: mistakes.append(str(error)))
    tab.on("request", lambda r: None if r.url.startswith((url.partition("?")[0], "data:", "blob:")) or
           ("127.0.0.1" in url and "127.0.0.1" in r.url) else mistakes.append(r.url))  # fmt: skip
    tab.goto(url)
    wait(tab, "window.torqueloop?.ready && torqueloop.drawn > 0")
    return tab


def wait(tab: Any, condition: str) -> None:
    """Until something holds in the page; by questions from outside, as its policy lets nothing be evaluated inside."""
    wait_for(lambda: tab.evaluate(f"Boolean({condition})"))


@pytest.mark.proof
def test_in_a_browser(tmp_path: Path) -> None:
    """Numbers as recorded, zoom, linked cursors, links to shifts, signals by name, themes, a phone, paper."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    run = golden_run(RIG)
    signals, mistakes = run.report.run.signals, []
    with api.sync_playwright() as playwright:
        tab = opened(playwright, (run.path / "report.html").as_uri(), mistakes)
        # what the browser unpacks is what was recorded
        names = [column[0] for column in run.drawn.blocks[0]["columns"]]
        for name in ("engine.w", "C11.mode", "car.v"):
            shown = np.array(tab.evaluate(f"torqueloop.column(0, {names.index(name)})"))
            assert np.abs(shown - signals[name]).max() <= 1e-6 * np.ptp(signals[name]), name
        # a shift is gone to by its name; all figures over the time of the run follow
        shift = run.report.shifts[1]
        tab.get_by_role("link", name=shift.name, exact=True).first.click()
        low, high = tab.evaluate("torqueloop.run.range")
        assert low == pytest.approx(shift.begin_s - 0.55) and high == pytest.approx(shift.end_s + 0.45)
        ranges = tab.evaluate("[...torqueloop.run.members].map((u) => [u.scales.x.min, u.scales.x.max])")
        assert len(ranges) > 2 and all(r == pytest.approx([low, high]) for r in ranges)
        # so is one that is clicked in the strip of gears; a drag across it is a range
        strip = tab.locator("figure[data-figure=gears] .u-over")
        strip.scroll_into_view_if_needed()
        tab.evaluate("torqueloop.run.all()")
        box, gears = (
            strip.bounding_box(),
            "[...torqueloop.run.members].find((u) => u.root.closest('[data-figure=gears]'))",
        )
        where = f"{gears}.valToPos({(shift.begin_s + shift.end_s) / 2}, 'x')"
        rows = [name for name, _ in run.drawn.rows("gears")]
        height = tab.evaluate(f"{gears}.valToPos({rows.index('shifts')}, 'y')")
        tab.mouse.click(box["x"] + tab.evaluate(where), box["y"] + height)
        clicked = tab.evaluate("torqueloop.run.range")
        assert clicked == pytest.approx([shift.begin_s - 0.3, shift.end_s + 0.3])
        tab.get_by_role("link", name=shift.name, exact=True).first.click()
        # the cursor stands at one time everywhere, with value and unit
        plot = tab.locator("figure[data-figure=drive] .u-over").first
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        tab.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 30)
        at = float(tab.inner_text("#at").split()[2])
        assert at == pytest.approx(low + 0.25 * (high - low), abs=0.01 * (high - low))
        told = tab.inner_text("figure[data-figure=drive] .u-legend >> nth=0")
        engine = float(told.split("engine")[1].lstrip(": \t\n").split()[0])
        k = int(np.argmin(np.abs(signals.t - at)))
        assert engine == pytest.approx(signals["engine.w"][k] * 30 / np.pi, rel=1e-3) and "1/min" in told
        seen = "[...torqueloop.run.members].filter((u) => u.cursor.left >= 0)"
        where = f"{seen}.map((u) => u.posToVal(u.cursor.left, 'x'))"
        assert all(x == pytest.approx(at, abs=2e-3) for x in tab.evaluate(where)) and len(tab.evaluate(where)) > 2
        # a dragged range, wider again by the keyboard, all by a double click
        tab.mouse.down()
        tab.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 30, steps=5)
        tab.mouse.up()
        wide, middle = (f(tab.evaluate("torqueloop.run.range")) for f in (lambda r: r[1] - r[0], np.mean))
        assert wide == pytest.approx(0.5 * (high - low), rel=0.02)
        tab.keyboard.press("-")
        assert np.diff(tab.evaluate("torqueloop.run.range"))[0] == pytest.approx(2 * wide)
        assert np.mean(tab.evaluate("torqueloop.run.range")) == pytest.approx(middle)
        plot.dblclick()
        assert tab.evaluate("torqueloop.run.range") == pytest.approx(tab.evaluate("torqueloop.run.full"))
        # any signal by its name
        tab.fill("#signal", "half_shafts.w_rel")
        tab.keyboard.press("Enter")
        assert tab.locator("#added .u-legend").inner_text().count("half_shafts.w_rel") == 1
        tab.fill("#signal", "no.such.signal")
        tab.keyboard.press("Enter")
        assert tab.locator("#added .u-legend").count() == 1
        assert "no signal" in tab.evaluate("document.getElementById('signal').validationMessage")
        # states as bands in the colours of the theme, both ways
        tab.locator("figure[data-figure=states]").scroll_into_view_if_needed()
        wait(tab, "document.querySelector('figure[data-figure=states] canvas')")
        pixel = (
            "(() => { const c = document.querySelector('figure[data-figure=states] canvas'), pen = c.getContext('2d');"
            " return [...pen.getImageData(c.width >> 1, Math.round(c.height * 0.07), 1, 1).data]; })()"
        )
        first = tab.evaluate(pixel)
        tab.click("#theme")
        assert tab.evaluate(pixel) != first
        # paper: everything is drawn
        tab.emulate_media(media="print")
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        open_ = "[...document.querySelectorAll('figure[data-figure]')].filter((f) => f.offsetParent)"
        assert tab.evaluate(f"{open_}.every((f) => f.dataset.drawn)")
        assert tab.evaluate("getComputedStyle(document.getElementById('bar')).display") == "none"
        url, size = (run.path / "report.html").as_uri(), {"width": 400, "height": 850}
        phone = opened(playwright, url, mistakes, viewport=size)
        assert phone.evaluate("document.documentElement.scrollWidth") <= 400
    assert mistakes == []


@pytest.mark.proof
def test_a_served_page_draws_every_sample_where_it_is_looked_at(long: ReportServer) -> None:
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    mistakes: list[str] = []
    with api.sync_playwright() as playwright:
        tab = opened(playwright, long.url, mistakes)
        tab.evaluate("torqueloop.go(6.0, 6.4)")
        wait(tab, "torqueloop.finer === 1")
        speeds = "[...torqueloop.run.members].find((u) => u.series[1]?.label === 'engine')"
        assert tab.evaluate(f"{speeds}.data[0].length") == pytest.approx(400, abs=1)
    assert mistakes == []
