"""HPCC's figures with DCQCN's vendor numbers, in the paper's algorithm and in the NIC's own.

    python -m benchmarks.vendor_nic_in_figures [FIGURE ...] [--full]

HPCC's section 5.1 names a vendor's parameters, not the algorithm that they ran in. The figures (preset ``hpcc-eval``)
have DCQCN as published; here each is made a second time with the NIC as its vendor documents it (preset ``vendor``:
target rates kept, alpha in slots, one cut in 4 us), quick unless ``--full``, and all values that differ are printed.
"""

from __future__ import annotations

import sys
import tempfile

import fluidcc as fc
from fluidcc.proofs.hpcc import pod, testbed

FIGURES = ("hpcc-fig9ab", "hpcc-fig9cd", "hpcc-fig9ef", "hpcc-fig9gh", "hpcc-fig1", "hpcc-case1")
PAPERS, NIC = fc.preset("dcqcn", "hpcc-eval"), fc.preset("dcqcn", "vendor").scheme


def values(name: str, scheme: fc.DCQCN, quick: bool) -> tuple[dict[str, float | bool], dict[str, bool]]:
    """A figure's values with a DCQCN, and whether each that is expected is as expected."""
    testbed._SCHEMES["dcqcn"] = scheme
    pod.PRESETS["DCQCN"] = PAPERS._replace(scheme=scheme)
    with tempfile.TemporaryDirectory() as folder:
        found = fc.reproduce(name, folder, quick=quick)
    return found.values, {key: bool(check.holds(found.values[key])) for key, check in found.expected.items()}


def main() -> None:
    """Print the table."""
    known = [name for name in FIGURES if name in fc.list_figures()]
    names = [name for name in sys.argv[1:] if not name.startswith("--")] or known
    for name in names:
        ours, theirs = (values(name, scheme, "--full" not in sys.argv) for scheme in (PAPERS.scheme, NIC))
        print(f"{name}: the paper's algorithm, the NIC's")
        for key, value in ours[0].items():
            if theirs[0][key] != value:
                verdict = "" if ours[1].get(key) == theirs[1].get(key) else "  <- the verdict changes"
                print(f"  {key}: {value:.5g}, {theirs[0][key]:.5g}{verdict}", flush=True)


if __name__ == "__main__":
    main()
