"""The symbolic equilibria: the same as numeric ones, and the same as on the documentation page."""

from __future__ import annotations

import dataclasses
import importlib
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy

import fluidcc as fc
from fluidcc.contract.bind import bind
from fluidcc.proofs.verdict.registry import list_claims
from fluidcc.scenario.model import resolve
from fluidcc.schemes.swift import fluid as swift
from fluidcc.schemes.timely import PRESETS as TIMELY
from fluidcc.schemes.timely import fluid as timely
from fluidcc.theory.control.equilibrium import equilibria

ROOT = Path(__file__).parents[2]
TABLE_14 = {"C": 5e6, "tau": 50e-6, "tauprime": 55e-6, "T": 55e-6, "R_AI": 5e3, "B": 1e4, "F": 5}


@pytest.fixture(scope="module")
def proof() -> Any:
    """The module of claims, with the formulas that it imports."""
    return importlib.import_module("fluidcc.proofs.equilibria.marking")


@pytest.fixture(scope="module")
def found(proof: Any) -> dict[str, sympy.Eq]:
    return proof.formulas()


def test_the_page_shows_what_the_code_derives(found: dict[str, sympy.Eq]) -> None:
    page = (ROOT / "docs" / "theory" / "equilibria.md").read_text(encoding="utf-8")
    shown = re.findall(r"<!-- (\S+) -->\n\$\$\n(.*)\n\$\$\n", page)
    assert dict(shown) == {name: sympy.latex(formula) for name, formula in found.items()}
    assert len(shown) == len(found)
    writer = importlib.import_module("fluidcc.proofs.equilibria.page")
    assert writer.written(page) == page


@pytest.mark.parametrize("flows", [2, 5, 14])
def test_dcqcn_rests_where_the_formulas_say(proof: Any, found: dict[str, sympy.Eq], flows: int) -> None:
    """At fc.equilibrium's marking both sides are equal; 1e-9, the accuracy of its root."""
    fixed_point = fc.equilibrium(fc.incast(1, multiplicity=flows)).as_dict()
    at = TABLE_14 | {"N": flows, "p": fixed_point["marking_probability"]}
    at["R"] = proof.value(found["dcqcn.rate"].rhs, **at)
    assert 1e3 * at["R"] == pytest.approx(fixed_point["rate_bytes_per_s"], rel=1e-9)
    at["alpha"] = proof.value(found["dcqcn.alpha"].rhs, **at)
    assert at["alpha"] == pytest.approx(fixed_point["alpha"], rel=1e-9)
    short = importlib.import_module("fluidcc.proofs.equilibria.formulas").SHORT
    left, right, gap = (
        proof.value(side.subs(short), **at) for side in (*found["dcqcn.marking"].args, found["dcqcn.target_rate"].rhs)
    )
    assert left == pytest.approx(right, rel=1e-9)
    assert 1e3 * (at["R"] + gap) == pytest.approx(fixed_point["target_rate_bytes_per_s"], rel=1e-9)


@pytest.mark.parametrize(("flows", "too_high"), [(2, 0.19), (8, 0.28), (32, 0.44)])
def test_small_p_is_too_high_by(proof: Any, found: dict[str, sympy.Eq], flows: int, too_high: float) -> None:
    """Half a percent: what is stated has whole percents. Beyond 14 flows the line is extended beyond kmax."""
    fixed_point = fc.equilibrium(fc.incast(1, multiplicity=flows)).as_dict()
    at = TABLE_14 | {"R": TABLE_14["C"] / flows}
    at["A"] = proof.value(found["dcqcn.small.sum"].rhs, **at)
    leading = proof.value(found["dcqcn.small.leading"].rhs, **at) ** (1 / 3)
    assert leading / fixed_point["marking_probability"] - 1 == pytest.approx(too_high, abs=0.005)
    assert fixed_point["on_ramp"] is (flows <= 14)


def test_hpcc_in_numbers(found: dict[str, sympy.Eq]) -> None:
    """A tenth of the headroom by hand: lambdified, so that the formulas can be used so."""
    one_link, windows, rates, queue = (
        sympy.lambdify(sorted(found[name].rhs.free_symbols, key=str), found[name].rhs)
        for name in ("hpcc.one_link", "hpcc.class.windows", "hpcc.class.rates", "hpcc.class.queue")
    )
    assert one_link(100.0, 16, 0.95, 0.5) == pytest.approx(0.95 + 0.08)  # C, N, U_target, a
    assert windows(100.0, 16, 2.0, 1.0, 0.95) == pytest.approx(0.95 + 0.08)  # B, N, T, W_AI, eta
    assert rates(60.0, 16, 0.5, 0.95) == pytest.approx(0.95 / (1 - 8 / 60))  # A, N, a, eta
    assert queue(60.0, 100.0, 2.0, 1.03) == pytest.approx((1.03 - 0.6) * 200)  # A, B, T, U


def test_swift_s_scaling_ends_where_it_should(proof: Any, found: dict[str, sympy.Eq]) -> None:
    at = {"fs_range": 9e-6, "fs_min": 0.1, "fs_max": 50.0}
    at["alpha_fs"] = proof.value(found["swift.slope"].rhs, **at)
    offset = proof.value(found["swift.offset"].rhs, **at)
    assert at["alpha_fs"] == pytest.approx(9e-6 / (0.1**-0.5 - 50**-0.5))
    assert at["alpha_fs"] / 0.1**0.5 + offset == pytest.approx(9e-6)
    assert at["alpha_fs"] / 50**0.5 + offset == pytest.approx(0, abs=1e-18)


def test_patched_timely_in_numbers(proof: Any, found: dict[str, sympy.Eq]) -> None:
    """10 Gb/s, beta 0.008, delta 10 Mb/s, T_low 50 us: q* = q' (1 + N/8)."""
    at = {"C": 1.25e9, "beta": 0.008, "delta": 1.25e6, "qprime": 62.5e3, "T_low": 50e-6, "T_high": 500e-6}
    assert proof.value(found["patched.queue"].rhs, **at, N=4) == pytest.approx(62.5e3 * 1.5)
    assert proof.value(found["patched.most"].rhs, **at) == pytest.approx(72)


@pytest.mark.parametrize("flows", [2, 8, 40])
def test_patched_timely_rests_where_the_formulas_say(proof: Any, found: dict[str, sympy.Eq], flows: int) -> None:
    """Symbolic, and the fluid's own by Newton, with other numbers than the defaults: to 1e-9."""
    scheme = dataclasses.replace(TIMELY["patched"].scheme, rate_ai="8Mbps", t_low="60us", beta=0.01, segment="20KB")
    scenario = fc.incast(1, multiplicity=flows, rate="10Gbps", scheme=scheme)
    at = {"C": 1.25e9, "N": flows, "beta": 0.01, "delta": 1e6, "T_low": 60e-6, "T_high": 500e-6, "qprime": 75e3}
    fixed_point = fc.equilibrium(scenario).as_dict()
    at["q"] = proof.value(found["patched.queue"].rhs, **at)
    assert fixed_point["queue_bytes"] == pytest.approx(at["q"], rel=1e-9)
    assert fixed_point["rate_bytes_per_s"] == pytest.approx(proof.value(found["patched.rate"].rhs, **at), rel=1e-9)
    mode = proof.value(found["patched.fairness"].rhs, **at, **{"tau^*": 20e3 * flows / 1.25e9})
    assert fc.stability(scenario).fairness_root == pytest.approx(complex(mode), rel=1e-9)


def test_the_most_flows_of_patched_timely(proof: Any, found: dict[str, sympy.Eq]) -> None:
    """Newton finds an equilibrium below N_most, and none above."""
    scheme = dataclasses.replace(TIMELY["patched"].scheme, rate_ai="20Mbps")
    at = {"C": 1.25e9, "beta": 0.008, "delta": 2.5e6, "T_low": 50e-6, "T_high": 500e-6}
    most = proof.value(found["patched.most"].rhs, **at)
    assert most == pytest.approx(36)
    for flows, fixed_points in ((35, 1), (37, 0)):
        assert len(equilibria(fc.incast(1, multiplicity=flows, rate="10Gbps", scheme=scheme))) == fixed_points


def test_the_proofs_right_hand_side_of_patched_timely_is_the_fluids(proof: Any) -> None:
    """At an unmoving queue, in random states of three flows: to rounding."""
    fixed_points = importlib.import_module("fluidcc.proofs.equilibria.equations")
    rng = np.random.default_rng(3)
    scheme = resolve(fc.incast(1, rate="10Gbps", scheme=TIMELY["patched"].scheme)).flows[0].scheme
    own = fixed_points.Timely(beta=0.008)
    with jax.enable_x64(True):
        for _ in range(50):
            q, g, R = own.C * rng.uniform(10e-6, 700e-6), rng.uniform(-0.4, 0.4, 3), own.C * rng.uniform(0.01, 1, 3)
            state = timely.State(*(jnp.asarray(column)[:, None] for column in (R, g, 0 * R)))
            moved = timely.derivative(scheme, state, timely.Feedback(jnp.full((3, 1), q / own.C), jnp.zeros((3, 1))))
            want = fixed_points.patched_rhs(np.concatenate([[q], g, R]), 3, own)
            assert np.ravel(moved.gradient) == pytest.approx(want[1:4], rel=1e-9)
            assert np.ravel(moved.rate) == pytest.approx(want[4:], rel=1e-9, abs=1e-6 * own.C)


def test_swift_s_targets_are_the_fluids(proof: Any) -> None:
    """The proofs' constants and those of an incast, of one switch: 7 us, and targets of all windows to rounding."""
    own = importlib.import_module("fluidcc.proofs.equilibria.equations").Swift()
    scheme = fc.Swift(fs_range="9us", fs_max=50.0, beta=0.8)
    scenario = resolve(fc.incast(2, rate="100Gbps", scheme=scheme))
    p = bind(scenario, scenario.flows[0])
    assert own.fixed == pytest.approx(7e-6)
    assert p.base_target == pytest.approx(own.fixed, rel=1e-12)
    assert scenario.links[0].rate / scenario.wire_packet_of(scenario.flows[0]) == own.C
    windows = np.geomspace(0.01, 200, 40)
    with jax.enable_x64(True):
        found = swift.target_delay(p, jnp.asarray(windows))
    targets = importlib.import_module("fluidcc.proofs.equilibria.equations").swift_targets(windows, own)
    np.testing.assert_allclose(found, targets, rtol=1e-12)


def test_dctcp_is_a_quarter_of_alpha_squared(proof: Any, found: dict[str, sympy.Eq]) -> None:
    """DCTCP (6): alpha^2 (1 - alpha/4) = (2 W + 1)/(W + 1)^2, and sqrt(2/W) for large W: within 2 % at 1e4."""
    W, peak, alpha = (sympy.Symbol(name, positive=True) for name in ("W", "W_peak", "alpha"))
    shown: Any = found["dctcp.alpha"]
    printed = alpha**2 * (1 - alpha / 4) - (2 * W + 1) / (W + 1) ** 2
    assert sympy.simplify((shown.lhs - shown.rhs).subs(peak, W + 1) - printed) == 0
    at = [value for value in np.roots([-0.25, 1, 0, -(2e4 + 1) / (1e4 + 1) ** 2]) if 0 < value.real < 1]
    assert proof.value(found["dctcp.alpha.leading"].rhs, W=1e4) == pytest.approx(at[0].real, rel=0.02)


@cache
def agrees(name: str) -> bool:
    """Compare a claim's ways with the formulas as they are, once."""
    return bool(list_claims()[name].check().agrees)


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("dcqcn-conext-fixed-point", "dcqcn.target_rate"),
        ("dcqcn-conext-small-p", "dcqcn.small.slope"),
        ("vai-2-fbs", "swift.slope"),
        ("timely-conext-continuum", "timely.printed"),
        ("timely-conext-patched", "patched.queue"),
        ("timely-conext-patched", "patched.fairness"),
        pytest.param("dctcp-analysis-no-rest", "dctcp.marked", marks=pytest.mark.slow),
    ],
)
def test_a_wrong_formula_is_found_out(
    found: dict[str, sympy.Eq], monkeypatch: pytest.MonkeyPatch, name: str, formula: str
) -> None:
    """One percent more on its right side, and the claim's two ways no longer agree."""
    wrong = found | {formula: sympy.Eq(found[formula].lhs, found[formula].rhs * sympy.Rational(101, 100))}
    check = list_claims()[name].check
    assert agrees(name)
    monkeypatch.setattr(sys.modules[check.__module__], "formulas", lambda: wrong)
    assert not check().agrees


@pytest.mark.slow
def test_the_published_loop_is_explained_to_the_last_coefficient() -> None:
    """0.01 degree: a grid of frequencies; the equations' own margins were found before by an independent pass."""
    found = list_claims()["dcqcn-conext-loop"].check()
    assert found.agrees
    assert found.evidence["coefficients_that_are"] == ["AA", "DD", "FF", "GG"]
    assert found.evidence["margin_degrees"][8]["equations"] == pytest.approx(1.92, abs=0.01)
    assert found.evidence["margin_degrees"][10]["equations"] == pytest.approx(1.86, abs=0.01)
