"""The fluid on random scenarios, rows of one batch: units, order of flows and neighbours do not matter to the bit.

Goodput of the fluid is what is sent, so that it exceeds a link's rate while its queue grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.engines.fluid.engine import execute
from fluidcc.engines.fluid.plan import plan_of
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.studies.sweeps.batch import Builder
from fluidcc.units import Rate
from tests.invariants.drawn import rescaled

ROWS, FLOWS = 8, 3
UNTIL, STEP, ALLOWANCE = 2e-3, 0.5e-6, 2e-3  # s
ROUNDING = 1e-9  # of sums in another order, over some thousand steps


def columns(seed: int = 1) -> dict[str, np.ndarray]:
    """Rows of random parking lots."""
    draw = np.random.default_rng(seed)
    found = {
        "rate": draw.choice([1.25e9, 3.125e9, 5e9, 12.5e9], ROWS),
        "delay": draw.integers(1, 9, ROWS) * 1e-6,
        "kmin": draw.integers(5, 40, ROWS) * 1e3,
        "spread": draw.choice([2.0, 8.0], ROWS),
        "pmax": draw.choice([0.05, 0.5, 1.0], ROWS),
    }
    found |= {f"start{i}": draw.integers(0, 200, ROWS) * 1e-6 for i in range(FLOWS)}
    return found | {f"share{i}": draw.choice([0.25, 0.5, 1.0], ROWS) for i in range(FLOWS)}


def lot(order: Sequence[int] = range(FLOWS), time: float = 1.0, size: float = 1.0) -> Builder:
    """Builder of the scenarios of rows, in other units or with their flows in another order."""

    def make(**row: Any) -> Scenario:
        rate = row["rate"] * Rate(1.0)
        made = fc.parking_lot(
            FLOWS,
            rate=rate,
            delay=row["delay"],
            marking=fc.RED(row["kmin"], row["kmin"] * row["spread"], row["pmax"]),
            start=[row[f"start{i}"] for i in range(FLOWS)],
            initial_rate=[rate * row[f"share{i}"] for i in range(FLOWS)],
        )
        found = rescaled(resolve(made), time=time, size=size)
        return Scenario(found.links, tuple(found.flows[i] for i in order), packet_size=found.packet_size)

    return Builder(make)


def measured(build: Builder, rows: dict[str, np.ndarray], time: float = 1.0) -> Any:
    """Statistics of every link and flow over the whole run, rows last; one shape for all of this file."""
    batch = build(rows)
    assert not batch.reasons.any()
    until, step, allowance = (time * each for each in (UNTIL, STEP, ALLOWANCE))
    span = {"until": until, "window": (0.0, until), "dt": step, "queueing_allowance": allowance}
    plan = plan_of(batch.network, samples=64, **span)
    return execute(batch.network, plan, points=ROWS)[0].summary


def test_units_order_and_neighbours_do_not_matter() -> None:
    rows = columns()
    plain = lot()
    one = measured(plain, rows)
    slower, larger = measured(lot(time=2.0), rows, 2.0), measured(lot(size=2.0), rows)
    for name in ("queue_mean", "queue_max", "utilisation"):
        np.testing.assert_array_equal(getattr(slower, name), getattr(one, name), name)
        factor = 1.0 if name == "utilisation" else 2.0
        np.testing.assert_array_equal(getattr(larger, name), factor * getattr(one, name), name)
    np.testing.assert_array_equal(2.0 * slower.rate_mean, one.rate_mean)
    np.testing.assert_array_equal(larger.rate_mean, 2.0 * one.rate_mean)
    order = [0, 2, 1]
    other = measured(lot(order), rows)
    np.testing.assert_allclose(other.rate_mean, one.rate_mean[order], rtol=ROUNDING)
    np.testing.assert_allclose(other.queue_mean, one.queue_mean, rtol=ROUNDING)
    turned = measured(plain, {name: values[::-1] for name, values in rows.items()})
    np.testing.assert_array_equal(turned.queue_mean[:, ::-1], one.queue_mean)
    np.testing.assert_array_equal(measured(plain, rows).rate_mean, one.rate_mean)
    links_carry_no_more_than_their_rate(rows, one)


def links_carry_no_more_than_their_rate(rows: dict[str, np.ndarray], found: Any) -> None:
    """What is sent beyond a link's rate waits, or is on its way to the queue, at line rate at most."""
    assert (found.utilisation <= 1 + ROUNDING).all()
    assert (found.queue_min >= 0).all()
    assert (found.rate_mean >= 0).all()
    for link, flows in ((0, [0, 1]), (1, [0, 2])):
        on_the_way = 3 * rows["delay"] * rows["rate"] * len(flows)
        most = rows["rate"] * UNTIL + found.queue_max_whole_run[:2].sum(axis=0) + on_the_way
        assert (found.rate_mean[flows].sum(axis=0) * UNTIL <= most * (1 + ROUNDING)).all(), link
