"""JAX's settings within which our own computations run, whatever the user has set for theirs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import jax


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
