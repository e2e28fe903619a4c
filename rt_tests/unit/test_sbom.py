"""The bill of materials names what the package needs, and nothing twice."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def sbom(*arguments: str) -> str:
    command = [sys.executable, str(ROOT / "scripts" / "sbom.py"), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_it_holds_the_closure_of_the_dependencies(tmp_path: Path) -> None:
    wheel = tmp_path / "x.whl"
    wheel.write_bytes(b"wheel")
    made = json.loads(sbom("--extra", "report", "--wheel", str(wheel)))
    names = [part["name"] for part in made["components"]]
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {w.split(">")[0].split("[")[0] for w in wanted} <= set(names) and "matplotlib" in names
    # what these need themselves
    assert {"pydantic-core", "markupsafe"} <= set(names) and len(names) == len(set(names))
    assert all(part["version"] and part["purl"].startswith("pkg:pypi/") for part in made["components"])
    own = made["metadata"]["component"]
    assert own["hashes"][0]["content"] == hashlib.sha256(b"wheel").hexdigest()
    known = {part["bom-ref"] for part in made["components"]} | {"torqueloop"}
    assert all(edge["ref"] in known and set(edge["dependsOn"]) <= known for edge in made["dependencies"])
    assert sbom("--pins").count("==") < len(names)


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
    assert json.loads(sbom())["metadata"]["component"]["licenses"] == [{"expression": project["license"]}]
