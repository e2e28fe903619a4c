"""Limits of the process (ulimit) that a rig needs: looked at before libraries end the process for want of them."""

from __future__ import annotations

import resource

from torqueloop.core.describe.errors import ConfigError

#: files, sockets and pipes of a rig with several buses, its recording and its participants
DESCRIPTORS = 96
#: address space: libraries, kernels, rings [bytes]
ADDRESS_SPACE = 1 << 30


def check_limits() -> None:
    """ConfigError where the process may open or map too little; the soft limit of descriptors is raised."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and (hard == resource.RLIM_INFINITY or soft < hard):
        wanted = min(4096, hard) if hard != resource.RLIM_INFINITY else 4096
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    if soft != resource.RLIM_INFINITY and soft < DESCRIPTORS:
        raise ConfigError("the process may open {value} files", key="ulimit -n", value=soft,
                          allowed=f"at least {DESCRIPTORS}")  # fmt: skip
    space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if space != resource.RLIM_INFINITY and space < ADDRESS_SPACE:
        raise ConfigError("the process may map {value} kB", key="ulimit -v", value=space >> 10,
                          allowed=f"at least {ADDRESS_SPACE >> 10} kB")  # fmt: skip
