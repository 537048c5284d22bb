"""Statements of papers on flow sizes in published workloads, against the tables of `fluidcc.fabrics.poisson_flows`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.proofs.papers import ACC, HPCC, VAI
from fluidcc.proofs.shared import sample
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main
from fluidcc.units import Seconds

SEED, FLOWS = 1, 200_000  # drawn; a share's standard error is at most 0.0011
ERRORS = 5  # standard errors that drawn and tabled may differ by


def share_below(table: str, size: float) -> float:
    """Share of a workload's flows of at most a size [bytes], by its table."""
    from fluidcc.builders.workloads import SIZES

    at, share = np.array(SIZES[table]).T
    return float(np.interp(size, at, share))


def drawn(table: str) -> np.ndarray:
    """Sizes of some 200 000 flows [bytes]."""
    from fluidcc.builders.workloads import SIZES, poisson_flows

    at, share = np.array(SIZES[table]).T
    mean = float(np.diff(share) @ (at[1:] + at[:-1]) / 2)
    rows = poisson_flows(2, load=0.5, until=Seconds(FLOWS * mean / 12.5e9), rate="100Gbps", sizes=table, seed=SEED)
    return rows[:, 3]


def found(table: str, printed: dict[float, tuple[float, bool]], **more: Any) -> Finding:
    """Printed shares by size: of flows below it, or (False) above; each to half of a percent, as they are printed."""
    below = {size: share_below(table, size) for size in printed}
    right = all(
        abs((at if less else 1 - at) - share) <= 0.005 + 1e-9
        for (share, less), at in zip(printed.values(), below.values(), strict=True)
    )
    sizes = drawn(table)
    return Finding(
        {"as printed": right},
        {f"share_below_{size / 1e3:g}_KB": share for size, share in below.items()} | {"flows_drawn": len(sizes)},
        [
            Way(
                f"1 + share of flows below {size / 1e3:g} KB: table, drawn",
                1 + share,
                1 + float((sizes <= size).mean()),
                ERRORS * float(np.sqrt(share * (1 - share) / len(sizes))) + 1e-9,
            )
            for size, share in below.items()
        ],
        sample=f"the verdict is from the table, exactly; beside it {len(sizes)} drawn flows, seed {SEED}: "
        + "; ".join(
            f"at most {size / 1e3:g} KB {sample.share(int((sizes <= size).sum()), len(sizes))}" for size in below
        ),
        **more,
    )


@claim("hpcc-53-hadoop", HPCC, "5.3", "FB_Hadoop: 90 % of the flows are shorter than 120 KB")
def hadoop_of_hpcc() -> Finding:
    return found("hadoop", {120e3: (0.9, True)})


@claim("vai-6-hadoop", VAI, "VI-A", "Hadoop: 95 % of the flows below 300 KB, 2.5 % above 1 MB")
def hadoop_of_vai() -> Finding:
    return found("hadoop", {300e3: (0.95, True), 1e6: (0.025, False)})


@claim("vai-6-websearch", VAI, "VI-A", "WebSearch: 30 % of the flows above 1 MB")
def websearch() -> Finding:
    return found("web-search", {1e6: (0.3, False)})


@claim("vai-6-storage", VAI, "VI-A", "Alibaba storage: 96 % of the flows below 128 KB, all below 2 MB")
def storage() -> Finding:
    share = share_below("alibaba-storage", 128e3)
    return found(
        "alibaba-storage",
        {128e3: (0.96, True), 2e6: (1.0, True)},
        restricted=0.96 <= share < 0.97 and share_below("alibaba-storage", 2e6) == 1,
        conditions=f"cut off to whole percents: {share:.1%} in the table of HPCC's public simulator",
    )


@claim("acc-64-hadoop", ACC, "6.1, 6.4", "Hadoop: around 70 % of the flows smaller than 10 KB, 55 % less than 1 KB")
def hadoop_of_acc() -> Finding:
    first = share_below("hadoop", 1e3)
    return found(
        "hadoop",
        {10e3: (0.7, True), 1e3: (0.55, True)},
        correction=f"{first:.0%} are of at most 1 KB in the table of HPCC's public simulator; the 70 % stand",
        corrected=abs(share_below("hadoop", 10e3) - 0.7) <= 0.005,
    )


if __name__ == "__main__":
    main(__name__)
