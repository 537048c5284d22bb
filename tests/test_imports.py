"""Who imports whom: packages in one order, no circles, and nothing heavy as fluidcc is imported."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

import fluidcc

PACKAGE = Path(str(fluidcc.__file__)).parent  # installed, where a wheel is tested
ROOT = PACKAGE.parent
# Imports upwards, by a name that is put together at run time, and why.
DOORS = {
    ("fluidcc.results", "fluidcc.plotting"): "a result draws itself (`.plot()`)",
    ("fluidcc.scenario", "fluidcc.explorer"): "a scenario is moved by hand (`.explore()`)",
}
FACES = ("fluidcc", "fluidcc.studies")  # whose names are loaded from the rooms behind them when first used
COMMAND = "fluidcc.__main__"  # of the command line, though Python wants it at the top
# Each may import those before it, and no other; a line is one package, or packages of one kind that may import each
# other as long as they make no circle. What is loose at the top stands below all.
ORDER = (
    "fluidcc",
    "fluidcc.scenario",
    "fluidcc.contract",
    "fluidcc.builders",
    "fluidcc.compiling",
    "fluidcc.results",
    "fluidcc.dde",
    "fluidcc.engines.common",
    "fluidcc.engines.fluid",
    "fluidcc.engines.packet",
    "fluidcc.engines.hybrid",
    "fluidcc.engines.flow_level",
    "fluidcc.schemes",
    "fluidcc.schemes.*",
    "fluidcc.engines",
    "fluidcc.theory.*",
    "fluidcc.theory",
    "fluidcc.workloads",
    "fluidcc.workloads.fabrics",
    "fluidcc.workloads.collectives",
    "fluidcc.studies",
    "fluidcc.studies.sweeps",
    "fluidcc.studies.fitting",
    "fluidcc.studies.tuning",
    "fluidcc.operators.switches",
    "fluidcc.operators.counters",
    "fluidcc.operators",
    "fluidcc.plotting",
    "fluidcc.proofs",
    "fluidcc.proofs.verdict",
    "fluidcc.proofs.shared",
    "fluidcc.proofs.*",
    "fluidcc.explorer",
    "fluidcc.cli",
)
HEAVY = ("jax", "numba", "scipy", "xarray", "matplotlib", "sympy", "pandas", "typer", "rich", "panel", "bokeh")


@cache
def modules() -> Mapping[str, Path]:
    """Files of the package by the names of their modules."""
    found = {}
    for path in {*PACKAGE.rglob("*.py"), *(PACKAGE / "proofs").rglob("*.py")}:  # in a checkout that is a link
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def package_of(module: str) -> str:
    """Folder that a module lies in."""
    if module == COMMAND:
        return "fluidcc.cli"
    return ".".join(modules()[module].parent.relative_to(ROOT).parts)


@cache
def imports() -> Mapping[str, frozenset[str]]:
    """Modules that each module imports, wherever in it; public faces are left out."""
    found = {}
    for name, path in modules().items():
        if name in FACES:
            continue
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        seen = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                seen |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                parts = package.split(".")
                above = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
                base = ".".join(part for part in (above, node.module) if part)
                seen |= {
                    f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules() else base for alias in node.names
                }
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                seen |= {each.value.strip(".") for each in ast.walk(node.args[0]) if isinstance(each, ast.Constant)}
        found[name] = frozenset(seen & modules().keys() - {*FACES, name})
    return found


def circles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Sets of nodes that reach each other: what is left when nodes without a way on, or without one to, are taken."""
    left = {node: set(to) & graph.keys() - {node} for node, to in graph.items()}
    while True:
        reached = {node for to in left.values() for node in to}
        dead = {node for node, to in left.items() if not to or node not in reached}
        if not dead:
            return [sorted(left)] if left else []
        left = {node: to - dead for node, to in left.items() if node not in dead}


@cache
def between_packages() -> Mapping[str, dict[str, str]]:
    """Of each package those that it imports, with a module that does."""
    found: dict[str, dict[str, str]] = {package_of(name): {} for name in modules()}
    for name, seen in imports().items():
        for other in seen:
            arrow = package_of(name), package_of(other)
            if len({*arrow}) > 1 and arrow not in DOORS:
                found[arrow[0]].setdefault(arrow[1], name)
    return found


def rank(package: str) -> int:
    """Place of a package in `ORDER`."""
    family = package.rpartition(".")[0] + ".*"
    return ORDER.index(package if package in ORDER else family)


def test_circles_are_found() -> None:
    assert circles({"a": ["b"], "b": ["c"], "c": []}) == []
    assert circles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a"], "e": []}) == [["b", "c"]]


def test_no_module_imports_itself_by_way_of_others() -> None:
    through = {
        name: [other for other in seen if (package_of(name), package_of(other)) not in DOORS]
        for name, seen in imports().items()
    }
    assert circles(through) == []


def test_doors_are_used() -> None:
    """One that nobody goes through any more is no exception."""
    arrows = {(package_of(name), package_of(other)) for name, seen in imports().items() for other in seen}
    assert arrows >= DOORS.keys()


def test_no_package_imports_itself_by_way_of_others() -> None:
    assert circles(between_packages()) == []


def test_packages_import_those_before_them() -> None:
    upward = {
        f"{user} imports {package}, in {module}"
        for user, used in between_packages().items()
        for package, module in used.items()
        if rank(package) > rank(user)
    }
    assert upward == set()


def test_engines_know_schemes_by_the_contract_alone() -> None:
    """Neither they nor scenarios nor results name a scheme's package; the two engines do not know each other."""
    users = [p for p in between_packages() if p.startswith(("fluidcc.engines", "fluidcc.scenario", "fluidcc.results"))]
    named = {user: [p for p in between_packages()[user] if p.startswith("fluidcc.schemes.")] for user in users}
    assert not any(named.values()), named
    assert "fluidcc.engines.packet" not in between_packages()["fluidcc.engines.fluid"]
    assert "fluidcc.engines.fluid" not in between_packages()["fluidcc.engines.packet"]


def test_few_modules_lie_loose() -> None:
    loose = sorted(path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__"))
    assert len(loose) <= 6, loose


@pytest.mark.parametrize("statement", ["import fluidcc", "import fluidcc.contract.registry as r; r.names()"])
def test_nothing_heavy_is_imported(statement: str) -> None:
    code = f"import sys; {statement}; print(*sorted({{m.partition('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint(HEAVY)


def test_packets_do_without_jax_and_what_was_made_before_it_is_a_pytree() -> None:
    """JAX takes as long to import as all else of a short run of packets."""
    code = """
import importlib.util, sys
import fluidcc as fc
scheme = fc.DCQCN(g=0.5)
fc.simulate(fc.incast(2, scheme=scheme), "1us", engine="packet")
before = "jax" in sys.modules
importlib.util.find_spec("jax")  # as libraries do that only look whether it is there
import jax
print(before, 0.5 in jax.tree.leaves(scheme), jax.tree.map(lambda x: x, scheme) == scheme)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True"]


@pytest.mark.parametrize(
    "code",
    [
        "from fluidcc.cli import main; main('simulate dcqcn --flows 2 --until 10us --engine packet --json'.split())",
        "import fluidcc as fc; fc.simulate(fc.incast(2), '10us', engine='packet').summary",
    ],
    ids=["command", "library"],
)
def test_packets_load_no_more_than_they_need(code: str) -> None:
    """Each takes as long to import as a short run in all; the first of the two runs may compile."""
    code = f"import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); {code}"
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "fluidcc.engines.packet.run" in loaded
    assert not loaded & {"jax", "xarray", "pandas", "dask", "sympy", "matplotlib", "h5py", "scipy.linalg"}


def test_a_refused_scenario_loads_no_numpy() -> None:
    """NumPy alone takes half as long as all else of a refusal."""
    code = """
import atexit, sys
from fluidcc.cli import main
atexit.register(lambda: print(*sys.modules))
main("simulate dcqcn --flows -1 --engine packet".split())
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr[:15]) == (2, "fluidcc: flows:")
    assert "fluidcc.builders.rows" in done.stdout.split()
    assert not {"numpy", *HEAVY} - {"typer"} & set(done.stdout.split())


def test_compiled_code_calls_no_entry() -> None:
    """An entry that was loaded has no bitcode, so its caller would be refused in all processes but the first."""
    entries, calls = set[str](), set[str]()
    for path in (PACKAGE / "engines").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            made_by = [ast.unparse(each) for each in getattr(node, "decorator_list", [])]
            if isinstance(node, ast.FunctionDef) and "entry" in made_by:
                entries.add(node.name)
            if {"entry", "kernel", "inlined", "inlined_by_llvm", "wrapping"} & {*made_by}:
                calls |= {ast.unparse(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}
    assert {"run", "one_step"} <= entries
    assert "advance" in calls
    assert not entries & {each.rpartition(".")[2] for each in calls}


def test_no_helper_of_tests_is_named_as_a_standard_module() -> None:
    """Pytest puts folders of tests on the path, which processes that a test starts inherit: they would import ours."""
    ours = {path.stem for path in Path(__file__).parent.rglob("*.py")}
    assert not ours & sys.stdlib_module_names
