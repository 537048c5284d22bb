"""Packets: taking them from the pool, giving them back, putting them in lists, and asking for their memory in time.

The next event is known, and its packet comes while this one is worked on. Of a fabric's packets and ports most are not
in the processor's nearest cache; without this the loop waits for them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import config as _numba_config
from numba.extending import intrinsic

from fluidcc.engines.common.jit import kernel

_config: Any = _numba_config  # its attributes are made at import
_LINE = 64  # bytes
_READ, _KEEP, _DATA = 0, 3, 1  # of llvm.prefetch: to read it, in all caches, and it is no code


def _prefetch(typing: Any, records: Any, row: Any, line: Any) -> Any:
    """Ask for a line of a row; nothing waits for it, and nothing else changes."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from numba.np import arrayobj

        array = arrayobj.make_array(signature.args[0])(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        start = builder.bitcast(array.data, byte)
        row = builder.mul(arguments[1], builder.extract_value(array.strides, 0))
        line = builder.mul(arguments[2], ir.Constant(ir.IntType(64), _LINE))
        place = builder.gep(start, [builder.add(row, line)])
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        )
        builder.call(function, [place, *(ir.Constant(number, value) for value in (_READ, _KEEP, _DATA))])
        return context.get_dummy_value()

    return types.void(records, types.int64, types.int64), code


def _nothing(records: Any, row: Any, line: Any) -> None:
    """Do nothing: plain Python has no cache to speak of."""


prefetch: Any = _nothing if _config.DISABLE_JIT else intrinsic(_prefetch)


@kernel
def allocate(core: Any, packets: Any) -> Any:
    """Take a packet from the free list; the loop returns to Python to grow the pool before it is empty."""
    k = core.free
    core.free = packets[k].next
    core.spare -= 1
    return k


@kernel
def free(core: Any, packets: Any, k: Any) -> None:
    """Return a packet to the free list."""
    packets[k].next = core.free
    core.free = k
    core.spare += 1


@kernel
def join(packets: Any, port: Any, q: Any, k: Any) -> None:
    """Put a packet at the end of one of a port's queues."""
    packets[k].next = -1
    queue = port.queues[q]
    if queue.tail < 0:
        queue.head = k
        port.waiting |= 1 << q
    else:
        packets[queue.tail].next = k
    queue.tail = k


@kernel
def leave(packets: Any, port: Any, q: Any) -> Any:
    """Take the packet at the head of a queue."""
    queue = port.queues[q]
    k = queue.head
    following = packets[k].next
    queue.head = following
    if following < 0:
        queue.tail = -1
        port.waiting &= ~(1 << q)
    else:
        prefetch(packets, following, 0)  # of a long queue it has left the processor's caches long ago
    return k
