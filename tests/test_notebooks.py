"""Notebooks run from a fresh kernel, and are stored with their outputs so that they can be read without one."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
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
