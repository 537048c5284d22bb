"""Read propositions and functions of Coq as Python functions of what their names mean.

Real numbers are whatever Python's operators take: rationals, floats, symbols. Quantifiers range over lists.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

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
Scope = Mapping[str, Any]
Term = Callable[[Scope], Any]
Equal = Callable[[Any, Any], bool]
Domains = Mapping[str, Iterable[Any]]


class Function:
    """A function that a Coq file defines, of the arguments that it names; without any it is what it says."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def __call__(self, *values: Any) -> Any:
        """Apply it."""
        raise NotImplementedError


class Reader:
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
    return meant() if isinstance(meant, Function) and not meant.names else meant


@functools.lru_cache(maxsize=4096)
def _takes(meant: Callable[..., Any]) -> int:
    if isinstance(meant, functools.partial):
        return _takes(meant.func) - len(meant.args)
    return len(meant.names if isinstance(meant, Function) else inspect.signature(meant).parameters)


def _call(function: Term, arguments: list[Term]) -> Term:
    return lambda scope: applied(function(scope), [argument(scope) for argument in arguments])


def applied(meant: Any, values: list[Any]) -> Any:
    """Apply a function to arguments one by one, as Coq does: to fewer than it takes, or more."""
    while values:
        takes = _takes(meant)
        now, values = values[:takes], values[takes:]
        meant = meant(*now) if len(now) == takes else functools.partial(meant, *now)
    return meant
