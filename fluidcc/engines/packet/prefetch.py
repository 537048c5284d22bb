"""Asking for memory before it is needed: the next event is known, and its packet comes while this one is worked on.

Of a fabric's packets and ports most are not in the processor's nearest cache; without this the loop waits for them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import config as _numba_config
from numba.extending import intrinsic

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
