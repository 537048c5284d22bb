"""NICs of other vendors, recognised by the names of their settings, which nothing here reads."""

from __future__ import annotations

from collections.abc import Iterable

# Names that no NVIDIA NIC has, by whose they are: of the drivers' configfs and sysfs files and module parameters.
_NAMES: dict[str, set[str]] = {
    "Broadcom": {
        "cc_mode", "ecn_enable", "ecn_marking", "inact_th", "init_cr", "init_tr", "init_cp", "nph_per_state",
        "time_pph", "pkts_pph", "tcp_cp", "roce_dscp", "roce_prio", "min_time_bet_cnp", "cnp_ecn",
        "disable_prio_vlan_tx",
        "tr_update_mode", "fr_num_rtts", "ai_rate_incr", "red_rel_rtts_th", "cr_min_th", "bw_avg_weight",
        "act_cr_factor", "rtt_jitter_en", "cr_prob_fac", "tr_prob_fac", "cnp_ratio_th",
    },  # bnxt_re/configfs.c
    "Intel": {
        "dcqcn_enable", "dcqcn_cc_cfg_valid", "dcqcn_min_dec_factor", "dcqcn_min_rate", "dcqcn_f", "dcqcn_t", "dcqcn_b",
        "dcqcn_rai_factor", "dcqcn_hai_factor", "dcqcn_rreduce_mperiod",
    },  # irdma/main.c
    "Huawei": {
        "dcqcn_ai", "dcqcn_tkp", "dcqcn_tmp", "dcqcn_alp", "dcqcn_max_speed", "dcqcn_g", "dcqcn_al", "dcqcn_cnp_time",
        "dcqcn_ashift", "dcqcn_lifespan",
    },  # hns_roce/hns_roce_sysfs.c
    "Marvell": {
        "dcqcn_cnp_send_timeout", "dcqcn_cnp_dscp", "dcqcn_cnp_vlan_priority", "dcqcn_notification_point",
        "dcqcn_reaction_point", "dcqcn_rl_bc_rate", "dcqcn_rl_max_rate", "dcqcn_rl_r_ai", "dcqcn_rl_r_hai", "dcqcn_gd",
        "dcqcn_k_us", "dcqcn_timeout_us",
    },  # qed_main.c
}  # fmt: skip


def vendor_of(names: Iterable[str]) -> tuple[str, list[str]] | None:
    """Tell a vendor by the names of settings, with those that say so; None if they say nothing.

    Parameters
    ----------
    names : iterable of str
        In lower case, without folders.
    """
    given = set(names)
    found = max(((len(given & theirs), vendor) for vendor, theirs in _NAMES.items()))
    return (found[1], sorted(given & _NAMES[found[1]])) if found[0] else None
