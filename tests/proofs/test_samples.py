"""What is drawn is said: claims and figures that draw, or run anything, name their sample; the words and intervals."""

from __future__ import annotations

import ast
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.slowdowns import sample_of
from fluidcc.proofs.verdict.registry import list_claims, list_figures
from fluidcc.workloads.fabrics.study import FabricStudy
from tests.proofs.fabric_studies import SIZES, study_of

ROOT = Path(__file__).parents[2]
ROOMS = ("fluidcc.proofs.shared", "fluidcc.proofs")
# Whose answers are a draw's, or those of a finite run.
DRAWING = {
    *("default_rng", "Random", "random", "poisson_flows", "simulate", "ensemble", "fabric"),
    *("sweep", "wai_sweep", "limit_cycle", "hysteresis", "bistability"),
}


@cache
def tree(module: str) -> ast.Module | None:
    """Of a module of `ROOMS`; None of another."""
    if not module.startswith(ROOMS):
        return None
    base = ROOT.joinpath(*module.split("."))
    found = next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)
    return ast.parse(found.read_text(encoding="utf-8")) if found else None


@cache
def imported(module: str) -> dict[str, str]:
    """Dotted names in `ROOMS` by the names that a module has for them, wherever it imports them."""
    names = {}
    for node in ast.walk(tree(module) or ast.Module([], [])):
        if isinstance(node, ast.ImportFrom):
            relative = "." * node.level + (node.module or "")
            package = module.rpartition(".")[0]
            source = importlib.util.resolve_name(relative, package) if node.level else relative
            names |= {alias.asname or alias.name: f"{source}.{alias.name}" for alias in node.names}
    return {name: full for name, full in names.items() if full.startswith(ROOMS)}


def named(module: str, node: ast.AST) -> str:
    """The dotted name of what a name or ``module.name`` is, if it is in `ROOMS`; else empty."""
    if isinstance(node, ast.Name):
        return imported(module).get(node.id, f"{module}.{node.id}")
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        full = imported(module).get(node.value.id, "")
        return f"{full}.{node.attr}" if full else ""
    return ""


@cache
def reached(function: str) -> frozenset[tuple[str, int]]:
    """Functions of `ROOMS` that one uses, itself among them, as modules and places in their trees."""
    found, waiting = set[tuple[str, int]](), [function]
    while waiting:
        module, _, name = waiting.pop().rpartition(".")
        for place, node in enumerate(getattr(tree(module), "body", [])):
            if getattr(node, "name", "") == name and (module, place) not in found:
                found.add((module, place))
                waiting += [full for each in ast.walk(node) if (full := named(module, each))]
    return frozenset(found)


def nodes(function: str) -> list[ast.AST]:
    """All that is in the functions that one uses."""
    return [
        each
        for module, place in reached(function)
        for each in ast.walk((tree(module) or ast.Module([], [])).body[place])
    ]


def draws(function: str) -> bool:
    """Whether a function draws or runs anything, however indirectly."""
    return any(
        isinstance(each, ast.Call) and getattr(each.func, "attr", getattr(each.func, "id", "")) in DRAWING
        for each in nodes(function)
    )


def says(function: str, made: str) -> bool:
    """Whether some call of this name has a sample that is more than an empty text."""
    return any(
        keyword.arg == "sample" and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
        for each in nodes(function)
        if isinstance(each, ast.Call) and getattr(each.func, "id", "") == made
        for keyword in each.keywords
    )


def functions(kind: str) -> list[str]:
    """Of all claims, or figures."""
    found: list[Any] = [one.check for one in list_claims().values()]
    if kind == "Result":
        found = [one.make for one in list_figures().values()]
    return sorted({f"{one.__module__}.{one.__name__}" for one in found})


@pytest.mark.parametrize(("kind", "least"), [("Finding", 50), ("Result", 55)])
def test_what_draws_or_runs_names_its_sample(kind: str, least: int) -> None:
    drawing = [one for one in functions(kind) if draws(one)]
    assert len(drawing) >= least  # the reader of the trees sees them
    assert [one for one in drawing if not says(one, kind)] == []


def test_exact_algebra_draws_nothing() -> None:
    assert not draws("fluidcc.proofs.hpccpp.numbers.flits")
    assert draws("fluidcc.proofs.hpcc.a2_pareto.limit")  # by networks.batch, through a function of its own


def test_shares_have_wilsons_interval() -> None:
    hits, of, z = 7, 40, 1.959963984540054
    p = hits / of
    centre, half = (p + z**2 / (2 * of)), z * np.sqrt(p * (1 - p) / of + z**2 / (4 * of**2))
    low, high = ((centre + sign * half) / (1 + z**2 / of) for sign in (-1, 1))
    assert sample.share(hits, of) == f"7 of 40 (17.5 %; 95 % Wilson interval {100 * low:.1f} to {100 * high:.1f} %)"


def test_medians_are_within_the_range_of_their_draws() -> None:
    """A range of n draws misses the median only if all lie on one side of it: twice 2^-n."""
    drawn = np.random.default_rng(1).normal(size=(20_000, 4))
    share = float(((drawn.min(axis=1) < 0) & (drawn.max(axis=1) > 0)).mean())
    assert abs(share - 0.875) < 0.01  # four standard errors
    assert sample.median("it", [4.0, 1.0, 3.0, 2.0], "s") == "it 2.5 s (87.5 %: 1 to 4)"
    assert "(99.9 %: " in sample.median("it", [float(k) for k in range(20)], "s")


def test_means_of_one_draw_have_no_interval() -> None:
    assert "no interval" in sample.mean("it", [1.0], "s")
    assert "no interval" in sample.median("it", [1.0], "s")
    assert "seed 1, " in sample.packets(0.1, 1, seeds=range(1, 2), drawn=sample.MARKS)
    assert sample.mean("it", [1.0, 3.0], "s") == "it 2 s (95 %, Student's: -10.7 to 14.7)"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (sample.listed((2, 4, 8)), "2, 4 and 8"),
        (sample.listed([0.25]), "0.25"),
        (sample.fluid(0.2, 3), "3 runs of the fluid of 200ms; nothing is drawn"),
        (sample.packets(0.01, 8), "8 runs of packets of 10ms; nothing in them is random"),
        (
            sample.packets(0.25, since=0.05, seeds=1, drawn=sample.MARKS),
            "one run of packets of 250ms, measured from 50ms on, seed 1, which draws RED's marks: one draw, so no "
            "interval",
        ),
        (
            sample.packets(0.25, 4, seeds=range(1, 5), drawn=sample.MARKS),
            "4 runs of packets of 250ms, seeds 1 to 4, which draw RED's marks",
        ),
    ],
)
def test_words(words: str, expected: str) -> None:
    assert words == expected


def test_studies_count_flows_and_seeds() -> None:
    one: FabricStudy = study_of({"a": [np.ones(len(SIZES))] * 3, "b": [np.ones(len(SIZES))] * 3})
    assert sample_of({"calm": one}).startswith(
        f"3 seeds of arrivals, sizes, hosts and paths on {len(one.topology.hosts)} hosts, the same for each scheme: "
        f"{3 * len(SIZES)} flows in 1 ms each; "
    )
