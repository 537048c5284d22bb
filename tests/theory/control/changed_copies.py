"""NumPy in place of `jax.numpy`, whose arrays have changed copies: `array.at[index].set` and `.add`."""

from __future__ import annotations

from typing import Any

import numpy as np


class Rows(np.ndarray):
    """An array with JAX's changed copies."""

    @property
    def at(self) -> Any:
        class Place:
            def __init__(self, index: Any, whole: Any) -> None:
                self.index, self.whole = index, whole

            def set(self, values: Any) -> Any:
                made = self.whole.copy()
                made[self.index] = values
                return made

            def add(self, values: Any) -> Any:
                made = self.whole.copy()
                np.add.at(made, self.index, values)
                return made

        whole = self

        class At:
            def __getitem__(self, index: Any) -> Any:
                return Place(index, whole)

        return At()


class Numpy:
    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def zeros(shape: Any) -> Any:
        return np.zeros(shape).view(Rows)

    @staticmethod
    def where(*given: Any) -> Any:
        return np.where(*given).view(Rows)
