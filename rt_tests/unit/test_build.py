"""The build takes anew what changed, and nothing else."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """setup.py as a module."""
    pytest.importorskip("Cython", reason="Cython is not installed: pip install cython")
    monkeypatch.chdir(ROOT)
    spec = importlib.util.spec_from_file_location("torqueloop_setup", ROOT / "setup.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_kernel_has_an_extension_of_its_place_in_the_package(build: ModuleType) -> None:
    names = {ext.name for ext in build.extensions()}
    assert {"torqueloop.cython_kernels.step.generic", "torqueloop.cython_kernels.tick.rig"} <= names
    for ext in build.extensions():
        source = ROOT / ext.sources[0]
        # Cython writes the C of the shared module
        assert source.exists() or ext.name == build.SHARED
        assert source.with_suffix("").as_posix().endswith(ext.name.replace(".", "/"))


@pytest.mark.proof
def test_a_module_depends_on_what_it_includes_and_cimports(build: ModuleType) -> None:
    sources = {ext.name.rsplit(".", 1)[1]: build.own_sources(ext) for ext in build.extensions()}
    kernels = ROOT / "cython_kernels"
    # included by an included file; a declaration two cimports away
    assert kernels / "step" / "decide.pxi" in sources["generic"]
    assert kernels / "model" / "model.pxd" in sources["tick"]
    assert kernels / "step" / "decide.pxi" not in sources["crc"]
    assert all(path.is_relative_to(ROOT) for found in sources.values() for path in found)


def test_a_changed_line_changes_the_digests_of_the_modules_it_is_part_of(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {ext.name: build.digest(ext) for ext in build.extensions()}
    assert before == {ext.name: build.digest(ext) for ext in build.extensions()}
    changed = ROOT / "cython_kernels" / "can" / "codec_tick.pxi"
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: read(self) + (b"#" if self == changed else b""))
    after = {ext.name: build.digest(ext) for ext in build.extensions()}
    assert {n.rsplit(".", 1)[1] for n in before if before[n] != after[n]} == {"codec"}


def test_what_was_compiled_of_a_topology_that_is_not_listed_any_more_is_deleted(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It would be loaded with the layout of state and model that held when it was built."""
    folder = tmp_path / "step" / "topologies"
    folder.mkdir(parents=True)
    suffix = ".cpython-311-x86_64-linux-gnu.so"
    stale = [folder / f"old_car{end}" for end in (".pyx", suffix)]
    kept = [folder / "__init__.py", folder / f"zf_4hp22{suffix}", folder / f"zf_4hp22_rig{suffix}"]
    for path in stale + kept:
        path.touch()
    monkeypatch.setattr(build, "KERNELS", tmp_path)
    build.write_topologies()
    assert not any(path.exists() for path in stale)
    assert all(path.exists() for path in kept) and (folder / "zf_4hp22.pyx").exists()


def test_what_is_not_run_after_every_change_is_run_by_ci() -> None:
    """Tests marked `proof` are left out of `scripts/test`: nothing may land without them."""
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(r"^exec scripts/test .*--proofs", run, re.MULTILINE)
    script = (ROOT / "scripts" / "test").read_text(encoding="utf-8")
    assert '"$argument" = --proofs ]; then choice=(-m "not long")' in script


def test_every_licence_in_the_package_is_one_of_the_distribution() -> None:
    """A text of somebody's licence in a folder of the package is copied beside the metadata of the wheel, and the
    expression of the metadata names it (SPDX; ADVISOR has no name there)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = {path for pattern in project["license-files"] for path in ROOT.glob(pattern)}
    present = {
        path for room in ("core", "cython_kernels", "hil", "configs") for path in (ROOT / room).rglob("*")
        if path.name.startswith(("LICENSE", "NOTICE"))
    }  # fmt: skip
    assert present and present <= listed
    spdx = {"ADVISOR": "LicenseRef-ADVISOR", "FASTSIM": "Apache-2.0", "OPENDBC": "MIT", "three": "MIT", "uPlot": "MIT"}
    named = set(project["license"].split(" AND "))
    licences = [path for path in present if path.name.startswith("LICENSE-")]
    assert {spdx[path.stem.removeprefix("LICENSE-")] for path in licences} <= named


def test_the_installed_distribution_carries_every_licence_text() -> None:
    """Read where a user has it: in a run of scripts/test that is the wheel."""
    own = importlib.metadata.distribution("torqueloop")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert own.metadata["License-Expression"] == project["license"]
    wanted = {path for pattern in project["license-files"] for path in ROOT.glob(pattern)}
    assert {path.relative_to(ROOT).as_posix() for path in wanted} == set(own.metadata.get_all("License-File") or ())
    for path in wanted:
        texts = [Path(str(own.locate_file(f))) for f in own.files or () if f.name == path.name]
        found = [text.read_text(encoding="utf-8") for text in texts if text.is_file()]
        assert found and all(text == path.read_text(encoding="utf-8") for text in found), path
