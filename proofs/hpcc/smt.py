"""HPCC's recursion (5)-(6) on every small incidence matrix, over all real capacities and rates, by the solver z3.

Rates and capacities are unknowns greater than 0, steps are (6) written as polynomials, and z3 is asked for an
exception: if it says that there is none, the statement is proved for that matrix. One step from any start is enough for
all n, since (6) does not know n. Without z3, `proved` and `exceptions` return None, and the proofs go by other ways.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from fluidcc.proofs.verdict.claim import Way

Paths = tuple[tuple[int, ...], ...]  # the links of each path

SOLVED, SMALLER = ((3, 4), (4, 3)), ((3, 3),)  # most links and paths of the matrices it is asked about
EFFORT = 2_000_000  # z3's own count of work for one question: the same on every machine, unlike seconds
INSTALLED = importlib.util.find_spec("z3") is not None


def matrices(most_links: int, most_paths: int) -> Iterator[tuple[int, Paths]]:
    """Number of links, and links of each path: all incidence matrices without idle links, up to order of both."""
    for links, paths in itertools.product(range(1, most_links + 1), range(1, most_paths + 1)):
        subsets = [s for size in range(1, links + 1) for s in itertools.combinations(range(links), size)]
        seen = set()
        for columns in itertools.combinations_with_replacement(subsets, paths):
            if len(set().union(*columns)) == links:
                orders = itertools.permutations(range(links))
                seen.add(min(tuple(sorted(tuple(sorted(o[i] for i in c)) for c in columns)) for o in orders))
        yield from ((links, one) for one in sorted(seen))


def load(rates: Sequence[Any], paths: Paths, link: int) -> Any:
    """Y_i, (5)."""
    return sum(rate for rate, path in zip(rates, paths, strict=True) if link in path)


def unknowns(context: Any, name: str, count: int) -> list[Any]:
    """Real unknowns.

    Each matrix has its own context of z3: its search, and so its time, depends on what else is in the context.
    """
    import z3

    return [z3.Real(f"{name}_{i}", context) for i in range(count)]


def follows(paths: Paths, capacities: Any, before: Sequence[Any], after: Any, path: int) -> list[Any]:
    """(6) of one path: its next rate is R_j C_i/Y_i at that of its links where it is least."""
    import z3

    sides = [(after * load(before, paths, i), before[path] * capacities[i]) for i in paths[path]]
    return [left <= right for left, right in sides] + [z3.Or([left == right for left, right in sides])]


def impossible(questions: Sequence[Sequence[Any]]) -> bool:
    """Check whether z3 finds each of these lists of constraints unsatisfiable; False also where it gives up."""
    import z3

    for question in questions:
        solver = z3.SolverFor("QF_NRA", ctx=question[0].ctx)
        solver.set("rlimit", EFFORT)
        solver.add(*question)
        if solver.check() != z3.unsat:
            return False
    return True


def feasible(links: int, paths: Paths) -> list[list[Any]]:
    """Exceptions to (i): a link above its capacity after a step."""
    capacities, _, after, step = _step(links, paths)
    return [[*step, load(after, paths, i) > capacities[i]] for i in range(links)]


def saturated(links: int, paths: Paths) -> list[list[Any]]:
    """Exceptions to: a link that no other exceeded in U is full after a step."""
    capacities, before, after, step = _step(links, paths)
    loads = [load(before, paths, i) for i in range(links)]
    return [
        [*step, *(loads[k] * capacities[i] >= loads[i] * capacities[k] for i in range(links)), here != capacities[k]]
        for k in range(links)
        for here in [load(after, paths, k)]
    ]


def monotone(links: int, paths: Paths) -> list[list[Any]]:
    """Exceptions to (ii): R_j(2) < R_j(1), R(0) being anything."""
    capacities, _, after, step = _step(links, paths)
    (again,) = unknowns(capacities[0].ctx, "again", 1)
    return [
        [*step, *follows(paths, capacities, after, again, j), again > 0, again < after[j]] for j in range(len(paths))
    ]


def repaired(links: int, paths: Paths) -> list[list[Any]]:
    """Exceptions to the repair's step: beside frozen paths, (6) on what they leave exceeds it nowhere and fills a link.

    A step that fills a link freezes a path on it, so that there are at most as many steps as links, and as paths.
    """
    import z3

    capacities, before, after, _ = _step(links, paths)
    found = []
    for count in range(1, len(paths) + 1):
        for free in itertools.combinations(range(len(paths)), count):
            frozen = [j for j in range(len(paths)) if j not in free]
            moving = tuple(paths[j] for j in free)
            used = sorted(set().union(*moving))
            room = {i: capacities[i] - sum(before[j] for j in frozen if i in paths[j]) for i in used}
            old, new = [before[j] for j in free], [after[j] for j in free]
            step = [x > 0 for x in (*capacities, *before, *new, *room.values())]
            for at in range(count):
                step += follows(moving, room, old, new[at], at)
            loads = {i: load(new, moving, i) for i in used}
            found.append([*step, z3.Or([loads[i] > room[i] for i in used])])
            found.append([*step, *(loads[i] != room[i] for i in used)])
    return found


def _step(links: int, paths: Paths) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Capacities, rates before and after a step, and the constraints that make them so."""
    import z3

    context = z3.Context()
    capacities, before, after = (
        unknowns(context, name, count) for name, count in (("c", links), ("before", len(paths)), ("after", len(paths)))
    )
    step = [x > 0 for x in (*capacities, *before, *after)]
    for j in range(len(paths)):
        step += follows(paths, capacities, before, after[j], j)
    return capacities, before, after, step


class Proved(NamedTuple):
    """Number of matrices up to a size, and number of those for which z3 proved that there is no exception."""

    matrices: int
    proved: int


STATEMENTS = {one.__name__: one for one in (feasible, saturated, monotone, repaired)}


@functools.cache
def proved(statement: str, sizes: tuple[tuple[int, int], ...]) -> Proved | None:
    """Ask z3 about one of `STATEMENTS` for all matrices up to any of the sizes (links, paths); None without z3."""
    if not INSTALLED:
        return None
    every: list[Any] = sorted(set().union(*(matrices(*size) for size in sizes)))
    return Proved(len(every), sum(impossible(STATEMENTS[statement](*one)) for one in every))


def by_solver(statement: str, sizes: tuple[tuple[int, int], ...] = SOLVED) -> tuple[dict[str, Any], list[Way]]:
    """Evidence and a way of the same name: that z3 proves a statement for all incidence matrices of these sizes."""
    found = proved(statement, sizes)
    if found is None:
        return {"z3": "not installed, not used"}, []
    size = ", ".join(f"{links} x {paths}" for links, paths in sizes)
    way = Way(f"incidence matrices up to {size} (links x paths): proved by z3, all", found.proved, found.matrices)
    return {"matrices_proved_by_z3": found.proved}, [way]


def merged(links: int, paths: Paths) -> tuple[Paths, list[int], list[int]]:
    """Merge equal paths into one, and links with equal paths into one, until none are left.

    Equal paths keep the ratio of their rates and together follow (6) as one; of links with the same paths only the
    least capacity counts. Returned with the merged path of each path, and the merged link of each link.
    """
    path_of, link_of = list(range(len(paths))), list(range(links))
    while True:
        distinct = sorted(set(paths))
        path_of = [distinct.index(paths[j]) for j in path_of]
        rows = [tuple(j for j, path in enumerate(distinct) if i in path) for i in range(links)]
        kinds = sorted(set(rows))
        after = tuple(tuple(sorted({kinds.index(rows[i]) for i in path})) for path in distinct)
        link_of = [kinds.index(rows[i]) for i in link_of]
        if after == paths:
            return paths, path_of, link_of
        links, paths = len(kinds), after


class Counterexample(NamedTuple):
    """Capacities and start for which R(I+1) is not R(I)."""

    capacities: tuple[Fraction, ...]
    start: tuple[Fraction, ...]


def unsettled(links: int, paths: Paths) -> Counterexample | None:
    """Let z3 search for capacities and a start for which R(I+1) is not R(I).

    None if it proves that there are none.

    Raises
    ------
    RuntimeError
        If it gives up.
    """
    import z3

    context = z3.Context()
    capacities = unknowns(context, "c", links)
    run = [unknowns(context, f"r{n}", len(paths)) for n in range(links + 2)]
    positive = [x > 0 for x in (*capacities, *itertools.chain(*run))]
    moves = z3.Or([a != b for a, b in zip(run[-2], run[-1], strict=True)])
    steps = [
        constraint
        for before, after in itertools.pairwise(run)
        for j in range(len(paths))
        for constraint in follows(paths, capacities, before, after[j], j)
    ]

    def ask(*more: Any, effort: int = EFFORT) -> Any:
        solver = z3.SolverFor("QF_NRA", ctx=context)
        solver.set("rlimit", effort)
        solver.add(*positive, *steps, moves, *more)
        return solver.check(), solver

    # Exceptions are easier to find where the bottleneck of each path is given, and stays.
    for ends in itertools.product(*paths):
        stay = [
            after[j] * load(before, paths, ends[j]) == before[j] * capacities[ends[j]]
            for before, after in itertools.pairwise(run[1:])
            for j in range(len(paths))
        ]
        answer, solver = ask(*stay, effort=EFFORT // 10)
        if answer == z3.sat:
            model = solver.model()
            values = [model.eval(x, model_completion=True) for x in (*capacities, *run[0])]
            if all(z3.is_rational_value(value) for value in values):
                numbers = tuple(Fraction(value.numerator_as_long(), value.denominator_as_long()) for value in values)
                return Counterexample(numbers[:links], numbers[links:])
    answer, _ = ask()
    if answer != z3.unsat:
        raise RuntimeError(f"z3 gave up on {paths}")
    return None


@functools.cache
def exceptions(most_links: int, most_paths: int) -> dict[tuple[int, Paths], Counterexample | None] | None:
    """Return an exception to Lemma (iii) for each matrix up to this size, or None where z3 proves there is none."""
    if not INSTALLED:
        return None
    smallest: dict[Paths, Counterexample | None] = {}
    found: dict[tuple[int, Paths], Counterexample | None] = {}
    for links, paths in matrices(most_links, most_paths):
        core, path_of, link_of = merged(links, paths)
        if core not in smallest:
            smallest[core] = unsettled(len(set().union(*core)), core)
        one = smallest[core]
        found[links, paths] = one and Counterexample(
            tuple(one.capacities[k] for k in link_of), tuple(one.start[j] / path_of.count(j) for j in path_of)
        )
    return found
