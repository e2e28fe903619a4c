"""Bill of materials (CycloneDX 1.5, JSON) of the package and of all that it needs as installed here.

    scripts/sbom.py [--wheel FILE] [--extra NAME ...] [--pins] [--out FILE]

scripts/wheels puts one beside each wheel. Versions and licences are those of the environment it runs in.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NAME = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


def canonical(requirement: str) -> str:
    """Name of the package of a requirement, as the index writes it."""
    found = NAME.match(requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found.group(1)).lower()


def closure(wanted: list[str]) -> dict[str, metadata.Distribution]:
    """The packages and all they require here; those of other platforms, which are not installed, are left out."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [canonical(w) for w in wanted]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if name in {canonical(w) for w in wanted}:
                raise SystemExit(f"{name} is needed and not installed here") from None
            continue
        waiting += [canonical(r) for r in found[name].requires or [] if "extra ==" not in r]
    return found


def component(name: str, found: metadata.Distribution) -> dict[str, Any]:
    """One entry."""
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{found.version}",
        "name": name,
        "version": found.version,
        "purl": f"pkg:pypi/{name}@{found.version}",
    }
    licence = found.metadata.get("License-Expression") or found.metadata.get("License")
    if licence:
        made["licenses"] = [{"license": {"name": licence.splitlines()[0][:100]}}]
    return made


def bill(extras: list[str], wheel: Path | None) -> dict[str, Any]:
    """The whole document. Equal environments give equal documents: there is no time in it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *(r for e in extras for r in project["optional-dependencies"][e])]
    packages = closure(wanted)
    own: dict[str, Any] = {
        "type": "library",
        "bom-ref": "torqueloop",
        "name": project["name"],
        "version": project["version"],
        "licenses": [{"expression": project["license"]}],
    }
    if wheel is not None:
        own["hashes"] = [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}]
    parts = [component(name, found) for name, found in sorted(packages.items())]
    needs = {name: [canonical(r) for r in d.requires or [] if "extra ==" not in r] for name, d in packages.items()}
    ref = {part["name"]: part["bom-ref"] for part in parts}
    edges = [{"ref": "torqueloop", "dependsOn": sorted(ref[canonical(w)] for w in wanted)}]
    edges += [{"ref": ref[n], "dependsOn": sorted({ref[r] for r in needs[n] if r in ref})} for n in sorted(packages)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own},
        "components": parts,
        "dependencies": edges,
    }


def main() -> int:
    """Write it, or print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--extra", action="append", default=[])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pins", action="store_true", help="name==version lines instead, for pip-audit")
    given = parser.parse_args()
    made = bill(given.extra, given.wheel)
    text = json.dumps(made, indent=1) + "\n"
    if given.pins:
        text = "".join(f"{part['name']}=={part['version']}\n" for part in made["components"])
    if given.out is None:
        sys.stdout.write(text)
    else:
        given.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
