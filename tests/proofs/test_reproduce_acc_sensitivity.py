"""ACC's figures of whole fabrics: quick runs, what their data satisfies, and verdicts that follow from slowdowns."""

import dataclasses

import numpy as np
import pytest

from fluidcc.proofs.acc import datacenter, fig13, sensitivity
from fluidcc.proofs.acc.common import CONTENDERS, XOFF
from fluidcc.proofs.hpcc import fig1 as hpcc_fig1
from fluidcc.proofs.hpcc import pod as hpcc_pod
from tests.proofs.fabric_studies import SIZES, study_of
from tests.proofs.figures import made

PICTURES = {"acc-fig13": (1650, 1110)} | dict.fromkeys(
    ("acc-fig14", "acc-fig15", "acc-fig16", "acc-fig18", "acc-fig19"), (1650, 690)
)


SCHEMES = {"acc-fig13": fig13.IN_FIG13, "acc-fig14": fig13.COMPARED, "acc-fig15": fig13.COMPARED}


@pytest.mark.parametrize("name", PICTURES)
def test_slowdowns(name, tmp_path):
    result, data = made(name, tmp_path, PICTURES[name])
    case = sensitivity.CASES.get(name)
    assert data["scheme"].values.tolist() == list(case.variants if case else SCHEMES[name])
    assert data["tier"].values.tolist() == list(datacenter.TIERS)
    # Every flow is in one bin, and every scheme has the same flows; incasts' are not among them.
    np.testing.assert_array_equal(data["bin_flows"].sum("bin"), data["flows"])
    totals = (data["flows"] + data["unfinished"]).sum("seed")
    assert (totals == totals.isel(scheme=0)).all()
    assert float(totals.isel(scheme=0).sum()) == result.values["flows"]
    assert float(data["pauses"].sum()) == float(data["pfc_pauses"].sum())  # by tier, and all


def test_figures_of_one_traffic_share_their_runs(tmp_path, monkeypatch):
    """The ACC of Figs. 13 to 16 and 18 is one run a seed; who asks for other variants finds it."""
    first = datacenter.study("web-search", ("ACC",), tmp_path, quick=True)
    monkeypatch.setattr("fluidcc.workloads.fabrics.study.run", None)  # not run again
    again = datacenter.study("web-search", ("ACC",), tmp_path, quick=True)
    np.testing.assert_array_equal(
        first.runs[0].slowdown["completion"].values, again.runs[0].slowdown["completion"].values
    )


def test_contenders_are_of_section_6():
    names = (*fig13.IN_FIG13, "ACC without halts")
    names += tuple(name for case in ("acc-fig18", "acc-fig19") for name in sensitivity.CASES[case].variants)
    found = datacenter.contenders(names)
    assert all(of["pfc"].xoff == XOFF and of["buffer"] == "32MB" for of in found.values())
    assert found["DCQCN"]["marking"] == CONTENDERS["dcqcn"].marking
    assert found["ACC without halts"]["scheme"].halt is False
    for without, better in fig13.WITH_TCD.items():  # 6.1: the same code, with TCD's marks
        assert found[better]["scheme"] == dataclasses.replace(found[without]["scheme"], tcd=True)
        assert found[better]["marking"] == found[without]["marking"]
    for ri in (1, 2, 8):  # B.1: between 1G and 8G; 4G is the default
        of = found[f"ACC, RI {ri} Gbps"]["scheme"]
        assert (of.ri_high, of.ri_low) == (ri * 1e9 / 8, ri * 0.1e9 / 8)
    for periods in (0, 1, 2, 3):
        assert found["ACC" if periods == 1 else f"ACC, P_thresh {periods}"]["scheme"].p_thresh == periods
    assert {found[name]["marking"] for name in names if name.startswith("ACC")} == {found["ACC"]["marking"]}


def test_the_foreground_is_without_incasts(tmp_path):
    found = datacenter.study("bursts", ("ACC",), tmp_path, quick=True)
    kept = datacenter.foreground(found)
    for run, all_of_it in zip(kept.runs, found.runs, strict=True):
        starts, sizes = (all_of_it.slowdown[name].values for name in ("start", "size"))
        together = np.array([(starts == start).sum() for start in starts])
        assert set(sizes[together > 1]) == {50e3}
        assert set(together[together > 1]) == {16}  # a quarter of 64
        assert run.slowdown["size"].size == (together == 1).sum() > 20


def seeds(small, medium, large, spread=0.01):
    """Five seeds with these slowdowns of classes, give or take."""
    values = np.where(SIZES < 100e3, small, np.where(SIZES < 10e6, medium, large))
    return [values * (1 + spread * k) for k in range(-2, 3)]


def test_verdicts_of_halts():
    slow = {"ACC": seeds(2.0, 3.0, 4.0), "ACC without halts": seeds(5.0, 3.3, 6.0)}
    pauses = {"ACC": {"hosts": 1.0, "tier 1": 7.0}, "ACC without halts": {"hosts": 9.0, "tier 1": 7.0}}
    values, notes = {}, []
    sensitivity.halts(study_of(slow, pauses), values, notes)
    assert values["small_mean_ratio"] == pytest.approx(2.5)
    assert values["small_mean_ratio_holds"]
    assert values["medium_mean_ratio_holds"]  # 1.1, within 15 %
    assert values["large_mean_ratio_fails"]  # 1.5
    assert values["more_pauses_hosts"] == 8.0
    assert values["more_pauses_hosts_holds"]
    assert values["more_pauses_tors_fails"]  # not one more
    assert len(notes) == 10


def test_verdicts_of_tcd():
    """Half of DCQCN's time and still twice ACC's: both hold; as long as TIMELY's, neither longer nor shorter: fails."""
    slow = {"ACC": 1.0, "HPCC": 1.0, "DCQCN": 4.0, "TIMELY": 3.0, "DCQCN+TCD": 2.0, "TIMELY+TCD": 3.0}
    found = study_of({name: seeds(small, 2.0, 2.0) for name, small in slow.items()})
    values, notes = {}, []
    fig13._times(dict.fromkeys(fig13.WORDS, found), values, notes)
    for traffic in fig13.WORDS:
        assert values[f"{traffic}_dcqcn_tcd_small_mean_over_dcqcn"] == pytest.approx(0.5)
        assert values[f"{traffic}_dcqcn_tcd_small_mean_over_dcqcn_holds"]
        assert values[f"{traffic}_dcqcn_tcd_small_p99_over_acc"] == pytest.approx(2.0)
        assert values[f"{traffic}_dcqcn_tcd_small_p99_over_acc_holds"]
        assert values[f"{traffic}_timely_tcd_small_mean_over_timely_fails"]
        assert values[f"{traffic}_dcqcn_tcd_medium_mean_over_dcqcn_fails"]  # 2.0 as without
    assert sum("+TCD" in note for note in notes) == 2 * 2 * 2 * 4


def test_verdicts_of_increments_and_thresholds():
    slow = {"ACC, RI 1 Gbps": seeds(2, 3, 4.0), "ACC": seeds(2, 3, 3.8), "ACC, RI 8 Gbps": seeds(2.1, 4.0, 3.6)}
    values, notes = {}, []
    sensitivity.increments(study_of(slow), values, notes)
    assert values["large_mean_ratio"] == pytest.approx(0.9)
    assert values["large_mean_ratio_holds"]
    assert values["small_mean_ratio_holds"]
    assert values["medium_mean_ratio_fails"]  # a third longer
    slow = {"ACC, P_thresh 0": seeds(2, 3, 4.88), "ACC": seeds(2, 3, 4.0), "ACC, P_thresh 3": seeds(2, 3.0, 4.0)[::-1]}
    values, notes = {}, []
    sensitivity.thresholds(study_of(slow), values, notes)
    assert values["large_p99_0_over_1"] == pytest.approx(1.22)
    assert values["large_p99_0_over_1_as_printed"]
    assert not values["medium_mean_ratio_holds"]  # 1, to a few per cent either way: not decided
    assert not values["medium_mean_ratio_fails"]
    assert "not decided" in next(note for note in notes if note.startswith("mean slowdown of medium"))


def test_a_printed_number_is_in_the_interval_or_not():
    values, notes = {}, []
    datacenter.claim(values, notes, "a_ratio", "a", datacenter.Compared(3.0, 2.5, 3.6, 5), True, 4.5)
    datacenter.claim(values, notes, "b_ratio", "b", datacenter.Compared(3.0, 2.5, 3.6, 5), True, 4.8)
    datacenter.claim(values, notes, "c_ratio", "c", datacenter.Compared(3.0, 2.9, 3.1), True)
    assert values["a_ratio_as_printed"] is True
    assert values["b_ratio_as_printed"] is False
    assert "c_ratio_as_printed" not in values
    assert notes[0].endswith("printed: 4.5, inside that of one more run, 1.92 to 4.69")  # sqrt(6) as wide


@pytest.mark.slow
def test_pauses_spread(tmp_path):
    _, data = made("hpcc-fig1", tmp_path, (1650, 645))
    assert data["pauses"].sel(scheme="HPCC").sum() == 0
    many = data["pauses"].sum("hops").values
    np.testing.assert_array_equal(many > 0, data["stopped"].values > 0)
    assert data["senders"].min() >= hpcc_fig1.LEAST


@pytest.mark.slow
def test_a_storm_stops_a_pod(tmp_path):
    _, data = made("hpcc-case1", tmp_path, (1650, 645))
    assert (data["pauses"].sel(storm=False) == 0).all()
    before = data["goodput"].sel(time=slice(0, 4.5e-3))
    np.testing.assert_array_equal(before.sel(storm=True), before.sel(storm=False))
    assert data["stopped"].sel(scheme="DCQCN", storm=True) > data["stopped"].sel(scheme="HPCC", storm=True)


def test_a_pod_carries_up_what_its_hosts_send():
    assert hpcc_pod.POD["hosts"] * hpcc_pod.LINE == hpcc_pod.POD["leaves"] * hpcc_pod.FABRIC


def test_an_incast_is_of_distinct_hosts():
    for seed in range(20):
        rows = hpcc_fig1.incast(seed)
        assert len(set(rows[:, 0])) == len(rows) < hpcc_pod.HOSTS
        assert len(set(rows[:, 1])) == 1
        assert rows[0, 1] not in rows[:, 0]
