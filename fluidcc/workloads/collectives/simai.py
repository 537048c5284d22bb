"""SimAI's workloads, which its generator AICB writes, and those of ASTRA-sim 1.0, as a schedule of operations.

After the reader of SimAI (``astra-sim/workload/Workload.cc``): a line with the way of training and the sizes of groups,
a line with the number of layers, and a line of twelve columns for each layer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from fluidcc.surface import nearest, public
from fluidcc.workloads.collectives.jobs import MOST_RANKS
from fluidcc.workloads.collectives.mapping import MOST_FLOWS
from fluidcc.workloads.collectives.schedule import LARGEST, Operation, Schedule
from fluidcc.workloads.fabrics.lines import LARGEST_LIST, Lines

_EXPECTED = (
    "a SimAI workload: HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 1 pp: 1 all_gpus: 16, "
    "then the number of layers, then a line of 12 columns for each"
)
_SIZES = {"model_parallel_NPU_group:": "tp", "ep:": "ep", "pp:": "pp", "all_gpus:": "all"}
_NONE = ("checkpoints:", "checkpoint_initiates:")  # of which any would compute layers again
_TYPES = {
    "ALLREDUCE": "all-reduce", "ALLGATHER": "all-gather", "REDUCESCATTER": "reduce-scatter", "ALLTOALL": "all-to-all",
}  # fmt: skip
_COLUMNS = 12

Groups = dict[str, Callable[[int], tuple[int, ...]]]


class _Part(NamedTuple):
    """Compute of a layer in one direction, and the collective behind it."""

    compute: int  # ns
    kind: str  # of collective, or none
    size: int  # bytes
    group: str


class _Layer(NamedTuple):
    """A line of the file: forward, gradients of inputs, gradients of weights."""

    line: int
    forward: _Part
    inputs: _Part
    weights: _Part
    update: int  # ns behind each collective


@public()
def read_simai(path: str | os.PathLike[str], ranks: int | None = None) -> Schedule:
    """Read a SimAI workload, of which every rank does all layers.

    Forward through the layers, a rank computes and then waits for the layer's collective; back again it does so for the
    gradients of inputs, computes those of weights, and has their collective done while it goes on. Ranks of a tensor
    group follow each other, then come stages, then data-parallel replicas; rank k is on the k-th host of the placement.
    Collectives of one group follow each other.

    Parameters
    ----------
    path : str or path
    ranks : int, optional
        How many, where the first line has no ``all_gpus``.

    Returns
    -------
    Schedule

    Raises
    ------
    InputError
        If it is none, with the line.
    """
    return simai_of(Lines(path, _EXPECTED, LARGEST_LIST), ranks)


def simai_of(lines: Lines, ranks: int | None) -> Schedule:
    """Read the lines of a SimAI workload."""
    first = lines.next("the way of training")
    way = _WAYS.get(first[0])
    if way is None:
        near = nearest(first[0], _WAYS)
        hint = f"did you mean {near}?" if near else f"write one of {', '.join(_WAYS)}"
        raise lines.wrong(f"{first[0][:40]!r} is no way of training that is read; {hint}")
    sizes = _sizes(lines, first, way, ranks)
    line, count = lines.at, sizes["all"]
    words = []
    if sizes["pp"] > 1:
        words.append(f"{lines.name}, line {line}: pp_comm has no effect: stages send each other nothing, as in SimAI")
    given = lines.next("the number of layers")
    if len(given) != 1:
        raise lines.wrong(f"{' '.join(given)[:40]!r} is no number of layers; write that alone")
    announced = lines.number(given[0], int, 1, "number of layers", MOST_FLOWS)
    layers = [_layer(lines, row, way) for row in lines.rows()]
    if len(layers) != announced:
        raise lines.wrong(f"there are {len(layers)} layers, and {announced} are announced; write as many")
    steps = way(layers)
    if len(steps) * count > MOST_FLOWS:
        raise lines.wrong(f"{count} ranks do more than {MOST_FLOWS:,} operations; give fewer layers or ranks")
    groups = _groups(sizes)
    operations: list[Operation] = []
    for rank in range(count):
        place = len(operations)
        for at, kind, amount, group, requires in steps:
            mine = [place + k for k in requires]
            made = Operation(at, kind, rank, amount, requires=mine)
            if group:
                made.group, made.tag = groups[group](rank), [*groups].index(group)
            operations.append(made)
    return Schedule(lines.name, count, operations, line, tuple(words))


def is_simai(word: str) -> bool:
    """Check whether a file's first word is that of a SimAI workload, perhaps of a way that is not read."""
    return word in _WAYS or word.startswith("HYBRID_") or word == "DISTRIBUTED_INFERENCE"


def _sizes(lines: Lines, words: list[str], way: Way, ranks: int | None) -> dict[str, int]:
    """Return sizes of groups: tp, ep, pp, dp, and the number of all ranks."""
    found = {"tp": 1, "ep": 1, "pp": 1, "all": ranks or 0}
    for word, value in zip(words[1:], [*words[2:], ""], strict=False):
        if word in _SIZES:
            found[_SIZES[word]] = lines.number(value, int, 1, word.rstrip(":"), MOST_RANKS)
        elif word in _NONE and lines.number(value, int, 0, word.rstrip(":")):
            raise lines.wrong(f"{word} are not read: layers that are computed again; write {word} 0")
    if found["all"] < 2:
        raise lines.wrong("there is no all_gpus: N of two or more ranks; add it")
    if way in (_data, _model, _micro):
        return {"tp": found["all"], "ep": 1, "pp": 1, "dp": 1, "all": found["all"]}
    if found["all"] % (found["tp"] * found["pp"]):
        raise lines.wrong(
            f"all_gpus {found['all']} are no whole number of {found['tp']} x {found['pp']} ranks; write a multiple"
        )
    found["dp"] = found["all"] // (found["tp"] * found["pp"])
    if found["dp"] % found["ep"]:
        raise lines.wrong(f"ep: {found['ep']} divides no {found['dp']} replicas; write a divisor")
    return found


def _groups(sizes: dict[str, int]) -> Groups:
    """Return for each kind of group a function of the rank: tensor ranks next to each other, then stages, replicas."""
    tp, ep, replica = sizes["tp"], sizes["ep"], sizes["tp"] * sizes["pp"]

    def spread(rank: int, start: int, step: int, count: int) -> tuple[int, ...]:
        """Return ranks with the place of this one in their replicas, of ``count`` replicas."""
        return tuple(rank % replica + replica * (start + step * k) for k in range(count))

    return {
        "TP": lambda rank: tuple(range(rank // tp * tp, rank // tp * tp + tp)),
        "DP": lambda rank: spread(rank, 0, 1, sizes["dp"]),
        "EP": lambda rank: spread(rank, rank // replica // ep * ep, 1, ep),
        "DP_EP": lambda rank: spread(rank, rank // replica % ep, ep, sizes["dp"] // ep),
    }


def _layer(lines: Lines, words: list[str], way: Way) -> _Layer:
    if len(words) != _COLUMNS:
        raise lines.wrong(f"a layer has {len(words)} columns; write {_COLUMNS}, from its name to its update time")
    whole = way in (_data, _model, _micro)  # whose collectives are of all ranks
    parts = []
    for k, default in ((2, "TP"), (5, "TP"), (8, "DP")):
        kind, group = words[k + 1], "TP" if whole else default
        for suffix in ("_DP_EP", "_EP"):
            if kind.endswith(suffix):
                kind, group = kind.removesuffix(suffix), suffix[1:]
                break
        if kind != "NONE" and kind not in _TYPES:
            known = f"NONE, {', '.join(_TYPES)}, with _EP or _DP_EP behind"
            raise lines.wrong(f"collective {words[k + 1][:40]!r} is not read; write one of {known}")
        compute = lines.number(words[k], int, 0, "compute time", LARGEST)
        size = lines.number(words[k + 2], int, 0, "size", LARGEST)
        parts.append(_Part(compute, _TYPES.get(kind, "") if size else "", size, group))
    return _Layer(lines.at, *parts, update=lines.number(words[11], int, 0, "update time", LARGEST))


Step = tuple[int, str, int, str, list[int]]  # line, kind, amount, group, places of what it waits for


class _Steps:
    """Operations of a rank, one behind the other, but for collectives that it does not wait for."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._last: list[int] = []
        self._compute = 0  # ns, not yet an operation
        self._line = 0

    def compute(self, line: int, time: int) -> None:
        """Add compute behind what the rank does."""
        self._compute += time
        self._line = line

    def collective(self, line: int, part: _Part, update: int) -> list[int]:
        """Add a collective that the rank starts now; its place, or none, which the rank does not wait for."""
        if not part.kind:
            return []
        self._settle()
        self.steps.append((line, part.kind, part.size, part.group, self._last))
        if update:
            self.steps.append((line, "calc", update, "", [len(self.steps) - 1]))
        return [len(self.steps) - 1]

    def wait(self, places: list[int]) -> None:
        """Have the rank wait for collectives."""
        if places:
            self._settle()
            self._last = [*self._last, *places]

    def done(self) -> list[Step]:
        self._settle()
        return self.steps

    def _settle(self) -> None:
        if self._compute:
            self.steps.append((self._line, "calc", self._compute, "", self._last))
            self._last, self._compute = [len(self.steps) - 1], 0


def _transformer(layers: list[_Layer]) -> list[Step]:
    """Forward and back, waiting for all collectives but those of weights."""
    steps = _Steps()
    for each in layers:
        steps.compute(each.line, each.forward.compute)
        steps.wait(steps.collective(each.line, each.forward, each.update))
    for each in reversed(layers):
        steps.compute(each.line, each.inputs.compute)
        steps.wait(steps.collective(each.line, each.inputs, each.update))
        steps.compute(each.line, each.weights.compute)
        steps.collective(each.line, each.weights, each.update)
    return steps.done()


def _data(layers: list[_Layer]) -> list[Step]:
    """Forward and back with collectives of weights alone, which the rank does not wait for."""
    steps = _Steps()
    for each in layers:
        steps.compute(each.line, each.forward.compute)
    for each in reversed(layers):
        steps.compute(each.line, each.weights.compute)
        steps.collective(each.line, each.weights, each.update)
        steps.compute(each.line, each.inputs.compute if each is not layers[0] else 0)
    return steps.done()


def _model(layers: list[_Layer]) -> list[Step]:
    """Forward and back with collectives of activations and inputs, the latter while weights are computed."""
    steps = _Steps()
    for each in layers:
        steps.compute(each.line, each.forward.compute)
        steps.wait(steps.collective(each.line, each.forward, each.update))
    for each in reversed(layers):
        steps.compute(each.line, each.inputs.compute)
        sent = steps.collective(each.line, each.inputs, each.update) if each is not layers[0] else []
        steps.compute(each.line, each.weights.compute)
        steps.wait(sent)
    return steps.done()


def _micro(layers: list[_Layer]) -> list[Step]:
    """Collectives of weights alone."""
    steps = _Steps()
    for each in layers:
        steps.collective(each.line, each.weights, each.update)
    return steps.done()


Way = Callable[[list[_Layer]], list[Step]]
_WAYS: dict[str, Way] = {
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD": _transformer,
    "HYBRID_TRANSFORMER": _transformer,
    "DATA": _data,
    "MODEL": _model,
    "MICRO": _micro,
}
