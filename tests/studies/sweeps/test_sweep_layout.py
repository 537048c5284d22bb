"""Variables, coordinates and attributes of a sweep's dataset."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.fluid.network import REASONS
from fluidcc.errors import InputError
from fluidcc.results.grid import Grid
from fluidcc.results.schema import METRICS
from fluidcc.studies.sweeps.store import PENDING, attributes_of, coordinates_of, variables_of, with_reasons, words

GRID = Grid({"kmin": np.array([5e3, 1e4]), "n": np.array([1.0, 2.0, 3.0])})


def test_a_point_has_metrics_rates_and_a_reason() -> None:
    found = variables_of(GRID)
    assert set(found) == {*METRICS, "rate_bytes_per_s", "reason"}
    assert all(each.dims == ("kmin", "n") for name, each in found.items() if name != "rate_bytes_per_s")
    assert found["rate_bytes_per_s"].dims == ("kmin", "n", "flow")
    assert all(np.isnan(each.missing) for name, each in found.items() if name != "reason")
    assert found["reason"].missing == PENDING == -1
    assert found["reason"].attrs["flag_values"] == list(range(len(REASONS)))
    assert found["jain"].attrs["units"] == METRICS["jain"][0]


def test_seeds_add_errors_values_by_seed_and_counts_that_begin_at_0() -> None:
    found = variables_of(GRID, seeds=3)
    more = {f"{name}{end}" for name in METRICS for end in ("_se", "_by_seed")} | {"seeds", "by_packets"}
    assert set(found) - set(variables_of(GRID)) == more
    assert found["jain_se"].dims == ("kmin", "n")
    assert found["jain_by_seed"].dims == ("kmin", "n", "seed")
    for name in ("seeds", "by_packets"):
        assert (found[name].dims, found[name].missing, found[name].missing.dtype) == (("kmin", "n"), 0, np.int32)


def test_step_errors_are_there_if_asked_for() -> None:
    found = set(variables_of(GRID, errors=True)) - set(variables_of(GRID))
    assert found == {"queue_error_rel", "rate_error_rel"}


@pytest.mark.parametrize("name", ["jain", "flow", "seed", "reason", "rate_bytes_per_s"])
def test_a_swept_name_that_a_result_has_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"over {name}: a result has that name"):
        variables_of(Grid({"kmin": np.ones(1), name: np.ones(1)}))


def test_names_of_what_is_not_asked_for_are_free() -> None:
    assert "seeds" not in variables_of(Grid({"seeds": np.ones(1)}))["jain"].attrs
    with pytest.raises(InputError, match="over seeds"):
        variables_of(Grid({"seeds": np.ones(1)}), seeds=2)


def test_coordinates_have_units_flows_names_and_seeds_from_1() -> None:
    scenario = fc.incast(2)
    flows = (dataclasses.replace(scenario.flows[0], name="a"), dataclasses.replace(scenario.flows[1], name=""))
    found = coordinates_of(GRID, dataclasses.replace(scenario, flows=flows))
    assert found["kmin"][2] == {"units": "bytes"}
    assert found["n"][2] == {}
    assert found["flow"][1] == ["a", "flow 1"]
    assert "seed" not in found
    assert coordinates_of(GRID, scenario, 3)["seed"][1].tolist() == [1, 2, 3]


def test_other_reasons_are_told_in_words_of_one_line() -> None:
    found = with_reasons(variables_of(GRID), ["ok", "kmin: too large; give less"])["reason"]
    assert found.attrs["flag_values"] == [0, 1]
    assert words(found.attrs) == ["ok", "kmin: too large, give less"]
    assert found.attrs["long_name"] == "why a point failed"
    assert words({}) == list(REASONS)


def test_the_lowest_target_of_all_flows_counts() -> None:
    two = fc.incast(2, scheme=fc.HPCC(eta=0.9))
    other = dataclasses.replace(two.flows[1], scheme=fc.HPCC(eta=0.95))
    assert attributes_of(dataclasses.replace(two, flows=(two.flows[0], other)))["target_utilisation"] == 0.9
    assert attributes_of(fc.incast(2))["target_utilisation"] == 1.0
