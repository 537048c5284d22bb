"""Reading a switch's and a NIC's own configuration, and saying what is wrong with it and what to type instead."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from fluidcc.files import refuse_special
from fluidcc.operators import MappedSetting, NicSettings, SwitchPort, checks, dcqcn_of, read_nic, read_sonic
from fluidcc.operators.checks import Finding
from fluidcc.operators.reach import Reach, reach
from fluidcc.results.identity import Comparable
from fluidcc.scenario.builders import incast
from fluidcc.scenario.model import Scenario
from fluidcc.scenario.parameters import resolve
from fluidcc.schemes.dcqcn import DCQCN, PRESETS
from fluidcc.surface import constructor, keywords, public
from fluidcc.theory.control.equilibrium import Equilibrium, equilibrium
from fluidcc.units import whole

_MOST_FLOWS = 1e6


@constructor()
@dataclasses.dataclass(frozen=True, eq=False)
class Audit(Comparable):
    """What a configuration amounts to.

    Parameters
    ----------
    switch : SwitchPort
    nic : NicSettings or None
    scheme : DCQCN
        The NIC's parameters, or NVIDIA's defaults.
    mapping : list of MappedSetting
        Where each parameter comes from; empty without a NIC.
    findings : list of Finding
    equilibrium : Equilibrium or None
        Fixed point of ``flows`` flows into the port; None if the port cannot mark.
    flows : int
    reach : Reach or None
        Whether it is stable, and reached from a start at line rate.
    """

    switch: SwitchPort
    nic: NicSettings | None
    scheme: DCQCN
    mapping: list[MappedSetting]
    findings: list[Finding]
    equilibrium: Equilibrium | None
    flows: int
    reach: Reach | None = None

    @public(passes_on=keywords(incast))
    def scenario(self, **options: Any) -> Scenario:
        """An incast into the port with the configured marking and parameters; options as of `topologies.incast`.

        Parameters
        ----------
        **options
            As of `fluidcc.incast`, in place of the configured ones.

        Returns
        -------
        Scenario
        """
        chosen = {"rate": self.switch.rate, "scheme": self.scheme, "marking": self.switch.red} | options
        return incast(chosen.pop("flows", self.flows), **chosen)

    @public()
    def as_dict(self) -> dict[str, Any]:
        """Keys as in the CLI."""
        port = self.switch
        names = ("rate", "kmin", "kmax", "pmax", "ecn", "lossless", "queue", "priority", "ports", "profile")
        buffers = ("buffer_size", "headroom", "reserved", "xon", "dynamic_th")
        settings = {
            "port": port.name,
            **{_key(name): getattr(port, name) for name in (*names, *buffers)},
            "flows": self.flows,
            "nic": {row.parameter: row.value for row in self.mapping} or None,
            "mapping": [dataclasses.asdict(row) for row in self.mapping],
            "notes": list(port.notes),
            "ignored": [*port.ignored, *(self.nic.ignored if self.nic else ())],
        }
        return {
            "settings": settings,
            "findings": [dataclasses.asdict(finding) for finding in self.findings],
            "equilibrium": self._equilibrium(),
            "stability": self.reach.stability.as_dict() if self.reach else None,
        }

    def _equilibrium(self) -> dict[str, Any] | None:
        if self.equilibrium is None or self.reach is None:
            return None
        return {**self.equilibrium.as_dict(), "reached_from_line_rate": self.reach.from_line_rate}


def _key(name: str) -> str:
    """A setting's name with its unit, as in JSON."""
    units = {"rate": "_bytes_per_s"} | dict.fromkeys(
        ("kmin", "kmax", "buffer_size", "headroom", "reserved", "xon"), "_bytes"
    )
    return name.removesuffix("_size") + units.get(name, "")


@public()
def audit(
    sonic: str | os.PathLike[str],
    nic: str | os.PathLike[str] | None = None,
    *,
    port: str | None = None,
    flows: int = 8,
) -> Audit:
    """Check a switch port's and a NIC's DCQCN settings against each other and against the paper.

    Parameters
    ----------
    sonic : path
        A SONiC ``config_db.json``.
    nic : path
        A NIC's settings (text, ``mlxconfig query`` output or the driver's folder); NVIDIA's defaults if not
        given.
    port : str
        The port; the first that is up and has a lossless queue with a WRED profile if not given.
    flows : int
        Flows that converge on the port, for the fixed point.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        If a file cannot be read or understood. Settings that are merely unwise are findings.
    """
    flows = whole(flows, 1, _MOST_FLOWS, "flows")
    refuse_special(sonic, "a switch's config_db.json")  # it is read twice
    switch = read_sonic(sonic, port)
    settings = read_nic(nic) if nic is not None else None
    scheme, mapping = dcqcn_of(settings) if settings is not None else (PRESETS["vendor"].scheme, [])
    scheme = resolve(scheme)
    findings = [
        *checks.marking(switch),
        *checks.scaling(switch, sonic),
        *checks.buffers(switch),
        *checks.nic(switch, settings, scheme),
    ]
    fixed_point = reached = None
    if switch.red is not None and not any(f.severity == "bad" and f.what in checks.UNUSABLE for f in findings):
        settled = dataclasses.replace(scheme, rate_on_first_cnp=0.0)  # the fluid has no first CNP
        scenario = incast(1, rate=switch.rate, scheme=settled, marking=switch.red, multiplicity=float(flows))
        fixed_point, late = equilibrium(scenario), checks.late(scenario)
        reached = reach(scenario, fixed_point, late["queue_bytes"])
        findings += checks.fixed_point(switch.red, fixed_point, scenario, flows, reached.words)
        findings += checks.behaviour(late, flows)
    order = {"bad": 0, "warn": 1, "ok": 2}
    findings.sort(key=lambda f: order[f.severity])
    return Audit(switch, settings, scheme, mapping, findings, fixed_point, flows, reached)


__all__ = ["Audit", "Finding", "audit"]
