"""Evaluate a theorem's statement, as its Coq file has it, on one example: quantifiers range over what is given.

A program reads the same text that Coq has checked. So an example on which it is false is a slip in the definitions, of
Coq or of ours, and a statement that says too much is found out.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

_TOKENS = re.compile(r"\s*(<->|->|/\\|\\/|<=|>=|<>|=>|[A-Za-z_][\w'.]*|\d+(?:\.\d+)?|[-+*/^(){}=<>~:,@])")
_COMPARED = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
}
_WORDS = {"forall", "exists", "fun"}
Scope = Mapping[str, Any]
Term = Callable[[Scope], Any]


def holds(statement: str, known: Scope, domains: Mapping[str, Iterable[Any]]) -> bool:
    """Evaluate a statement.

    Parameters
    ----------
    statement : str
        From its binders on: ``(n : nat) : 0 < n -> ...``, or ``: forall n, ...``.
    known : mapping
        Meaning of each name that the statement does not bind: numbers, and functions of as many arguments as they take.
    domains : mapping of iterables
        Values of each bound variable, by its name.
    """
    binders, body = split(statement)
    return bool(_Reader(f"forall {binders}, {body}" if binders else body, domains).term(known))


def split(statement: str) -> tuple[str, str]:
    """Split a statement at the colon behind its binders, which may be none."""
    depth = 0
    for at, letter in enumerate(statement):
        depth += (letter in "({") - (letter in ")}")
        if letter == ":" and not depth:
            return statement[:at].strip(), statement[at + 1 :]
    raise ValueError(f"no colon before the statement: {statement[:60]}")


class _Reader:
    """A recursive-descent reader; `term` is the meaning of the whole text."""

    def __init__(self, text: str, domains: Mapping[str, Iterable[Any]]) -> None:
        text = re.sub(r"%\w+", "", text)
        self.tokens = _TOKENS.findall(text)
        if "".join(self.tokens) != re.sub(r"\s+", "", text):
            raise ValueError(f"cannot read {text}")
        self.domains = {name: list(values) for name, values in domains.items()}
        self.term = self.arrow()
        if self.tokens:
            raise ValueError(f"cannot read from {' '.join(self.tokens[:9])}")

    def peek(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def take(self, *expected: str) -> str:
        token = self.tokens.pop(0)
        if expected and token not in expected:
            raise ValueError(f"{token} where {' or '.join(expected)} was expected")
        return token

    def arrow(self) -> Term:
        if self.peek() in ("forall", "exists"):
            every = all if self.take() == "forall" else any
            names = self.bound()
            self.take(",")
            return _quantified(every, names, self.domains, self.arrow())
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
        if self.peek() in ("forall", "exists"):
            return self.arrow()
        return self.compared()

    def compared(self) -> Term:
        terms, signs = [self.added()], []
        while self.peek() in _COMPARED:
            signs.append(_COMPARED[self.take()])
            terms.append(self.added())
        if not signs:
            return terms[0]
        return lambda scope: all(
            sign(left(scope), right(scope)) for sign, left, right in zip(signs, terms, terms[1:], strict=False)
        )

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
            return lambda scope: 1 / Fraction(below(scope))
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
        while self.peek() == "(" or (re.match(r"[\w]", self.peek()) and self.peek() not in _WORDS):
            arguments.append(self.atom())
        return _call(function, arguments) if arguments else function

    def atom(self) -> Term:
        token = self.take()
        if token == "(":
            inner = self.function() if self.peek() == "fun" else self.arrow()
            if self.peek() == ":":  # a type
                while self.peek() != ")":
                    self.take()
            self.take(")")
            return inner
        if re.match(r"\d", token):
            value = Fraction(token) if "." in token else int(token)
            return lambda scope: value
        if token in ("true", "false"):
            return lambda scope: token == "true"
        if not re.match(r"[A-Za-z_]", token):
            raise ValueError(f"{token} where a name or a number was expected")
        return lambda scope: scope[token]

    def function(self) -> Term:
        self.take("fun")
        names = self.bound()
        self.take("=>")
        body = self.arrow()
        if len(names) != 1:
            raise ValueError("a function of one argument was expected")
        return lambda scope: lambda value: body({**scope, names[0]: value})


def _quantified(every: Callable[..., bool], names: list[str], domains: Mapping[str, list[Any]], body: Term) -> Term:
    def said(scope: Scope) -> bool:
        def values(left: list[str], at: Scope) -> Iterable[bool]:
            if not left:
                yield bool(body(at))
                return
            for value in domains[left[0]]:
                yield from values(left[1:], {**at, left[0]: value})

        return every(values(names, scope))

    return said


def _joined(sign: str, left: Term, right: Term) -> Term:
    if sign == "+":
        return lambda scope: left(scope) + right(scope)
    if sign == "-":
        return lambda scope: left(scope) - right(scope)
    if sign == "*":
        return lambda scope: left(scope) * right(scope)
    if sign == "/":
        return lambda scope: Fraction(left(scope)) / right(scope)
    return lambda scope: left(scope) ** int(right(scope))


def _call(function: Term, arguments: list[Term]) -> Term:
    def called(scope: Scope) -> Any:
        meant = function(scope)
        values = [argument(scope) for argument in arguments]
        while values:
            takes = len(inspect.signature(meant).parameters)
            now, values = values[:takes], values[takes:]
            meant = meant(*now) if len(now) == takes else functools.partial(meant, *now)
        return meant

    return called
