"""The manual: pages the program writes of itself are the actual ones, links lead somewhere, code is what it says.

All code of all pages: `python scripts/manual.py code`; here: TOML, and one page as a whole.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "mkdocs.yml").exists():
    pytest.skip("the manual is in the repository only", allow_module_level=True)
sys.path.insert(0, str(ROOT / "scripts"))

import manual  # noqa: E402
import manual_hooks  # noqa: E402
import manual_pages  # noqa: E402

#: where the command line of this Python is
TOOLS = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
PAGES = sorted(manual.DOCS.rglob("*.md"))


@pytest.mark.parametrize("name", ["cli.md", "api.md"])
def test_pages_of_the_program_are_the_actual_ones(name: str) -> None:
    told = "python scripts/manual.py pages"
    assert (manual.DOCS / name).read_text(encoding="utf-8") == manual_pages.written()[name], told


def test_a_page_that_the_navigation_does_not_name_is_in_it_all_the_same(tmp_path: Path) -> None:
    for name in ("index.md", "new.md"):
        (tmp_path / name).write_text("# x\n", encoding="utf-8")
    (tmp_path / "howto").mkdir()
    (tmp_path / "howto" / "a.md").write_text("# x\n", encoding="utf-8")
    config = {"docs_dir": str(tmp_path), "nav": [{"Start": ["index.md", {"A": "howto/a.md"}]}]}
    assert manual_hooks.on_config(config)["nav"][1:] == [{"More": ["new.md"]}]
    assert manual_hooks.on_config(config) == config, "nothing is left over"


def test_the_manual_has_four_parts_that_the_first_page_lists_as_they_are() -> None:
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed: pip install pyyaml")
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = {name: pages for part in yaml.safe_load(text)["nav"] for name, pages in part.items()}
    assert list(nav) == ["Start", "Guide", "Reference", "Theory and development"]
    parts = (manual.DOCS / "index.md").read_text(encoding="utf-8").partition("## All pages")[2].split("\n### ")[1:]
    listed = {
        part.partition("\n")[0]: re.findall(r"^- \[([^]]+)\]\(([^)]+)\): .+$", part, re.MULTILINE) for part in parts
    }
    named = {
        name: [item for page in pages if isinstance(page, dict) for item in page.items()] for name, pages in nav.items()
    }
    assert listed == named


def test_toml_of_every_page_can_be_read() -> None:
    found = {page: [b for b in manual.blocks(page) if b.kind == "toml"] for page in PAGES}
    assert sum(map(len, found.values())) >= 10
    assert [f for page, some in found.items() for f in manual.run_page(page, some, cheap=True)] == []


def test_code_of_a_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = manual.DOCS / "index.md"
    python = [b for b in manual.blocks(page) if b.kind == "python"]
    assert python and manual.run_page(page, python, cheap=False) == []
    assert "ok" in capsys.readouterr().out


def test_code_that_fails_is_told_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manual, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# x\n\n```bash\nexit 3\n```\n\n```python\nx = 1\n```\n\n```python\nassert x == 2, 'not two'\n```\n\n"
        "```toml\na = = 1\n```\n\n<!-- not run: too long -->\n```bash\nsleep 1e9\n```\n\n```text\nnothing\n```\n"
    )
    found = list(manual.blocks(page))
    assert [(b.kind, b.line, b.why_not) for b in found] == [
        ("bash", 3, ""), ("python", 7, ""), ("python", 11, ""), ("toml", 15, ""), ("bash", 20, "too long"),
    ]  # fmt: skip
    failures = manual.run_page(page, found, cheap=False)
    assert len(failures) == 3
    for failure, told in zip(failures, ("page.md:3: status 3", "page.md:11: status 1", "page.md:15: "), strict=True):
        assert told in failure
    assert "not two" in failures[1]


def test_numbers_of_a_page_are_those_its_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the digits that are shown; names and links are none; what stands in another paragraph is another matter."""
    printed = "worst 2.3e-08 in A4HP22, 67.3 % of 18 rows, -0.505"
    assert manual.unprinted("18 rows of the 4HP22, 67 %, 2.3e-8, -0.51, `12`, [x](a13.md)", printed) == []
    assert manual.unprinted("17 rows, 67.4 %, 2.4e-8, 0.51", printed) == ["17", "67.4", "2.4e-8", "0.51"]
    monkeypatch.setattr(manual, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# 99\n\n<!-- numbers of: echo 3.14159 -->\nPi is 3.14\nor 3.1.\n\n98\n")
    assert manual.numbers([page]) == 0
    page.write_text(page.read_text().replace("3.14\n", "3.15\n"))
    assert manual.numbers([page]) == 1


def test_numbers_of_a_row_are_those_its_own_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first cell says what they are; a row does not stand for another one."""
    monkeypatch.setattr(manual, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    head = "<!-- numbers of each row -->\n| what | value | command |\n|---|---|---|\n"
    page.write_text(f"{head}| 7 of x | 1 268 / 2.5 | `echo 1268`, `echo 2.51` |\n| y | 3 | `echo 3` |\n\nAnd 99.\n")
    assert manual.numbers([page]) == 0
    page.write_text(f"{head}| 7 of x | 3 | `echo 1268` |\n| y | 3 | `echo 3` |\n")
    assert manual.numbers([page]) == 1


def test_what_a_page_shows_behind_a_print_is_what_is_printed() -> None:
    block = manual.Block(Path("x.md"), 1, "python", "print(x)\n# 89.4 km/h, closes to 2e-12\n")
    assert manual._shown(block, "before\n89.4 km/h, closes to 9e-13\n") == ""
    for wrong in ("89.6 km/h, closes to 2e-12", "89.4 km/h, closes to 2e-9", "89.4 m/s, closes to 2e-12", ""):
        assert manual._shown(block, wrong) != ""


def test_a_part_of_a_rig_file_is_checked_in_a_rig(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    part = '<!-- in a rig: extends = "desk_4hp22" -->\n```toml\n[clock]\nsubsteps = {}\n```\n'
    for value, fails in (("2", False), ('"two"', True)):
        page.write_text(part.format(value))
        (block,) = manual.blocks(page)
        assert block.rig == 'extends = "desk_4hp22"'
        failures = manual._run(block, [], tmp_path, {**os.environ, "PATH": TOOLS}, False)
        assert bool(failures) == fails, failures


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<h1 id="top">a</h1><a href="b.html#there">b</a><a href="https://x.org/y">x</a>')
    (tmp_path / "b.html").write_text('<h2 id="there">b</h2><a href="a.html#top">a</a>')
    assert manual.broken_links(tmp_path) == (2, [])
    (tmp_path / "b.html").write_text(
        '<h2 id="here">b</h2><a href="c.html">c</a><img src="p.png"><a href="#gone">x</a><script src="https://x.org/y.js">'
    )
    count, broken = manual.broken_links(tmp_path)
    assert count == 4 and [line.rpartition(": ")[2] for line in broken] == [
        "no such anchor", "loaded from the network", "no such file", "no such file", "no such anchor",
    ]  # fmt: skip


@pytest.mark.proof
def test_the_site_can_be_built_without_a_broken_link() -> None:
    pytest.importorskip("material", reason="the site needs mkdocs-material: pip install 'torqueloop[docs]'")
    done = subprocess.run([sys.executable, "scripts/manual.py", "build"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and ", 0 broken" in done.stdout, done.stdout + done.stderr
    assert (manual.SITE / "search" / "search_index.js").is_file(), "search without a server"


@pytest.mark.parametrize("name", ["gearbox_statics.py", "own_driveline.py", "offline_drive.py"])
def test_an_example_runs(name: str) -> None:
    done = subprocess.run([sys.executable, ROOT / "examples" / name], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stderr
