"""Evaluate a theorem's statement, as its Coq file has it, on one example: quantifiers range over what is given.

A program reads the same text that Coq has checked. So an example on which it is false is a slip in the definitions, of
Coq or of ours, and a statement that says too much is found out. Definitions are read from the files alike, for what no
program computes, and to compare them with what one does.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fluidcc.proofs.verdict.coq import required
from fluidcc.proofs.verdict.theorems import plain, sources, theorems
from tests.proofs.coq_reader import Domains, Equal, Function, Reader, Scope, Term, applied

_DEFINING = re.compile(r"(?:Definition|Fixpoint|Let|Record|Inductive)\b")

# Names of Coq's libraries. In its natural numbers 2 - 3 is 0, which matters where INR takes a difference. `up` is the
# next whole number above.
LIBRARY: Mapping[str, Any] = {
    "S": lambda n: n + 1,
    **dict.fromkeys(("INR", "Z.to_nat"), lambda n: max(n, 0)),
    "up": lambda x: math.floor(x) + 1,
    "nil": (),
    "True": True,
    "False": False,
    "PI": math.pi,
    "Rabs": abs,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "C": math.comb,
    **dict.fromkeys(("IZR", "inject_Z", "Z.of_nat"), lambda n: n),
    **dict.fromkeys(("Rmax", "Qmax"), lambda x, y: max(x, y)),
    **dict.fromkeys(("Rmin", "Qmin", "Nat.min"), lambda x, y: min(x, y)),
    "Rle_dec": lambda x, y: x <= y,
    **dict.fromkeys(("Rlt_dec", "Qlt_le_dec", "Nat.ltb"), lambda x, y: x < y),
    **dict.fromkeys(("Req_EM_T", "Qeq_dec", "Nat.eqb"), lambda x, y: x == y),
    "sum_f_R0": lambda f, n: sum(f(k) for k in range(n + 1)),
    "In": lambda one, several: one in several,
    "repeat": lambda one, n: (one,) * n,
    "fst": lambda pair: pair[0],
    "snd": lambda pair: pair[1],
}


class Example(NamedTuple):
    """An instance on which theorems are evaluated; fields as the parameters of `holds`."""

    known: Scope
    domains: Domains
    equal: Equal = operator.eq


def verdicts(name: str, change: tuple[str, str], examples: Iterable[Example]) -> tuple[bool, bool]:
    """Evaluate a theorem, and what a change makes of it, on examples.

    Parameters
    ----------
    name : str
        As of `theorems`.
    change : tuple of str
        A text that the statement has once, and another for it.
    examples : iterable of Example

    Returns
    -------
    bool
        Whether the theorem holds on all; it must.
    bool
        Whether the changed one does; if it says too much it must not.

    Raises
    ------
    ValueError
        If no example meets the theorem's premises.
    """
    statement = theorems()[name].statement
    other, kept = changed(statement, *change), list(examples)
    if all(holds(statement, *one, concludes=False) for one in kept):
        raise ValueError(f"{name}: no example meets its premises")
    return all(holds(statement, *one) for one in kept), all(holds(other, *one) for one in kept)


def within(relative: float, absolute: float = 0.0) -> Equal:
    """Return an equality that takes floats for equal within a tolerance, and all else only if it is.

    Parameters
    ----------
    relative : float
        Of the larger one's size.
    absolute : float
        For numbers near 0, in their unit.
    """

    def equal(left: Any, right: Any) -> bool:
        if isinstance(left, tuple):
            return isinstance(right, tuple) and len(left) == len(right) and all(map(equal, left, right))
        if isinstance(left, float) or isinstance(right, float):
            return math.isclose(left, right, rel_tol=relative, abs_tol=absolute)
        return left == right

    return equal


def holds(
    statement: str, known: Scope, domains: Domains, equal: Equal = operator.eq, *, concludes: bool = True
) -> bool:
    """Evaluate a statement.

    Parameters
    ----------
    statement : str
        From its binders on: ``(n : nat) : 0 < n -> ...``, or ``: forall n, ...``.
    known : mapping
        Meaning of each name that the statement does not bind: numbers, and functions of as many arguments as they take.
    domains : mapping of iterables
        Values of each bound variable, by its name.
    equal : callable
        Meaning of ``=``, such as `within` for floats; ``<`` and ``<=`` are those of the numbers always.
    concludes : bool
        False: read the conclusion as false, so that the statement holds only if its premises are never met.
    """
    binders, body = split(statement)
    text = f"forall {binders}, {body}" if binders else body
    return bool(Reader(text, domains, equal, concludes=concludes).term(known))


def split(statement: str) -> tuple[str, str]:
    """Split a statement at the colon behind its binders, which may be none."""
    depth = 0
    for at, letter in enumerate(statement):
        depth += (letter in "({") - (letter in ")}")
        if letter == ":" and not depth:
            return statement[:at].strip(), statement[at + 1 :]
    raise ValueError(f"no colon before the statement: {statement[:60]}")


def defined(
    module: str,
    known: Scope,
    domains: Domains | None = None,
    equal: Equal = operator.eq,
    change: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """Give names the meaning that Coq's definitions have.

    Parameters
    ----------
    module : str
        Such as ``hpcc.network``; with all that it requires.
    known : mapping
        Values of the variables of the file's sections, and names that shall not mean what the file defines.
    domains : mapping of iterables, optional
        As of `holds`, for definitions that quantify.
    equal : callable
        As of `holds`.
    change : tuple of str, optional
        A text that the file's definitions have once, and another for it: a slip.
    """
    scope: dict[str, Any] = dict(LIBRARY)
    for name in _with_required(module):
        sentences = re.split(r"\.(?=\s|$)", " ".join(plain(sources()[name]).split()))
        text = ". ".join(each.strip() for each in sentences if _DEFINING.match(each.strip()))
        if change and name == module:
            text = changed(text, *change)
        for sentence in re.split(r"\.(?=\s|$)", text):
            scope |= _meanings(sentence.strip(), scope, domains or {}, equal)
    scope |= known
    return scope


def changed(text: str, old: str, new: str) -> str:
    """Replace what stands in a text once.

    Raises
    ------
    ValueError
        If it does not, or more than once.
    """
    if text.count(old) != 1:
        raise ValueError(f"{old!r} stands {text.count(old)} times in {text[:60]}")
    return text.replace(old, new)


def _with_required(module: str) -> list[str]:
    found = [each for name in required(sources()[module]) for each in _with_required(name)]
    return [*dict.fromkeys(found), module]


class _Definition(Function):
    """A function by its text, which is read when it is called, since few of a file are."""

    def __init__(self, names: list[str], text: str, scope: Scope, domains: Domains, equal: Equal) -> None:
        super().__init__(names)
        self.text, self.scope, self.domains, self.equal = text, scope, domains, equal

    @functools.cached_property
    def body(self) -> Term:
        return Reader(self.text, self.domains, self.equal).term

    def __call__(self, *values: Any) -> Any:
        """Apply it; its body may be a function of the arguments that its head does not name."""
        own, more = values[: len(self.names)], values[len(self.names) :]
        return applied(self.body({**self.scope, **dict(zip(self.names, own, strict=True))}), list(more))


def _meanings(sentence: str, scope: Scope, domains: Domains, equal: Equal) -> dict[str, Any]:
    """Return what a sentence of Coq defines: functions, a proposition by its fields, a record, constructors."""

    def function(head: str, text: str) -> _Definition:
        return _Definition(_bound_in(head), text, scope, domains, equal)

    if found := re.match(r"(?:Definition|Fixpoint|Let) (\w+)(.*?):=(.*)", sentence):
        head, body = found[2], found[3]
        return {found[1]: function(split(f"{head}:")[0], body)}
    if found := re.match(r"Record (\w+) (.*?) : Prop := \{(.*)\}", sentence):
        fields = " /\\ ".join(f"({each.partition(':')[2]})" for each in found[3].split(";"))
        return {found[1]: function(found[2], fields)}
    if found := re.match(r"Record \w+(?: : Set)? := (\w+) \{(.*)\}", sentence):
        fields = [each.partition(":")[0].strip() for each in found[2].split(";")]
        return {found[1]: _Constructor("", len(fields))} | {
            name: functools.partial(lambda k, record: record[k], k) for k, name in enumerate(fields)
        }
    if found := re.match(r"Inductive \w+ : Set := (.*)", sentence):
        cases = [each.strip().partition(" ") for each in found[1].split("|") if each.strip()]
        return {name: _Constructor(name, len(_bound_in(binders))) for name, _, binders in cases}
    return {}


class _Constructor(Function):
    """Constructor of an inductive type: the tuple of its name and arguments, or of a record's fields alone."""

    def __init__(self, name: str, takes: int) -> None:
        super().__init__([""] * takes)
        self.name = name

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        return (self.name, *values) if self.name else values


def _bound_in(text: str) -> list[str]:
    """Names that binders bind."""
    return Reader(f"forall {text} => true", {}, operator.eq, only_bound=True).names
