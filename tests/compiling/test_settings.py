"""Whatever the user has set in JAX for computations of their own, ours give the same numbers, and leave it as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from fluidcc import theory
from fluidcc.compiling import functions
from fluidcc.results.result import same

THEIRS = {
    "jax_debug_nans": True,
    "jax_debug_infs": True,
    "jax_disable_jit": True,
    "jax_numpy_dtype_promotion": "strict",
    "jax_numpy_rank_promotion": "raise",
    "jax_transfer_guard": "disallow",
    "jax_default_matmul_precision": "bfloat16",
}
OTHERS = ("acc", "swift", "timely", "dctcp", "nscc")
A, C, R = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([1.0, 2.0]), np.array([0.1, 0.2])


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Set all of it, in a process that has compiled nothing."""
    before, held = {name: getattr(jax.config, name) for name in THEIRS}, functions._held.copy()
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path / "cache"))

    def change() -> None:
        functions._held.clear()
        for name, value in THEIRS.items():
            jax.config.update(name, value)

    yield change
    for name, value in before.items():
        jax.config.update(name, value)
    functions._held.update(held)


def scenario(g: Any = 1 / 256) -> fc.Scenario:
    return fc.incast(2, scheme=fc.DCQCN(g=g))


def run(scheme: str) -> fc.Trace:
    return fc.simulate(fc.incast(2, scheme=scheme), "100us", estimate_error=False)


def unchanged(compute: Callable[[], Any], change: Callable[[], None]) -> None:
    expected = compute()
    change()
    found = compute()
    assert all(getattr(jax.config, name) == value for name, value in THEIRS.items())
    assert found.identical(expected) if hasattr(found, "identical") else same(found, expected)


@pytest.mark.parametrize("scheme", ["dcqcn", pytest.param("hpcc", marks=pytest.mark.slow)])
def test_runs(scheme: str, theirs: Callable[[], None]) -> None:
    unchanged(partial(run, scheme), theirs)


def test_measured_runs(theirs: Callable[[], None]) -> None:
    unchanged(lambda: jax.tree.map(np.asarray, dict(fc.measure(scenario(), until="100us"))), theirs)


@pytest.mark.parametrize(
    "compute",
    [
        lambda: theory.pareto(A, C, R).rates,
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (
                lambda: theory.additive_increase(A, C, R, increase=0.01, steps=10).rates,
                lambda: theory.alpha_fair(A, C, R, alpha=1.0, increase=0.01, steps=10).rates,
                lambda: theory.shared_decrease(["10Gbps", "30Gbps"], "40Gbps", base_rtt="10us", until="200us").dataset,
            )
        ),
    ],
    ids=["pareto", "additive increase", "alpha-fair", "shared decrease"],
)
def test_recursions(compute: Callable[[], Any], theirs: Callable[[], None]) -> None:
    unchanged(compute, theirs)


@pytest.mark.slow
@pytest.mark.parametrize(
    "compute",
    [
        lambda: repr(fc.equilibria(scenario())),
        lambda: repr(fc.stability(scenario())),
        lambda: fc.simulate(scenario(), "100us", dtype="float32"),
        lambda: fc.sweep(scenario, over={"g": [1 / 256, 1 / 16]}, until="100us"),
        lambda: fc.studies.stability_chart(scenario, over={"g": [1 / 256, 1 / 16]}),
        lambda: fc.studies.hysteresis(scenario, over={"g": [1 / 256, 1 / 16]}, dwell="1ms"),
        lambda: repr(fc.limit_cycle(scenario(1 / 16))),
        *(partial(run, scheme) for scheme in OTHERS),
    ],
    ids=["equilibria", "stability", "float32", "sweep", "chart", "hysteresis", "cycle", *OTHERS],
)
def test_everything_else(compute: Callable[[], Any], theirs: Callable[[], None]) -> None:
    unchanged(compute, theirs)


NUMBERS = {
    "float32": np.float32(0.004),
    "array of no dimension": np.array(0.004, np.float32),
    "float16": np.float16(0.004),
    "of JAX": jnp.float32(0.004),
}


@pytest.mark.parametrize("g", NUMBERS.values(), ids=NUMBERS.keys())
def test_numbers_of_less_precision_are_the_numbers_that_they_are(g: Any) -> None:
    """They do not make the run one in float32."""
    runs = [fc.simulate(scenario(each), "100us", estimate_error=False) for each in (g, float(g))]
    assert runs[0]["rate"].dtype == np.float64
    assert runs[0].identical(runs[1])


@pytest.mark.parametrize("array", [np.array, jnp.array], ids=["NumPy's", "JAX's"])
def test_swept_values_of_less_precision(array: Any) -> None:
    values = array([1 / 256, 0.06], dtype="float32")
    runs = [
        fc.sweep(scenario, over={"g": each}, until="100us", estimate_error=False)
        for each in (values, [float(v) for v in values])
    ]
    assert runs[0].identical(runs[1])
