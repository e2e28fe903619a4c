"""What a computer of a rig needs in its system folders: limits, device rights, boot options, CAN, a service."""

from __future__ import annotations

import re
import sys
from dataclasses import field
from pathlib import Path

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.doctor.can import link_words
from torqueloop.hil.realtime.machine import ROOT, cpu_list
from torqueloop.hil.rig.resolve.plan import RigPlan

HEADER = (
    "# Written by `torqueloop setup-host --apply`; `torqueloop setup-host --undo` restores what stood here before.\n"
)
#: findings of the doctor whose remedies are in these files, beside those of CAN interfaces
SET_UP = frozenset({"SCHED_FIFO", "locked memory", "idle states held", "C-states", "FIFO throttling", "governor",
                    "isolation", "interrupts", "huge pages", "NUMA balancing"})  # fmt: skip
_LIMITS = "/etc/security/limits.d/90-torqueloop.conf"
_RULES = "/etc/udev/rules.d/90-torqueloop.rules"
_SYSCTL = "/etc/sysctl.d/90-torqueloop.conf"
_TMPFILES = "/etc/tmpfiles.d/90-torqueloop.conf"
_BOOT = "/etc/default/grub.d/90-torqueloop.cfg"
_SYSTEMD = "/etc/systemd/system"
#: character devices that a run or a driver of configs/examples/io opens
_DEVICES = ("cpu_dma_latency", "comedi[0-9]*", "gpiochip[0-9]*")
#: no SCHED_FIFO throttling, no NUMA balancing (docs/realtime.md)
_KERNEL = {"sched_rt_runtime_us": "-1", "numa_balancing": "0"}
_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
_GOVERNORS = "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"
#: a service that has started so often within this time [s] does not start again
_BURST, _WINDOW_S = 5, 600
#: words that may stand in a file of the system without quotes
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass
class HostPlan:
    """Files with their texts, values of /proc and /sys, and commands that make files take effect."""

    files: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    #: before files are taken away
    undo_commands: list[str] = field(default_factory=list)
    #: what the plan cannot do, with what to do instead
    notes: list[str] = field(default_factory=list)


def chosen_cpus(wanted: str | None, n_cpus: int) -> set[int]:
    """CPUs of a list such as "2-3"; "none": none; None: the last of `n_cpus`."""
    return {n_cpus - 1} if wanted is None else set() if wanted == "none" else cpu_list(wanted)


def planned(user: str, cpus: set[int], n_cpus: int, rig: RigPlan | None, keep: int, root: Path = ROOT) -> HostPlan:
    """All for a user who runs rigs, on CPUs of `n_cpus` that are kept free for loops. rig: its CAN interfaces are
    brought up, and it becomes a service that keeps its last `keep` runs."""
    plain("user", user)
    made = HostPlan()
    made.files[_LIMITS] = f"{HEADER}{user} - rtprio 95\n{user} - memlock unlimited\n"
    rules = [f'KERNEL=="{name}", OWNER="{user}", MODE="0660"' for name in _DEVICES]
    made.files[_SYSCTL] = HEADER + "".join(f"-kernel.{key} = {value}\n" for key, value in _KERNEL.items())
    made.values |= {f"/proc/sys/kernel/{key}": value for key, value in _KERNEL.items()}
    governors = sorted(f"/{path.relative_to(root)}" for path in root.glob(_GOVERNORS))
    made.values |= {_HUGE_PAGES: "madvise"} | dict.fromkeys(governors, "performance")
    made.files[_TMPFILES] = (
        f"{HEADER}w {_HUGE_PAGES} - - - - madvise\n"
        "w /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor - - - - performance\n"
    )
    made.commands += ["udevadm control --reload", "udevadm trigger --action=add --subsystem-match=misc"]
    _boot(made, cpus, n_cpus, root)
    if rig is not None:
        rules += _can(made, rig)
        _service(made, user, rig, keep)
    made.files[_RULES] = HEADER + "".join(f"{rule}\n" for rule in rules)
    return made


def plain(key: str, word: str) -> str:
    """A name that can stand in a file of the system. ConfigError: it has other characters."""
    if not _PLAIN.fullmatch(word):
        raise ConfigError("{key} = {value} cannot stand in a file of the system", key=key, value=word,
                          allowed="letters, digits, _ . -")  # fmt: skip
    return word


def _boot(made: HostPlan, cpus: set[int], n_cpus: int, root: Path) -> None:
    """Boot options that keep CPUs free, where GRUB reads them."""
    others = sorted(set(range(n_cpus)) - cpus)
    if not cpus or not others or not cpus < set(range(n_cpus)):
        made.notes.append(f"no CPU is isolated: {n_cpus} here, and one must remain for all other work")
        return
    which, rest = (",".join(map(str, sorted(c))) for c in (cpus, others))
    options = f"isolcpus={which} nohz_full={which} rcu_nocbs={which} irqaffinity={rest}"
    if not (root / "etc/default/grub").exists():
        made.notes.append(f"no /etc/default/grub: give the boot loader the options {options}")
        return
    made.files[_BOOT] = f'{HEADER}GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT {options}"\n'
    made.commands.append("update-grub")
    made.notes.append("boot options take effect with the next boot")


def _can(made: HostPlan, rig: RigPlan) -> list[str]:
    """Rules that bring up the interfaces of a rig when they appear."""
    rules = []
    for bus in rig.buses:
        if bus.config.interface != "socketcan" or bus.config.channel.startswith("vcan"):
            continue
        name, rate = plain("channel", bus.config.channel), bus.config.bitrate
        if rate is None:
            made.notes.append(f"{name}: [bus.{bus.name}] has no bitrate, so the interface is left alone")
            continue
        words = link_words(name, rate, bus.database.has_fd)
        runs = f'RUN+="/sbin/ip {words} restart-ms 100", RUN+="/sbin/ip link set {name} txqueuelen 128"'
        rules.append(f'ACTION=="add", SUBSYSTEM=="net", KERNEL=="{name}", {runs}')
    if rules:
        made.commands.append("udevadm trigger --action=add --subsystem-match=net")
    return rules


def _service(made: HostPlan, user: str, rig: RigPlan, keep: int) -> None:
    """The rig starts at boot and again after each run; after one that has failed a client must arm it."""
    name = f"torqueloop-{plain('name', rig.config.rig.name)}"
    old = f"ls -d runs/*-{rig.config.rig.name} 2>/dev/null | sort -r | tail -n +{keep} | xargs -r rm -r --"
    python, file = (str(path).replace("%", "%%") for path in (sys.executable, Path(rig.path).resolve()))
    if rig.config.rig.duration_s < _WINDOW_S / _BURST:
        made.notes.append(f"runs of {rig.config.rig.duration_s:g} s: the service stops after {_BURST} starts in "
                          f"{_WINDOW_S} s; let [rig] duration_s be above {_WINDOW_S // _BURST}")  # fmt: skip
    program = f'"{python}" -P -m torqueloop.hil.cli run "{file}" --quiet'
    start, failed = f"ExecStart={program}", f"/run/{name}/failed"
    if rig.config.control is None:
        made.notes.append("the rig has no [control]: after a failed run it is armed again without being asked")
    else:
        # an empty variable is no argument; 130, 143: somebody has ended the run
        start = (f"Environment=DISARMED=\nEnvironmentFile=-{failed}\nExecStart={program} $DISARMED\n"
                 f"ExecStopPost=/bin/sh -c 'case $$EXIT_STATUS in 0|130|143) rm -f {failed};; "
                 f"*) echo DISARMED=--disarmed > {failed};; esac'\nRuntimeDirectory={name}\n"
                 "RuntimeDirectoryPreserve=yes")  # fmt: skip
    made.files[f"{_SYSTEMD}/{name}.service"] = f"""{HEADER}[Unit]
Description=torqueloop rig {rig.config.rig.name}
# outputs keep their safe values when so many runs have begun within this time
StartLimitIntervalSec={_WINDOW_S}
StartLimitBurst={_BURST}

[Service]
User={user}
StateDirectory={name}
WorkingDirectory=/var/lib/{name}
LimitRTPRIO=95
LimitMEMLOCK=infinity
ExecStartPre=/bin/sh -c '{old}'
{start}
# 1, 3: the run has ended, and its verdict is in its report
SuccessExitStatus=1 3 130 143
Restart=always
RestartSec=5
TimeoutStopSec=30

[Install]
WantedBy=multi-user.target
"""
    # a file, and not a link that `systemctl enable` would make: so that it is undone like all others
    made.files[f"{_SYSTEMD}/multi-user.target.d/90-{name}.conf"] = f"{HEADER}[Unit]\nWants={name}.service\n"
    made.commands += ["systemctl daemon-reload", f"systemctl start {name}.service"]
    made.undo_commands.append(f"systemctl stop {name}.service")
