"""Try the demo's answers where no search has been: another workload on 64 hosts, other seeds.

    python -m benchmarks.answers [FIRST:LAST] [--evaluations K] [--seeds N] [--write DIR]

Eight ports of 25 to 800 Gb/s: both samples, switches of four other formats, and the leaf's thresholds at two other
speeds. For each the demo finds a setting on an incast. Then this and the present one run on leaf-spine:8x4x8, hadoop
at 40 % load and an all-to-all of all hosts, in packets of the size that was tuned for, with seeds that nothing was
chosen by. Stated before measuring: in none the 99th percentile of slowdowns to 100 KB or beyond 1 MB, or the time of
the collective, is above the present setting's by more than its interval and half a per cent, or else the answer said
"Worse".
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import fluidcc as fc
from examples import demo
from fluidcc.builders.names import dimension_of, format_value
from fluidcc.cli.contenders import contenders, read, tried
from fluidcc.units import show

ROOT = Path(__file__).parents[1]
LEAF, FABRIC, SWITCHES = (
    ROOT / "examples" / "leaf-100g",
    ROOT / "examples" / "fabric-400g",
    ROOT / "tests/data/switches",
)
SHAPE, FIRST_SEED = "leaf-spine:8x4x8", 101
SAME = 0.005  # a smaller difference is none
MEASURES = ("p99_small", "p99_large", "goodput")


def at_speed(folder: Path, gbps: int) -> Path:
    """The leaf's configuration with ports of another speed."""
    document = json.loads((LEAF / "config_db.json").read_text())
    for port in document["PORT"].values():
        port["speed"] = str(1000 * gbps)
    file = folder / f"config_db_{gbps}g.json"
    file.write_text(json.dumps(document))
    return file


def configurations(folder: Path) -> dict[str, tuple[Path, Path]]:
    """Files of a switch and a NIC, by name."""
    return {
        "leaf, 100 Gb/s": (LEAF / "config_db.json", LEAF / "nic.txt"),
        "fabric, 400 Gb/s": (FABRIC / "config_db.json", FABRIC / "nic.txt"),
        "leaf at 25 Gb/s": (at_speed(folder, 25), LEAF / "nic.txt"),
        "leaf at 800 Gb/s": (at_speed(folder, 800), FABRIC / "nic.txt"),
        "show ecn, 400 Gb/s": (SWITCHES / "sonic_show.txt", FABRIC / "nic.txt"),
        "EOS, 400 Gb/s": (SWITCHES / "eos.txt", FABRIC / "nic.txt"),
        "NX-OS, 400 Gb/s": (SWITCHES / "nxos.txt", LEAF / "nic.txt"),
        "NVUE, 200 Gb/s": (SWITCHES / "nvue.yaml", LEAF / "nic.txt"),
    }


def answered(files: tuple[Path, Path], evaluations: int) -> tuple[fc.studies.Tuning, dict[str, float], str]:
    """Run the demo: the tuning, the setting with the NIC's registers, and what its trial says."""
    found = fc.audit(*files, flows=demo.FLOWS)
    tuned = demo.tune(found, evaluations)
    point = {**tuned.best.point, **demo.registers(found)}
    if not (tuned.confirmed and tuned.best.kept):
        return tuned, point, ""
    return tuned, point, tried("dcqcn", files, point, make=demo.maker_of(found), tuned=tuned).words


def elsewhere(files: tuple[Path, Path], point: dict[str, float], seeds: int) -> dict[str, dict[str, float]]:
    """Ratios of a setting to the present one on a fabric and with traffic that no search has seen."""
    values = ",".join(f"{name}={show(value, dimension_of(name), 6)}" for name, value in point.items())
    sent = contenders(
        ["dcqcn"], "hpcc-eval", None, read([str(file) for file in files], None), "4096", [f"new:{values}"]
    )
    rates = sent.rates(SHAPE, {})
    rate = float(rates.get("rate") or 12.5e9)
    which = range(FIRST_SEED, FIRST_SEED + seeds)
    flows = fc.fabric(
        sent.options, SHAPE, workload="hadoop", load=0.4, until=2.5e7 / rate, seeds=which, **rates
    )  # fmt: skip
    total = f"{64 * 1e5 * rate / 12.5e9:.0f}B"
    jobs = fc.collective("all-to-all", SHAPE, sent.options, bytes=total, seeds=which, **rates)
    ratios = {name: value for name, value in flows.against("dcqcn-new", "dcqcn").items() if name in MEASURES}
    lost = [sum(run.slowdown.unfinished for run in flows.of(name)) for name in ("dcqcn-new", "dcqcn")]
    return ratios | {"time": jobs.against("dcqcn-new", "dcqcn")["all-to-all"], "lost": {"new": lost[0], "old": lost[1]}}


def told_point(point: dict[str, float]) -> str:
    return ", ".join(format_value(name, value) for name, value in point.items())


def told(ratio: dict[str, float]) -> str:
    return f"{ratio['mean']:.3g} ({ratio['low']:.3g}–{ratio['high']:.3g})"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("which", nargs="?", default="0:8")
    parser.add_argument("--evaluations", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    first, last = (int(each) for each in options.which.split(":"))
    columns = ("port", "present", "answer", "within 5 %", "confirmed", "p99 to 100 KB", "p99 beyond 1 MB", "all-to-all",
               "goodput", "unfinished", "worse, said", "s")  # fmt: skip
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    with tempfile.TemporaryDirectory() as folder:
        for name, files in list(configurations(Path(folder)).items())[first:last]:
            began = time.perf_counter()
            found, point, said = answered(files, options.evaluations)
            row, there = [name, *(told_point(each.point) if each else "none" for each in (found.start, found.best))], {}
            row += [
                ", ".join(
                    f"{each} {format_value(each, low)} to {format_value(each, high)}"
                    for each, (low, high) in found.plateau.items()
                ),
                str(found.confirmed),
            ]
            if said:
                there = elsewhere(files, point, options.seeds)
                worse = [each for each in ("p99_small", "p99_large", "time") if there[each]["low"] > 1 + SAME]
                row += [told(there[each]) for each in ("p99_small", "p99_large", "time", "goodput")]
                row += [f"{there['lost']['new']}, not {there['lost']['old']}"]
                row += [
                    f"{', '.join(worse) or 'nothing'}; {'a trade was said' if 'Worse' in said else 'no trade said'}"
                ]
            else:
                row += [""] * 6
            row.append(f"{time.perf_counter() - began:.0f}")
            print(f"| {' | '.join(row)} |", flush=True)
            if options.write is not None:
                options.write.mkdir(parents=True, exist_ok=True)
                text = json.dumps({"found": found.as_dict(), "elsewhere": there, "said": said}, indent=1)
                (options.write / f"{name.replace(' ', '_').replace('/', '')}.json").write_text(text)


if __name__ == "__main__":
    main()
