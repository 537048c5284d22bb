"""The lowest bit of a word, which processors have an instruction for and Numba no name."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic, overload

_WORD = (1 << 64) - 1


def lowest_bit(word: Any) -> int:
    """Place of the lowest bit that is set, from 0, of a word in two's complement that is not 0."""
    unsigned = int(word) & _WORD
    return (unsigned & -unsigned).bit_length() - 1


def _cttz(typing: Any, word: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.int64(types.int64), code


_trailing_zeros: Any = intrinsic(_cttz)


@overload(lowest_bit, inline="always")
def _compiled(word: Any) -> Any:
    def zeros(word: Any) -> Any:
        return _trailing_zeros(word)

    return zeros
