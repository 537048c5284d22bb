"""Results that the documentation shows: their stamps change with code, and with nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from PIL import Image

from docs.pages import results
from fluidcc.proofs.verdict.figure import Figure, Result
from tests.notebooks import nbformat


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A figure that imports a scheme, which imports an engine."""
    files = {
        "fluidcc/proofs/one.py": '"""One."""\nfrom fluidcc.schemes.two import rate\n\n\n'
        'def make():\n    """Make."""\n    return rate()\n',
        "fluidcc/schemes/two.py": "from fluidcc.engines.three import run\n\n\ndef rate():\n    return run(1)\n",
        "fluidcc/engines/three.py": "def run(x):\n    return x\n",
        "fluidcc/proofs/other.py": "x = 1\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(results, "ROOT", tmp_path)
    _forget()
    return tmp_path


def _forget() -> None:
    for cached in (results._path, results._imported, results._code):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("name", "old", "new", "changes"),
    [
        ("fluidcc/proofs/one.py", "return rate()", "return 2 * rate()", True),
        ("fluidcc/schemes/two.py", "run(1)", "run(2)", True),
        ("fluidcc/schemes/two.py", "return run(1)", "# why\n    return run( 1 )", False),
        ("fluidcc/proofs/one.py", '"""Make."""', '"""Make one."""', False),
        ("fluidcc/proofs/one.py", "    return rate()", "    import math\n\n    return rate()", False),
        ("fluidcc/engines/three.py", "return x", "return 2 * x", False),  # held by the engines' own tests
        ("fluidcc/proofs/other.py", "x = 1", "x = 2", False),
    ],
)
def test_a_stamp_is_of_the_code_that_asks(house: Path, name: str, old: str, new: str, changes: bool) -> None:
    before = results.stamp_of_module("fluidcc.proofs.one")
    path = house / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    _forget()
    assert (results.stamp_of_module("fluidcc.proofs.one") != before) == changes
    _forget()


def test_a_notebooks_stamp_is_of_its_code() -> None:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1"), nbformat.v4.new_markdown_cell("two")])
    before = results.stamp_of_notebook(book)
    book.cells[1].source = "a sum"
    book.cells[0].outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "2"})]
    assert results.stamp_of_notebook(book) == before
    book.cells[0].source = "1 + 2"
    assert results.stamp_of_notebook(book) != before


@pytest.mark.slow
def test_a_result_of_nothing_is_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "CLAIMS", tmp_path)
    (tmp_path / "no-such-claim.json").write_text('{"stamp": "0"}')
    found = list(results.stale())
    assert ("claim", "no-such-claim") in found
    assert ("claim", "hpcc-a2-finite") in found  # missing


def test_a_figure_continues_where_it_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notice kept runs that are lost, taken from other sources, or left behind when the figure is made."""
    monkeypatch.setattr(results, "UNFINISHED", tmp_path / "unfinished")
    monkeypatch.setattr(results, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(results, "figures", lambda: {"one": "a1"})
    seen: list[list[str]] = []

    def made(name: str, folder: Path, *, quick: bool) -> Result:
        folder.mkdir(parents=True, exist_ok=True)
        seen.append([path.name for path in folder.iterdir()])
        (folder / "runs.json").write_text("{}")
        if len(seen) == 1:
            raise KeyboardInterrupt
        Image.new("RGB", (8, 8)).save(folder / "one.png")
        return Result(Figure("one", "", "", cast(Any, made)), {"drops": 0.0}, {}, (folder / "one.png",))

    monkeypatch.setattr("fluidcc.reproduce", made)
    with pytest.raises(KeyboardInterrupt):
        results.make_figure("one", quick=False)
    results.make_figure("one", quick=True)
    results.make_figure("one", quick=False)
    assert seen == [[], [], ["runs.json"]]
    assert list((tmp_path / "unfinished").iterdir()) == []
    assert (tmp_path / "figures" / "one.webp").is_file()
