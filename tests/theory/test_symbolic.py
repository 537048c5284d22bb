"""Schemes' equations by SymPy, against the papers' formulas and the numeric engine's own linearisation."""

from __future__ import annotations

import json
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sympy

import fluidcc as fc
from fluidcc.contract.bind import binder
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve
from fluidcc.schemes.hpcc import symbolic as hpcc
from fluidcc.theory.symbolic import model
from fluidcc.theory.symbolic.system import World, _decay

SAME = 1e-12


def names(found: Any) -> SimpleNamespace:
    """Symbols of what was found, by name."""
    return SimpleNamespace(**{symbol.name: symbol for symbol in (*found.values, *found.unknowns)})


def same(found: Any, expression: Any) -> bool:
    return sympy.simplify(found - expression) == 0


@pytest.mark.parametrize("flows", [8, 2])
def test_hpcc_is_that_of_its_appendix(flows: int) -> None:
    """U = eta + N W_AI/(C T); a round trip forgets where all flows were, and leaves eta/U of a difference."""
    found = fc.symbolic("hpcc", flows=flows)
    n = names(found)
    assert found.solution is not None
    assert same(found.solution[n.W], n.eta * n.C * n.T / n.N + n.W_AI)
    assert same(found.solution[n.U], n.eta + n.N * n.W_AI / (n.C * n.T))
    assert found.number(found.solution[n.W]) == pytest.approx(found.values[n.W], rel=SAME)
    z = sympy.Symbol("z")
    at_rest = found.characteristic.subs(n.W, found.solution[n.W]).subs(n.U, found.solution[n.U])
    assert same(at_rest, z)
    assert same(found.fairness, z - n.eta / n.U)
    assert "W" in found.latex()
    assert "a solution" in repr(found)


@pytest.mark.parametrize(
    ("written", "root"),
    [
        ("(1 - q**W) * (W - a)", "a"),
        ("(W - a) * (W - 2*a)", "a"),  # the one that is at W's number
        ("(W - a/2) * (W - 2*a)", None),
        ("(1 - q**W) * (W**2 - a)", None),
        ("W - a", None),  # no factor: the root of all of it
    ],
)
def test_the_root_of_a_factor(written: str, root: str | None) -> None:
    W, a, q = sympy.symbols("W a q")
    found = model._root_of_factor(sympy.sympify(written), W, {W: 3.0, a: 3.0, q: 0.5})
    assert found == (None if root is None else sympy.sympify(root))


def test_hpccs_rates_follow_a_late_utilisation() -> None:
    """T dR/dt = R eta/u(t - tau) - R + a: what is late has its exponential, and no difference sees it."""
    found = fc.symbolic(fc.HPCC(form="rate"))
    n, s = names(found), sympy.Symbol("s")
    own = s - (n.eta / n.U - 1) / n.T
    late = n.W * n.eta / n.U**2 / n.T * n.N / (n.C * n.T) * sympy.exp(-s * n.tau)
    assert same(found.characteristic, own + late)
    assert same(found.fairness, own)


def test_swift_rests_at_its_target() -> None:
    """Without flow scaling N W = C D; with it the cubic of its window's root is left to numbers, and rests there."""
    plain = fc.symbolic(fc.Swift(flow_scaling=False))
    n = names(plain)
    assert plain.solution is not None
    assert same(plain.solution[n.W], n.C * n.base_target / n.N)
    assert same(plain.solution[n.rtt], n.base_target)
    assert [plain.values[name] for name in (n.W, n.rtt)] == pytest.approx(
        [plain.number(plain.solution[name]).real for name in (n.W, n.rtt)], rel=1e-5
    )
    # A cut by beta (d - D)/d, with d of N windows.
    z = sympy.Symbol("z")
    assert same(plain.characteristic.subs(n.W, n.C * n.rtt / n.N).subs(n.rtt, n.base_target), z - 1 + n.beta)
    scaled = fc.symbolic("swift")
    n = names(scaled)
    assert scaled.solution is None
    assert set(scaled.explicit) == {n.W}
    (left,) = scaled.remaining
    assert scaled.number(left.rhs) == pytest.approx(0.0, abs=1e-5 * scaled.values[n.W])
    added = n.fs_range / (n.fs_min**-0.5 - n.fs_max**-0.5) * ((n.W / n.S) ** -0.5 - n.fs_max**-0.5)
    assert scaled.number(n.base_target + added - n.rtt) == pytest.approx(0.0, abs=1e-5 * scaled.values[n.rtt])
    assert {n.fs_range, n.fs_min, n.fs_max} <= left.rhs.free_symbols


def test_dctcp_is_that_of_its_analysis() -> None:
    """alpha = p = sqrt(2/W) in packets; a step holds the queue at K, and a ramp is a cubic in p."""
    step = fc.symbolic(fc.DCTCP(form="analysis"))
    n = names(step)
    assert step.solution is not None
    assert same(step.solution[n.q], n.K)
    assert same(step.solution[n.W], (n.C * n.T + n.K) / n.N)
    assert same(step.solution[n.p] ** 2, 2 * n.S * n.increase / step.solution[n.W])
    assert same(step.solution[n.alpha], step.solution[n.p])
    assert (step.jacobian, step.characteristic, step.fairness) == ({}, None, None)
    ramp = fc.symbolic(fc.DCTCP(form="analysis"), marking=fc.RED("20KB", "80KB", 0.9), flows=4)
    n = names(ramp)
    assert ramp.solution is None
    (left,) = ramp.remaining
    assert ramp.number(left.rhs) == pytest.approx(0.0, abs=1e-9 * ramp.values[n.q])
    assert ramp.number(n.P_max * (n.q - n.K_min) / (n.K_max - n.K_min) - n.p) == pytest.approx(0.0, abs=1e-9)
    assert ramp.number(ramp.characteristic, {"s": 0.0}) != 0.0


def determinant(system: Any, s: complex) -> complex:
    """The characteristic function of the engine's linearisation."""
    late = sum(matrix * np.exp(-s * tau) for tau, matrix in zip(system.tau, system.A, strict=True))
    return complex(np.linalg.det(s * np.eye(system.order) - system.A0 - late))


@pytest.mark.slow
@pytest.mark.parametrize(
    "scheme",
    [
        fc.DCQCN(),
        fc.DCQCN(hyper_increase=True, byte_counter="300KB", fast_recovery_steps=1),
        fc.DCQCN(clamp_tgt_rate=False),
        fc.TIMELY(patched=True),
        fc.TIMELY(patched=True, thresholds="queueing"),
        fc.HPCC(form="rate"),
    ],
    ids=["dcqcn", "hyper", "unclamped", "timely", "queueing", "hpcc-rate"],
)
def test_characteristic_functions_are_those_of_the_engine(scheme: Any) -> None:
    """The engine's are by automatic differentiation; both modes, at four places of the plane."""
    found, near = fc.symbolic(scheme), fc.linearize(fc.incast(8, scheme=scheme))
    for s in (1e3 + 2e4j, -5e3 + 1e5j, 3e4, 1j):
        assert found.number(found.characteristic, {"s": s}) == pytest.approx(determinant(near.system, s), rel=SAME)
        alone = determinant(near.fairness[0].system, s)
        assert found.number(found.fairness, {"s": s}) == pytest.approx(alone, rel=SAME)
    for each in found.equilibrium:
        scale = max(abs(found.number(term)) for term in sympy.Add.make_args(sympy.expand(each.rhs)))
        assert found.number(each.rhs - each.lhs) == pytest.approx(0.0, abs=1e-9 * scale)
    for unknown, expression in found.explicit.items():
        assert found.number(expression) == pytest.approx(found.values[unknown], rel=1e-9, abs=1e-12)


@pytest.mark.slow
def test_dcqcns_fixed_point_is_that_of_equation_11() -> None:
    """By the abbreviations a to e of the paper, in packets; p is left to numbers, all else follows from it."""
    found = fc.symbolic("dcqcn")
    n = names(found)
    assert found.solution is None
    assert set(found.explicit) == {n.R, n.R_T, n.alpha, n.q}
    p, R, B, T, F, tau = n.p, n.C / n.N / n.S, n.B / n.S, n.T, n.F, n.tau
    a, b, c = 1 - (1 - p) ** (tau * R), p / ((1 - p) ** -B - 1), (1 - p) ** (F * B) * p / ((1 - p) ** -B - 1)
    d, e = p / ((1 - p) ** (-T * R) - 1), (1 - p) ** (F * T * R) * p / ((1 - p) ** (-T * R) - 1)
    assert same(found.explicit[n.alpha], 1 - (1 - p) ** (getattr(n, "tau'") * R))  # (7)
    target = n.C / n.N + tau * n.R_AI * R * (c + e) / a
    assert found.number(found.explicit[n.R_T] / target) == pytest.approx(1.0, rel=SAME)
    eleven = a**2 * found.explicit[n.alpha] / ((b + d) * (c + e)) / (tau**2 * n.R_AI * R**2 / (n.C / n.N))
    assert found.number(eleven) == pytest.approx(1.0, rel=1e-8)


def test_what_has_no_smooth_equilibrium_is_refused_by_name() -> None:
    for scheme, said in (
        (
            "acc",
            "acc acts in jumps, as ACKs come, and has no acc/symbolic.py.*one of dcqcn, dctcp, hpcc, swift, timely",
        ),
        (fc.NoControl(), "none has no none/symbolic.py"),
        ("hpcc-rx", "hpcc-rx has no fluid model"),
        ("dctcp", "dctcp cuts its window in jumps.*form='analysis'"),
        ("timely", "timely has no equilibrium.*patched=True"),
        (fc.DCQCN(feedback_delay=None), "feedback_delay: "),
        (fc.Swift(vai=True), "Variable AI and Sampling Frequency"),
    ):
        with pytest.raises(InputError, match=said):
            fc.symbolic(scheme)
    with pytest.raises(InputError, match="hpcc does not rest"):  # a register for each link
        hpcc.equations(SimpleNamespace(rest={"exists": False}))
    with pytest.raises(InputError, match="more marks than pmax"):
        fc.symbolic(fc.DCTCP(form="analysis"), marking=fc.RED("20KB", "80KB", 1e-4))


def test_a_symbol_without_a_number_is_refused() -> None:
    found = model.Symbolic("x", (), (), {}, {}, (), {}, None, None, (), {sympy.Symbol("a"): 2.0})
    assert found.number(sympy.Symbol("a") ** 2) == 4.0
    assert found.number(sympy.Symbol("a") ** 2, {"a": 3.0}) == 9.0
    with pytest.raises(InputError, match="number: b has none"):
        found.number(sympy.Symbol("b"))


def world() -> World:
    scenario = resolve(fc.incast(4, scheme=fc.Swift()))
    return World(scenario, binder(scenario)(scenario.flows[0]))


def test_branches_are_those_of_the_numbers() -> None:
    """Conditions that decided are kept, as they hold; a bound between numbers is none of them."""
    one = world()
    a, b = one.symbol("a", 2.0), one.symbol("b", 3.0)
    assert (one.minimum(a, b), one.maximum(a, b)) == (a, b)
    assert one.clip(b, 0.0, a) == a
    assert one.abs(a - b) == b - a
    assert one.where(a > b, a, b) == b
    assert one.where(~(a > b) & (a < 5), 1, 2) == 1
    assert one.where(sympy.false, a, b) == b
    assert {str(each) for each in one.assumed} == {"a <= b", "a < b", "b > a", "a < 5", "a - b < -a + b"}
    with pytest.raises(ValueError, match="there is such a symbol"):
        one.symbol("a", 1.0)
    signs = [one.symbol(name, value).is_positive for name, value in (("c", 1e-9), ("d", 0.0), ("e", -1.0))]
    assert signs == [True, None, None]


def test_a_law_of_another_package_runs_on_symbols() -> None:
    """With what it calls in its own module and in others of its package; what is of neither stays."""
    helper, law = ModuleType("mine.helper"), ModuleType("mine.law")
    exec("import jax.numpy as jnp\ndef least(a, b): return jnp.minimum(a, b)", vars(helper))
    vars(law)["least"] = vars(helper)["least"]
    exec("import json\ndef half(a): return a / 2\ndef rate(a, b): return half(least(a, b))", vars(law))
    sys.modules |= {"mine.helper": helper, "mine.law": law}
    one = world()
    a, b = one.symbol("a", 2.0), one.symbol("b", 3.0)
    on_symbols = one.law(law)
    assert on_symbols.rate(a, b) == a / 2
    assert on_symbols.json is json
    for name in ("mine.helper", "mine.law"):
        del sys.modules[name]


def test_powers_of_what_is_not_marked_are_written_as_such() -> None:
    p, n = sympy.symbols("p n", positive=True)
    log = -sympy.log(1 - p)
    assert _decay(n * log) == (1 - p) ** n
    assert _decay(n) == sympy.exp(-n)
    assert _decay(-n * log) == (1 - p) ** -n
