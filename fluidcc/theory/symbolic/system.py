"""Equations on symbols: states that move or are mapped, what follows from them at once, and what comes late."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import sympy

from fluidcc.theory.symbolic.world import World


class System(World):
    """A `World` in which a scheme writes its equations down.

    Attributes
    ----------
    states, algebraics : list of sympy.Symbol
        What moves, or is mapped from one round trip to the next; and what follows from the states at once.
    right : dict
        The right-hand side of each: its slope, its image, or its value.
    late : dict
        By symbol of a late value: whose it is, and by how much it is late.
    shared : set
        The unknowns that all flows have in common.
    mapped, smooth : bool
        Whether states are mapped; whether the right-hand sides have slopes.
    """

    def __init__(self, scenario: Any, scheme: Any) -> None:
        super().__init__(scenario, scheme)
        self.scenario = scenario
        self.states: list[sympy.Symbol] = []
        self.algebraics: list[sympy.Symbol] = []
        self.right: dict[sympy.Symbol, Any] = {}
        self.late: dict[sympy.Symbol, tuple[sympy.Symbol, Any]] = {}
        self.shared: set[sympy.Symbol] = set()
        self.mapped, self.smooth = False, True

    @cached_property
    def rest(self) -> dict[str, Any]:
        """Numbers of the equilibrium, as the engine finds it; those of flows are the first one's, as all are equal."""
        from fluidcc.theory.control.equilibrium import equilibrium

        found = equilibrium(self.scenario).as_dict()
        return found | {name: value for name, value in found["flows"][0].items() if name in found}

    @cached_property
    def delays(self) -> list[float]:
        """Delays there, from the shortest on [s]."""
        from fluidcc.theory.control.linearize import linearize

        return [float(tau) for tau in linearize(self.scenario).system.tau]

    def state(self, name: str, value: float, *, shared: bool = False) -> Any:
        """Name a state of a flow, or of a link that flows share, with its number at equilibrium."""
        made = self.symbol(name, value)
        self.states.append(made)
        self.shared |= {made} if shared else set()
        return made

    def algebraic(self, name: str, value: float) -> Any:
        """Name what follows from the states at once, of a link."""
        made = self.symbol(name, value)
        self.algebraics.append(made)
        self.shared.add(made)
        return made

    def lagged(self, of: sympy.Symbol, delay: Any) -> Any:
        """Name a value as it was some time ago."""
        made = self.symbol(f"{of.name}({delay})", self.values[of])
        self.late[made] = of, delay
        return made

    def moves(self, slopes: Mapping[sympy.Symbol, Any]) -> None:
        """Take slopes of states."""
        self.right |= slopes

    def maps(self, images: Mapping[sympy.Symbol, Any]) -> None:
        """Take images of states after a round trip."""
        self.right |= images
        self.mapped = True

    def holds(self, values: Mapping[sympy.Symbol, Any]) -> None:
        """Take values of what follows at once."""
        self.right |= values

    def keeps(self, name: sympy.Symbol, at: sympy.Symbol, what: sympy.Symbol) -> None:
        """Let ``name`` be whatever keeps another one where it is, as a step of marking does: nothing has a slope."""
        self.right[name] = name + what - at
        self.smooth = False
