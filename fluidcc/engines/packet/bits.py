"""The lowest bit of a word, which processors have an instruction for and Numba no name."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import config as _numba_config
from numba.extending import intrinsic

_config: Any = _numba_config  # its attributes are made at import
_WORD = (1 << 64) - 1


def _lowest_bit(typing: Any, word: Any) -> Any:
    """Place of the lowest bit that is set, from 0; the word is not 0."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.int64(types.int64), code


def _in_python(word: Any) -> int:
    """The same of a word in two's complement."""
    unsigned = int(word) & _WORD
    return (unsigned & -unsigned).bit_length() - 1


lowest_bit: Any = _in_python if _config.DISABLE_JIT else intrinsic(_lowest_bit)
