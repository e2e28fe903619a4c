"""What the machine's kernel finds in memory: init, modules, files that must not be read over the share later."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

from vmtools.archive import DEVICE, DIRECTORY, FILE, LINK, Entry, cpio
from vmtools.kernel import Kernel

#: passed on from the caller's environment
ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "PYTHONUNBUFFERED", "VIRTUAL_ENV", "CI")
_SHARE = "trans=virtio,version=9p2000.L,msize=1048576,access=any"

# First process. The host's root is below, read-only; files given in memory lie over it; a RAM disk takes what is
# written. The folders shared read-write are mounted last.
_INIT = f"""#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin
say() {{ echo "vm: $*" >/dev/console; }}
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
while read -r m; do insmod /modules/$m || say "module $m does not load"; done < /modules/order
mkdir -p /ram /host /up /new
mount -t 9p -o {_SHARE},ro,cache=loose host /host || {{ say "no share of the root"; poweroff -f; }}
mount -t tmpfs -o mode=0755 up /up; mkdir -p /up/upper /up/work
layers=lowerdir=$(cat /vm/lower),upperdir=/up/upper,workdir=/up/work
mount -t overlay -o $layers overlay /new || {{ say "no overlay"; poweroff -f; }}
mkdir -p /new/proc /new/sys /new/dev
mount --move /proc /new/proc; mount --move /sys /new/sys; mount --move /dev /new/dev
mkdir -p /new/dev/pts /new/dev/shm /new/dev/mqueue /new/run /new/tmp
mount -t devpts devpts /new/dev/pts; mount -t tmpfs shm /new/dev/shm; mount -t tmpfs run /new/run
mount -t debugfs debug /new/sys/kernel/debug 2>/dev/null
ln -sf /proc/self/fd /new/dev/fd; ln -sf fd/0 /new/dev/stdin; ln -sf fd/1 /new/dev/stdout; ln -sf fd/2 /new/dev/stderr
while read -r tag folder; do
  mkdir -p "/new$folder"
  mount -t 9p -o {_SHARE},rw,cache=mmap $tag "/new$folder" || say "mount $folder failed"
done < /vm/shares
mkdir -p /new/run/vm; cp /vm/run /bin/busybox /new/run/vm/
ip link set lo up
for n in 0 1; do chroot /new ip link add dev vcan$n type vcan; ip link set vcan$n mtu 72; ip link set vcan$n up; done
exec chroot /new /run/vm/busybox sh /run/vm/run
"""

# Second part of it, in the final root: run the command, hand its output and status to the host.
_RUN = """B=/run/vm/busybox
for f in $($B grep -l . /sys/class/virtio-ports/*/name); do
  port=/dev/$($B basename $($B dirname $f))
  case $($B cat $f) in vm.out) O=$port;; vm.err) E=$port;; vm.status) S=$port;; esac
done
exec 9>$S
{environment}
ulimit -l unlimited; ulimit -r 99; ulimit -n 65536; ulimit -c 0
echo -1 > /proc/sys/kernel/sched_rt_runtime_us
hostname torqueloop-vm
cd {folder} || echo "vm: no {folder}" >$E
$B mkfifo /run/vm/o /run/vm/e
$B cat /run/vm/o >$O & PO=$!
$B cat /run/vm/e >$E & PE=$!
echo "start $($B cut -d' ' -f1 /proc/uptime)" >&9
( exec 9>&-; exec /usr/bin/env -- {command} ) </dev/null >/run/vm/o 2>/run/vm/e
STATUS=$?
# descendants may hold the pipes still: give them a moment
( $B sleep 2; $B kill $PO $PE 2>/dev/null ) & wait $PO $PE
echo "exit $STATUS $($B cut -d' ' -f1 /proc/uptime)" >&9
$B sync
$B poweroff -f
"""


def initramfs(
    kernel: Kernel, command: list[str], folder: str, shares: list[str], files: Iterable[Path], sealed: bool
) -> bytes:
    """The whole first file system.

    shares: tags rw0, rw1 ... go to these folders. files: to be held in memory. sealed: these are all there is.
    """
    busybox = next(p for p in (Path("/bin/busybox"), Path("/usr/bin/busybox")) if p.exists())
    environment = "".join(f"export {k}={shlex.quote(os.environ[k])}\n" for k in ENVIRONMENT if k in os.environ)
    run = _RUN.format(environment=environment, folder=shlex.quote(folder), command=shlex.join(command))
    entries = [Entry(d, DIRECTORY | 0o755) for d in ("bin", "proc", "sys", "dev", "modules", "vm", "ram")]
    entries += [
        Entry("dev/console", DEVICE | 0o600, device=(5, 1)),
        Entry("bin/busybox", FILE | 0o755, busybox.read_bytes()),
        Entry("init", FILE | 0o755, _INIT.encode()),
        Entry("vm/run", FILE | 0o755, run.encode()),
        Entry("vm/lower", FILE | 0o644, b"/ram" if sealed else b"/ram:/host"),
        Entry("vm/shares", FILE | 0o644, "".join(f"rw{i} {s}\n" for i, s in enumerate(shares)).encode()),
        Entry("modules/order", FILE | 0o644, "".join(f"{m.name} {p}\n" for m, p in kernel.modules).encode()),
        *(Entry(f"modules/{m.name}", FILE | 0o644, m.read_bytes()) for m, _ in kernel.modules),
    ]
    return cpio(entries) + cpio(_in_memory(files))


def _in_memory(files: Iterable[Path]) -> list[Entry]:
    """Copies of host files under /ram, at their place, with the folders and symbolic links on the way."""
    found: dict[str, Entry] = {}

    def add(path: Path) -> None:
        for parent in path.parents:
            if parent.is_symlink():
                add(parent)
        path = path.parent.resolve() / path.name
        if str(path) in found or path == Path("/"):
            return
        add(path.parent)
        status = path.lstat()
        if path.is_symlink():
            target = os.readlink(path)
            found[str(path)] = Entry(f"ram{path}", LINK | 0o777, target.encode())
            add(path.parent / target)
        elif path.is_dir():
            found[str(path)] = Entry(f"ram{path}", DIRECTORY | (status.st_mode & 0o7777))
        else:
            data = path.read_bytes()
            found[str(path)] = Entry(f"ram{path}", FILE | (status.st_mode & 0o7777), data, int(status.st_mtime))

    for file in files:
        add(file)
    return list(found.values())
