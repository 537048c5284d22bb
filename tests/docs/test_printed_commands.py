"""Every command that README and the documentation print is one: names and options exist; and it runs as printed."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import fluidcc as fc
from fluidcc.cli.app import app, run
from fluidcc.operators import behaviour
from fluidcc.proofs.verdict.registry import list_claims, list_figures
from tests.docs.printed import PAGES, ROOT, Printed, commands, less_of, samples
from tests.together import together

ALL = [one for page in PAGES for one in commands(page)]
OURS = [one for one in ALL if one.words[0] == "fluidcc" and not one.is_template]


def named(one: Printed) -> str:
    return f"{one.page.stem}-{one.text}"


@cache
def whole_command() -> Any:
    return get_command(app)


@together(OURS, named)
def test_is_a_command(one: Printed) -> None:
    """Its options are parsed; nothing is run."""
    group = whole_command()
    name, *arguments = one.words[1:]
    if name.startswith("-"):
        assert any(name in parameter.opts for parameter in group.params) or name in ("-h", "--help")
        return
    command = group.commands[name]
    if "--help" not in arguments and "|" not in arguments and (one.block or arguments):
        command.make_context(name, [*arguments])
    if name == "reproduce" and arguments:
        assert arguments[0] in {"list", *list_figures()}
    if name == "verify":
        assert {each for each in arguments if not each.startswith("-")} <= set(list_claims())


@together([one for one in ALL if one.words[0] != "fluidcc"], named)
def test_is_a_module_or_a_test(one: Printed) -> None:
    words = one.words
    if words[0] == "python" and words[2] != "pytest":
        assert importlib.util.find_spec(words[2]) is not None
        return
    paths = [word for word in words[1:] if "/" in word and not word.startswith("-")]
    assert all((ROOT / path).exists() for path in paths)


@pytest.mark.parametrize("page", [page for page in PAGES if samples(page)], ids=lambda page: page.stem)
def test_samples_are_python(page: Path) -> None:
    """And what they take from fluidcc exists."""
    for sample in samples(page):
        for node in ast.walk(ast.parse(sample)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "fc":
                assert hasattr(fc, node.attr), node.attr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_fit_the_page(page: Path) -> None:
    """Notice a line that scrolls at 1280 px, where 91 characters fit, or a comment that hides behind a command."""
    blocks = re.findall(
        r"^```(?:sh|python|toml)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    lines = [line for block in blocks for line in block.splitlines()]
    assert [line for line in lines if len(line) > 90] == []
    assert [line for line in lines if re.search(r"\S\s+# ", line)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_that_a_page_names_exist(page: Path) -> None:
    rooms = "tests|fluidcc|benchmarks|examples|mutants|notebooks"
    for name in re.findall(rf"(?<![\w/.-])(?:{rooms})/[\w/.*-]*[\w*]", page.read_text(encoding="utf-8")):
        if "NAME" not in name and not (ROOT / name).with_suffix(".ipynb").exists():
            assert any(ROOT.glob(name)), name


# Figures and claims are run by their own tests; these pages' commands are those. `explore` serves until it is stopped.
# A gigabyte on a thousand hosts is `benchmarks.collectives`'s.
ELSEWHERE = re.compile(r"fluidcc (reproduce|verify|explore)\b|--hosts 1024 --bytes 1GB")
# Of single commands, less than `LESS` says.
LESS_OF = {
    "--hosts 64 --bytes 100MB": ["--bytes", "1MB"],
    "--seeds 8 --plot both.png": ["--seeds", "2"],
    "--bytes 16MB": ["--bytes", "1MB"],
    "--oversubscription 2 --jobs 2": ["--bytes", "256KB"],
    "--pairs 20": ["--until", "15ms"],
    "--over kmin=5KB:100KB:32": ["--until", "5ms"],  # 512 points
    "--until 2ms --seeds 5": ["--until", "500us"],
    "--until 4ms": ["--until", "500us"],
}
# Of samples, the same calls with fewer seeds and points, over shorter times.
LESS_OF_SAMPLES = {
    "collectives": {'16MB", seeds=5': '1MB", seeds=2', '"64MB"': '"4MB"', '"16MB", ranks=8': '"1MB", ranks=8'},
    "fabrics": {'until="2ms", seeds=5': 'until="500us", seeds=2', 'until="4ms", seeds=8': 'until="200us", seeds=3'},
    "findings_acc": {'until="5ms", threads=1': 'until="100us", threads=1'},
    "limit_cycles": {"range(6, 17)": "range(8, 11)", "range(2, 21)": "range(8, 11)"},
    "stability": {"range(2, 21, 2)": "(4, 8)", 'until="200ms"': 'until="20ms"', "110e-6, 31": "110e-6, 11"},
    "tuning": {"subject_to=": "evaluations=8, seeds=1, packet_seeds=1, subject_to="},
}
FILES = Path(__file__).parent / "files"
MEASURED = next(one.text for one in OURS if one.text.endswith("--out measured.nc"))  # which others read


def to_run(page: Path) -> list[Printed]:
    """What stands in its blocks and in no page's before it."""
    before = {one.text for one in OURS if one.block and PAGES.index(one.page) < PAGES.index(page)}
    own = [one for one in OURS if one.page == page and one.block and not ELSEWHERE.search(one.text)]
    return [one for one in own if one.text not in before and one.text != MEASURED]


def at_home(folder: Path) -> None:
    """The files that pages name, in a folder of its own."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copytree(FILES, folder, dirs_exist_ok=True)
    shutil.copytree(ROOT / "examples" / "leaf-100g" / "counters", folder / "counters")
    for name in ("config_db.json", "nic.txt"):
        shutil.copy(ROOT / "examples" / "leaf-100g" / name, folder)
    shutil.copy(ROOT / "tests" / "data" / "switches" / "eos.txt", folder / "running-config.txt")


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if to_run(page)], ids=lambda page: page.stem)
def test_runs_as_printed(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the page, in a folder with the files that it names; a difference between engines is an answer."""
    at_home(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(behaviour, "SEEDS", 2)  # of the audit
    if any("measured.nc" in one.text for one in to_run(page)):
        assert run(MEASURED.split()[1:]) == 0
    for one in to_run(page):
        less = [*less_of(one.words), *(word for part in LESS_OF if part in one.text for word in LESS_OF[part])]
        status = run([*one.words[1:], *less])
        expected = (0, 1) if one.words[1] == "crosscheck" else (0, 3) if "--fail-on" in one.words else (0,)
        assert status in expected, one.text


def shortened(page: Path) -> list[str]:
    """A page's samples, each with less of what takes minutes."""
    found = samples(page)
    for old, new in LESS_OF_SAMPLES.get(page.stem, {}).items():
        assert any(old in sample for sample in found), f"{page.name} prints {old} no more: correct LESS_OF_SAMPLES"
        found = [sample.replace(old, new) for sample in found]
    return found


def test_what_samples_have_less_of_is_printed() -> None:
    pages = {page.stem: page for page in PAGES}
    assert all(shortened(pages[stem]) != samples(pages[stem]) for stem in LESS_OF_SAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if samples(page)], ids=lambda page: page.stem)
def test_samples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a page's in one namespace, as a reader types them."""
    import matplotlib

    matplotlib.use("Agg")
    at_home(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    for sample in shortened(page):
        exec(compile(sample, page.name, "exec"), names)
