"""``fluidcc equilibrium``."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fluidcc import units
from fluidcc.cli import options as o
from fluidcc.cli import output
from fluidcc.cli.request import Request, scenario_of

EXAMPLES = (
    "fluidcc equilibrium dcqcn --flows 8",
    "fluidcc equilibrium dcqcn --set kmin=20KB --set pmax=10% --json",
)
_STABLE = {True: "stable", False: "unstable: no run stays there", None: "stability not known"}


@o.takes_scenario
def command(
    request: Request,
    save_scenario: o.Save = None,
    json: o.Json = False,
) -> None:
    """Find the fixed point of a scenario.

    Without one, a run shows how queue and rates oscillate.
    """
    scenario = scenario_of(request)
    output.save_scenario(scenario, save_scenario)
    from fluidcc.theory.control.equilibrium import equilibrium

    point = equilibrium(scenario)
    found = point.as_dict()
    if point.others or (found["exists"] and found["limit_cycle"] is None):  # a run stays where it is stable
        from fluidcc.theory.control.stability import stability

        for told, each in zip((found, *found["others"]), (point, *point.others), strict=True):
            told["stable"] = stability(scenario, at=each).stable
    if json:
        output.print_json(found)
        return
    cycle = found["limit_cycle"]
    if cycle is None:
        rows = [("exists", "yes" if found["exists"] else "no: values are those of the RED line extended beyond kmax")]
    elif found["exists"]:
        rows = [("exists", "yes: the run settles there")]
    else:
        amplitude = [units.show(cycle["queue_bytes"][end], units.SIZE) for end in ("min", "max")]
        rows = [
            ("exists", "no"),
            ("in the long run", cycle["kind"]),
            ("queue oscillates", f"between {amplitude[0]} and {amplitude[1]}"),
        ]
        if cycle["period_s"] is not None:
            rows.append(("period", units.show(cycle["period_s"], units.TIME)))
    if found["unique"] is not None:
        rows.append(("unique", "yes" if found["unique"] else "no"))
    if found["searched"] is not None:
        rows.append(("looked for others", found["searched"]))
    if (found["marking_probability"] or 0.0) > 0:
        rows += [
            ("on the RED ramp", "yes" if found["on_ramp"] else "no"),
            ("marking probability", f"{found['marking_probability']:.6g}"),
        ]
    if "stable" in found:
        rows.append(("stability", _STABLE[found["stable"]]))
    rows.append(("queue", units.show(found["queue_bytes"], units.SIZE)))
    skip = {
        "exists",
        "on_ramp",
        "unique",
        "searched",
        "others",
        "marking_probability",
        "queue_bytes",
        "links",
        "flows",
        "limit_cycle",
        "stable",
    }
    rows += [
        (key.removesuffix("_per_s").removesuffix("_bytes").replace("_", " "), _shown(key, v))
        for key, v in found.items()
        if key not in skip
    ]
    for number, other in enumerate(found["others"], 1):
        queue, p = units.show(other["queue_bytes"], units.SIZE), f"{other['marking_probability']:.6g}"
        ramp = "" if other["exists"] else ", on the RED line extended beyond kmax"
        rows.append(
            (
                f"another ({number})",
                f"rates {_shares(other['flows'])}; queue {queue}, marking {p}{ramp}; {_STABLE[other['stable']]}",
            )
        )
    title = "fixed point" if cycle is None or found["exists"] else "no fixed point: means of a run"
    output.print_table(f"{request.title}, {title}", rows)


def _shares(flows: list[dict[str, Any]]) -> str:
    """Rates and how many flows have each."""
    counts: Counter[str] = Counter()
    for flow in flows:
        counts[units.show(flow["rate_bytes_per_s"], units.RATE)] += flow.get("multiplicity", 1)
    return ", ".join(rate if n == 1 else f"{n:g} x {rate}" for rate, n in counts.items())


def _shown(key: str, value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_shown(key, v) for v in value)
    if key.endswith("_bytes"):
        return units.show(value, units.SIZE)
    return units.show(value, units.RATE) if key.endswith("_bytes_per_s") else f"{value:.6g}"
