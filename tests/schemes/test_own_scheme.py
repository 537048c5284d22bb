"""The example of a scheme from outside, run from outside this repository's folder, and what the registry refuses."""

from __future__ import annotations

import importlib
import json
import os
import random
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract import checks, registry
from fluidcc.contract.bind import bind
from fluidcc.engines.packet import dispatch
from fluidcc.engines.packet.run import refuse_undefined
from fluidcc.results import schema
from fluidcc.scenario.parameters import parameter

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "own_scheme"
SIDES = ROOT / "tests" / "data" / "aimd_sides"  # fluid, packets and equilibrium of the example, written by hand
POWERTCP = ROOT / "examples" / "powertcp"
COMMAND = "import sys; from fluidcc.cli import main; sys.exit(main())"


def python(*arguments: str, cwd: Path, path: tuple[Path, ...] = (), code: int = 0) -> str:
    """What a fresh interpreter prints; it sees the example only where its folder is on the path."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, *path)))}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the metadata that pip would leave, entry point included."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    folder = tmp_path_factory.mktemp("site")
    info = folder / f"aimd_ecn-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    (group, points), *_ = project["entry-points"].items()
    assert group == registry.ENTRY_POINTS
    (info / "entry_points.txt").write_text(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()))
    return folder


# -- registered ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("users_flags")
@pytest.mark.parametrize("example", [EXAMPLE, POWERTCP], ids=lambda path: path.name)
def test_its_own_tests_pass_from_outside(example: Path, tmp_path: Path) -> None:
    """With the machine code that users get."""
    python("-m", "pytest", "-q", "-p", "no:cacheprovider", str(example / "tests"), cwd=tmp_path, path=(example,))


@pytest.mark.slow
def test_without_packets_it_runs_in_everything_else(tmp_path: Path) -> None:
    code = """
import json, sys
import aimd_ecn, fluidcc as fc
assert fc.register(aimd_ecn) is fc.register(aimd_ecn) is aimd_ecn
scenario = fc.incast(4, rate="10Gbps", scheme=aimd_ecn.AIMD())
run = fc.simulate(scenario, "2ms", estimate_error=False)
swept = fc.sweep(lambda beta: fc.incast(4, rate="10Gbps", scheme=aimd_ecn.AIMD(beta=beta)),
                 over={"beta": [1 / 16, 1 / 8]}, until="1ms")
print(json.dumps([run.summary["scheme"], fc.stability(scenario).stable, swept.sizes["beta"], "numba" in sys.modules]))
"""
    found = json.loads(python("-c", code, cwd=tmp_path, path=(EXAMPLE,)))
    assert found == ["aimd-ecn", True, 2, False]


@pytest.mark.slow
def test_it_may_come_after_a_run_of_packets(tmp_path: Path) -> None:
    """The loop is not compiled again, and others' runs are the same."""
    code = """
import json
import fluidcc as fc
def queue(scheme): return fc.simulate(fc.incast(4, rate="10Gbps", scheme=scheme), "1ms", engine="packet").summary
first = queue(fc.HPCC())
import aimd_ecn
own = queue(aimd_ecn.AIMD())  # registered by being met
again = queue(fc.HPCC())
same = all(first[k] == again[k] for k in ("events", "queue_bytes", "rate_bytes_per_s"))
from fluidcc.engines.packet.engine import run
print(json.dumps([same, own["scheme"], own["events"] > 1000, len(run.signatures)]))
"""
    assert json.loads(python("-c", code, cwd=tmp_path, path=(EXAMPLE,))) == [True, "aimd-ecn", True, 1]


@pytest.mark.slow
def test_it_runs_without_compilation(tmp_path: Path) -> None:
    """The generated rules are plain Python too, and give the same events."""
    code = """
import json, os, aimd_ecn, fluidcc as fc
scenario = fc.incast(3, rate="10Gbps", scheme=aimd_ecn.AIMD())
print(json.dumps(fc.simulate(scenario, "200us", engine="packet", seed=3).summary["events"]))
"""
    plain = python("-c", "import os; os.environ['NUMBA_DISABLE_JIT'] = '1'\n" + code, cwd=tmp_path, path=(EXAMPLE,))
    assert plain == python("-c", code, cwd=tmp_path, path=(EXAMPLE,))


@pytest.mark.parametrize(("example", "files"), [("own_scheme/aimd_ecn", "Four"), ("powertcp/powertcp", "Four")])
def test_its_readme_counts_its_lines(example: str, files: str) -> None:
    package = ROOT / "examples" / example
    readme = (package.parent / "README.md").read_text()
    lines = {path.name: len(path.read_text().splitlines()) for path in package.glob("*.py")}
    assert all(f"| `{name}` | {count} |" in readme for name, count in lines.items())
    assert f"{files} files, {sum(lines.values())} lines" in readme


# -- installed ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_an_installed_package_is_known_to_the_command_line(tmp_path: Path, installed: Path, most: int) -> None:
    """All in one process, because what is compiled for a scheme from outside is not kept in files."""
    commands = [
        "show aimd-ecn",
        "simulate aimd-ecn --preset gentle --until 1ms --flows 4",
        "stability aimd-ecn --flows 4",
        "equilibrium aimd-ecn --flows 4",
        "sweep aimd-ecn --over beta=1/16,1/8 --until 1ms",
    ][:most]
    code = """
import contextlib, io, json, sys
from fluidcc.cli.app import run
said = []
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert run([*command.split(), "--json"]) == 0, command
    said.append(json.loads(out.getvalue()))
assert "numba" not in sys.modules
print(json.dumps(said))
"""
    told = python("-c", code, json.dumps(commands), cwd=tmp_path, path=(EXAMPLE, installed))
    shown, run, *rest = json.loads(told)
    assert [row["name"] for row in shown["parameters"]][:2] == ["rate_ai", "beta"]
    assert (run["scheme"], run["flows"]) == ("aimd-ecn", 4)
    if not rest:
        return
    stability, equilibrium, sweep = rest
    assert stability["points"][0]["stable"]
    assert equilibrium["exists"]
    assert (sweep["points"], sweep["failed"]) == (2, 0)


@pytest.mark.slow
def test_an_installed_package_is_crosschecked(tmp_path: Path, installed: Path) -> None:
    arguments = ("crosscheck", "aimd-ecn", "--flows", "4", "--seeds", "2", "--json")
    found = json.loads(python("-c", COMMAND, *arguments, cwd=tmp_path, path=(EXAMPLE, installed)))
    assert found["within"]
    assert set(found["tolerance"]) == {"queue_mean_rel", "rate_rel_max"}


def test_a_broken_package_is_named(tmp_path: Path, installed: Path) -> None:
    """Its entry point is there, its code is not; other schemes go on working."""
    told = python("-c", COMMAND, "show", "aimd-ecn", cwd=tmp_path, path=(installed,), code=2)
    assert "aimd-ecn cannot be loaded from aimd_ecn" in told
    python("-c", COMMAND, "show", "dcqcn", cwd=tmp_path, path=(installed,))


# -- refused ------------------------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes importable copies of a scheme, changed, under names of their own; forgets them afterwards.

    In place of the example's law it takes the sides that are written by hand, unless told otherwise.
    """
    monkeypatch.syspath_prepend(str(tmp_path))
    before = dict(registry._outside)
    made: list[str] = []

    def copy(
        name: str,
        *,
        without: tuple[str, ...] = (),
        change: tuple[str, str] = ("", ""),
        of: Path = EXAMPLE / "aimd_ecn",
        by_hand: bool = True,
    ) -> ModuleType:
        folder, called = tmp_path / name, of.name.replace("_", "-")
        folder.mkdir()
        sources = list(of.glob("*.py")) + (list(SIDES.glob("*.py")) if by_hand else [])
        for source in sources:
            if source.stem not in without and not (by_hand and source.stem == "law"):
                text = source.read_text().replace(of.name, name).replace(called, name.replace("_", "-"))
                (folder / source.name).write_text(text.replace(*change) if change[0] else text)
        made.append(name)
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield copy
    registry._outside.clear()
    registry._outside.update(before)
    for name in list(sys.modules):
        if name.partition(".")[0] in made:
            del sys.modules[name]


def test_what_a_scheme_lacks_is_said_in_those_words(package: Any) -> None:
    fluid_only = fc.register(package("fluid_only", without=("packet", "equilibrium")))
    scenario = fc.incast(2, rate="10Gbps", scheme=fluid_only.AIMD())
    with pytest.raises(fc.InputError, match=r"scheme fluid-only has no packet side \(fluid_only/packet.py\); write on"):
        fc.simulate(scenario, "1ms", engine="packet")
    with pytest.raises(fc.InputError, match=r"scheme fluid-only has no equilibrium side \(fluid_only/equilibrium.py\)"):
        fc.linearize(scenario)
    packet_only = fc.register(package("packet_only", without=("fluid",)))
    with pytest.raises(fc.InputError, match=r"has no fluid side .*; write one, or simulate with engine='packet'"):
        fc.simulate(fc.incast(2, rate="10Gbps", scheme=packet_only.AIMD()), "1ms")
    with pytest.raises(fc.InputError, match=r"no_side/law\.py, no_side/fluid\.py or no_side/packet\.py; wr"):
        fc.register(package("no_side", without=("fluid", "packet")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('default_rate: ClassVar[str] = "10Gbps"', ""), "has no default_rate; write default_rate: ClassVar"),
        (('name: ClassVar[str] = "wrong"', 'name: ClassVar[str] = "No Name"'), "is no name; write lower case"),
        (('name: ClassVar[str] = "wrong"', 'name: ClassVar[str] = "dcqcn"'), "'dcqcn' is taken by fluidcc"),
        (("PRESETS = {", "AIMD = type('AIMD', (), {})\nPRESETS = {}  # "), "is no class of parameters"),
    ],
)
def test_what_is_no_scheme_is_refused(package: Any, change: tuple[str, str], message: str) -> None:
    module = package("wrong", change=change)
    with pytest.raises(fc.InputError, match=message):
        fc.register(module)


def test_a_side_that_lacks_a_function_says_which(package: Any) -> None:
    lame = fc.register(package("lame", change=("def derivative(", "def derivate(")))
    with pytest.raises(fc.InputError, match=r"lame/fluid.py has no derivative; write def derivative\(parameters, stat"):
        fc.simulate(fc.incast(2, rate="10Gbps", scheme=lame.AIMD()), "1ms")
    odd = fc.register(package("odd", change=("def begin(core: Any, state: Any)", "def begin(core: Any, mine: Any)")))
    with pytest.raises(fc.InputError, match=r"odd/packet\.py: begin takes 'mine', which there is not; it may name sim"):
        fc.simulate(fc.incast(2, rate="10Gbps", scheme=odd.AIMD()), "1ms", engine="packet")


@pytest.mark.parametrize(
    ("side", "change", "message"),
    [
        ("fluid", ("OBSERVABLES: dict", "OBS: dict"), "fluid.py has no OBSERVABLES; write OBSERVABLES = {} or {"),
        ("fluid", ("\nclass State", 'NEEDS = ["delay"]\nclass State'), "NEEDS is ['delay']; write NEEDS = frozenset({"),
        ("fluid", ("\nclass State", 'NEEDS = {"telemtry"}\nclass State'), "NEEDS has 'telemtry'; it may have tele"),
        ("fluid", ("\nclass State", 'NEEDS = {"inflight"}\nclass State'), "has no jump; write def jump(par"),
        ("fluid", ("\nclass State", 'ONLY = {"gg": 1}\nclass State'), "ONLY has 'gg', which is no parameter"),
        ("fluid", ("AIMD, state: State, feedback: Array) -> State", "AIMD, state: State) -> State"), "write def deriv"),
        ("fluid", ("def project(", "def projct("), "fluid.py has projct; did you mean project? Write def pro"),
        ("fluid", ('= {}  # nothing beside', '= {"queue": ("bytes", "own")}  #'), "OBSERVABLES has 'queue', which"),
        ("packet", ("STATE = np.dtype", "STA = np.dtype"), "packet.py has no STATE; write STATE = np.dtype([("),
        ("packet", ("def on_ack(", "def on_acks("), "packet.py has on_acks; did you mean on_ack?"),
        ("packet", ("OBSERVABLES: dict[str, tuple[str, str]] = {}\nSTATE", 'OBSERVABLES = {"a": ("1", "a")}\nSTATE'),
         "OBSERVABLES has names, but nothing writes them; write @kernel def observe("),
        ("equilibrium", ('("rate",)', '("alfa",)'), "MOVES has 'alfa'; the state of a_slip/fluid.py has rate"),
        ("equilibrium", ('MOVES = ("rate",)', 'MOVED = ("rate",)'), 'has no MOVES; write MOVES = ("rate",)'),
        ("crosscheck", ('UNTIL = "40ms"', 'UNTILL = "40ms"'), "has UNTILL; did you mean UNTIL?"),
    ],
)  # fmt: skip
def test_slips_in_a_side_are_refused_with_what_to_write(
    package: Any, side: str, change: tuple[str, str], message: str
) -> None:
    """Nothing is compiled: sides are checked as they are read."""
    fc.register(package("a_slip", change=change))
    with pytest.raises(fc.InputError) as caught:
        getattr(registry.scheme("a-slip"), side)
    assert str(caught.value).startswith(f"scheme a-slip: a_slip/{side}.py")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("import numpy as xp", "import numpy as np\nxp = None"), "has no xp; write import numpy as xp, and xp.where"),
        (('"power": ("1"', '"might": ("1"'), "OBSERVABLES has 'might'; its State has rate, window, power, old, noted"),
        (("\nclass State", 'SWITCHES = ("fast",)\nclass State'), "SWITCHES has 'fast'; write a property fast of par"),
        (("def on_step(", "def on_steps("), "has no on_step; write def on_step(parameters, state, progress, observed)"),
        (("def largest_window(", "def largst_window("), "has largst_window; did you mean largest_window? Write def"),
        (("def largest_window(", "def _most("), "has no largest_window; write def largest_window(parameters)"),
        (("def window(", "def _limit("), "has no window; write def window(parameters, state)"),
        (
            ("class State(NamedTuple)", "import dataclasses\n\n\n@dataclasses.dataclass\nclass State"),
            "State is no NamedTuple; write class State(",
        ),
        (
            ("def on_hop(", "def _hop("),
            'NEEDS has "telemetry"; write def on_hop(parameters',
        ),
        (('frozenset({"telemetry"})', "frozenset()"), 'it has on_hop; write NEEDS = frozenset({"telemetry"})'),
        (('frozenset({"telemetry"})', '"delay"'), "NEEDS is 'delay'; write NEEDS = frozenset({'delay'})"),
        (
            ('frozenset({"telemetry"})', 'frozenset({"inflight"})'),
            "NEEDS has 'inflight'; it may have telemetry, delay, un",
        ),
        (
            ("on_step(parameters: Any, state: Any", "on_step(state: Any, parameters: Any"),
            "takes its arguments in another",
        ),
    ],
)
def test_slips_in_a_law_are_refused_with_what_to_write(package: Any, change: tuple[str, str], message: str) -> None:
    fc.register(package("alaw", change=change, of=POWERTCP / "powertcp", by_hand=False))
    with pytest.raises(fc.InputError) as caught:
        assert registry.scheme("alaw").law is None
    assert str(caught.value).startswith("scheme alaw: alaw/law.py")
    assert message in str(caught.value)
    with pytest.raises(fc.InputError, match=r"scheme alaw: alaw/law\.py"):  # and no traceback where a run asks for it
        assert registry.scheme("alaw").fluid


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("if s.power > 2.0: acks = 0.0", "write xp.where(condition, yes, no) instead of if"),
        ("runs = not runs", "xp.logical_not instead of not"),
        ("runs = runs and progress.newly > 0", "(a) & (b) and (a) | (b) instead of and and or"),
        ("acks = min(acks, 1.0)", "xp.minimum and xp.maximum instead of min and max"),
        (
            "acks = xp.min(acks, 1.0)",
            "xp has no min; did you mean minimum? It has where, maximum, minimum, clip, abs, e",
        ),
        ("acks = xp.minimum(acks)", "xp.minimum takes 2 arguments, not 1"),
        (
            "import numpy as np; acks = np.minimum(acks, 1.0)",
            "write those of xp, which has where, maximum, minimum, cl",
        ),
        ("import math; acks = math.exp(acks)", "write those of xp, which has where, maximum, minimum, clip, abs, exp"),
        ("acks = acks * random.random()", "a law has no random; write its mean"),
        ("print(acks)", "a law has no print; show a field of State by OBSERVABLES"),
        ("acks = acks * progress.rtt", 'progress.rtt has to be asked for; write NEEDS = frozenset({"delay"})'),
        ("acks = acks * progress.time", "progress has no time; it has sent, acked, newly, packet"),
        ("acks = acks * p.gama", "parameters has no gama; did you mean gamma? It has gamma, "),
        ("acks = acks * p.feedback_pause", "write a field feedback_pause: Any = bound(...), and fill it in in bind"),
        ("acks = acks * s.odd", "its State has rate, window, power, old, noted, trip_start, trip_end"),
        ("return State(acks, acks)", "its State has rate, window, power, old, noted, trip_start, trip_end"),
        ("return acks, acks", "on_step returns tuple; return State(...)"),
        (
            "grown = progress.acked",
            "a law of rates is not given progress.acked, but newly, dt, packet, wire_packet, line_rat",
        ),
        ("grown = progress.rtt", "write window, or fluid.py"),
    ],
)
def test_mistakes_within_a_law_are_refused_with_line_and_remedy(package: Any, line: str, words: str) -> None:
    """Before anything is compiled, and alike for all engines."""
    before = "    cut = g" if line.startswith("grown") else "    sent = ("
    of = EXAMPLE / "aimd_ecn" if line.startswith("grown") else POWERTCP / "powertcp"
    made = package("amiss", change=(before, f"    {line}\n{before}"), of=of, by_hand=False)
    law = Path(str(made.__file__)).with_name("law.py").read_text().splitlines()
    at = law.index(next(each for each in law if each.startswith("def on_step")) if "tuple" in words else f"    {line}")
    vars(importlib.import_module("amiss.law"))["random"] = random
    fc.register(made)
    with pytest.raises(fc.InputError) as caught:
        assert registry.scheme("amiss").law is None
    assert str(caught.value).startswith(f"scheme amiss: amiss/law.py: line {at + 1}, ")
    assert words in str(caught.value)


def test_a_law_is_tried_on_each_way_that_its_switches_open(package: Any) -> None:
    """A slip in a branch that only one of two switches' four settings takes is found."""
    field = 'parameter("on|off", "a switch", default=False, choices=(False, True))'
    change = "min_rate: Any", f"one: bool = {field}\n    two: bool = {field}\n    min_rate: Any"
    folder = Path(str(package("ways", change=change, by_hand=False).__file__)).parent
    law = (folder / "law.py").read_text()
    branch = "    if p.one and not p.two:\n        grown = grown * p.tree\n"
    (folder / "law.py").write_text(law.replace("    cut = g", branch + "    cut = g"))
    fc.register(sys.modules["ways"])
    with pytest.raises(fc.InputError, match=r"line 38, 'grown = grown \* p.tree': parameters has no tree"):
        assert registry.scheme("ways").law
    (folder / "law.py").write_text(law.replace("    cut = g", branch.replace("tree", "min_rate") + "    cut = g"))
    importlib.reload(sys.modules["ways.law"])
    assert registry.scheme("ways").law


def test_a_function_from_elsewhere_in_a_law_is_named_with_its_line(package: Any) -> None:
    """In packets, which compile it: the law's line, not those of the rules that are made of it."""
    far = fc.register(package("farlaw", change=("    cut = g", "    NamedTuple('X', [])\n    cut = g"), by_hand=False))
    with pytest.raises(fc.InputError, match=r"scheme farlaw: law\.py, line 37 cannot be compiled: .*'NamedTuple'.*; a"):
        fc.simulate(fc.incast(2, rate="10Gbps", scheme=far.AIMD()), "20us", engine="packet")


def test_a_law_of_rates_is_not_given_delays(package: Any) -> None:
    change = ("\nclass State", 'NEEDS = frozenset({"delay"})\nclass State')
    fc.register(package("late", change=change, by_hand=False))
    with pytest.raises(fc.InputError, match=r"late/law.py: NEEDS has 'delay', which a law's slope is not given"):
        assert registry.scheme("late").law


def test_a_law_that_is_edited_and_loaded_again_is_the_new_one(package: Any) -> None:
    """In every engine; the parameters need not be loaded again."""
    edited = fc.register(package("editedlaw", of=POWERTCP / "powertcp", by_hand=False))
    before, packets, replaced = registry.scheme("editedlaw").fluid, _side("editedlaw"), registry.replaced
    law = Path(str(sys.modules["editedlaw.law"].__file__)) if "editedlaw.law" in sys.modules else None
    assert law is not None
    law.write_text(law.read_text().replace("+ p.beta", "+ 2 * p.beta"))
    importlib.reload(sys.modules["editedlaw.law"])
    fc.register(edited)
    after = registry.scheme("editedlaw").fluid
    assert before is not None
    assert after is not None
    assert before.jump is not after.jump
    assert _side("editedlaw") is not packets
    fc.register(edited)  # nothing is new: nothing is compiled again
    assert registry.replaced == replaced + 1


def _side(name: str) -> Any:
    return dispatch.SCHEMES.side(name)


def test_observables_that_were_not_announced_are_refused(package: Any) -> None:
    change = ("    return {}\n\n\ndef time_scale", '    return {"alfa": state.rate}\n\n\ndef time_scale')
    odd = fc.register(package("announced", change=change))
    with pytest.raises(fc.InputError, match="scheme announced: observables gives 'alfa'; OBSERVABLES has nothing"):
        fc.simulate(fc.incast(2, rate="10Gbps", scheme=odd.AIMD()), "1ms")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("default_marking: ClassVar[RED] = MARKING", ""), "has no default_marking; write default_marking: ClassVar"),
        (
            ("beta", "kmin"),
            "has a parameter kmin, which is the marking's or a builder's; rename it",
        ),
        (
            ('{"paper":', '{"mine":'),
            'PRESETS of slipped has mine, gentle and no paper, .*; write PRESETS = {"paper": Pre',
        ),
        (
            ("base_rtt: Any", "my_rtt: Any"),
            "has no base_rtt, which engines made of a law read; write base_rtt: Any = base_rtt_field",
        ),
    ],
)
def test_slips_in_the_parameters_are_refused(package: Any, change: tuple[str, str], message: str) -> None:
    module = package("slipped", change=change, by_hand=False)
    with pytest.raises(fc.InputError, match=message):
        fc.register(module)


def test_a_bind_that_leaves_the_base_rtt_open_is_refused(package: Any) -> None:
    """Packets would take NaN for it, and run to the end."""
    change = "if self.base_rtt is None else self.base_rtt", "if self.base_rtt else None"
    fc.register(package("unbound", change=change, by_hand=False))
    said = "scheme unbound: bind leaves base_rtt None; write there dataclasses.replace"
    with pytest.raises(fc.InputError, match=said):
        fc.simulate(fc.incast(2, rate="10Gbps", scheme=sys.modules["unbound"].AIMD()), "20us")
    with pytest.raises(fc.InputError, match=said):
        dispatch.SCHEMES.side("unbound").init_state(sys.modules["unbound"].AIMD(), None, None)


def test_a_law_may_return_a_constant_for_a_number_of_each_flow(package: Any) -> None:
    """In a law of windows, and of rates: the line rate is one number for all flows."""
    waits = ("rate=xp.minimum(window / p.base_rtt, progress.line_rate)", "rate=progress.line_rate")
    windows = package("constantrate", change=waits, of=POWERTCP / "powertcp", by_hand=False)
    limits = ("xp.minimum(xp.maximum(cut, p.min_rate), progress.line_rate)", "progress.line_rate")
    rates = package("constantlaw", change=limits, by_hand=False)
    for scheme, least in ((windows.Parameters(), 0.0), (rates.Parameters(), 1.25e9 * (1 - 1e-9))):
        run = fc.simulate(fc.incast(2, rate="10Gbps", scheme=scheme), "20us", estimate_error=False)
        assert min(run.summary["rate_bytes_per_s"]) > least


def test_an_undefined_rate_is_no_result(package: Any) -> None:
    """A law of 0/0 while nothing is marked: packets name scheme and flow, and a comparison says which side."""
    change = "    cut = g", "    grown = grown * (observed / observed)\n    cut = g"
    scheme = package("zero", change=change, by_hand=False)
    scenario = fc.incast(2, rate="10Gbps", scheme=scheme.AIMD())
    runs = [fc.simulate(scenario, "20us", estimate_error=False) for _ in range(2)]
    with pytest.raises(fc.InputError, match="compare: fluid: the rate of flow 0 is undefined"):
        fc.compare(*runs)
    flows = np.rec.array([(1.0, np.inf), (np.nan, np.inf)], dtype=[("rate", float), ("window", float)])
    plan: Any = SimpleNamespace(members=[0, 3], schemes=["dcqcn", "zero"])
    with pytest.raises(fc.InputError, match="flow 3: its scheme zero made its rate NaN; guard what divides by 0"):
        refuse_undefined(plan, cast("Any", SimpleNamespace(flows=flows)))
    refuse_undefined(plan, cast("Any", SimpleNamespace(flows=flows[:1])))


@pytest.mark.slow
def test_packets_with_an_undefined_rate_are_refused(package: Any) -> None:
    """The least rate of the law would hide it, if its maximum were not NumPy's."""
    change = "    cut = g", "    grown = grown * (observed / observed)\n    cut = g"
    scheme = package("nought", change=change, by_hand=False)
    with pytest.raises(fc.InputError, match="flow 0: its scheme nought made its rate NaN"):
        fc.simulate(fc.incast(2, rate="10Gbps", scheme=scheme.AIMD()), "100us", engine="packet")


def test_an_unknown_dimension_of_a_parameter_is_refused() -> None:
    with pytest.raises(
        fc.InputError, match=r"'Gbps' is no dimension; write one of fluidcc.units: RATE \(bytes/s\), SI"
    ):
        parameter("Gbps", "increase", default=1.0)


def test_parameters_need_no_parentheses(package: Any) -> None:
    plain = package("plain", change=("@register()", "@register"))
    fc.register(plain)
    assert registry.scheme("plain").Parameters(beta=0.5).beta == 0.5


def test_a_reloaded_package_takes_its_own_place(package: Any) -> None:
    """As in a notebook: edit, reload, register."""
    edited = package("edited")
    fc.register(edited)
    before = registry.scheme("edited")
    importlib.reload(sys.modules["edited.parameters"])
    assert fc.register(importlib.reload(edited)) is edited
    assert registry.scheme("edited").Parameters is edited.AIMD is not before.Parameters
    other = package("other", change=('name: ClassVar[str] = "other"', 'name: ClassVar[str] = "edited"'))
    with pytest.raises(fc.InputError, match="'edited' is taken by edited; give other another one"):
        fc.register(other)


def test_a_broken_packet_side_harms_its_own_scheme_alone(package: Any, tmp_path: Path) -> None:
    """All others run without it, in plain Python here."""
    package("broken", change=("STATE = np.dtype", "STA = np.dtype"))
    package("syntax", change=("STATE = np.dtype", "STATE == = np.dtype"))
    code = """
import os
os.environ["NUMBA_DISABLE_JIT"] = "1"
import broken, syntax, fluidcc as fc
fc.register(broken), fc.register(syntax)
print(fc.simulate(fc.incast(2), "20us", engine="packet").summary["events"] > 10)
for scheme in (broken.AIMD(), syntax.AIMD()):
    try:
        fc.simulate(fc.incast(2, rate="10Gbps", scheme=scheme), "20us", engine="packet")
    except (fc.InputError, SyntaxError) as error:
        print(str(error)[:45])
"""
    said = python("-c", code, cwd=tmp_path).splitlines()
    assert said[0] == "True"
    assert said[1] == "scheme broken: broken/packet.py has no STATE;"
    assert "syntax" in said[2]


def test_names_of_traces_are_kept_for_them() -> None:
    assert set(checks.RESERVED) == {*schema.VARIABLES, "time", "link", "flow"}


def test_names_are_known_without_imports() -> None:
    names = registry.built_in()
    assert set(names) >= {"dcqcn", "hpcc", "hpcc-multiq", "none", "swift"}
    assert "vai-sf" not in names
    with pytest.raises(fc.InputError, match="'quic' is unknown; write one of acc, dcqcn, "):
        registry.scheme("quic")
    with pytest.raises(fc.InputError, match="register: 5 is no scheme"):
        fc.register(5)


@pytest.mark.parametrize("name", registry.built_in())
def test_built_in_schemes_keep_the_contract(name: str) -> None:
    """Every side that there is resolves; pyright holds the signatures (each package's typed assignments)."""
    known = registry.scheme(name)
    assert known.name == name
    assert "paper" in known.PRESETS
    assert known.fluid or known.packet
    assert known.crosscheck.UNTIL
    for preset in known.PRESETS.values():
        scenario = fc.incast(2, rate="100Gbps", scheme=preset.scheme)
        bound = bind(scenario, scenario.flows[0])
        assert type(bound) is known.Parameters
        assert bind(scenario, scenario.flows[0]) == bound
    if known.equilibrium is not None:
        assert known.equilibrium.MOVES or not any(known.equilibrium.smooth(p.scheme) for p in known.PRESETS.values())
