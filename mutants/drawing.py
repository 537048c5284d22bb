"""Small mistakes drawn from the syntax trees of the sources, the same ones for the same seed.

Each kind of mistake lists its places in functions and methods, as a change of text between two positions; constants of
modules, which are often free within a factor of two, are left out.
Places are ranked by a digest of the seed and of their own text, and kinds take turns, so that an edit elsewhere leaves
most drawn mistakes as they were, and fewer of them are the first of more.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from mutants.rooms import ROOMS, files_of

EQUIVALENT = Path(__file__).parent / "equivalent.toml"
Source = Callable[[ast.AST], str]  # the text of a node
KINDS = ("sign", "boundary", "comparison", "dropped", "stale", "factor", "swapped", "logic")
# Text for people, not numbers: what is in calls of these is left alone, and in f-strings and `raise`.
_SPOKEN = re.compile(
    r"(^|\.)(warn\w*|say\w*|print|Refused|\w*Error|join|format|progress\.\w+|Field|TypeVar|field|echo)$"
)
_SHOWN = re.compile(r"^_?(repr|html|show|text|draw|plot|describe|label|caption|report|say)s?(_|$)|^__(repr|str)__$")
_FLIPPED = {ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"}
_TURNED = {ast.Lt: ">", ast.LtE: ">=", ast.Gt: "<", ast.GtE: "<="}
_BOUNDARY = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_UNDONE = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}  # of assignments such as x += y
_MASKS = {ast.BitAnd: "|", ast.BitOr: "&"}
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**"}


class Drawn(NamedTuple):
    """A change of text between two positions of a file (characters), of one kind."""

    room: str
    file: str
    line: int
    start: int
    end: int
    before: str
    after: str
    kind: str
    function: str
    rank: str

    @property
    def name(self) -> str:
        """Place, kind and a digest: the same as long as its text and the function's name are."""
        return f"{Path(self.file).stem.replace('_', '-')}-{self.kind}-{self.rank[:8]}"

    def text(self, root: Path) -> str:
        """The file with the mistake in it."""
        text = (root / self.file).read_text(encoding="utf-8")
        return text[: self.start] + self.after + text[self.end :]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}  {' '.join(self.before.split())}  ->  {' '.join(self.after.split())}"


class Equivalent(NamedTuple):
    """A mistake that is proved to change nothing: end of the module's file, text before and after."""

    module: str
    before: str
    after: str
    reason: str


@functools.cache
def equivalent() -> list[Equivalent]:
    """Those that leave the count."""
    return [Equivalent(**each) for each in tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutation", [])]


def is_equivalent(mistake: Drawn) -> bool:
    """Look a mistake up in the list; texts are compared without their spaces."""
    dotted = mistake.file.removesuffix(".py").replace("/", ".")
    squeezed = tuple("".join(text.split()) for text in (mistake.before, mistake.after))
    return any(
        f".{dotted}".endswith(f".{each.module}")
        and squeezed == ("".join(each.before.split()), "".join(each.after.split()))
        for each in equivalent()
    )


def draw(root: Path, number: int, seed: int, rooms: list[str] | None = None) -> list[Drawn]:
    """Draw so many mistakes, as many in each of the rooms as in any other; of some rooms, those of all drawn."""
    names = list(ROOMS)
    found = []
    for k, name in enumerate(names):
        share = number // len(names) + (k < number % len(names))
        if rooms is None or name in rooms:
            found += _draw_room(root, name, share, seed)
    return found


def _draw_room(root: Path, name: str, number: int, seed: int) -> list[Drawn]:
    room = ROOMS[name]
    by_kind: dict[str, list[Drawn]] = {kind: [] for kind in KINDS}
    for file in files_of(root, room.sources, "*.py", room.without):
        for each in places(root, name, file, seed):
            by_kind[each.kind].append(each)
    for each in by_kind.values():
        each.sort(key=lambda mistake: mistake.rank)
    drawn: list[Drawn] = []
    lines: set[tuple[str, int]] = set()
    while len(drawn) < number and any(by_kind.values()):
        for kind in KINDS:
            while by_kind[kind]:
                mistake = by_kind[kind].pop(0)
                if (
                    (mistake.file, mistake.line) not in lines
                    and _compiles(mistake.text(root))
                    and not is_equivalent(mistake)
                ):
                    lines.add((mistake.file, mistake.line))
                    drawn.append(mistake)
                    break
    return drawn[:number]


def places(root: Path, room: str, file: str, seed: int) -> Iterator[Drawn]:
    """All mistakes that could be made in a file."""
    text = (root / file).read_text(encoding="utf-8")
    rows = text.split("\n")
    starts = [0]
    for row in rows:
        starts.append(starts[-1] + len(row) + 1)

    def position(line: int, column: int) -> int:  # columns are bytes
        row = rows[line - 1]
        return starts[line - 1] + (column if row.isascii() else len(row.encode()[:column].decode()))

    def span(node: ast.AST) -> tuple[int, int]:
        return position(node.lineno, node.col_offset), position(node.end_lineno, node.end_col_offset)  # type: ignore

    def source(node: ast.AST) -> str:
        start, end = span(node)
        return text[start:end]

    seen: dict[str, int] = {}
    for scope in _scopes(ast.parse(text)):
        for kind, node, after in _changes(scope, source):
            start, end = span(node)
            before = text[start:end]
            key = f"{seed}|{file}|{scope.name}|{kind}|{before}|{after}"
            seen[key] = seen.get(key, 0) + 1
            rank = hashlib.sha256(f"{key}|{seen[key]}".encode()).hexdigest()
            if _same(before, after):
                continue
            yield Drawn(room, file, node.lineno, start, end, before, after, kind, scope.name, rank)  # type: ignore


def _same(before: str, after: str) -> bool:
    return "".join(before.split()) == "".join(after.split())


def _compiles(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


class _Scope(NamedTuple):
    """Statements and expressions of a function, and its local names."""

    name: str
    nodes: list[ast.AST]
    names: list[str]


def _scopes(tree: ast.Module) -> Iterator[_Scope]:
    """Functions and methods, each with the functions within; of modules and classes nothing else."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield _scope(node, node.name)
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield _scope(inner, f"{node.name}.{inner.name}")


def _scope(function: ast.FunctionDef, name: str) -> _Scope:
    if _SHOWN.search(function.name):
        return _Scope(name, [], [])
    nodes: list[ast.AST] = []
    names: dict[str, None] = {}
    for argument in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]:
        if argument.arg not in ("self", "cls"):
            names[argument.arg] = None

    def visit(node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            for default in node.args.defaults:
                visit(default)
            for each in node.body if isinstance(node.body, list) else [node.body]:
                visit(each)
            return
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.JoinedStr, ast.Raise, ast.ClassDef, ast.Assert)):
            return
        if isinstance(node, ast.Call) and _SPOKEN.search(ast.unparse(node.func)):
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        nodes.append(node)
        if isinstance(node, ast.AnnAssign):
            visit(node.target)
            if node.value is not None:
                visit(node.value)
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
        for child in ast.iter_child_nodes(node):
            visit(child)

    for each in function.body:
        visit(each)
    return _Scope(name, nodes, list(names))


def _changes(scope: _Scope, source: Source) -> Iterator[tuple[str, ast.AST, str]]:
    """Kind, the node that is replaced, and the text in its place."""
    first = _first_lines(scope)
    kept = {id(node.slice) for node in scope.nodes if isinstance(node, ast.Subscript)}  # an index out of range is dull
    texts = {  # sums of texts, and lists
        id(node) for node in scope.nodes if isinstance(node, ast.BinOp) and _is_text(node)
    }
    called = {id(node.func) for node in scope.nodes if isinstance(node, ast.Call)}
    read: dict[str, dict[str, None]] = {}  # attributes by what has them, in the order of the text
    for node in scope.nodes:
        if isinstance(node, ast.Attribute) and id(node) not in called:
            read.setdefault(source(node.value), {})[node.attr] = None
    for node in scope.nodes:
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS and id(node) not in texts:
            yield from _of_operation(node, source)
        elif isinstance(node, ast.BinOp) and type(node.op) in _MASKS and _is_mask(node):
            yield "logic", node, f"({source(node.left)} {_MASKS[type(node.op)]} {source(node.right)})"
        elif isinstance(node, ast.AugAssign) and type(node.op) in _UNDONE and not _is_text(node.value):
            kind = "sign" if isinstance(node.op, (ast.Add, ast.Sub)) else "swapped"
            yield kind, node, f"{source(node.target)} {_UNDONE[type(node.op)]}= {source(node.value)}"
            yield "dropped", node, "pass"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            yield "logic", node, f"({source(node.operand)})"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            if not isinstance(node.operand, ast.Constant) or id(node) not in kept:
                yield "sign", node, source(node.operand)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield "logic", node, f"({source(node.operand)})"
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right, op = source(node.left), source(node.comparators[0]), type(node.ops[0])
            if op in _BOUNDARY:
                yield "boundary", node, f"{left} {_BOUNDARY[op]} {right}"
                yield "comparison", node, f"{left} {_TURNED[op]} {right}"
            elif op in _FLIPPED:
                yield "comparison", node, f"{left} {_FLIPPED[op]} {right}"
        elif isinstance(node, ast.BoolOp):
            word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            parts = [source(each) for each in node.values]
            if len(parts) == 2 and not any(isinstance(each, ast.BoolOp) for each in node.values):
                yield "logic", node, f"({parts[0]} {other} {parts[1]})"
            for k in range(len(parts)):
                yield "dropped", node, f" {word} ".join(parts[:k] + parts[k + 1 :])
        elif isinstance(node, ast.Call):
            yield from _of_call(node, source)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float) and id(node) not in kept:
            if node.value == 1:
                yield "factor", node, "2" if type(node.value) is int else "2.0"
            elif node.value == 0:
                yield "factor", node, "1" if type(node.value) is int else "1.0"
            elif node.value > 1e-6:
                yield "factor", node, f"(2 * {source(node)})"
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            for other in () if id(node) in called else read[source(node.value)]:
                if other != node.attr and _alike(node.attr, other):
                    yield "stale", node, f"{source(node.value)}.{other}"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in first:
            for other in scope.names:
                if other != node.id and first[other] < node.lineno and _alike(node.id, other):
                    yield "stale", node, other


def _first_lines(scope: _Scope) -> dict[str, int]:
    """Line after which each local name has a value; 0 for arguments."""
    lines = dict.fromkeys(scope.names, 0)
    for node in scope.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not lines.get(node.id, 1):
            lines[node.id] = node.lineno
    return lines


_WORDS = frozenset(["the", "a", "of", "is", "to", "at", "in", "by", "per", "old", "new"])


def _alike(one: str, other: str) -> bool:
    """Compare two names: they may stand for the same quantity if they share a word."""
    parts = [set(name.lower().strip("_").split("_")) - _WORDS for name in (one, other)]
    return bool({word.rstrip("s") for word in parts[0]} & {word.rstrip("s") for word in parts[1]})


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, (ast.JoinedStr, ast.List, ast.Tuple)) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    )


def _is_mask(node: ast.BinOp) -> bool:
    """Tell arrays of truth values from types, sets and mappings: some part compares, or is turned round."""
    return any(isinstance(each, ast.Compare | ast.Invert) for each in ast.walk(node))


def _is_number(node: ast.AST, *values: float) -> bool:
    return isinstance(node, ast.Constant) and node.value in values


def _of_operation(node: ast.BinOp, source: Source) -> Iterator[tuple[str, ast.AST, str]]:
    left, right, op = source(node.left), source(node.right), type(node.op)
    zero = any(_is_number(each, 0, 0.0) for each in (node.left, node.right))
    one = _is_number(node.right, 1, 1.0)
    if op in (ast.Add, ast.Sub) and not zero:
        yield "sign", node, f"{left} {'-' if op is ast.Add else '+'} {_grouped(node.right, right)}"
        yield "dropped", node, left
        yield "dropped", node, right if op is ast.Add else f"-({right})"
    elif op in (ast.Mult, ast.Div) and not one:
        yield "dropped", node, f"({left})"
        if op is ast.Mult:
            yield "dropped", node, f"({right})"
            yield "swapped", node, f"({left} / {_grouped(node.right, right, all_operations=True)})"
    if op in (ast.Sub, ast.Div, ast.FloorDiv, ast.Pow) and left != right:
        swapped = f"({_grouped(node.right, right, True)} {_OPERATORS[op]} {_grouped(node.left, left, True)})"
        yield "swapped", node, swapped


def _grouped(node: ast.AST, text: str, all_operations: bool = False) -> str:
    """In brackets where the operator in front would take only part of it."""
    if isinstance(node, ast.BinOp) and (all_operations or isinstance(node.op, (ast.Add, ast.Sub))):
        return f"({text})"
    return f"({text})" if isinstance(node, (ast.IfExp, ast.Compare, ast.BoolOp, ast.UnaryOp)) else text


def _of_call(node: ast.Call, source: Source) -> Iterator[tuple[str, ast.AST, str]]:
    name = ast.unparse(node.func).rpartition(".")[2]
    parts = [source(each) for each in node.args]
    if any(isinstance(each, ast.Starred) for each in node.args):
        return
    if name in ("minimum", "maximum", "min", "max", "hypot") and len(parts) == 2 and not node.keywords:
        for k in (0, 1):
            yield "dropped", node, f"({parts[k]})"
        other = {"minimum": "maximum", "maximum": "minimum", "min": "max", "max": "min"}.get(name)
        if other:
            yield "swapped", node, f"{source(node.func)[: -len(name)]}{other}({', '.join(parts)})"
    elif name in ("where", "select") and len(parts) == 3:
        yield "swapped", node, f"{source(node.func)}({parts[0]}, {parts[2]}, {parts[1]})"
        for k in (1, 2):
            yield "dropped", node, f"({parts[k]})"
    elif name == "clip" and len(parts) == 3:
        yield "dropped", node, f"({parts[0]})"
