"""JAX's settings: XLA's switch for loops, set before JAX starts, and those within which our own computations run.

The switch makes XLA compile a whole time step as one function. It otherwise makes some fifty functions of a step, with
a call each: a single run then takes ten times as long (docs: Performance). It reads ``XLA_FLAGS`` once, when JAX starts
its backend, which is at the first computation and not at ``import jax``.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator

LOOP_FLAG = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1000000000000"
# Where warnings come from: no file, or Python shows the first line of one that happens to have that name.
SOURCE = "<fluidcc>"
_OPTIONS = "xla_backend_extra_options"
_LATE = (
    "JAX had started before fluidcc was imported, so a single fluid run takes some ten times as long as it could: "
    "import fluidcc before the first computation of JAX, or leave JAX alone with FLUIDCC_JAX=off"
)
_late = False  # until it is said


def ours() -> bool:
    """Check whether fluidcc may set up JAX and keep its machine code: not with ``FLUIDCC_JAX=off``."""
    return os.environ.get("FLUIDCC_JAX", "").strip().lower() != "off"


def set_flag() -> None:
    """Set the flag, unless the user has set such options, or JAX has started."""
    global _late
    flags = os.environ.get("XLA_FLAGS", "")
    if not ours() or _OPTIONS in flags:
        return
    _late = _started()
    if not _late:
        os.environ["XLA_FLAGS"] = f"{flags} {LOOP_FLAG}".strip()


def warn_if_late() -> None:
    """Say once that JAX had started without the flag; before a run that it slows down."""
    global _late
    if _late:
        _late = False
        warnings.warn_explicit(_LATE, UserWarning, SOURCE, 1, module="fluidcc")


def _started() -> bool:
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bool(getattr(bridge, "_backends", None))


@contextlib.contextmanager
def our_settings(*, double: bool | None = True) -> Iterator[None]:
    """Set, within the block and in this thread, the requested precision, and switch JAX's debugging checks off.

    NaN marks what is undefined here until it is masked, shapes and dtypes are mixed on purpose, and what is compiled is
    compiled ahead of its call.

    Parameters
    ----------
    double : bool, optional
        Whether numbers have 64 bits; None: as the user has set.
    """
    import jax  # not at the top: its switch is set before

    settings = [
        jax.debug_nans(False),
        jax.debug_infs(False),
        jax.disable_jit(False),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
        jax.transfer_guard("allow"),
    ]
    if double is not None:
        settings.append(jax.enable_x64(double))
    with contextlib.ExitStack() as entered:
        for setting in settings:
            entered.enter_context(setting)
        yield
