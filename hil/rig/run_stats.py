"""Statistics of a run as the report takes them: written once a second to run.json and at the end."""

from __future__ import annotations

from typing import Any

from torqueloop.cython_kernels.account import PHASES
from torqueloop.hil.rig.parts import STORED, RigParts
from torqueloop.hil.rig.plan import RigPlan
from torqueloop.hil.rig.safe_state import describe

#: last part of an energy output's name -> its place in the balance (components' outputs, see core/components)
_LOST = ("heat", "loss")
#: what the kernel counts for the loop's thread, from arming on
USAGE = ("minor_faults", "major_faults", "voluntary_switches", "involuntary_switches")


class Energy:
    """Change of the model's energy outputs since arming, sorted for the balance."""

    def __init__(self, plan: RigPlan, parts: RigParts) -> None:
        names = [n for n, u in zip(plan.compiled.output_names, plan.compiled.output_units, strict=True) if u == "J"]
        self._names, self._slots, self._rig = names, [plan.table.slot(n) for n in names], parts.rig
        self._control = parts.control
        self._start = dict(zip(plan.compiled.output_names, parts.model.outputs(parts.state), strict=True))

    def balance(self) -> dict[str, dict[str, float]]:
        """supplied, lost, stored: {name: J}."""
        terms: dict[str, dict[str, float]] = {"supplied": {}, "lost": {}, "stored": {}}
        for name, value in zip(self._names, self._rig.values(self._slots), strict=True):
            kind = "stored" if name in STORED else "lost" if name.rpartition(".")[2] in _LOST else "supplied"
            terms[kind][name] = value - float(self._start[name])
        if work := self._control.work:
            terms["supplied"]["changes of parameters"] = work
        return terms


def _grace_points(counters: dict[str, Any]) -> int:
    """Grid points that belong to the start-up grace."""
    return int(counters["grace"]["ticks"] + counters["grace"]["dropped"])


def run_stats(
    plan: RigPlan,
    parts: RigParts,
    energy: Energy,
    degraded: list[str],
    links: dict[str, Any],
    note: str = "",
    real: bool = True,
    took_s: float | None = None,
    whole: bool = True,
) -> dict[str, Any]:
    """All numbers of the run so far. Called while the loop runs: single values are exact, sums may be one tick apart.
    took_s: wall time since arming. whole: with the histograms of the phases and the worst ticks."""
    counters = parts.rig.counters()
    clock, account = plan.config.clock, parts.rig.account
    cause = parts.rig.cause()
    text = describe(cause, plan.cause_name(cause))
    if note and cause["cause"] in ("thread", "vehicle_data", "bus"):
        text = f"{note} (tick {cause['tick']})"
    stats: dict[str, Any] = {
        "ticks": counters["ticks"],
        "missed": counters["missed"],
        "late_started": counters["late_started"],
        "dropped": counters["dropped"],
        # of all grid points after the grace, also those dropped
        "missed_ratio": counters["missed"] / max(1, counters["grid_points"] - _grace_points(counters)),
        "overruns": counters["overruns"],
        "overruns_in_row_max": counters["overruns_in_row_max"],
        "slip_s": counters["slip_s"],
        "compute_us": account.compute.summary(),
        "policy": clock.policy,
        "max_catch_up": clock.max_catch_up,
        "grace_s": clock.grace_s,
        "spin_us": clock.spin_us,
    }
    if whole:
        stats["phase_us"] = {name: h.summary() for name, h in zip(PHASES, account.phases, strict=True)}
        stats["worst"] = account.worst()
    if took_s is not None:
        stats["run_s"] = took_s
        stats["real_time_factor"] = counters["ticks"] * parts.rig.tick_s / took_s if took_s > 0 else 0.0
    if real:
        stats["margin_min_us"] = counters["margin_min_us"]
        stats["wake_lateness_us"] = account.lateness.summary()
        # the small margins matter: they are at the lower end
        low = {name: account.margin.percentile(p) / 1e3 for name, p in (("p0_1", 0.1), ("p1", 1.0))}
        stats["margin_us"] = {**account.margin.summary(), **low}
        stats.update({name: counters[name] for name in USAGE})
        stats["grace"] = counters["grace"]
    if parts.rx is not None and parts.tx is not None:
        stats["can"] = {
            "rx": parts.rx.counters(),
            "tx": parts.tx.counters(),
            "rx_frames": counters["rx_frames"],
            "rx_bad": counters["rx_bad"],
            "tx_frames": counters["tx_frames"],
            "tx_dropped": counters["tx_dropped"],
            "rx_ring_dropped": counters["rx_ring_dropped"],
            **(parts.port.counters() if parts.port is not None else {}),
            **links.get("can", {}),
        }
    if plan.vehicle:
        stats["vehicle"] = {
            "taken": counters["vehicle_taken"],
            "refused": counters["vehicle_refused"],
            "stale_ticks": counters["vehicle_stale_ticks"],
            "age_max_ms": counters["vehicle_age_max_ms"],
            "echo_max_ticks": counters["vehicle_echo_max_ticks"],
            **links.get("vehicle", {}),
        }
    if "control" in links:
        stats["control"] = links["control"]
    stats["peers"] = links.get("peers", {})
    stats["recording"] = links.get("recording", {})
    stats["safe_state"] = {
        "latched": cause["latched"],
        "cause": text if cause["latched"] else "",
        "kind": cause["cause"],
        "step": cause["tick"],
        "frozen": cause["frozen"],
    }
    if plan.faults:
        stats["faults"] = parts.faults.stats(plan.config.clock.tick_s)
    limited = zip(plan.guards, parts.faults.safety.guard_counts(), strict=True)
    stats["outputs_limited"] = {guard.name: ticks for guard, ticks in limited if ticks}
    stats["degraded"] = list(degraded)
    stats["solver"] = dict(parts.state.counters)
    stats["kernel"] = parts.model.kernel_name
    stats["energy"] = energy.balance()
    stats["hash"] = f"{parts.rig.state_hash:016x}"
    return stats
