"""The dataset of a sweep, and its store on disk while results come in, so that an interrupted sweep can go on.

A store is a Zarr folder that `xarray.open_zarr` opens: the dataset over its grid, one Zarr chunk for each chunk of the
sweep; a point that is not done has reason -1. The folder appears whole, Zarr writes each file whole or not at all
(since 3.1.3), and a chunk's reasons come last: so it may be killed at any moment.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import uuid
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from fluidcc.builders.names import unit_of
from fluidcc.builders.toml_file import to_toml
from fluidcc.compiling.folder import processor
from fluidcc.compiling.functions import sources
from fluidcc.compiling.identity import code_of, digest_of
from fluidcc.engines.fluid.network import REASONS
from fluidcc.engines.fluid.plan import Plan
from fluidcc.errors import InputError
from fluidcc.files import check_writable
from fluidcc.results.grid import Grid
from fluidcc.results.schema import METRICS
from fluidcc.scenario.model import Scenario
from fluidcc.studies.sweeps.batch import Batch
from fluidcc.studies.sweeps.grid import Blocks
from fluidcc.version import VERSION

PENDING = -1  # reason of a point that is not done
FLOW, SEED = "flow", "seed"
COUNTS = {"seeds": "runs with different seeds", "by_packets": "of these, run by packets"}
_DIGITS = 16
_ATTEMPTS = "*.partial"  # what Zarr leaves of a file that it was writing


class Variable(NamedTuple):
    """A variable over the grid."""

    dims: tuple[str, ...]
    attrs: dict[str, Any]
    missing: Any  # what it is where nothing is known yet; of its type


def variables_of(grid: Grid, seeds: int = 0, errors: bool = False) -> dict[str, Variable]:
    """Return the variables of each point, by name.

    With seeds also each metric's standard error and its value by seed; with ``errors`` also those of the steps.

    Raises
    ------
    InputError
        If a swept name is that of a result.
    """
    names = tuple(grid.axes)
    found = {
        name: Variable(names, {"units": unit, "long_name": text}, np.float64(np.nan))
        for name, (unit, text) in METRICS.items()
    }
    for name, (unit, text) in METRICS.items() if seeds else ():
        error = {"units": unit, "long_name": f"{text}, standard error of the mean over seeds"}
        found[f"{name}_se"] = Variable(names, error, np.float64(np.nan))
        each = {"units": unit, "long_name": f"{text}, by seed"}
        found[f"{name}_by_seed"] = Variable((*names, SEED), each, np.float64(np.nan))
    if seeds:
        for name, text in COUNTS.items():
            found[name] = Variable(names, {"units": "1", "long_name": text}, np.int32(0))
    for name, text in (("queue", "mean queue"), ("rate", "mean rates")) if errors else ():
        told = {"units": "1", "long_name": f"{text}, relative difference to the run to ten times the tolerance"}
        found[f"{name}_error_rel"] = Variable(names, told, np.float64(np.nan))
    rate = {"units": "bytes/s", "long_name": "mean sending rate"}
    found["rate_bytes_per_s"] = Variable((*names, FLOW), rate, np.float64(np.nan))
    meanings = {"flag_values": list(range(len(REASONS))), "flag_meanings": "; ".join(REASONS)}
    found["reason"] = Variable(names, {"units": "1", "long_name": "why a point failed", **meanings}, np.int32(PENDING))
    taken = next((name for name in names if name in found or name in (FLOW, SEED)), None)
    if taken is not None:
        raise InputError(f"over {taken}: a result has that name; give the argument of make_scenario another")
    return found


def with_reasons(variables: dict[str, Variable], meanings: list[str]) -> dict[str, Variable]:
    """The same with other reasons why a point failed, in words."""
    old = variables["reason"]
    told = {
        "flag_values": list(range(len(meanings))),
        "flag_meanings": "; ".join(m.replace(";", ",") for m in meanings),
    }
    return variables | {"reason": old._replace(attrs=old.attrs | told)}


def coordinates_of(grid: Grid, scenario: Scenario, seeds: int = 0) -> dict[str, tuple[str, Any, dict[str, Any]]]:
    """Swept values with their units, the flows' names, and the seeds."""
    found: dict[str, tuple[str, Any, dict[str, Any]]] = {
        name: (name, values, {"units": unit} if (unit := unit_of(name)) else {}) for name, values in grid.axes.items()
    }
    found[FLOW] = (FLOW, [flow.name or f"flow {i}" for i, flow in enumerate(scenario.flows)], {})
    return found | ({SEED: (SEED, np.arange(1, seeds + 1), {})} if seeds else {})


def attributes_of(scenario: Scenario) -> dict[str, Any]:
    """Return the attributes of a sweep that are known before it runs."""
    # With several schemes, the lowest target utilisation.
    target = min(float(getattr(flow.scheme, "target_utilisation", 1.0)) for flow in scenario.flows)
    return {"scenario": to_toml(scenario), "target_utilisation": target}


def words(attrs: Mapping[str, Any]) -> list[str]:
    """Meanings of the numbers in ``reason``, of a result of this version or an earlier one."""
    return str(attrs.get("flag_meanings", "; ".join(REASONS))).split("; ")


def signature_of(batch: Batch, plan: Plan, grid: Grid) -> dict[str, str]:
    """Texts and digests of what the numbers of all points depend on: a store goes on only where they are the same."""
    leaves, structure = jax.tree.flatten(batch.network)
    digest = hashlib.sha256(f"{structure} {grid.signature()}".encode())
    for each in (*leaves, batch.reasons, batch.payload):
        values = np.asarray(each)
        digest.update(f"{values.dtype} {values.shape}".encode() + values.tobytes())
    schemes = {type(flow.scheme) for flow in batch.scenario.flows}
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("jax", "jaxlib", "numpy")]
    return {
        "settings of the points": digest.hexdigest()[:_DIGITS],
        "horizon, window, step, method and precision": digest_of(repr(plan))[:_DIGITS],
        "metrics": digest_of(*METRICS)[:_DIGITS],
        "equations": digest_of(sources(), code_of((), schemes))[:_DIGITS],
        "versions": ", ".join([f"fluidcc {VERSION}", *versions]),
        "processor": f"{jax.default_backend()} {digest_of(*processor())[:_DIGITS]}",
    }


def check_store(path: str | Path, resume: bool) -> None:
    """Refuse a store that exists, unless it is to be gone on with, or that cannot be made.

    Raises
    ------
    InputError
    """
    found = os.path.exists(path)  # false, not an error, of a name that is too long
    if resume and found:
        return
    if found and not os.path.isdir(path):
        raise InputError(f"store: {path} is no folder; give another name")
    if found:
        raise InputError(f"store: {path} exists; add --resume (resume=True) to go on with it, or give another folder")
    check_writable(path, "store")


class Store:
    """A folder of results.

    Parameters
    ----------
    path : str or Path
        The folder; made if missing.
    grid : Grid
    scenario : Scenario
        Of one of the points, for the names of flows.
    blocks : Blocks
        Chunks of a new store; an existing one keeps its own.
    signature : mapping
        What is run, as `signature_of` says; a store of another run is refused.
    resume : bool
        Whether to go on with an existing store; otherwise one must not exist.
    variables : mapping of Variable
        What is kept of each point; what a sweep of the fluid has, if not given.
    seeds : int
        Of the runs of a point.

    Raises
    ------
    InputError
        If the folder exists and ``resume`` is not set, holds another sweep, cannot be made, or Zarr is not installed.
    """

    def __init__(
        self,
        path: str | Path,
        grid: Grid,
        scenario: Scenario,
        blocks: Blocks,
        signature: Mapping[str, str],
        resume: bool,
        variables: Mapping[str, Variable] | None = None,
        seeds: int = 0,
    ) -> None:
        try:
            import zarr
        except ImportError:
            raise InputError("store: needs the package zarr; install it with: pip install 'fluidcc[sweep]'") from None
        self._path, self._variables = Path(os.path.realpath(path)), variables or variables_of(grid)
        check_store(path, resume)
        if not self._path.exists():
            self._create(grid, scenario, blocks, signature, seeds)
        try:
            group = zarr.open_group(self._path, mode="r+", use_consolidated=False)
            found: Any = group.attrs["signature"]
            self._arrays = {name: group[name] for name in self._variables}
            block = tuple(int(size) for size in self._arrays["reason"].chunks)  # type: ignore[union-attr]
            other = [what for what, digest in signature.items() if found.get(what) != digest]
        except (OSError, KeyError, ValueError, AttributeError) as error:
            raise InputError(
                f"store: {path} is no sweep's store, or one of another engine ({error}); give another folder"
            ) from None
        if other:
            told = "; ".join(f"{what}: {_told(found.get(what))} there, {_told(signature[what])} here" for what in other)
            raise InputError(f"store: {path} holds another sweep ({told}); give the same options, or another folder")
        self.blocks = Blocks(grid.shape, block)
        for left in self._path.rglob(_ATTEMPTS):
            left.unlink(missing_ok=True)

    def _create(self, grid: Grid, scenario: Scenario, blocks: Blocks, signature: Mapping[str, str], seeds: int) -> None:
        import zarr

        made = self._path.parent / f".{self._path.name[:100]}.{uuid.uuid4().hex[:8]}"
        try:
            made.mkdir()
            group = zarr.open_group(made, mode="w", zarr_format=3)
            group.attrs.update({"signature": dict(signature), **attributes_of(scenario)})
            coordinates = coordinates_of(grid, scenario, seeds)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # text, and metadata in one file, are no part of format 3 yet
                for name, (dim, values, attrs) in coordinates.items():
                    group.create_array(name, data=np.asarray(values), dimension_names=[dim], attributes=attrs)
                for name, (dims, attrs, missing) in self._variables.items():
                    more = tuple(len(coordinates[dim][1]) for dim in dims if dim in (FLOW, SEED))
                    group.create_array(
                        name,
                        shape=(*grid.shape, *more),
                        chunks=(*blocks.block, *more),
                        dtype=np.asarray(missing).dtype,
                        fill_value=missing,
                        dimension_names=list(dims),
                        attributes=attrs,
                    )
                zarr.consolidate_metadata(made)  # type: ignore[arg-type]
            made.rename(self._path)
        except OSError as error:
            raise InputError(f"store: {self._path} cannot be made ({error.strerror}); give another folder") from None
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def done(self) -> dict[str, np.ndarray]:
        """Return all arrays so far, by name; (points, ...)."""
        found = {name: np.asarray(array[...]) for name, array in self._arrays.items()}  # type: ignore[index]
        grid = len(self.blocks.shape)
        return {name: values.reshape(-1, *values.shape[grid:]) for name, values in found.items()}

    def write(self, part: slice, results: Mapping[str, np.ndarray]) -> None:
        """Write the points of a block; their reasons last, so that what is marked done is there.

        Raises
        ------
        InputError
            If the disk takes no more.
        """
        box = self.blocks.box(part)
        lengths = [at.stop - at.start for at in box]
        try:
            for name in sorted(self._variables, key=lambda n: n == "reason"):
                values = results[name]
                self._arrays[name][box] = values.reshape(*lengths, *values.shape[1:])  # type: ignore[index]
        except OSError as error:
            raise InputError(
                f"store: {self._path} cannot be written to ({error.strerror or error}); what is there is kept: "
                "mend that, and go on with --resume"
            ) from None


def unfinished(results: Mapping[str, np.ndarray], part: slice) -> bool:
    """Check whether some point of a block is not done."""
    return bool((results["reason"][part] == PENDING).any())


def _told(value: Any) -> str:
    return str(value)[:80] if value else "nothing"
