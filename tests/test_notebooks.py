"""Notebooks run from a fresh kernel in any folder, and are stored with outputs so that they can be read without one."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import fluidcc
from docs.pages.results import execute, stamp_of_notebook
from tests.notebooks import nbformat

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)


# What a newcomer wants first, in at most ten lines each.
TASKS = ("sweep", "convergence", "verify_lemma", "fluid_and_packets", "symbolic")

# The same calls with fewer seeds and points, over shorter times: of what costs less by it.
LESS_OF = {
    "delay_equations": {
        "np.linspace(1, 20, 100)": "np.linspace(1, 20, 10)",
        "np.linspace(4, 14, 100)": "np.linspace(4, 14, 10)",
        "[0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8]": "[0.005, 0.8]",
    },
    "fabric": {"seeds=5": "seeds=2", 'until="2ms"': 'until="1ms"'},
    "hpcc_wai": {
        "(2, 4, 8, 16, 32, 64)": "(2, 64)",
        "(0.25, 0.5, 0.9, 1.5, 3, 8)": "(0.5, 3)",
        'until="3ms"': 'until="1ms"',
    },
    "tuning": {"evaluations=200": "evaluations=12", "seeds=3": "seeds=1", "packet_seeds=4": "packet_seeds=2"},
}


@cache
def stored(path):
    """The notebook as it is stored, read once: not to be changed."""
    return nbformat.read(path, as_version=4)


def code_cells(path):
    return [cell for cell in stored(path).cells if cell.cell_type == "code"]


def python(cell):
    """A cell's code; what `%%writefile` writes is code too."""
    return re.sub(r"\A%%writefile .*\n", "", cell.source)


def shortened(path):
    """The notebook with less of what takes long."""
    notebook = nbformat.read(path, as_version=4)
    for old, new in LESS_OF.get(path.stem, {}).items():
        cells = [cell for cell in notebook.cells if cell.cell_type == "code" and old in cell.source]
        assert cells, f"{path.name} has {old} no more: correct LESS_OF"
        for cell in cells:
            cell.source = cell.source.replace(old, new)
    return notebook


def test_what_notebooks_have_less_of_stands_in_them():
    paths = {path.stem: path for path in NOTEBOOKS}
    assert all(shortened(paths[stem]) != stored(paths[stem]) for stem in LESS_OF)


@pytest.mark.parametrize("task", TASKS)
def test_a_task_takes_ten_lines(task):
    """Notice a first task that grows, or that packs more into a line than a reader follows."""
    paths = {path.stem: path for path in NOTEBOOKS}
    cells = code_cells(paths[task])
    lines = [line for cell in cells for line in cell.source.splitlines() if line.strip()]
    assert len(lines) <= 10
    assert all(len(line) <= 90 and not re.search(r";\s*\S", line) for line in lines)


@each
def test_begins_with_its_point(path):
    """Notice a notebook whose reader must scroll to learn what it shows."""
    title, point, *_ = stored(path).cells[0].source.split("\n\n")
    assert re.fullmatch(r"# [^\n]+", title)
    assert re.fullmatch(r"[^\n]+\.", point)
    assert not re.search(r"[.!?] [A-Z]", point), "one sentence"


@pytest.mark.slow
@each
def test_runs_from_a_fresh_kernel_in_an_empty_folder(path, tmp_path):
    """In full, notebooks are run where their stored outputs are made."""
    notebook = shortened(path)
    execute(notebook, tmp_path)
    assert list(tmp_path.iterdir()) == []  # and leaves it so


@each
def test_is_stored_with_the_outputs_of_its_code(path):
    notebook = stored(path)
    assert notebook.metadata["fluidcc"]["stamp"] == stamp_of_notebook(notebook), (
        f"python -m docs.pages.results {path.stem}"
    )
    code = code_cells(path)
    silent = [cell.source for cell in code if not cell.outputs]
    assert all(re.search(r"^(import|from|def|%%writefile)\b|;\s*\Z", source, re.M) for source in silent), silent
    assert not any(out.output_type == "error" for cell in code for out in cell.outputs)
    assert any("image/png" in out.get("data", {}) for out in code[-1].outputs), "a notebook ends in a picture"


@each
def test_knows_nothing_of_where_it_was_made(path):
    notebook = stored(path)
    shown = [cell.source for cell in notebook.cells]
    for cell in code_cells(path):
        for out in cell.outputs:
            shown += [out.get("text", ""), *(str(v) for k, v in out.get("data", {}).items() if k.startswith("text/"))]
    text = "\n".join(shown)
    assert not re.findall(r"(?<![\w./])/(?:tmp|work|home|root|Users)/\S*|site-packages|\.\./|\bexamples/[\w-]+/", text)
    assert not any("execution" in cell.metadata for cell in notebook.cells)


@each
def test_its_links_lead_somewhere(path):
    cells = (cell.source for cell in stored(path).cells if cell.cell_type == "markdown")
    targets = [target for source in cells for target in re.findall(r"\]\(([^)#]+)\)", source)]
    assert [target for target in targets if not (path.parent / target).is_file()] == []


@each
def test_what_it_takes_from_fluidcc_exists(path):
    nodes = [node for cell in code_cells(path) for node in ast.walk(ast.parse(python(cell)))]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fluidcc"):
            exec(ast.unparse(node), {})
    named = {node.attr for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "fc"}
    assert named
    assert [name for name in named if not hasattr(fluidcc, name)] == []
