"""Closed loops on fabrics: transfers follow each other on a path of their own, and runs end in time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.workloads.fabrics import Traffic, named_topology

SHAPE = "dcqcn-clos"
SENT: dict[str, Any] = {"workload": "hadoop", "pairs": 6, "rebuild": 3, "until": "400us"}


@pytest.fixture(scope="module")
def found() -> fc.fabrics.FabricStudy:
    return fc.fabric("dcqcn", SHAPE, since="100us", seeds=[2], **SENT)


def rows_of() -> list[Any]:
    return list(Traffic(**SENT).rows(named_topology(SHAPE), seed=2))


def test_a_transfer_begins_as_the_last_one_is_acknowledged(found: fc.fabrics.FabricStudy) -> None:
    flows = found.runs[0].slowdown
    began = dict(zip(flows["flow"].values, flows["start"].values, strict=True))
    ended = dict(zip(flows["flow"].values, flows["start"].values + flows["completion"].values, strict=True))
    followed = 0
    for i, row in enumerate(rows_of()):
        name, before = f"flow {i}", f"flow {i - 1}"
        if len(row) > 4 and row[4] and name in began:
            assert began[name] == pytest.approx(ended[before], abs=1e-12)
            followed += 1
    assert followed > 30


def test_transfers_of_a_pair_take_one_path() -> None:
    rows = rows_of()
    scenario = named_topology(SHAPE).scenario(rows, scheme="dcqcn", ecmp_seed=2)
    of_pairs: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    first = 0
    for i, (row, flow) in enumerate(zip(rows, scenario.flows, strict=True)):
        if len(row) < 5:
            break
        first = i if row[4] == () else first
        of_pairs.setdefault((first,), set()).add(flow.path)
    assert all(len(paths) == 1 for paths in of_pairs.values())
    # Flows between two hosts that do not follow each other are spread.
    spread = named_topology(SHAPE).scenario([(0, 15)] * 40, scheme="dcqcn")
    assert len({flow.path for flow in spread.flows}) > 1


def test_the_run_ends_and_says_what_did_not(found: fc.fabrics.FabricStudy) -> None:
    run = found.runs[0]
    assert run.numbers["horizon_s"] == pytest.approx(400e-6)
    assert run.numbers["window_s"] == pytest.approx([100e-6, 400e-6])
    # The rebuild's three, and at most one transfer of each pair; what never began is no flow of the run.
    assert 3 <= run.slowdown.unfinished <= 3 + 6
    assert np.isfinite(run.slowdown["start"].values).all()
    assert found.topology.hosts == tuple(range(20))
    assert "hadoop by 6 pairs, rebuild from 3" in repr(found)


def test_goodput_is_what_the_window_saw(found: fc.fabrics.FabricStudy) -> None:
    run = found.runs[0]
    goodput = run.slowdown["goodput"].values
    assert goodput.sum() == pytest.approx(run.numbers["goodput_bytes_per_s"], rel=1e-9)
    flows = run.slowdown
    inside = (flows["start"].values > 100e-6) & np.isfinite(flows["completion"].values)
    np.testing.assert_allclose(goodput[inside] * 300e-6, flows["size"].values[inside])


def test_a_later_since_is_another_run(tmp_path: Any) -> None:
    a, b, c = (fc.fabric("dcqcn", SHAPE, since=since, folder=tmp_path, **SENT).runs[0] for since in (0, "0s", "50us"))
    assert a.numbers["window_s"] == b.numbers["window_s"] != c.numbers["window_s"]
    assert a.slowdown["completion"].equals(c.slowdown["completion"])
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"workload": "permutation"}, "pairs: need flows' sizes"),
        ({"workload": None}, "pairs: need flows' sizes"),
        ({"pairs": 0}, "pairs"),
        ({"rebuild": 20}, "rebuild: 20 senders"),
        ({"until": None}, "until"),
    ],
)
def test_what_does_not_fit_together(changed: dict[str, Any], word: str) -> None:
    with pytest.raises(fc.InputError, match=word):
        fc.fabric("dcqcn", SHAPE, **{**SENT, **changed})


def test_counting_ends_after_it_begins() -> None:
    with pytest.raises(fc.InputError, match="since: counting ends"):
        fc.fabric("dcqcn", SHAPE, since="1ms", **SENT)
