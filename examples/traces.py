"""Write two training jobs for ``fluidcc collective --file``: a SimAI workload and Chakra execution traces.

``python -m examples.traces`` writes them to ``examples/traces``, where they lie. Both are made up: a small transformer,
whose compute is counted in operations and done at a GPU's sustained rate.
"""

from __future__ import annotations

import argparse
from pathlib import Path

HIDDEN, TOKENS, VALUE = 1024, 1024, 2  # width of the model, tokens of a batch and rank, bytes of a value
SUSTAINED = 12e12  # operations/s of a GPU
HERE = Path(__file__).parent / "traces"


def simai(layers: int = 2, tensor: int = 4, data: int = 4) -> str:
    """Return a transformer's workload for SimAI: blocks of attention and an MLP, each split over ``tensor`` ranks.

    Activations are reduced over the tensor group behind each block, forward and back, and the gradients of its weights
    over the data-parallel group while the rank goes on.
    """
    activations = VALUE * TOKENS * HIDDEN
    rows = [("embedding", 1000, "ALLREDUCE", activations, 1000, "NONE", 0, 1000, "NONE", 0, 0)]
    for _ in range(layers):
        for name, width in (("attention", 4), ("mlp", 8)):
            weights = width * HIDDEN**2 // tensor
            time = round(2 * TOKENS * weights / SUSTAINED * 1e9)  # ns, of a product of matrices
            reduced = ("ALLREDUCE", activations)
            rows.append((name, time, *reduced, time, *reduced, time, "ALLREDUCE", VALUE * weights, 0))
    first = f"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {tensor} ep: 1 pp: 1 vpp: {layers} ga: 1"
    lines = [f"{first} all_gpus: {tensor * data} checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0", str(len(rows))]
    lines += ["\t".join(map(str, (name, -1, *rest))) for name, *rest in rows]
    return "\n".join(lines) + "\n"


def varint(number: int) -> bytes:
    """Return a number in sevens of bits, the lowest first."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def field(number: int, value: int | str | bytes) -> bytes:
    """Return a field of a message: a whole number, or a text or message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def node(number: int, name: str, kind: int, after: list[int], micros: int = 0, **attributes: int) -> bytes:
    """Return a node of a Chakra trace, with attributes of 64 bits."""
    raw = field(1, number) + field(2, name) + field(3, kind)
    if after:
        raw += field(5, b"".join(map(varint, after)))
    raw += field(7, micros) if micros else b""
    for key, value in attributes.items():
        raw += field(10, field(1, key) + field(9, value))
    return raw + field(10, field(1, "is_cpu_op") + field(27, 0))


def chakra(layers: int = 4) -> bytes:
    """Return a rank's Chakra trace of a data-parallel step: gradients are reduced while earlier layers go back."""
    weights = 12 * HIDDEN**2
    micros = round(2 * TOKENS * weights / SUSTAINED * 1e6)
    compute, collective, all_reduce = 4, 7, 0
    nodes, last, reduced = list[bytes](), list[int](), list[int]()
    for k in range(layers):
        nodes.append(node(len(nodes), f"forward {k}", compute, last, micros))
        last = [len(nodes) - 1]
    for k in reversed(range(layers)):
        nodes.append(node(len(nodes), f"backward {k}", compute, last, 2 * micros))
        last = [len(nodes) - 1]
        size = {"comm_type": all_reduce, "comm_size": VALUE * weights}
        nodes.append(node(len(nodes), f"all-reduce {k}", collective, last, **size))
        reduced.append(len(nodes) - 1)
    nodes.append(node(len(nodes), "optimizer", compute, [*last, *reduced], micros // 10))
    metadata = field(1, "0.0.4")
    return b"".join(varint(len(each)) + each for each in (metadata, *nodes))


def write(folder: Path, ranks: int = 4) -> list[Path]:
    """Write both; the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    text = {"transformer.txt": simai().encode()}
    traces = {f"step.{rank}.et": chakra() for rank in range(ranks)}
    for name, content in (text | traces).items():
        (folder / name).write_bytes(content)
    return [folder / name for name in text | traces]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=HERE, help="where to; examples/traces by default")
    try:
        for path in write(parser.parse_args().folder):
            print(f"wrote {path}")
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}; give a folder that can be written")
