"""The recursions step by step in plain Python, beside the sources run by NumPy: loads, delays, noise, registers."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidcc.theory.recursion import additive, pareto, registers
from tests.engines.fluid.in_numpy import Lax

A = np.array([[1.0, 1, 0], [0, 1, 1], [0, 0, 0]])  # nobody uses the last link
C = np.array([10.0, 6.0, 3.0])
R0 = np.array([2.0, 1.0, 4.0])
LINKS = ([0], [0, 1], [1])
TARGET, STEP = 0.9, 0.25


class Drawn:
    """Noise that tells by which step's key it was drawn."""

    @staticmethod
    def fold_in(key: Any, n: Any) -> Any:
        return key + n

    @staticmethod
    def normal(key: Any, shape: Any) -> Any:
        return np.sin(key + np.arange(np.prod(shape)).reshape(shape))


@pytest.fixture(autouse=True)
def _in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    lax = SimpleNamespace(
        scan=Lax.scan, map=lambda f, xs: tuple(map(np.stack, zip(*map(f, zip(*xs, strict=True)), strict=True)))
    )
    lax.fori_loop = lambda first, last, body, state: Lax.fori_loop(first, last, body, state)
    jax = SimpleNamespace(lax=lax, random=Drawn)
    for module in (additive, registers, pareto):
        monkeypatch.setattr(module, "jnp", np)
        monkeypatch.setattr(module, "jax", jax)


def observed(U: float, link: int, path: int, n: int, noise: float) -> float:
    """A utilisation as a path observes it, times a lognormal number of mean 1."""
    return U * math.exp(noise * math.sin(n + 3 * link + path) - noise**2 / 2)


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize(("every", "ages"), [([1, 1, 1], [0, 0, 0]), ([1, 2, 3], [0, 1, 2]), ([2, 1, 1], [3, 0, 1])])
def test_an_additive_increase_by_what_was_seen(every: list[int], ages: list[int], noise: float) -> None:
    """R Ut / U + a by the most loaded link, some steps old, in steps that are the path's; before the start as there."""
    rates, loads = [R0.tolist()], []
    for n in range(8):
        loads.append([sum(A[i, j] * rates[-1][j] for j in range(3)) / C[i] for i in range(3)])
        new = []
        for j in range(3):
            seen = loads[max(n - ages[j], 0)]
            U = max(observed(seen[i], i, j, n, noise) for i in LINKS[j])
            new.append(rates[-1][j] * TARGET / U + STEP if (n + 1) % every[j] == 0 else rates[-1][j])
        rates.append(new)
    numbers = (A, C, R0, np.float64(STEP), np.float64(TARGET), np.array(every), np.array(ages), np.float64(noise), 0.0)
    found = additive._run.function(*numbers, steps=8, depth=max(ages) + 1)
    np.testing.assert_allclose(found, rates, rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.5, 2.0])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_registers_of_links_make_a_rate(alpha: float, noise: float) -> None:
    """Each grows by Ut / U of its own link and a; the rate is (sum R^-alpha)^(-1/alpha), of the path's links alone."""
    held = [[R0[j] for j in range(3)] for _ in range(3)]

    def rate(j: int) -> float:
        return sum(held[i][j] ** -alpha for i in LINKS[j]) ** (-1 / alpha)

    rates = [[rate(j) for j in range(3)]]
    for n in range(8):
        loads = [sum(A[i, j] * rates[-1][j] for j in range(3)) / C[i] for i in range(3)]
        for i in range(2):
            for j in range(3):
                held[i][j] = held[i][j] * TARGET / observed(loads[i], i, j, n, noise) + STEP
        rates.append([rate(j) for j in range(3)])

    def logsumexp(x: Any, axis: int, b: Any) -> Any:
        return np.log((b * np.exp(x)).sum(axis=axis))

    numbers = (A, C, R0, np.float64(alpha), np.float64(STEP), np.float64(TARGET), np.float64(noise), 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registers, "logsumexp", logsumexp)
        found = registers._run.function(*numbers, steps=8)
        np.testing.assert_allclose(found, rates, rtol=1e-12)
        patch.setattr(registers, "_CEILING", math.log(1.5))
        low = registers._run.function(*numbers, steps=8)
    # A register stops at its ceiling over its start: a path of one link at 1.5 times its first rate.
    assert low[:, 0].max() == pytest.approx(1.5 * R0[0])
    assert (low <= 1.5 * low[0] * (1 + 1e-12)).all()


def test_the_last_step_of_many_networks_is_that_of_each() -> None:
    """R / max U over a path's links, with the networks on the last axis, in chunks."""
    incidence = A[:2]
    starts = np.array([[2.0, 1.0, 4.0], [1.0, 1.0, 1.0], [5.0, 0.5, 0.1], [3.0, 3.0, 3.0]])

    def chunks(values: Any) -> Any:
        return np.moveaxis(np.asarray(values).reshape(2, 2, *np.shape(values)[1:]), 1, -1)

    R, U = pareto._ends.function(
        chunks(np.tile(incidence, (4, 1, 1))), chunks(np.tile(C[:2], (4, 1))), chunks(starts), steps=3
    )
    rows = pareto._trajectory.function(incidence, C[:2], starts[2], steps=3)
    for k, start in enumerate(starts):
        rates = start.tolist()
        seen = [rates]
        for _ in range(3):
            loads = [sum(incidence[i, j] * rates[j] for j in range(3)) / C[i] for i in range(2)]
            rates = [rates[j] / max(loads[i] for i in LINKS[j]) for j in range(3)]
            seen.append(rates)
        loads = [sum(incidence[i, j] * rates[j] for j in range(3)) / C[i] for i in range(2)]
        np.testing.assert_allclose(R[k // 2, :, k % 2], rates, rtol=1e-13)
        np.testing.assert_allclose(U[k // 2, :, k % 2], loads, rtol=1e-13)
        if k == 2:
            np.testing.assert_allclose(rows, seen, rtol=1e-13)
