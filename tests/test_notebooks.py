"""Notebooks run from a fresh kernel, and are stored with their outputs so that they can be read without one."""

import ast
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import fluidcc

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


GUARD = "hpcc_pareto"  # the one that every run of the tests executes


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, id=p.stem, marks=() if p.stem == GUARD else pytest.mark.slow) for p in NOTEBOOKS],
)
def test_runs_from_a_fresh_kernel(path):
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_is_stored_with_its_outputs(path):
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    silent = [cell.source for cell in code if not cell.outputs and not cell.source.rstrip().endswith("\n")]
    assert sum(bool(cell.outputs) for cell in code) >= len(code) - 1, silent
    pictures = [out for cell in code for out in cell.outputs if "image/png" in out.get("data", {})]
    assert len(pictures) >= 2
    assert not any(out.output_type == "error" for cell in code for out in cell.outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_what_it_takes_from_fluidcc_exists(path):
    code = (cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code")
    nodes = [node for source in code for node in ast.walk(ast.parse(source))]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fluidcc"):
            exec(ast.unparse(node), {})
    named = {node.attr for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "fc"}
    assert named
    assert [name for name in named if not hasattr(fluidcc, name)] == []
