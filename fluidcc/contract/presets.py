"""Presets of schemes by name."""

from __future__ import annotations

from fluidcc.contract.preset import Preset
from fluidcc.contract.registry import scheme as scheme_named
from fluidcc.errors import InputError
from fluidcc.surface import public


@public()
def presets(scheme: str) -> dict[str, Preset]:
    """Return all presets of a scheme.

    Parameters
    ----------
    scheme : str
        Its name, such as ``"dcqcn"``.

    Returns
    -------
    dict of Preset
        By name, ``"paper"`` first.

    Raises
    ------
    InputError
        If there is no such scheme.
    """
    return dict(scheme_named(scheme).PRESETS)


@public()
def preset(scheme: str, name: str = "paper") -> Preset:
    """A scheme's preset.

    Parameters
    ----------
    scheme : str
        Its name, such as ``"dcqcn"``.
    name : str
        Of the preset, such as ``"vendor"``.

    Returns
    -------
    Preset
        With ``scheme``, ``marking`` and ``network``; its `Preset.options` are those of a builder.

    Raises
    ------
    InputError
        If there is no such scheme or preset.

    Examples
    --------
    >>> preset("dcqcn", "vendor").scheme.timer
    0.0003
    """
    known = presets(scheme)
    if not isinstance(name, str) or name not in known:
        raise InputError(f"preset: {scheme} has no {str(name)[:40]!r}; write one of {', '.join(known)}")
    return known[name]
