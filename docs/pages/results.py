"""Make what the documentation shows of results: claims' verdicts, figures with thumbnails, notebooks' outputs.

python -m docs.pages.results              all that is stale; an interrupted call continues, in a figure's runs too
python -m docs.pages.results --check      name what is stale, and make nothing
python -m docs.pages.results NAME ...     these claims, figures or notebooks, stale or not
python -m docs.pages.results --quick      with figures' fewer values, which their pages then say
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import base64
import hashlib
import io
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

# Rooms whose code says what is asked and of which equations. Engines are left out: what they answer is held bit for
# bit by their tests, and a stamp of all code would make every page stale with every line.
ROOMS = ("fluidcc.proofs", "fluidcc.schemes", "fluidcc.theory")
RESULTS = ROOT / "docs" / "results"
FIGURES = RESULTS / "figures"
CLAIMS = RESULTS / "claims"
UNFINISHED = ROOT / "docs" / "_build" / "unfinished"  # figures under way, whose next call continues there
NOTEBOOKS = ROOT / "notebooks"
THUMBNAIL = 1440  # pixels wide: at 720 the letters of pictures with three columns and more cannot be read


def stamp_of_module(name: str) -> str:
    """Stamp of a module and of what it imports from `ROOMS`, however indirectly.

    Comments, docstrings and where files lie (their names, imports) do not count.

    Parameters
    ----------
    name : str
        Such as ``fluidcc.proofs.dcqcn.fig3``.
    """
    digest = hashlib.sha256()
    for code in sorted(_code(each) for each in _closure(name)):
        digest.update(f"{code}\n".encode())
    return digest.hexdigest()[:16]


def stamp_of_notebook(notebook: Any) -> str:
    """Stamp of a notebook's code cells, as nbformat reads them.

    Nothing of fluidcc counts: a slow test runs each notebook, and does not compare its numbers with those stored. After
    a change of what an engine answers, ``python -m docs.pages.results NAME ...`` makes its outputs again.
    """
    digest = hashlib.sha256()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            digest.update(f"{cell.source}\0".encode())
    return digest.hexdigest()[:16]


def _closure(name: str) -> set[str]:
    found, waiting = set[str](), [name]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += _imported(one)
    return found


@cache
def _path(name: str) -> Path | None:
    base = ROOT.joinpath(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def _parsed(name: str) -> ast.Module:
    path = _path(name)
    assert path is not None, name
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _imported(name: str) -> tuple[str, ...]:
    """Modules of `ROOMS` that a module imports, at its top or in a function."""
    found = set[str]()
    for node in ast.walk(_parsed(name)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(sorted(each for each in found if each.startswith(ROOMS) and _path(each) is not None))


@cache
def _code(name: str) -> str:
    """A module's code without docstrings and imports; the parser has left out comments and layout."""
    tree = _parsed(name)  # of its own: what follows changes it
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = _without_docstring(node.body)
        if isinstance(body := getattr(node, "body", None), list):
            kept = [each for each in body if not isinstance(each, ast.Import | ast.ImportFrom)]
            node.body = kept or [ast.Pass()]  # pyright: ignore[reportAttributeAccessIssue]
    return ast.unparse(tree)


def _without_docstring(body: Iterable[ast.stmt]) -> list[ast.stmt]:
    first, *rest = body
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return rest or [ast.Pass()]
    return [first, *rest]


def figures() -> dict[str, str]:
    """The stamp that each figure's result should have."""
    from fluidcc.proofs.verdict.registry import homes

    return {name: stamp_of_module(home) for name, home in homes("reproduces").items()}


def claims() -> dict[str, str]:
    """The stamp that each claim's result should have."""
    from fluidcc.proofs.verdict.registry import homes

    return {name: stamp_of_module(home) for name, home in homes("claim").items()}


def notebooks() -> dict[str, str]:
    """The stamp that each notebook should have."""
    import nbformat

    return {
        path.stem: stamp_of_notebook(nbformat.read(path, as_version=4)) for path in sorted(NOTEBOOKS.glob("*.ipynb"))
    }


def load(folder: Path) -> dict[str, dict[str, Any]]:
    """Results of a folder by name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def stale() -> Iterator[tuple[str, str]]:
    """Kinds and names of what is missing, or was made of other sources, or is of a thing that exists no more."""
    import nbformat

    for kind, wanted, folder in (("claim", claims(), CLAIMS), ("figure", figures(), FIGURES)):
        found = load(folder)
        for name in sorted({*wanted, *found}):
            if name not in wanted or found.get(name, {}).get("stamp") != wanted[name]:
                yield kind, name
    for name, stamp in notebooks().items():
        notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
        if notebook.metadata.get("fluidcc", {}).get("stamp") != stamp:
            yield "notebook", name


def make_claim(name: str, quick: bool) -> None:
    """Check a claim, and keep what came out."""
    from fluidcc.proofs.verdict.registry import choose, guarded

    (one,) = choose(name)
    began = time.perf_counter()
    result = guarded(one).as_dict()
    _write(CLAIMS / f"{name}.json", result, claims()[name], began)


def make_figure(name: str, quick: bool) -> None:
    """Make a figure, and keep its values and a thumbnail."""
    import fluidcc as fc

    began, stamp = time.perf_counter(), figures()[name]
    folder = UNFINISHED / f"{name}{'-quick' * quick}-{stamp}"
    result = fc.reproduce(name, folder, quick=quick)
    picture = next(path for path in result.files if path.suffix == ".png")
    _thumbnail(picture, FIGURES / f"{name}.webp")
    shutil.rmtree(folder)
    fields = result.as_dict() | {"quick": quick}
    del fields["files"]
    _write(FIGURES / f"{name}.json", fields, stamp, began)


def make_notebook(name: str, quick: bool) -> None:
    """Run a notebook in an empty folder, and keep its outputs."""
    import nbformat

    path = NOTEBOOKS / f"{name}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata.pop("widgets", None)  # of the run before
    with tempfile.TemporaryDirectory() as folder:
        execute(notebook, folder)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran, to the microsecond: a difference that says nothing
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if not _is_progress(each)]
            for each in cell.outputs:
                if "image/png" in each.get("data", {}):
                    each.data["image/png"] = _smaller(each.data["image/png"])
    notebook.metadata["fluidcc"] = {"stamp": stamp_of_notebook(notebook)}
    nbformat.write(notebook, path)


def execute(notebook: Any, folder: str | Path) -> None:
    """Run a notebook from a fresh kernel in a folder, on the fluidcc that is imported here; outputs go into it."""
    from nbclient import NotebookClient

    import fluidcc

    sources = Path(fluidcc.__file__).resolve().parents[1]
    path = os.pathsep.join(filter(None, (str(sources), os.environ.get("PYTHONPATH"))))
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}})
    looking: list[asyncio.Future[None]] = []
    client.on_notebook_start = lambda notebook: looking.append(asyncio.ensure_future(_look_for_replies(client)))
    client.on_notebook_complete = lambda notebook: looking.pop().cancel()
    client.execute(env={**os.environ, "PYTHONPATH": path})


async def _look_for_replies(client: Any) -> None:
    """Have the shell's socket look once a second whether a reply has come.

    What an Output widget sends goes out past asyncio, and takes the wake-up of a reply that comes at that moment with
    it: the cell would end when its time is out (descriptors of ZeroMQ tell of changes alone).
    """
    import zmq

    while client.kc is not None:
        client.kc.shell_channel.socket.get(zmq.EVENTS)
        await asyncio.sleep(1.0)


def _is_progress(output: Any) -> bool:
    """Check whether an output is of a run's progress: an empty place, a widget's bar, a notice of compiling."""
    text = output.get("data", {"text/plain": output.get("text", "")}).get("text/plain") or ""
    notice = output.get("name") == "stderr" and text.startswith("compiling ")
    return notice or (output.output_type == "display_data" and not text.strip())


def _smaller(picture: str) -> str:
    """A PNG in base64 with 256 colours: a third of the bytes, and a plot has no more."""
    from PIL import Image

    made = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        few = image if image.mode == "P" else image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        few.save(made, "PNG", optimize=True)
    return base64.b64encode(made.getvalue()).decode()


def _thumbnail(picture: Path, to: Path) -> None:
    from PIL import Image

    to.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(picture) as image:
        image = image.convert("RGB")
        image.thumbnail((THUMBNAIL, 3 * THUMBNAIL), Image.Resampling.LANCZOS)
        image.save(to, quality=82, method=6)


def _write(path: Path, fields: dict[str, Any], stamp: str, began: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = fields | {"seconds": round(time.perf_counter() - began, 1), "stamp": stamp}
    # Rounded to what a page could show: the last bits differ from machine to machine.
    path.write_text(json.dumps(_rounded(fields), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


MAKERS = {"claim": make_claim, "figure": make_figure, "notebook": make_notebook}
ALL = {"claim": claims, "figure": figures, "notebook": notebooks}


def main() -> int:
    """Run it; exit status 1 if something is stale, or failed."""
    parser = argparse.ArgumentParser(prog="python -m docs.pages.results", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="figures with fewer values, as reproduce --quick")
    parser.add_argument("--check", action="store_true", help="name what is stale, and make nothing")
    given = parser.parse_args()
    todo = list(stale())
    if given.names:
        known = [(kind, name) for kind, names in ALL.items() for name in names()]
        if unknown := set(given.names) - {name for _, name in known}:
            parser.error(f"{', '.join(sorted(unknown))}: no claim, figure or notebook")
        todo = [one for one in known if one[1] in given.names]
    if given.check:
        print("\n".join(f"stale: {kind} {name}" for kind, name in todo) or "all results are of the present sources")
        return bool(todo)
    failed = 0
    for number, (kind, name) in enumerate(todo, 1):
        print(f"[{number}/{len(todo)}] {kind} {name}", end=" ", flush=True)
        began = time.perf_counter()
        try:
            if name in ALL[kind]():
                MAKERS[kind](name, given.quick)
            else:
                for path in (RESULTS / f"{kind}s").glob(f"{name}.*"):
                    path.unlink()
            print(f"{time.perf_counter() - began:.1f} s", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAILED: {type(error).__name__}: {error}", flush=True)
    if not failed:
        from docs.pages import readmes

        readmes.write()
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
