"""Traces to be read by tests, and how long they take, in plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fluidcc.workloads.collectives.graph import Graph
from fluidcc.workloads.collectives.jobs_file import read_schedule
from tests.workloads.collectives import wire

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7


def all_reduce(identity: int, size: Any, after: Any = (), **more: Any) -> bytes:
    return wire.node(identity, COLLECTIVE, after, comm_type=0, comm_size=size, **more)


GOOD = wire.trace(wire.node(0, COMPUTE, (), 5), all_reduce(1, 40_000, (0,)))
NODES = """{"version": "0.0.4"}{
  "name": "gemm", "type": "COMP_NODE", "durationMicros": "5", "attr": [{"name": "is_cpu_op", "boolVal": false}]
}{
  "id": "1", "name": "reduce", "type": "COMM_COLL_NODE", "ctrlDeps": ["0"], "dataDeps": ["0"],
  "inputs": {"values": "[]"},
  "attr": [{"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "docString": "B", "uint64Val": "40000"},
           {"name": "pg_name", "stringVal": "0"}, {"name": "involved_dim", "boolList": {"values": [true]}}]
}{"id": "2", "type": "COMM_SEND_NODE", "dataDeps": ["1"], "attr": [{"name": "comm_size", "sint32Val": 70},
  {"name": "comm_dst", "int32Val": DST}, {"name": "comm_tag", "fixed64Val": "6"}]}
"""
HEAD = (
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 2 ga: 1 all_gpus: 4 "
    "checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0\n2\n"
)
LAYERS = (
    "first\t-1\t3000\tALLREDUCE\t40000\t5000\tALLREDUCE\t20000\t7000\tALLREDUCE\t60000\t0\n"
    "second\t-1\t11000\tALLGATHER\t80000\t13000\tREDUCESCATTER\t40000\t17000\tREDUCESCATTER\t20000\t100\n"
)


def graph_of(path: Path) -> Graph:
    return read_schedule(path).build()[0].done()


def idle(graph: Graph) -> dict[int, float]:
    """Beginnings [s] of operations in plain Python, where a transfer leaves after its bytes and arrives 1 us later.

    Transfers do not slow each other.
    """
    began: dict[int, float] = {}

    def left(k: int, of: int) -> float:
        if not graph.sends[k]:
            return began[k]
        behind = graph.sends[of] and graph.source[k] == graph.source[of]
        return began[k] + graph.size[k] * 1e-9 + (0.0 if behind else 1e-6)

    for i in range(len(graph)):
        began[i] = max((left(k, i) for k in graph.before(i)), default=0.0) + float(graph.delay[i])
    return began


def last_of(path: Path) -> float:
    """Length [s] of what a file says, by `idle`."""
    graph = graph_of(path)
    began = idle(graph)
    return max(began[i] + (graph.size[i] * 1e-9 + 1e-6 if graph.sends[i] else 0.0) for i in range(len(graph)))


def ring(size: float, ranks: int, steps: int) -> float:
    """Time of a ring by `idle`'s rates."""
    return steps * (round(size / ranks) * 1e-9 + 1e-6)


def written(folder: Path, *files: bytes, name: str = "a") -> Path:
    for rank, content in enumerate(files):
        (folder / f"{name}.{rank}.et").write_bytes(content)
    return folder / f"{name}.0.et"
