import math
from pathlib import Path

import pytest

from fluidcc.cli.request import is_switch
from fluidcc.errors import InputError
from fluidcc.operators import NicSettings, dcqcn_of, read_nic
from fluidcc.scenario.parameters import resolve
from fluidcc.schemes.dcqcn import PRESETS

SAMPLE = Path(__file__).parents[2] / "examples" / "leaf-100g" / "nic.txt"
VENDOR = resolve(PRESETS["vendor"][0])


@pytest.fixture
def read(tmp_path):
    def run(text, port=1):
        path = tmp_path / "nic.txt"
        path.write_text(text)
        return read_nic(path, port)

    return run


def refused(read, text, *mentions, port=1):
    with pytest.raises(InputError) as caught:
        read(text, port)
    message = str(caught.value)
    assert "\n" not in message
    for mention in ("nic.txt", *mentions):
        assert mention in message


def test_nothing_given_is_the_vendor_preset():
    scheme, rows = dcqcn_of(NicSettings({}, "nothing"))
    assert scheme == VENDOR
    assert all(row.raw.endswith("(default)") for row in rows)


def test_sample_is_the_vendor_preset():
    nic = read_nic(SAMPLE)
    scheme, rows = dcqcn_of(nic)
    assert scheme == VENDOR
    assert "port 1" in nic.source
    assert "Next Boot" in nic.source
    assert not any("default" in row.raw for row in rows)
    assert {row.parameter: row.value for row in rows}["timer"] == 300e-6
    assert not any("clamp" in text or "rate" in text for text in nic.ignored)
    assert any(text.startswith("21 settings of port 2, which differ in ") for text in nic.ignored)
    assert any("26 other settings" in text for text in nic.ignored)


def test_second_port():
    scheme, _ = dcqcn_of(read_nic(SAMPLE, port=2))
    assert scheme.cnp_interval == pytest.approx(50e-6)


@pytest.mark.parametrize("port", [0, -1, True, 1.0])
def test_bad_ports(port):
    with pytest.raises(InputError, match="port"):
        read_nic(SAMPLE, port)


def test_port_that_the_dump_lacks():
    with pytest.raises(InputError, match=r"port 3 \(it has port 1 and 2\)"):
        read_nic(SAMPLE, port=3)


@pytest.mark.parametrize(
    "text",
    [
        "# ours\nrpg_ai_rate = 40 # Mb/s\n\nrpg_hai_rate=400\n",
        "rpg_ai_rate: 40\r\nRPG_HAI_RATE_P1: 400\r\n",
        "rp_ai_rate 40\nrp_hai_rate\t400",
        "/sys/class/net/eth0/ecn/roce_rp/rpg_ai_rate:40\n/sys/class/net/eth0/ecn/roce_rp/rpg_hai_rate:400\n",
        "Configurations:    Next Boot\n    RPG_AI_RATE_P1    40\n    RPG_HAI_RATE_P1    400\n",
        "    RPG_AI_RATE_P1    40\n    RPG_HAI_RATE_P1    400\n",
    ],
)
def test_spellings(read, text):
    nic = read(text)
    assert nic.given == {"rpg_ai_rate": 40, "rpg_hai_rate": 400}
    scheme, _ = dcqcn_of(nic)
    assert (scheme.rate_ai, scheme.rate_hai) == (5e6, 5e7)
    assert scheme.timer == VENDOR.timer


# What people paste: of the driver's files by other commands, of commands that set them, and of Windows.
PASTED = {
    "grep of debugfs": "/sys/kernel/debug/mlx5/0000:17:00.0/cc_params/rp_ai_rate:40\n"
    "/sys/kernel/debug/mlx5/0000:17:00.0/cc_params/rp_hai_rate:400\n",
    "grep -n": "ecn/roce_rp/rpg_ai_rate:1:40\necn/roce_rp/rpg_hai_rate:1:400\n",
    "tail": "==> /sys/class/net/ens1/ecn/roce_rp/rpg_ai_rate <==\n40\n\n==> rpg_hai_rate <==\n400\n",
    "more": "::::::::::::::\n/sys/class/net/ens1/ecn/roce_rp/rpg_ai_rate\n::::::::::::::\n40\n/a/rpg_hai_rate:\n400\n",
    "cat": "root@a:~# cat /sys/class/net/a/ecn/roce_rp/rpg_ai_rate\n40\na$ cat ecn/roce_rp/rpg_hai_rate\n400\n",
    "echo": "#!/bin/sh\necho 40 > /sys/class/net/a/ecn/roce_rp/rpg_ai_rate\n"
    "echo 400 | sudo tee /sys/class/net/a/ecn/roce_rp/rpg_hai_rate\n",
    "sh -c": "sudo sh -c 'echo 40 > /sys/class/net/a/ecn/roce_rp/rpg_ai_rate'\n"
    'bash -c "echo 400 >/sys/class/net/a/ecn/roce_rp/rpg_hai_rate"\n',
    "several in a line": 'echo 40 > "$p/rpg_ai_rate"; printf "400\\n" | tee rpg_hai_rate >/dev/null && echo 1 > x\n',
    "mlxconfig set": "mlxconfig -d 17:00.0 -y set RPG_AI_RATE_P1=40 RPG_HAI_RATE_P1=400 RPG_AI_RATE_P2=7\n",
    "mail": "> Configurations:    Next Boot\n>     RPG_AI_RATE_P1    40\n> \n>     RPG_HAI_RATE_P1    400\n",
    "FreeBSD": "sys.class.infiniband.mlx5_0.cong.conf.rp_ai_rate: 40\nsys.a.rp_hai_rate: 400\n",
    "WinOF-2": 'DCQCN RP attributes for adapter "Ethernet 4":\n  DcQcnRpgAiRate: 40\n  DcQcnHaiRate : 400\n',
    "registry": "Windows Registry Editor Version 5.00\n\n[HKEY_LOCAL_MACHINE\\SYSTEM\\mlx5]\n"
    '"DcQcnRpgAiRate"=dword:00000028\n"DcQcnHaiRate"=dword:00000190\n',
}


@pytest.mark.parametrize("text", PASTED.values(), ids=PASTED.keys())
def test_what_people_paste(read, text):
    assert read(text).given == {"rpg_ai_rate": 40, "rpg_hai_rate": 400}


@pytest.mark.parametrize("line", ["echo $AI > a/rpg_ai_rate", "tee rpg_ai_rate <<< 5", "echo 5 > x; echo y > rpg_gd"])
def test_what_is_written_without_a_number_is_refused(read, line):
    with pytest.raises(InputError, match=r":2: cannot read .*; write the number"):
        read(f"rpg_hai_rate = 400\n{line}\n")


def test_names_of_windows(read):
    """NVIDIA, DCQCN CC parameters: WinOF's column."""
    text = (
        "DcQcnDceAlphaG = 1000\nDcQcnDceAlphaUpdatePeriod = 7\nDcQcnInitialAlphaValue = 9\nDcQcnMinDecFac = 51\n"
        "DcQcnAlphaToRateShift = 10\nDcqcnRateToSetOnFirstCnp = 3000\nDcQcnEnablePrio3 = 1\n"
    )
    assert read(text).given == {
        "dce_tcp_g": 1000,
        "dce_tcp_rtt": 7,
        "initial_alpha_value": 9,
        "rpg_min_dec_fac": 51,
        "rpg_gd": 10,
        "rate_to_set_on_first_cnp": 3000,
        "roce_rp_enable_3": 1,
    }


VENDORS = {
    "Broadcom's": "cc_mode: 1\ncnp_dscp: 48\ncnp_prio: 7\necn_enable: 1\ng: 8\ninit_cr: 25\nrtt: 40\ntcp_cp: 0\n",
    "Broadcom's few": "min_time_bet_cnp = 4\ncnp_dscp = 48\n",
    "Intel's": "dcqcn_enable = 1\ndcqcn_min_rate = 2\ndcqcn_rai_factor = 1\n",
    "Huawei's": "dcqcn_ai:5\ndcqcn_f:1\ndcqcn_cnp_time:4\n",
    "Marvell's": "dcqcn_cnp_dscp=48\ndcqcn_rl_r_ai=5\ndcqcn_gd=11\n",
}


@pytest.mark.parametrize(("whose", "text"), VENDORS.items(), ids=VENDORS.keys())
def test_nics_of_other_vendors_are_refused(read, tmp_path, whose, text):
    """In place of NVIDIA's defaults for all that the model has; text, and a folder as Broadcom's configfs has it."""
    whose = whose.removesuffix(" few")
    refused(read, text, f"settings of {whose} NICs", "those of an NVIDIA NIC, or none")
    folder = tmp_path / "cc"
    folder.mkdir()
    for line in text.splitlines():
        key, value = line.replace("=", ":").split(":")
        (folder / key.strip()).write_text(f"{value.strip()}\n")
    with pytest.raises(InputError, match=f"cc: has settings of {whose} NICs"):
        read_nic(folder)


def test_the_output_of_mlnx_qos_is_named(read):
    text = "DCBX mode: OS controlled\nPriority trust state: dscp\nPFC configuration:\n\tpriority 0 1\n\tenabled 1 0\n"
    refused(read, text, "is the output of mlnx_qos, which has no DCQCN setting")
    assert read(f"{text}rpg_ai_rate = 40\n").given == {"rpg_ai_rate": 40}


def test_three_names_of_mlnx_qos_are_enough_and_two_may_be_a_coincidence(read):
    lines = ["DCBX mode: OS controlled", "Priority trust state: dscp", "PFC configuration: none"]
    refused(read, "\n".join(lines), "is the output of mlnx_qos")
    refused(read, "\n".join(lines[:2]), "has no DCQCN setting")
    with pytest.raises(InputError) as caught:
        read("\n".join(lines[:2]))
    assert "is the output of mlnx_qos" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "mtu"),
    [
        ("mtu: 352", 256.0),
        ("mtu: 65536", 4096.0),
        ("mtu: 65537", None),
        ("active_mtu: 256", 256.0),
        ("active_mtu: 255", None),
        ("mtu: 9000.5", None),
    ],
)
def test_sizes_of_packets_have_a_range(read, line, mtu):
    if mtu is None:
        refused(read, f"rpg_ai_rate = 5\n{line}\n", "nic.txt:2: ")
    else:
        assert read(f"rpg_ai_rate = 5\n{line}\n").mtu == mtu


def test_as_many_unknown_lines_are_listed_and_the_rest_counted(read):
    for count, more in ((20, []), (21, ["1 more lines with unknown names"]), (25, ["5 more lines with unknown names"])):
        text = "rpg_ai_rate = 5\n" + "".join(f"other_{k} = 1\n" for k in range(count))
        ignored = read(text).ignored
        assert len([line for line in ignored if "not a DCQCN setting" in line]) == 20
        assert [line for line in ignored if "more lines" in line] == more


def test_one_assignment_is_a_line_like_others(read):
    """A unit behind it is refused; several, or mlxconfig's, are read one by one."""
    refused(read, "rpg_ai_rate=5 Mb/s\n", "nic.txt:1", "without the unit")
    assert read("RPG_AI_RATE=5 RPG_HAI_RATE=50 x\n").given == {"rpg_ai_rate": 5, "rpg_hai_rate": 50}
    assert read("mlxconfig -d mlx5_0 set RPG_AI_RATE_P1=5\n").given == {"rpg_ai_rate": 5}


def test_defaults_that_stand_in_are_named(read):
    nic = read("rpg_ai_rate = 40\nrpg_gd = N/A\n")
    assert "nic.txt: NVIDIA's defaults stand in for 16 of 17 settings: dce_tcp_g, " in nic.assumed
    assert "rpg_gd" in nic.assumed
    assert "rpg_ai_rate" not in nic.assumed
    assert read_nic(SAMPLE).assumed == ""


def test_current_of_three_columns(read):
    text = (
        "Configurations:                  Default         Current         Next Boot\n"
        "*       RPG_AI_RATE_P1           5               40              80\n"
        "        CLAMP_TGT_RATE_P1        False(0)        True(1)         True(1)\n"
        "        SRIOV_EN                 False(0)        True(1)         True(1)\n"
    )
    nic = read(text)
    assert nic.given == {"rpg_ai_rate": 40, "clamp_tgt_rate": 1}
    assert "column Current" in nic.source
    assert nic.pending == {"rpg_ai_rate": (40, 80)}
    headless = read(text.split("\n", 1)[1])
    assert headless.given == nic.given
    refused(read, text.replace("40              80", "40"), ":2", "header announces 3")


def test_sysfs_folder(tmp_path):
    for name, value in [("roce_rp/rpg_ai_rate", 7), ("roce_rp/dce_tcp_g", 1000), ("roce_np/cnp_dscp", 48)]:
        path = tmp_path / "ecn" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    (tmp_path / "ecn" / "roce_rp" / "enable").mkdir()
    (tmp_path / "ecn" / "roce_rp" / "enable" / "3").write_text("1\n")
    (tmp_path / "ecn" / "roce_rp" / "enable" / "all").write_text("1\n")
    nic = read_nic(tmp_path / "ecn")
    assert nic.given == {"rpg_ai_rate": 7, "dce_tcp_g": 1000, "cnp_dscp": 48, "roce_rp_enable_3": 1}
    assert any("1 other" in text for text in nic.ignored)


def test_debugfs_folder(tmp_path):
    names = {
        "rp_clamp_tgt_rate": "clamp_tgt_rate",
        "rp_clamp_tgt_rate_ati": "clamp_tgt_rate_after_time_inc",
        "rp_time_reset": "rpg_time_reset",
        "rp_byte_reset": "rpg_byte_reset",
        "rp_threshold": "rpg_threshold",
        "rp_ai_rate": "rpg_ai_rate",
        "rp_max_rate": "rpg_max_rate",
        "rp_hai_rate": "rpg_hai_rate",
        "rp_min_dec_fac": "rpg_min_dec_fac",
        "rp_min_rate": "rpg_min_rate",
        "rp_rate_to_set_on_first_cnp": "rate_to_set_on_first_cnp",
        "rp_dce_tcp_g": "dce_tcp_g",
        "rp_dce_tcp_rtt": "dce_tcp_rtt",
        "rp_rate_reduce_monitor_period": "rate_reduce_monitor_period",
        "rp_initial_alpha_value": "initial_alpha_value",
        "rp_gd": "rpg_gd",
        "np_min_time_between_cnps": "min_time_between_cnps",
        "np_cnp_dscp": "cnp_dscp",
        "np_cnp_prio_mode": "cnp_prio_mode",
        "np_cnp_prio": "cnp_802p_prio",
    }
    for name in names:
        (tmp_path / name).write_text("1\n")
    assert read_nic(tmp_path).given == dict.fromkeys(names.values(), 1.0)


def test_a_folder_has_a_bounded_number_of_files(tmp_path, monkeypatch):
    monkeypatch.setattr("fluidcc.operators.nvidia._MOST_FILES", 3)
    for name in ("rp_ai_rate", "other", "another"):
        (tmp_path / name).write_text("5\n")
    assert read_nic(tmp_path).given == {"rpg_ai_rate": 5}
    (tmp_path / "more").write_text("5\n")
    with pytest.raises(InputError, match="has more than 3 files"):
        read_nic(tmp_path)


def test_folder_of_nothing(tmp_path):
    with pytest.raises(InputError, match="no DCQCN setting"):
        read_nic(tmp_path)


def test_conversions(read):
    scheme, rows = dcqcn_of(
        read(
            "dce_tcp_g = 960\ndce_tcp_rtt = 55\ninitial_alpha_value = 512\nmin_time_between_cnps = 50\n"
            "rpg_time_reset = 1500\nrpg_byte_reset = 150000\nrpg_threshold = 5\nrpg_gd = 12\n"
            "rpg_min_dec_fac = 20\nrpg_min_rate = 100\n"
        )
    )
    assert scheme.g == 1 / 16
    assert scheme.alpha_timer == pytest.approx(55e-6)
    assert scheme.cnp_interval == pytest.approx(50e-6)
    assert scheme.timer == pytest.approx(1.5e-3)
    assert (scheme.initial_alpha, scheme.byte_counter, scheme.fast_recovery_steps) == (0.5, 150e3, 5)
    assert (scheme.decrease_gain, scheme.max_decrease, scheme.min_rate) == (0.25, 0.8, 12.5e6)
    assert scheme.feedback_delay is None
    assert scheme.hyper_increase
    raw = {row.parameter: row.raw for row in rows}
    assert (raw["cnp_interval"], raw["rate_decrease_interval"]) == ("50 us", "4 us (default)")
    assert scheme.rate_decrease_interval == pytest.approx(4e-6)


@pytest.mark.parametrize(
    ("register", "parameter"),
    [
        ("rpg_time_reset", "timer"),
        ("min_time_between_cnps", "cnp_interval"),
        ("rate_reduce_monitor_period", "rate_decrease_interval"),
    ],
)
def test_times_of_registers_have_a_unit_however_long_they_are(read, register, parameter):
    """Above 10 s a plain number would be refused as one whose unit was forgotten."""
    scheme, _ = dcqcn_of(read(f"{register} = 10000001\n"))
    assert getattr(scheme, parameter) == pytest.approx(10.000001)


def test_the_nics_own_algorithm(read):
    """Each register of what the paper's reaction point does not do; all of them are read, none is left out."""
    scheme, rows = dcqcn_of(
        read(
            "clamp_tgt_rate = 1\nclamp_tgt_rate_after_time_inc = 0\nrate_reduce_monitor_period = 20\n"
            "rate_to_set_on_first_cnp = 8000\nrpg_max_rate = 40000\nmin_time_between_cnps = 2\n"
        )
    )
    assert (scheme.clamp_tgt_rate, scheme.clamp_tgt_rate_after_time_inc) == (True, False)
    assert (scheme.cnp_interval, scheme.rate_decrease_interval) == pytest.approx((2e-6, 20e-6))
    assert (scheme.rate_on_first_cnp, scheme.max_rate) == (1e9, 5e9)
    assert "starts alone" in {row.parameter: row.note for row in rows}["rate_on_first_cnp"]


def test_the_vendor_preset_is_the_nic_as_documented():
    """NVIDIA, DCQCN CC parameters: defaults, with alpha once a slot whatever arrives."""
    assert (VENDOR.clamp_tgt_rate, VENDOR.clamp_tgt_rate_after_time_inc) == (False, True)
    assert (VENDOR.alpha_update, VENDOR.alpha_timer) == ("slotted", 1e-6)
    assert (VENDOR.cnp_interval, VENDOR.rate_decrease_interval) == pytest.approx((4e-6, 4e-6))
    assert (VENDOR.rate_on_first_cnp, VENDOR.max_rate, VENDOR.initial_alpha) == (0.0, None, 1023 / 1024)
    assert (VENDOR.decrease_gain, VENDOR.max_decrease) == (0.5, 0.5)


def test_hpcc_eval_has_the_numbers_in_the_papers_algorithm():
    paper = resolve(PRESETS["paper"].scheme)
    kept = resolve(PRESETS["hpcc-eval"].scheme)
    for name in ("clamp_tgt_rate", "alpha_update", "rate_decrease_interval", "rate_on_first_cnp", "max_rate"):
        assert getattr(kept, name) == getattr(paper, name)
    for name in ("g", "timer", "byte_counter", "cnp_interval", "alpha_timer", "max_decrease", "min_rate"):
        assert getattr(kept, name) == getattr(VENDOR, name)


def test_no_spacing_of_cnps_leaves_the_period(read):
    """0: one for each marked packet; the period still keeps cuts apart."""
    scheme, _ = dcqcn_of(read("min_time_between_cnps = 0\n"))
    assert scheme.cnp_interval == 1e-9
    assert scheme.rate_decrease_interval == pytest.approx(4e-6)


def test_conversions_with_a_note(read):
    scheme, rows = dcqcn_of(read("rpg_byte_reset = 0\nrpg_gd = 9\nrpg_min_dec_fac = 100\n"))
    notes = {row.parameter: row.note for row in rows}
    assert scheme.byte_counter == 1e12
    assert "off" in notes["byte_counter"]
    assert scheme.decrease_gain == 2.0  # twice alpha, and rpg_min_dec_fac bounds it
    assert scheme.max_decrease == 0
    assert "uncut" in notes["max_decrease"]


def test_unknown_keys_of_text_are_listed(read):
    nic = read("rpg_ai_rate = 5\nqueues = 63\n")
    assert any(text.startswith("queues:") for text in nic.ignored)
    many = read("rpg_ai_rate = 5\n" + "".join(f"x{i} = 1\n" for i in range(50)))
    assert len(many.ignored) == 21
    assert "30 more" in many.ignored[-1]


def test_not_available_is_ignored(read):
    nic = read("    RPG_AI_RATE_P1   5\n    RPG_GD_P1   N/A\n")
    assert nic.given == {"rpg_ai_rate": 5}
    assert any(text.startswith("rpg_gd") for text in nic.ignored)


def test_same_value_twice_is_fine_but_not_two_values(read):
    assert read("rpg_ai_rate = 5\nrp_ai_rate = 5\n").given == {"rpg_ai_rate": 5}
    refused(read, "rpg_ai_rate = 5\nrp_ai_rate = 6\n", ":2", "rpg_ai_rate", "one NIC")


@pytest.mark.parametrize(
    ("line", "mentions"),
    [
        ("dce_tcp_g = 1024", ["dce_tcp_g", "1023", "freeze"]),
        ("dce_tcp_rtt = 0", ["dce_tcp_rtt", "1 to", "divides"]),
        ("rpg_time_reset = 0", ["rpg_time_reset", "us"]),
        ("rpg_gd = 16", ["rpg_gd", "0 to 15"]),
        ("rpg_threshold = 2.5", ["whole number"]),
        ("rpg_min_dec_fac = 101", ["percent"]),
        ("rpg_ai_rate = 5Mbps", ["Mb/s", "without the unit"]),
        ("rpg_ai_rate = -1", ["rpg_ai_rate"]),
        ("rpg_ai_rate = 1e400", ["rpg_ai_rate"]),
        ("rpg_ai_rate = nan", ["rpg_ai_rate"]),
        ("clamp_tgt_rate = yes", ["clamp_tgt_rate"]),
        ("clamp_tgt_rate_after_time_inc = 2", ["clamp_tgt_rate_after_time_inc", "0 to 1"]),
        ("rpg_ai_rate", ["name = value"]),
        ("rpg_ai_rate =", ["name = value"]),
    ],
)
def test_refusals(read, line, mentions):
    refused(read, f"# settings\n{line}\n", "nic.txt:2", *mentions)


def test_no_interval_between_cnps(read):
    nic = read("min_time_between_cnps = 0\nrate_reduce_monitor_period = 0\n")
    with pytest.raises(InputError, match="both 0"):
        dcqcn_of(nic)


@pytest.mark.parametrize("text", ["", "\n# nothing\n", "mtu = 1500\n"])
def test_no_dcqcn_setting(read, text):
    refused(read, text, "no DCQCN setting", "rpg_ai_rate")


def test_unreadable_files(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name, mention in [("binary", "UTF-8"), ("none", "no such file"), ("a\0b", "file name")]:
        with pytest.raises(InputError, match=mention):
            read_nic(f"{tmp_path}/{name}")


def test_every_number_is_finite():
    scheme, rows = dcqcn_of(read_nic(SAMPLE))
    assert all(math.isfinite(row.value) for row in rows)
    assert scheme.name == "dcqcn"


@pytest.mark.parametrize(
    "text",
    [
        "/sys/class/net/e0/ecn/roce_np/enable/3:0\n/sys/class/net/e0/ecn/roce_rp/enable/3:1\n",
        "roce_np/enable/3:1:0\nroce_rp/enable/3:1:1\n",
        "echo 0 > /sys/class/net/e0/ecn/roce_np/enable/3; echo 1 > /sys/class/net/e0/ecn/roce_rp/enable/3\n",
        "# cat /sys/class/net/e0/ecn/roce_np/enable/3\n0\n# cat /sys/class/net/e0/ecn/roce_rp/enable/3\n1\n",
        "==> roce_np/enable/3 <==\n0\n\n==> roce_rp/enable/3 <==\n1\n",
        "roce_np/enable/3 = 0\nroce_rp/enable/3 = 1\n",
    ],
)
def test_the_drivers_switches_of_each_end_and_priority_are_read(read, text):
    """Switches named 3 in two folders: read by the file's name alone, they would be none, or one and the same."""
    assert read(text).given == {"roce_np_enable_3": 0, "roce_rp_enable_3": 1}


def test_the_drivers_switches_are_read_from_its_folder(tmp_path, monkeypatch):
    for side, value in (("np", 0), ("rp", 1)):
        folder = tmp_path / "ecn" / f"roce_{side}" / "enable"
        folder.mkdir(parents=True)
        for priority in (3, 4):
            (folder / str(priority)).write_text(f"{value}\n")
    wanted = {f"roce_{side}_enable_{each}": value for side, value in (("np", 0), ("rp", 1)) for each in (3, 4)}
    assert read_nic(tmp_path / "ecn").given == wanted
    monkeypatch.chdir(tmp_path / "ecn" / "roce_rp")
    assert read_nic("enable").given == {name: 1 for name, value in wanted.items() if value}


def test_anothers_settings_are_refused_before_their_values_are_read(tmp_path):
    """A number in hexadecimal, of a name that NVIDIA's NICs have too, was refused as if it were NVIDIA's."""
    for name, value in (("cc_mode", "0x1"), ("cnp_dscp", "0x30"), ("ecn_marking", "0x1")):
        (tmp_path / name).write_text(f"{value}\n")
    with pytest.raises(InputError, match="Broadcom's NICs"):
        read_nic(tmp_path)


def test_settings_as_json_are_said_to_be_a_nics(tmp_path):
    """They were "one more switch", as other JSON is a switch's."""
    path = tmp_path / "nic.json"
    path.write_text('{"mlx5_0": {"RPG_AI_RATE_P1": 5, "dce_tcp_g": "1019"}}')
    words = r"nic\.json: has a NIC's settings \(RPG_AI_RATE_P1, dce_tcp_g\) as JSON, which is not read; give `key ="
    for read in (read_nic, lambda each: is_switch(str(each))):
        with pytest.raises(InputError, match=words):
            read(path)
