"""The public surface: which names there are, that they are one thing each, and how they answer to what is not there."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import importlib.util
import inspect
import operator
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.contract.registry import built_in
from fluidcc.errors import InputError
from fluidcc.surface import GROUPS
from tests.together import together

PACKAGES = (
    "fluidcc",
    *(f"fluidcc.{name}" for name in ("collectives", "delay", "fabrics", "operators", "studies", "theory")),
)
SNAPSHOT = Path(__file__).parent / "public_api.txt"


def package_of(name: str) -> Any:
    """Public packages, some of which lie elsewhere: ``fc.delay`` is `fluidcc.dde`."""
    return operator.attrgetter(name.partition(".")[2])(fc) if "." in name else fc


def homes(package: str) -> dict[str, str]:
    """Module of each public name that is no module itself."""
    tree = ast.parse(Path(str(package_of(package).__file__)).read_text(encoding="utf-8"))
    (checked,) = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    names = [(alias, node) for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    modules = "fluidcc|fluidcc.results|fluidcc.theory|fluidcc.workloads"  # whose modules are public
    return {alias.asname: str(node.module) for alias, node in names if not re.fullmatch(modules, str(node.module))}


def value_of(package: str, name: str) -> Any:
    return getattr(package_of(package), name)


def public_names() -> list[tuple[str, str]]:
    return [(package, name) for package in PACKAGES for name in homes(package)]


# -- the table ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_those_that_type_checkers_see(package: str) -> None:
    module = package_of(package)
    assert homes(package).keys() <= set(module.__all__) <= set(dir(module))


@together(public_names(), ".".join)
def test_names_load_and_are_no_modules_too(package: str, name: str) -> None:
    value = value_of(package, name)
    assert callable(value)
    assert value is getattr(importlib.import_module(homes(package)[name]), name)
    assert importlib.util.find_spec(f"{package_of(package).__name__}.{name}") is None, (
        "an import of that module would hide it"
    )


def test_names_are_in_one_place() -> None:
    """But those of equations of one's own, which say of these what ``fc``'s say of scenarios."""
    names = [name for package, name in public_names() if package != "fluidcc.delay"]
    assert len(names) == len(set(names))


def test_modules_of_the_surface() -> None:
    assert fc.units is importlib.import_module("fluidcc.units")
    assert fc.errors.InputError is fc.InputError
    assert fc.theory.queueing is importlib.import_module("fluidcc.theory.queueing")
    assert fc.operators is importlib.import_module("fluidcc.operators")


def test_listed_names_are_reached_from_the_package_alone() -> None:
    """Catches a name of ``docs/api.md`` or ``dir`` that is there only once something else has imported its module."""
    page = (Path(__file__).parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
    listed = {
        first or second for first, second in re.findall(r"^   fluidcc\.([\w.]+)$|`fluidcc\.([\w.]+)`", page, re.M)
    }
    code = """
import operator, sys
import fluidcc as fc
from fluidcc.surface import GROUPS
for name in [*sys.argv[1:], *(f"{group}.{name}" for group in GROUPS for name in dir(getattr(fc, group))), *dir(fc)]:
    operator.attrgetter(name)(fc)
"""
    assert len(listed) > 150
    subprocess.run([sys.executable, "-c", code, *sorted(listed)], check=True)


def test_the_surface_loads_nothing_until_used() -> None:
    code = """
import sys
import fluidcc as fc, fluidcc.theory, fluidcc.operators, fluidcc.studies, fluidcc.workloads.fabrics
assert not {"jax", "numpy", "xarray", "scipy"} & sys.modules.keys()
fc.operators.read_sonic
assert not {"jax", "xarray"} & sys.modules.keys()
fc.incast
fc.simulate
fc.list_figures
assert callable(fc.simulate) and callable(fc.list_figures)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("name", "near"), [("simulat", "simulate"), ("hpcc", ""), ("Dcqcn", ""), ("__wrapped__", "")])
def test_names_that_there_are_not(name: str, near: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module 'fluidcc' has no attribute '{name}'.*{near}"):
        getattr(fc, name)
    assert not hasattr(fc, name)


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ("fluidcc.hysteresis", "fc.studies.hysteresis"),
        ("fluidcc.settling_time", "fc.metrics.settling_time"),
        ("fluidcc.poisson_flows", "fc.fabrics.poisson_flows"),
        ("fluidcc.jain_over_time", "fc.theory.jain_over_time"),
        ("fluidcc.read_sonic", "fc.operators.read_sonic"),
        ("fluidcc.theory.hysteresis", "fc.studies.hysteresis"),
        ("fluidcc.delay.simulate", "fc.simulate"),
        ("fluidcc.metrics.finish_times", "fc.theory.finish_times"),  # of a trace; there were two of one name
    ],
)
def test_a_name_of_another_group_is_found(asked: str, place: str) -> None:
    """Notice a moved name that is only called missing, or answered by a similar word."""
    package, _, name = asked.rpartition(".")
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}'; write {re.escape(place)}$"):
        getattr(package_of(package), name)


def test_groups_of_the_surface() -> None:
    """Notice a group that messages do not search, and a metric in the list that is none of its functions."""
    assert {f"fluidcc.{group}" for group in GROUPS} == {*PACKAGES[1:], "fluidcc.metrics"}
    assert dir(fc.metrics) == fc.metrics.__all__
    assert all(callable(getattr(fc.metrics, name)) for name in fc.metrics.__all__)


# -- what it looks like ---------------------------------------------------------------------------------------


def described() -> list[str]:
    """A line for each public name and member."""
    lines = []
    for package, name in public_names():
        value, where = value_of(package, name), f"{package.replace('fluidcc', 'fc')}.{name}"
        if not inspect.isclass(value):
            lines.append(f"{where}{_signature(value)}")
            continue
        shown = "" if issubclass(value, Exception) else _signature(value)
        lines.append(f"{where}{shown}")
        for member in sorted(dir(value)):
            found = inspect.getattr_static(value, member)
            if member.startswith("_") or issubclass(value, Exception):
                continue
            if isinstance(found, property):
                lines.append(f"{where}.{member}")
            elif callable(getattr(value, member)) and "fluidcc" in str(getattr(found, "__module__", "fluidcc")):
                lines.append(f"{where}.{member}{_signature(getattr(value, member))}")
    return sorted(lines, key=str.lower)


def _signature(value: Callable[..., Any]) -> str:
    """Names, kinds and defaults; annotations are the type checker's."""
    found = inspect.signature(value)
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def test_the_surface_is_the_one_written_down() -> None:
    """A change of a public name or signature shows in a diff of ``tests/public_api.txt``; to write it anew:

    ``python -m tests.test_public``
    """
    written = SNAPSHOT.read_text(encoding="utf-8").splitlines()
    found = described()
    missing, new = sorted(set(written) - set(found)), sorted(set(found) - set(written))
    assert found == written, (
        f"gone: {missing}; new: {new}; if that is meant, run 'python -m tests.test_public' and correct CHANGELOG.md"
    )


# -- unknown keywords -----------------------------------------------------------------------------------------


def functions() -> list[tuple[str, Callable[..., Any]]]:
    """Public functions, constructors, and public methods of public classes."""
    found = []
    for package, name in public_names():
        value = value_of(package, name)
        if not inspect.isclass(value):
            found.append((name, value))
            continue
        if issubclass(value, Exception):
            continue
        found.append((name, value))
        for member, one in vars(value).items():
            if (
                not member.startswith("_")
                and member not in ("bind", "at")  # called by engines; keywords of which are a user's parameters
                and (inspect.isfunction(one) or isinstance(one, staticmethod))
            ):
                found.append((f"{name}.{member}", getattr(value, member)))
    return found


FUNCTIONS = functions()


@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_unknown_keywords_are_refused(name: str, function: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match=r"there is no 'no_such_keyword'; (known are|leave it out)") as caught:
        function(no_such_keyword=1)
    assert isinstance(caught.value, TypeError)  # as Python's own


@pytest.mark.parametrize("scheme", built_in())
def test_schemes_say_which_parameter_was_meant(scheme: str) -> None:
    cls = type(fc.preset(scheme).scheme)
    for field in dataclasses.fields(cls):
        for wrong in (field.name.upper(), f"{field.name}_", field.name.title()):
            with pytest.raises(
                InputError, match=rf"^{cls.__name__}: there is no '{wrong}'; did you mean {field.name}\?$"
            ):
                cls(**{wrong: 1})


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: fc.DCQCN(G=1 / 256), "DCQCN: there is no 'G'; did you mean g?"),
        (lambda: fc.RED("5KB", K_max="200KB"), "RED: there is no 'K_max'; did you mean kmax?"),
        (lambda: fc.Link("40Gbps", dealy="1us"), "Link: there is no 'dealy'; did you mean delay?"),
        (lambda: fc.incast(8, rates="40Gbps"), "incast: there is no 'rates'; did you mean rate?"),
        (lambda: fc.incast(8, header="48B"), "incast: there is no 'header'; did you mean header_bytes?"),
        (lambda: fc.fat_tree([], fabricrate="1Gbps"), "fat_tree: there is no 'fabricrate'; did you mean fabric_rate?"),
        (lambda: fc.simulate(fc.incast(2), untill="1ms"), "simulate: there is no 'untill'; did you mean until?"),
        (lambda: fc.ensemble(fc.incast(), "1ms", windows=0), "ensemble: there is no 'windows'; did you mean window?"),
        (lambda: fc.sweep(fc.incast, {}, minimize=True), "sweep: there is no 'minimize'; known are make_scenario"),
        (lambda: fc.audit("x.json", ports=1), "audit: there is no 'ports'; did you mean port?"),
        (lambda: fc.Trace(datasets=3), "Trace: there is no 'datasets'; did you mean dataset?"),
        (lambda: fc.Preset(schem=3), "Preset: there is no 'schem'; did you mean scheme?"),
        (lambda: fc.theory.Equilibrium(exist=True), "Equilibrium: there is no 'exist'; did you mean exists?"),
        (lambda: fc.theory.acc_maps([1.0], stpes=1), "acc_maps: there is no 'stpes'; did you mean steps?"),
    ],
)  # fmt: skip
def test_what_was_meant_is_said(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(says)


def test_unknown_options_of_pictures() -> None:
    trace = fc.simulate(fc.incast(1), "100us", estimate_error=False)
    with pytest.raises(InputError, match=r"^plot: there is no 'ttile'; did you mean title\?$"):
        trace.plot(ttile="x")


# -- schemes by name, presets ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", built_in())
def test_a_scheme_by_name_is_its_preset(scheme: str) -> None:
    for name, chosen in fc.presets(scheme).items():
        assert fc.preset(scheme, name) is chosen
        given = fc.incast(3, rate="100Gbps", scheme=scheme, preset=name)
        assert given == fc.incast(3, rate="100Gbps", **chosen.options())
        assert given.flows[0].scheme.name == scheme
    assert fc.parking_lot(3, scheme=scheme) == fc.parking_lot(3, **fc.preset(scheme).options())


def test_what_is_given_goes_before_the_preset() -> None:
    marking = fc.RED("1KB", "2KB", 0.5)
    made = fc.incast(2, scheme="dcqcn", preset="hpcc-sim", marking=marking, header_bytes="10B", feedback_delay="9us")
    assert made.links[0].marking == fc.incast(2, marking=marking).links[0].marking
    assert (made.header_bytes, made.ack_bytes, made.timing) == (10, 46, "ns3")
    assert made.flows[0].scheme.feedback_delay == 9e-6
    assert made.flows[0].scheme.variant == "hpcc-sim"
    assert fc.incast(2, preset="vendor") == fc.incast(2, scheme="dcqcn", preset="vendor")


def test_topologies_with_a_threshold_of_their_own_keep_it() -> None:
    for made in (
        fc.chain(2, scheme="hpcc", preset="hpcc-sim"),
        fc.clos_unit([(0, 9)], scheme="hpcc", preset="hpcc-sim"),
    ):
        assert made.pfc == fc.chain(2, pfc=fc.PFC("512KB", alpha=1 / 8, xon_gap=3072.0, reserve=4096.0)).pfc
    assert fc.chain(2, scheme="hpcc").pfc == fc.chain(2, scheme=fc.HPCC()).pfc
    assert fc.chain(2, scheme="hpcc", preset="hpcc-sim", pfc=None).pfc is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"scheme": fc.HPCC}, r"^scheme: HPCC is the class of its parameters; write HPCC\(\)$"),
        ({"scheme": "hpc"}, r"^scheme: 'hpc' is unknown; did you mean hpcc\? Else write one of acc, dcqcn"),
        ({"scheme": "hpcc", "preset": "vendor"}, "^preset: hpcc has no 'vendor'; write one of paper"),
        (
            {"scheme": fc.HPCC(), "preset": "hpcc-sim"},
            "^preset: belongs to a scheme given by name; write scheme='hpcc'",
        ),
        ({"scheme": 3}, r"^scheme: expected a scheme's parameters, not 3; write DCQCN\(\) or 'dcqcn'$"),
    ],
)
def test_what_is_no_scheme(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        fc.incast(2, **options)


# -- files ----------------------------------------------------------------------------------------------------


def test_results_and_scenarios_come_back(tmp_path: Path) -> None:
    scenario = fc.incast(2, scheme="hpcc", rate="100Gbps")
    fc.save_scenario(scenario, tmp_path / "scenario.toml")
    assert fc.load_scenario(tmp_path / "scenario.toml") == scenario
    trace = fc.simulate(fc.incast(1), "100us", estimate_error=False)
    trace.save(tmp_path / "run.nc")
    back = fc.load(tmp_path / "run.nc")
    assert isinstance(back, fc.Trace)
    assert back.summary == trace.summary
    swept = fc.sweep(lambda n: fc.incast(1, multiplicity=n), {"n": [2, 4]}, until="200us", estimate_error=False)
    swept.save(tmp_path / "sweep.nc")
    again = fc.load(tmp_path / "sweep.nc")
    assert isinstance(again, fc.studies.SweepResult)
    assert again.best() == swept.best()
    (tmp_path / "other.nc").write_bytes(b"no file of ours")
    trace.dataset[["rate"]].to_netcdf(tmp_path / "part.nc", engine="h5netcdf")
    for bad in ("other.nc", "none.nc", "part.nc", "scenario.toml"):
        with pytest.raises(InputError, match="give a file that"):
            fc.load(tmp_path / bad)


if __name__ == "__main__":
    SNAPSHOT.write_text("\n".join(described()) + "\n", encoding="utf-8")
