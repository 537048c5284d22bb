"""A PoD for HPCC's figures on flow control: racks of 25 Gbps under two leaves, Web Search, DCQCN, HPCC and ACC."""

from __future__ import annotations

from typing import Any

from fluidcc.builders import clos
from fluidcc.builders.workloads import Rows, poisson_flows
from fluidcc.proofs.shared.runs import GBPS
from fluidcc.scenario.model import Scenario
from fluidcc.schemes import acc, dcqcn, hpcc

LINE, FABRIC = 25 * GBPS, 100 * GBPS
POD: dict[str, Any] = {"pods": 1, "tors": 4, "leaves": 2, "spines": 0, "hosts": 8, "planes": False}
HOSTS = POD["tors"] * POD["hosts"]
BUFFER = 9e6  # bytes
PRESETS = {
    "DCQCN": dcqcn.PRESETS["hpcc-eval"],
    "HPCC": hpcc.PRESETS["hpcc-eval"],
    "ACC": acc.PRESETS["hpcc-eval"],
}
NOTES = (
    "a small PoD in place of section 2.3's of 230 servers: 4 racks of 8 hosts with 25 Gbps under 2 leaves, 100 Gbps "
    "between switches, 1 us each; as there, a rack's links up carry about what its hosts send",
    "switches: section 5.1's PFC (1/8 of what is free), and of its 32 MB the share of a ToR's 10 ports here to the "
    "PoD's 36, 9 MB; DCQCN with a vendor's parameters, Kmin 100 KB, Kmax 400 KB and Pmax 20 % at 25 Gbps",
)


def web_search(load: float, until: float, seed: int) -> Rows:
    """Rows of Web Search between the PoD's hosts."""
    return poisson_flows(HOSTS, load=load, until=until, rate=LINE, seed=seed)


def pod(name: str, rows: Rows, seed: int, **network: Any) -> Scenario:
    """The PoD with a scheme of `PRESETS` and its marking, and flows."""
    preset = PRESETS[name]
    marking = None if preset.marking is None else preset.marking_at
    options = {**preset.network, "buffer": BUFFER, "ecmp_seed": seed, **network}
    return clos(rows, **POD, rate=LINE, fabric_rate=FABRIC, scheme=preset.scheme, marking=marking, **options)
