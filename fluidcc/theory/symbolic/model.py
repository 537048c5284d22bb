"""Equilibrium, Jacobians and characteristic function of a scheme's equations, by SymPy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fluidcc.builders import incast
from fluidcc.contract.bind import binder
from fluidcc.contract.registry import built_in, scheme_of
from fluidcc.contract.registry import scheme as scheme_named
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve, thresholds_in_bytes
from fluidcc.surface import constructor, public

if TYPE_CHECKING:
    import sympy

    from fluidcc.theory.symbolic.system import System

_SOLVED = 2  # degree of a polynomial whose roots are written out
_NEAR = 1e-3  # of a number: whose root it is
_LONG = 40  # operations


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Symbolic:
    """Equations of N equal flows of a scheme on one link.

    Parameters
    ----------
    scheme : str
    unknowns : tuple of sympy.Symbol
        States, then what follows from them at once.
    equilibrium : tuple of sympy.Eq
        One for each unknown.
    solution : dict or None
        Each unknown at equilibrium, by what is given; None where SymPy finds none.
    explicit : dict
        The unknowns that the others and what is given determine, also where there is no solution.
    remaining : tuple of sympy.Eq
        What is left to be solved by numbers; empty where there is a solution.
    jacobian : dict
        By delay [s], 0 for the present: how the right-hand sides follow the unknowns. Of a map, its images at 0.
    characteristic : sympy.Expr or None
        Of s, det(s E - sum over delays of J exp(-s delay)) with 1 in E for states; of a map of z, det(z E - J). Its
        roots are those of all flows together. None, and no Jacobians, where marking is a step.
    fairness : sympy.Expr or None
        The same of a difference between two flows, which no queue and no mark tells of.
    assumed : tuple
        Relations that decided branches of the law.
    values : dict
        Numbers of all symbols, of the scenario by which branches were decided.
    """

    scheme: str
    unknowns: tuple[Any, ...]
    equilibrium: tuple[Any, ...]
    solution: dict[Any, Any] | None
    explicit: dict[Any, Any]
    remaining: tuple[Any, ...]
    jacobian: dict[Any, Any]
    characteristic: Any
    fairness: Any
    assumed: tuple[Any, ...]
    values: dict[Any, float]

    def __repr__(self) -> str:
        """Scheme, unknowns, and whether SymPy solves the equations."""
        listed = ", ".join(map(str, self.unknowns))
        solved = "a solution" if self.solution is not None else f"{len(self.remaining)} left to numbers"
        return f"<Symbolic {self.scheme}: {len(self.equilibrium)} equations of {listed}; {solved}>"

    def _repr_latex_(self) -> str:
        return self.latex()

    @public()
    def latex(self) -> str:
        """Equations at equilibrium and what solves them, as LaTeX to be shown in a notebook.

        Returns
        -------
        str
        """
        import sympy

        rows = [*self.equilibrium, *(sympy.Eq(name, value, evaluate=False) for name, value in self.explicit.items())]
        lines = (f"{sympy.latex(each.lhs)} &= {sympy.latex(each.rhs)}" for each in rows)
        return "$$\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}$$"

    @public()
    def number(self, expression: Any, symbols: Mapping[str, complex] | None = None) -> complex:
        """Put numbers into an expression.

        Parameters
        ----------
        expression : sympy.Expr
            Of these symbols.
        symbols : dict, optional
            Numbers of others, such as ``{"s": 1e3j}``, or in place of ``values``, by their names.

        Returns
        -------
        complex

        Raises
        ------
        InputError
            If a symbol has no number.
        """
        import sympy

        given = {symbol.name: value for symbol, value in self.values.items()} | dict(symbols or {})
        free = sorted(sympy.sympify(expression).free_symbols, key=str)
        missing = [each.name for each in free if each.name not in given]
        if missing:
            raise InputError(f'number: {missing[0]} has none; write {{"{missing[0]}": 1.0}} beside the expression')
        made = sympy.lambdify(free, expression, "mpmath")
        return complex(made(*(given[each.name] for each in free)))


@public()
def symbolic(
    scheme: Any = "dcqcn", *, flows: int = 8, rate: Any = None, delay: Any = None, marking: Any = None
) -> Symbolic:
    """Derive a scheme's equilibrium and linearisation by SymPy, from the law that the engines run.

    The law's own code runs on symbols. Where it has branches, those are taken that hold at the equilibrium of these
    flows on one link; they are in ``assumed``.

    Parameters
    ----------
    scheme : str or parameters
        A name, of the scheme with its default values, or parameters such as ``fluidcc.TIMELY(patched=True)``.
    flows : int
    rate, delay, marking : optional
        Of the link, as `fluidcc.incast` has them: numbers that decide branches.

    Returns
    -------
    Symbolic

    Raises
    ------
    InputError
        If the scheme is unknown or has no smooth equilibrium.

    Examples
    --------
    >>> import fluidcc as fc
    >>> found = fc.symbolic(fc.HPCC())
    >>> found.solution[found.unknowns[0]]
    C*T*eta/N + W_AI
    """
    network = {"rate": rate, "delay": delay, "marking": marking}
    given = {name: value for name, value in network.items() if value is not None}
    scenario = thresholds_in_bytes(resolve(incast(flows, scheme=scheme, **given)))
    flow = scenario.flows[0]
    known = scheme_of(flow.scheme)
    from fluidcc.theory.symbolic.system import System, has_slope, write_law

    side = known.module("symbolic")
    if side is None and not has_slope(known):
        able = ", ".join(name for name in built_in() if scheme_named(name).module("symbolic") is not None)
        fluid, lacks = known.fluid, f"has no {known.file('symbolic')}"
        why = "acts in jumps, as ACKs come, and " if fluid is not None and fluid.jump is not None else ""
        why = "has no fluid model and " if fluid is None else why
        raise InputError(
            f"symbolic: {known.name} {why}{lacks}, which says what of it rests (CONTRIBUTING.md); write one of {able}"
        )
    if getattr(flow.scheme, "mechanisms", False):
        raise InputError("symbolic: Variable AI and Sampling Frequency count and draw; leave them out")
    one = System(scenario, binder(scenario)(flow))
    if side is None:
        write_law(one, known)
    else:
        side.equations(one)
    return _solved(known.name, one)


def _solved(scheme: str, one: System) -> Symbolic:
    import sympy

    from fluidcc.theory.symbolic.system import put

    s, z = sympy.symbols("s z")
    now = {late: of for late, (of, _) in one.late.items()}
    unknowns = (*one.states, *one.algebraics)
    right = [put(one.right[each], {}) for each in unknowns]
    still = [0 if each in one.states and not one.mapped else each for each in unknowns]
    # What keeps another unknown somewhere is in its own right-hand side.
    sides = [
        (0, value - name) if name in one.algebraics and value.has(name) else (left, value)
        for name, left, value in zip(unknowns, still, right, strict=True)
    ]
    equations = tuple(sympy.Eq(left, put(value, now), evaluate=False) for left, value in sides)
    explicit, remaining = _determined(equations, unknowns, len(one.states), one.values)
    delays = dict.fromkeys([sympy.Integer(0), *(delay for _, delay in one.late.values())])
    jacobian = {delay: _slopes(right, unknowns, delay, one) for delay in delays} if one.smooth else {}
    moved = [(z if one.mapped else s) if each in one.states else 1 for each in unknowns]
    total = sum((matrix * sympy.exp(-s * delay) for delay, matrix in jacobian.items()), sympy.zeros(len(unknowns)))
    matrix, own = sympy.diag(*moved) - total, [k for k, each in enumerate(unknowns) if each not in one.shared]
    used = set(unknowns).union(*(each.free_symbols for each in (*equations, *one.assumed, *delays)))
    return Symbolic(
        scheme,
        unknowns,
        equations,
        explicit if not remaining else None,
        explicit,
        remaining,
        jacobian,
        _determinant(matrix) if one.smooth else None,
        _determinant(matrix.extract(own, own)) if one.smooth else None,
        tuple(put(each, now) for each in one.assumed),
        {symbol: value for symbol, value in one.values.items() if symbol in used and symbol not in one.late},
    )


def _determinant(matrix: Any) -> Any:
    """Return the determinant, its elements as they are: SymPy would simplify them, for minutes."""
    import sympy

    known: dict[Any, Any] = {}
    named = matrix.applyfunc(lambda each: each if each.is_number else known.setdefault(each, sympy.Dummy()))
    return sympy.expand(named.det(method="berkowitz")).xreplace({name: each for each, name in known.items()})


def _slopes(right: list[Any], unknowns: tuple[Any, ...], delay: Any, one: System) -> Any:
    """Differentiate right-hand sides by the unknowns as they were some time ago."""
    import sympy

    from fluidcc.theory.symbolic.system import put

    now = {late: of for late, (of, _) in one.late.items()}
    by = [
        [each] if delay == 0 else [late for late, (of, lag) in one.late.items() if of == each and lag == delay]
        for each in unknowns
    ]
    return sympy.Matrix([[put(sum(sympy.diff(each, name) for name in names), now) for names in by] for each in right])


def _determined(
    equations: tuple[Any, ...], unknowns: tuple[Any, ...], states: int, values: Mapping[sympy.Symbol, float]
) -> tuple[dict[Any, Any], tuple[Any, ...]]:
    """Solve for one unknown after the other: first where it is linear, and of several roots take the shortest."""
    left = [each.rhs - each.lhs for each in equations]
    found: dict[Any, Any] = {}
    for root in (_linear_root, _root_in_log, _polynomial_root, _root_of_factor):
        tried: dict[Any, Any] = {}
        while True:
            pairs = [
                (k, name) for k in range(len(left)) for name in unknowns if name not in found and left[k].has(name)
            ]
            for k, name in pairs:
                if (left[k], name) not in tried:
                    tried[left[k], name] = root(left[k], name, values)
            roots = [(k, name, value) for k, name in pairs if (value := tried[left[k], name]) is not None]
            if not roots:
                break
            # States before what follows from them: DCQCN's by p, not by the queue.
            at, name, value = min(roots, key=lambda each: (unknowns.index(each[1]) >= states, each[2].count_ops()))
            found = {known: _short(each.subs(name, value)) for known, each in found.items()} | {name: value}
            left = [each.subs(name, value) for k, each in enumerate(left) if k != at]
    return found, tuple(_zero(each) for each in left)


def _zero(expression: Any) -> Any:
    """Return 0 = expression, written out."""
    import sympy

    return sympy.Eq(0, expression, evaluate=False)


def _linear_root(expression: Any, name: Any, values: Mapping[Any, float]) -> Any | None:
    """Return the root of an expression that is linear in a symbol; None if it is not."""
    import sympy

    expanded = sympy.expand(expression)
    slope = sympy.diff(expanded, name)
    if slope == 0 or slope.has(name):
        return None
    root = (slope * name - expanded).expand() / slope
    return _short(root) if _is_near(root, name, values) else None


def _root_in_log(expression: Any, name: Any, values: Mapping[Any, float]) -> Any | None:
    """Return the root of an expression that has a symbol in a single logarithm; None if it has it elsewhere too."""
    import sympy

    logs = [each for each in expression.atoms(sympy.log) if each.has(name)]
    if len(logs) != 1:
        return None
    inside = sympy.Dummy()
    outer = sympy.expand(expression.subs(logs[0], inside))
    slope = sympy.diff(outer, inside)
    if outer.has(name) or slope == 0 or slope.has(inside):
        return None
    power = sympy.exp(_short((slope * inside - outer).expand() / slope))
    return _linear_root(logs[0].args[0] - power, name, values)


def _polynomial_root(expression: Any, name: Any, values: Mapping[Any, float]) -> Any | None:
    """Return the root, of a polynomial's of low degree, that is near the symbol's number; None if there is none."""
    import sympy

    top = sympy.fraction(sympy.together(expression))[0]
    if not top.is_polynomial(name) or not 0 < sympy.degree(top, name) <= _SOLVED:
        return None
    near = [root for root in sympy.roots(sympy.Poly(top, name)) if _is_near(root, name, values)]
    return _short(near[0]) if near else None


def _root_of_factor(expression: Any, name: Any, values: Mapping[Any, float]) -> Any | None:
    """Return the root of a factor that is linear in a symbol, such as of (1 - q^W) (W - a); None if there is none."""
    import sympy

    whole: Any = sympy.factor(expression) if expression.count_ops() < _LONG else expression
    parts = sympy.Mul.make_args(whole)
    roots = [_linear_root(each, name, values) for each in parts if each.has(name)] if len(parts) > 1 else []
    return next((each for each in roots if each is not None), None)


def _is_near(root: Any, name: Any, values: Mapping[Any, float]) -> bool:
    """Check whether an expression's number is its symbol's."""
    return abs(complex(root.evalf(subs=values)) - values[name]) <= _NEAR * abs(values[name])


def _short(expression: Any) -> Any:
    """Simplify what is not long already; that of a long one takes minutes."""
    import sympy

    return sympy.simplify(expression) if expression.count_ops() < _LONG else expression
