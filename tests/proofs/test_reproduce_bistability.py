"""The picture of DCQCN's two long-run behaviours."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.figures import made


@pytest.mark.slow
def test_a_rest_and_a_cycle_side_by_side(tmp_path: Path) -> None:
    result, data = made("dcqcn-bistability", tmp_path, (1650, 690))
    assert result.values["one_flow_more_than_8_sets_it_cycling"]
    # Ten flows settle or cycle; from 15 on they cycle, whatever the start; at 80 us they do from 4 on.
    assert int(data["region"].sel(map_flows=12, delay=50e-6)) == 1
    assert (data["region"].sel(map_flows=[16, 20]) == 2).all()
    assert (data["region"].sel(map_flows=4).values == [0, 2]).all()
