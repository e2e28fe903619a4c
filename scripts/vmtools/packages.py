"""Programs of the distribution that the machine needs: found, or installed with apt where that is possible."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from vmtools.errors import Unavailable

#: program -> Debian package
QEMU = {"qemu-system-x86_64": "qemu-system-x86"}
BUSYBOX = {"busybox": "busybox-static"}
#: what measurements and tests inside call
CLIENTS = {"cyclictest": "rt-tests", "candump": "can-utils", "ip": "iproute2", "tc": "iproute2"}
#: an installation that takes longer has no network [s]
_TIMEOUT_S = 300


def find(program: str) -> str | None:
    """Path of a program, also in the folders of the administrator."""
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin")


def apt(*arguments: str, cwd: str | None = None) -> tuple[bool, str]:
    """Run apt-get without questions: (it went well, its last words)."""
    try:
        done = subprocess.run(
            ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=60", *arguments],
            cwd=cwd,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    return done.returncode == 0, (done.stderr or done.stdout).strip()[-300:]


def need(programs: dict[str, str]) -> None:
    """Install what is missing; Unavailable says what could not be had."""
    missing = {p: package for p, package in programs.items() if find(p) is None}
    if not missing:
        return
    names = ", ".join(missing)
    if os.geteuid() != 0 or find("apt-get") is None:
        raise Unavailable(f"{names} not found; on Debian or Ubuntu: apt-get install {' '.join(missing.values())}")
    print(f"vm: installing {' '.join(missing.values())} ...", file=sys.stderr, flush=True)
    install = ("install", "-y", "--no-install-recommends", *missing.values())
    ok, words = apt(*install)
    if not ok:
        apt("update")
        ok, words = apt(*install)
    if not ok:
        raise Unavailable(f"{names} could not be installed: {words}")
