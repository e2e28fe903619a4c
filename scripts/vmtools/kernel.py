"""The machine's kernel: Debian's, normal or PREEMPT_RT, fetched once with apt and kept in the user's cache."""

from __future__ import annotations

import fcntl
import lzma
import os
import re
import shutil
import struct
import subprocess
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from vmtools.errors import Unavailable
from vmtools.packages import apt, find, need

#: package whose dependency is the present kernel
PACKAGES = {"rt": "linux-image-rt-amd64", "std": "linux-image-amd64"}
MODULES = (
    *("virtio_mmio", "virtio_console", "9pnet_virtio", "9p", "overlay"),
    *("can", "can_raw", "can_bcm", "can_gw", "can_isotp", "can_j1939", "can_dev", "vcan", "vxcan", "slcan"),
    # a bucket before an interface plays a slow bus
    "sch_tbf",
    # an analogue card in software: its inputs read back its outputs
    "comedi_test",
    # an SMBus with chips whose registers are memory; drivers of such chips: PCAL9555A (GPIO), PCA9685 (PWM), DS4424
    # (DAC), MAX11603, AD7998 (ADC), NCT7904 (fan controller), LM75 (temperature)
    "i2c_dev",
    "i2c_stub chip_addr=0x20,0x40,0x10,0x33,0x21,0x2d,0x48",
    *("gpio_pca953x", "pwm_pca9685", "ds4424", "max1363", "ad799x", "nct7904", "lm75"),
)
#: of these, what Debian does not build: folder of the source, which is one file
BUILT = {"gpio_pca953x": "drivers/gpio", "pwm_pca9685": "drivers/pwm"}


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel image and the modules to load, in this order."""

    image: Path
    #: files with their parameters
    modules: list[tuple[Path, str]]
    #: Debian package it comes from
    name: str


def cache() -> Path:
    """Where kernels are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "torqueloop-vm"


def kernel(flavour: str) -> Kernel:
    """The kernel from the cache, fetched on first use. Unavailable if apt cannot give it."""
    # another list of modules is another kernel to keep
    folder = cache() / f"{flavour}-{zlib.crc32(' '.join(MODULES).encode()):08x}"
    with _locked():
        if not (folder / "order").exists():
            _fetch(flavour, folder)
    order = [line.partition(" ") for line in (folder / "order").read_text().splitlines()]
    modules = [(folder / name, parameters) for name, _, parameters in order]
    return Kernel(folder / "vmlinux", modules, (folder / "name").read_text().strip())


@contextmanager
def _locked() -> Iterator[None]:
    try:
        cache().mkdir(parents=True, exist_ok=True)
        with (cache() / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise Unavailable(f"cache {cache()}: {error}") from None


def _fetch(flavour: str, folder: Path) -> None:
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):
        if find(tool) is None:
            raise Unavailable(f"{tool} not found: the machine's kernel is a Debian package")
    package = _current(PACKAGES[flavour])
    if package is None:
        apt("update")
        package = _current(PACKAGES[flavour])
    if package is None:
        raise Unavailable(f"apt knows no {PACKAGES[flavour]}")
    with tempfile.TemporaryDirectory(dir=cache()) as t:
        work = Path(t)
        subprocess.run(["dpkg-deb", "-x", str(_download(package, work)), str(work / "x")], check=True)
        new = work / "new"
        new.mkdir()
        packed = next((work / "x" / "boot").glob("vmlinuz-*"))
        (new / "vmlinux").write_bytes(_unpacked(packed.read_bytes()))
        _build(package, work)
        order = _in_order(work / "x")
        for module in order:
            shutil.copy(module, new)
        (new / "name").write_text(f"{package}\n")
        (new / "order").write_text("".join(f"{m.name} {parameters}\n" for m, parameters in order.items()))
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)


def _download(package: str, folder: Path) -> Path:
    """The file of a package. Unavailable if apt cannot give it."""
    ok, words = apt("download", package, cwd=str(folder))
    if not ok and "404" in words:
        # lists older than the archive
        apt("update")
        ok, words = apt("download", package, cwd=str(folder))
    deb = next(folder.glob(f"{package}_*.deb"), None)
    if not ok or deb is None:
        raise Unavailable(f"apt-get download {package}: {words}")
    return deb


def _build(package: str, work: Path) -> None:
    """Compile the modules of BUILT from Debian's source of this kernel, and put them to its others."""
    headers = package.replace("-image-", "-headers-")
    need({"make": "make", "gcc": "gcc", "xz": "xz-utils"})
    ok, words = apt("install", "-y", "--no-install-recommends", headers)
    if not ok:
        raise Unavailable(f"{headers}, which {', '.join(BUILT)} need: {words}")
    version = re.search(r"\d+\.\d+", package)
    assert version is not None
    source = f"linux-source-{version[0]}"
    files = {name: f"{source}/{folder}/{name.replace('_', '-')}.c" for name, folder in BUILT.items()}
    unpack = 'dpkg-deb --fsys-tarfile "$1" | tar -xO "./usr/src/$2.tar.xz" | tar -xJ -C "$3" "${@:4}"'
    words = [str(_download(source, work)), source, str(work), *files.values()]
    subprocess.run(["bash", "-o", "pipefail", "-c", unpack, "unpack", *words], check=True)
    (work / source / "Makefile").write_text("".join(f"obj-m += {Path(f).name[:-2]}.o\n" for f in files.values()))
    for file in files.values():
        shutil.copy(work / file, work / source)
    command = ["make", "-s", "-C", f"/usr/src/{headers}", f"M={work / source}", "modules"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"{', '.join(BUILT)} do not compile: {done.stderr.strip()[-300:]}")
    kernel_folder = next((work / "x" / "lib" / "modules").iterdir()) / "kernel"
    for module in (work / source).glob("*.ko"):
        shutil.copy(module, kernel_folder)


def _current(meta: str) -> str | None:
    done = subprocess.run(["apt-cache", "depends", meta], capture_output=True, text=True)
    found = re.search(r"Depends: (linux-image-\S+)", done.stdout)
    return found[1] if found else None


def _unpacked(image: bytes) -> bytes:
    """The ELF file inside a bzImage (Linux x86 boot protocol): the machine need not unpack it each time."""
    sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (sectors + 1) * 512 + offset
    payload = image[start : start + length]
    if payload.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor().decompress(payload)
    if payload.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(31).decompress(payload)
    # other packings: the kernel does it itself
    return image


def _in_order(root: Path) -> dict[Path, str]:
    """MODULES with parameters, and what they depend on, each after its dependencies. Built-in ones have no file."""
    by_name = {f.name.removesuffix(".ko").replace("-", "_"): f for f in root.glob("lib/modules/*/kernel/**/*.ko")}
    order: dict[Path, str] = {}

    def add(name: str, parameters: str = "") -> None:
        file = by_name.get(name.replace("-", "_"))
        if file is None or file in order:
            return
        depends = re.search(rb"\0depends=([^\0]*)\0", b"\0" + file.read_bytes())
        for other in filter(None, depends[1].decode().split(",") if depends else ()):
            add(other)
        order[file] = parameters

    for module in MODULES:
        name, _, parameters = module.partition(" ")
        add(name, parameters)
    return order
