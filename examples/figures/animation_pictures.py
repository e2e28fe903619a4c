"""Pictures of docs/animation.md: a run of desk_4hp22, its shift 3-4 at five moments in a headless Chromium.

python examples/figures/animation_pictures.py [FOLDER]  # default docs/pictures; prints frames a second and file size
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

import torqueloop as tl

FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


def main(folder: Path) -> None:
    """Run, animate, look."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as place, sync_playwright() as p:
        run = tl.run("desk_4hp22", out=Path(place) / "run")
        file = tl.animate(run, Path(place) / "animation.html")
        print(f"{file.stat().st_size / 1e6:.2f} MB for {run.t[-1]:g} s")
        shift = next(s for s in run.report.shifts if s.name == "3→4")
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        tab = browser.new_page(viewport={"width": 1280, "height": 800})
        tab.goto(file.as_uri())
        tab.wait_for_timeout(2000)
        span = shift.end_s - shift.begin_s
        for k, part in enumerate((-0.2, 0.15, 0.5, 0.95, 1.3)):
            shot(tab, shift.begin_s + part * span, folder / f"animation_{k + 1}.png")
        tab.evaluate("animation.look('front')")
        shot(tab, shift.begin_s + 0.5 * span, folder / "animation_front.png")
        tab.evaluate("animation.look('oblique')")
        tab.evaluate("animation.play(true)")
        tab.wait_for_timeout(8000)
        first, start = tab.evaluate("animation.frames"), time.monotonic()
        tab.wait_for_timeout(8000)
        rate = (tab.evaluate("animation.frames") - first) / (time.monotonic() - start)
        print(f"{rate:.1f} frames a second, drawn at {tab.evaluate('animation.coarse'):.2f} of the resolution")
        browser.close()


def shot(tab: object, moment: float, file: Path) -> None:
    """A picture of the standing page, drawn sharp."""
    tab.evaluate(f"animation.seek({moment})")  # type: ignore[attr-defined]
    tab.wait_for_timeout(2500)  # type: ignore[attr-defined]
    tab.screenshot(path=file)  # type: ignore[attr-defined]
    print(f"{file}: t = {moment:.3f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "docs" / "pictures")
