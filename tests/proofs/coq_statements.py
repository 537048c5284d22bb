"""Evaluate a theorem's statement, as its Coq file has it, on one example: quantifiers range over what is given.

A program reads the same text that Coq has checked. So an example on which it is false is a slip in the definitions, of
Coq or of ours, and a statement that says too much is found out. Definitions are read from the files alike, for what no
program computes, and to compare them with what one does.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from fluidcc.proofs.verdict.coq import required
from fluidcc.proofs.verdict.theorems import plain, sources, theorems

_TOKENS = re.compile(
    r"\s*(<->|->|/\\|\\/|<=|>=|<>|=>|==|:=|::|\+\+|\{\||\|\}|exists!|[A-Za-z_][\w'.]*|\d+(?:\.\d+)?|[-+*/^(){}\[\]|=<>~:;,@'])"
)
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EQUATED = {"=": True, "==": True, "<>": False}
_OPENING = {"forall", "exists", "exists!", "if", "let"}
_WORDS = {*_OPENING, "match", "fun", "then", "else", "in", "with", "end"}
_DEFINING = re.compile(r"(?:Definition|Fixpoint|Let|Record|Inductive)\b")
Scope = Mapping[str, Any]
Term = Callable[[Scope], Any]
Equal = Callable[[Any, Any], bool]
Domains = Mapping[str, Iterable[Any]]

# Names of Coq's libraries. In its natural numbers 2 - 3 is 0, which matters where INR takes a difference.
LIBRARY: Mapping[str, Any] = {
    "S": lambda n: n + 1,
    "INR": lambda n: max(n, 0),
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
    **dict.fromkeys(("Rle_dec",), lambda x, y: x <= y),
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
    return bool(_Reader(text, domains, equal, concludes=concludes).term(known))


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


class _Definition:
    """A function of Coq; its text is read when it is called, since few of a file are."""

    def __init__(self, names: list[str], text: str, scope: Scope, domains: Domains, equal: Equal) -> None:
        self.names, self.text, self.scope, self.domains, self.equal = names, text, scope, domains, equal

    @functools.cached_property
    def body(self) -> Term:
        return _Reader(self.text, self.domains, self.equal).term

    def __call__(self, *values: Any) -> Any:
        """Apply it; its body may be a function of the arguments that its head does not name."""
        own, more = values[: len(self.names)], values[len(self.names) :]
        return _applied(self.body({**self.scope, **dict(zip(self.names, own, strict=True))}), list(more))


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


class _Constructor:
    """Constructor of an inductive type: the tuple of its name and arguments, or of a record's fields alone."""

    def __init__(self, name: str, takes: int) -> None:
        self.name, self.names = name, [""] * takes

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        return (self.name, *values) if self.name else values


def _bound_in(text: str) -> list[str]:
    """Names that binders bind."""
    return _Reader(f"forall {text} => true", {}, operator.eq, only_bound=True).names


class _Reader:
    """A recursive-descent reader; `term` is the meaning of the whole text."""

    def __init__(
        self, text: str, domains: Domains, equal: Equal, *, concludes: bool = True, only_bound: bool = False
    ) -> None:
        text = re.sub(r"%\w+", "", text)
        self.tokens = _TOKENS.findall(text)
        if "".join(self.tokens) != re.sub(r"\s+", "", text):
            raise ValueError(f"cannot read {text}")
        self.equal = equal
        if only_bound:
            self.take("forall")
            self.names = self.bound()
            return
        self.domains = {name: list(values) for name, values in domains.items()}
        self.term = self.arrow() if concludes else self.premises()
        if self.tokens:
            raise ValueError(f"cannot read from {' '.join(self.tokens[:9])}")

    def peek(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def take(self, *expected: str) -> str:
        token = self.tokens.pop(0) if self.tokens else "the end"
        if expected and token not in expected:
            raise ValueError(f"{token} where {' or '.join(expected)} was expected")
        return token

    def premises(self) -> Term:
        """Read a statement whose conclusion is taken for false."""
        if self.peek() == "forall":
            self.take()
            names = self.bound()
            self.take(",")
            return _quantified(all, names, self.domains, self.premises())
        first = self.either() if self.peek() not in _OPENING else self.arrow()
        if self.peek() == "->":
            self.take()
            then = self.premises()
            return lambda scope: not first(scope) or then(scope)
        self.tokens.clear()  # what is left of an equivalence
        return lambda scope: False

    def arrow(self) -> Term:
        if self.peek() in ("forall", "exists", "exists!"):
            decided = {"forall": all, "exists": any, "exists!": _once}[self.take()]
            names = self.bound()
            self.take(",")
            return _quantified(decided, names, self.domains, self.arrow())
        if self.peek() in ("if", "let"):
            return self.choice() if self.take() == "if" else self.named()
        first = self.either()
        if self.peek() == "->":
            self.take()
            then = self.arrow()
            return lambda scope: not first(scope) or then(scope)
        if self.peek() == "<->":
            self.take()
            same = self.arrow()
            return lambda scope: bool(first(scope)) == bool(same(scope))
        return first

    def choice(self) -> Term:
        asked = self.arrow()
        self.take("then")
        yes = self.arrow()
        self.take("else")
        no = self.arrow()
        return lambda scope: yes(scope) if asked(scope) else no(scope)

    def named(self) -> Term:
        """Read ``let x := e in t``, or with ``'(x, y)`` for x."""
        names = [self.take()]
        if names == ["'"]:
            self.take("(")
            names = [self.take()]
            while self.take(",", ")") == ",":
                names.append(self.take())
            several = True
        else:
            several = False
        self.take(":=")
        meant = self.arrow()
        self.take("in")
        body = self.arrow()

        def term(scope: Scope) -> Any:
            value = meant(scope)
            return body({**scope, **dict(zip(names, value if several else (value,), strict=True))})

        return term

    def cases(self) -> Term:
        """Read ``match e with p => t | q => u end``."""
        meant = self.arrow()
        self.take("with")
        cases = []
        while self.peek() != "end":
            if self.peek() == "|":
                self.take()
            pattern = []
            while self.peek() != "=>":
                pattern.append(self.take())
            self.take()
            cases.append((pattern, self.arrow()))
        self.take()  # its end

        def term(scope: Scope) -> Any:
            value = meant(scope)
            for pattern, body in cases:
                if (bound := _matched(pattern, value)) is not None:
                    return body({**scope, **bound})
            raise ValueError(f"no case for {value}")

        return term

    def bound(self) -> list[str]:
        """Names of variables, with or without types; a premise in brackets has no name that a domain knows."""
        names = []
        while self.peek() not in (",", "=>"):
            token = self.take()
            if token == ":":  # the type, up to the bracket or the comma
                while self.peek() not in (")", "}", ",", "=>"):
                    self.take()
            elif token not in "(){}":
                names.append(token)
        return names

    def either(self) -> Term:
        first = self.both()
        if self.peek() == "\\/":
            self.take()
            other = self.either()
            return lambda scope: first(scope) or other(scope)
        return first

    def both(self) -> Term:
        first = self.denied()
        if self.peek() == "/\\":
            self.take()
            other = self.both()
            return lambda scope: first(scope) and other(scope)
        return first

    def denied(self) -> Term:
        if self.peek() == "~":
            self.take()
            inner = self.denied()
            return lambda scope: not inner(scope)
        if self.peek() in _OPENING:
            return self.arrow()
        return self.compared()

    def compared(self) -> Term:
        terms, signs = [self.listed()], []
        while self.peek() in _COMPARED or self.peek() in _EQUATED:
            signs.append(self.sign(self.take()))
            terms.append(self.listed())
        if not signs:
            return terms[0]
        return lambda scope: all(
            sign(left(scope), right(scope)) for sign, left, right in zip(signs, terms, terms[1:], strict=False)
        )

    def sign(self, token: str) -> Equal:
        if token in _COMPARED:
            return _COMPARED[token]
        equal, same = self.equal, _EQUATED[token]
        return lambda left, right: equal(left, right) is same

    def listed(self) -> Term:
        first = self.added()
        if self.peek() in ("::", "++"):
            one = self.take() == "::"
            rest = self.listed()
            return lambda scope: (first(scope), *rest(scope)) if one else first(scope) + rest(scope)
        return first

    def added(self) -> Term:
        found = self.multiplied()
        while self.peek() in ("+", "-"):
            found = _joined(self.take(), found, self.multiplied())
        return found

    def multiplied(self) -> Term:
        found = self.signed()
        while self.peek() in ("*", "/"):
            found = _joined(self.take(), found, self.signed())
        return found

    def signed(self) -> Term:
        if self.peek() == "-":
            self.take()
            inner = self.signed()
            return lambda scope: -inner(scope)
        if self.peek() == "/":  # the reciprocal
            self.take()
            below = self.signed()
            return lambda scope: _over(1, below(scope))
        return self.raised()

    def raised(self) -> Term:
        base = self.applied()
        if self.peek() == "^":
            self.take()
            return _joined("^", base, self.signed())
        return base

    def applied(self) -> Term:
        if self.peek() == "@":  # that it takes all arguments
            self.take()
        function = self.atom()
        arguments = []
        while self.peek() in ("(", "[", "{|") or (re.match(r"\w", self.peek()) and self.peek() not in _WORDS):
            arguments.append(self.atom())
        return _call(function, arguments) if arguments else function

    def atom(self) -> Term:
        token = self.take()
        if token == "(":
            return self.bracketed()
        if token == "match":
            return self.cases()
        if token in ("[", "{|"):
            return self.row({"[": "]", "{|": "|}"}[token])
        if re.match(r"\d", token):
            value = Fraction(token) if "." in token else int(token)
            return lambda scope: value
        if token in ("true", "false"):
            return lambda scope: token == "true"
        if not re.match(r"[A-Za-z_]", token):
            raise ValueError(f"{token} where a name or a number was expected")
        return lambda scope: _value(scope[token])

    def bracketed(self) -> Term:
        parts = [self.function() if self.peek() == "fun" else self.arrow()]
        if self.peek() == ":":  # a type
            while self.peek() != ")":
                self.take()
        while self.take(")", ",") == ",":
            parts.append(self.arrow())
        return parts[0] if len(parts) == 1 else lambda scope: tuple(part(scope) for part in parts)

    def row(self, end: str) -> Term:
        """Read a list, or a record's fields in their order."""
        parts = []
        while self.peek() != end:
            if end == "|}":
                self.take()
                self.take(":=")
            parts.append(self.arrow())
            if self.peek() == ";":
                self.take()
        self.take()
        return lambda scope: tuple(part(scope) for part in parts)

    def function(self) -> Term:
        self.take("fun")
        names = self.bound()
        self.take("=>")
        body = self.arrow()
        if len(names) != 1:
            raise ValueError("a function of one argument was expected")
        return lambda scope: lambda value: body({**scope, names[0]: value})


def _once(values: Iterable[bool]) -> bool:
    return sum(values) == 1


def _matched(pattern: list[str], value: Any) -> dict[str, Any] | None:
    """Return what a pattern binds; None if it does not match."""
    if pattern == ["O"]:
        return {} if value == 0 else None
    if pattern == ["[", "]"] or pattern == ["nil"]:
        return None if value else {}
    if pattern[0] == "S":
        return {pattern[1]: value - 1} if value > 0 else None
    if pattern[1:2] == ["::"]:
        first = pattern[0]
        return {first: value[0], pattern[2]: value[1:]} if value else None
    if "::" in pattern:  # a constructor, and the rest
        at = pattern.index("::")
        bound = _matched(pattern[:at], value[0]) if value else None
        return None if bound is None else {**bound, pattern[at + 1]: value[1:]}
    if value[0] != pattern[0]:
        return None
    return dict(zip(pattern[1:], value[1:], strict=True))


def _quantified(
    decided: Callable[[Iterable[bool]], bool], names: list[str], domains: Mapping[str, list[Any]], body: Term
) -> Term:
    def said(scope: Scope) -> bool:
        values = itertools.product(*(domains[name] for name in names))
        return decided(bool(body({**scope, **dict(zip(names, each, strict=True))})) for each in values)

    return said


def _over(above: Any, below: Any) -> Any:
    floats = isinstance(above, float) or isinstance(below, float)
    return float(above) / float(below) if floats else Fraction(above) / below


def _joined(sign: str, left: Term, right: Term) -> Term:
    if sign == "+":
        return lambda scope: left(scope) + right(scope)
    if sign == "-":
        return lambda scope: left(scope) - right(scope)
    if sign == "*":
        return lambda scope: left(scope) * right(scope)
    if sign == "/":
        return lambda scope: _over(left(scope), right(scope))
    return lambda scope: left(scope) ** int(right(scope))


def _value(meant: Any) -> Any:
    """A definition without arguments is what it says."""
    return meant() if isinstance(meant, _Definition) and not meant.names else meant


@functools.lru_cache(maxsize=4096)
def _takes(meant: Callable[..., Any]) -> int:
    return (
        len(meant.names) if isinstance(meant, _Definition | _Constructor) else len(inspect.signature(meant).parameters)
    )


def _call(function: Term, arguments: list[Term]) -> Term:
    return lambda scope: _applied(function(scope), [argument(scope) for argument in arguments])


def _applied(meant: Any, values: list[Any]) -> Any:
    """Apply a function to arguments one by one, as Coq does: to fewer than it takes, or more."""
    while values:
        takes = _takes(meant)
        now, values = values[:takes], values[takes:]
        meant = meant(*now) if len(now) == takes else functools.partial(meant, *now)
    return meant
