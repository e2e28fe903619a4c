"""One run of the machine: QEMU's command line, its pipes, its end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vmtools import packages
from vmtools.errors import BROKEN, TIMED_OUT, Unavailable
from vmtools.guest import initramfs
from vmtools.kernel import kernel

#: with instruction counting the guest's time stamp counter runs with its nanoseconds [kHz]
_COUNTED_KHZ = 1_000_000
_CMDLINE = (
    "console=ttyS0 quiet loglevel=4 panic=-1 nokaslr mitigations=off tsc=reliable random.trust_cpu=on "
    "apparmor=0 selinux=0 audit=0 rcupdate.rcu_normal_after_boot=1"
)


@dataclass(frozen=True)
class Options:
    """What kind of machine."""

    flavour: str = "rt"
    #: guest time counts instructions of 2**icount ns; None: the host's time
    icount: int | None = None
    cpus: int = 2
    memory_MiB: int = 2048
    #: for the whole run, on the host's clock [s]
    timeout_s: float = 600.0
    #: more of the kernel's command line
    append: str = ""
    #: folders shared read-write
    shares: tuple[str, ...] = ()
    #: files copied into the machine's memory: reading them over the share takes guest time
    in_memory: tuple[Path, ...] = ()
    #: nothing of the host is seen but these files and the shares
    sealed: bool = False
    #: keep the kernel's console here
    console: str | None = None


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    status: int
    wall_s: float
    #: guest's uptime when the command started and ended [s]
    start_s: float | None = None
    end_s: float | None = None


def prepare(flavour: str) -> None:
    """Have everything there; Unavailable says why that is not possible."""
    if not sys.platform.startswith("linux") or os.uname().machine != "x86_64":
        raise Unavailable("only x86-64 Linux runs the machine")
    if os.geteuid() != 0:
        raise Unavailable("needs root: inside, root sees the host's files read-only")
    packages.need({**packages.QEMU, **packages.BUSYBOX, **packages.CLIENTS})
    kernel(flavour)


def run(command: Sequence[str], options: Options) -> Ended:
    """Boot, run the command as root in the current directory, power off. Its output comes out on ours. SIGTERM ends the
    machine, and this process with status 143."""
    prepare(options.flavour)
    begun = time.monotonic()
    shares = list(dict.fromkeys(os.path.realpath(s) for s in options.shares))
    used = kernel(options.flavour)
    with tempfile.TemporaryDirectory(prefix="torqueloop-vm.") as t:
        folder = Path(t)
        image = initramfs(used, list(command), os.getcwd(), shares, options.in_memory, options.sealed)
        (folder / "initrd").write_bytes(image)
        console = Path(options.console) if options.console else folder / "console"
        outputs = _Outputs()
        qemu = _qemu(options, used.image, folder / "initrd", console, shares, outputs.ends)
        with (folder / "qemu.log").open("wb") as log:
            machine = subprocess.Popen(
                qemu, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=outputs.ends, start_new_session=True
            )
            late = False
            try:
                signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
                outputs.follow()
                machine.wait(timeout=max(1.0, options.timeout_s - (time.monotonic() - begun)))
            except subprocess.TimeoutExpired:
                late = True
            finally:
                if machine.poll() is None:
                    machine.kill()
                    machine.wait()
                status = outputs.status()
        wall = time.monotonic() - begun
        start = re.search(r"^start (\S+)", status, re.M)
        end = re.search(r"^exit (\d+) (\S+)", status, re.M)
        if end:
            return Ended(int(end[1]), wall, float(start[1]) if start else None, float(end[2]))
        if late:
            _say(f"timed out after {options.timeout_s:g} s")
        else:
            _say("the machine ended without a status")
        if not start or not late:
            _say(_tail(console) + _tail(folder / "qemu.log"))
        return Ended(TIMED_OUT if late else BROKEN, wall, float(start[1]) if start else None)


class _Outputs:
    """Three pipes from the machine: output, errors, status."""

    def __init__(self) -> None:
        pipes = [os.pipe() for _ in range(3)]
        self.ends = tuple(write for _, write in pipes)
        self._status: list[bytes] = []
        targets = [1, 2, None]
        self._threads = [
            threading.Thread(target=self._pump, args=(read, target), daemon=True)
            for (read, _), target in zip(pipes, targets, strict=True)
        ]

    def follow(self) -> None:
        """From now on only the machine holds the writing ends."""
        for end in self.ends:
            os.close(end)
        for thread in self._threads:
            thread.start()

    def status(self) -> str:
        """All the machine said about itself, once it has ended."""
        for thread in self._threads:
            thread.join(5)
        return b"".join(self._status).decode(errors="replace")

    def _pump(self, read: int, target: int | None) -> None:
        while block := os.read(read, 65536):
            if target is None:
                self._status.append(block)
            while target is not None and block:
                try:
                    block = block[os.write(target, block) :]
                except OSError:  # nobody reads our output any more; the machine must not block on it
                    block = b""
        os.close(read)


def _qemu(
    options: Options, image: Path, initrd: Path, console: Path, shares: list[str], ends: tuple[int, ...]
) -> list[str]:
    program = packages.find("qemu-system-x86_64")
    assert program is not None
    counted = options.icount is not None
    cpus = 1 if counted else options.cpus
    khz = _COUNTED_KHZ if counted else _host_khz()
    # its own calibration against an emulated timer fails on a busy host, and then the boot hangs; HZ is 250
    clock = f" tsc_early_khz={khz} lpj={khz * 4}" if khz else ""
    line = [program, "-M", "microvm,acpi=on,rtc=on,pit=on,pic=on,isa-serial=on", "-nodefaults", "-no-user-config"]
    line += ["-display", "none", "-no-reboot", "-m", str(options.memory_MiB), "-smp", str(cpus)]
    line += ["-accel", f"tcg,thread={'single' if counted else 'multi'},tb-size=512", "-cpu", "max,la57=off"]
    if counted:
        line += ["-icount", f"shift={options.icount},sleep=off"]
    line += ["-kernel", str(image), "-initrd", str(initrd), "-append", f"{_CMDLINE}{clock} {options.append}"]
    line += ["-serial", f"file:{console}", "-device", "virtio-serial-device"]
    for i, (name, fd) in enumerate(zip(("out", "err", "status"), ends, strict=True)):
        line += ["-add-fd", f"fd={fd},set={i}", "-chardev", f"file,id={name},path=/dev/fdset/{i},append=on"]
        line += ["-device", f"virtserialport,chardev={name},name=vm.{name}"]
    for tag, path, more in [("host", "/", ",readonly=on"), *((f"rw{i}", s, "") for i, s in enumerate(shares))]:
        place = path.replace(",", ",,")
        line += ["-fsdev", f"local,id={tag},path={place},security_model=none,multidevs=remap{more}"]
        line += ["-device", f"virtio-9p-device,fsdev={tag},mount_tag={tag}"]
    return line


def _host_khz() -> int | None:
    """Rate of the host's time stamp counter, which an emulated CPU reads too."""
    found = re.search(r"^bogomips\s*:\s*([\d.]+)", Path("/proc/cpuinfo").read_text(), re.M)
    return int(float(found[1]) * 500) if found else None


def _say(text: str) -> None:
    print(f"vm: {text}", file=sys.stderr, flush=True)


def _tail(file: Path) -> str:
    return file.read_text(errors="replace")[-1500:] if file.exists() else ""
