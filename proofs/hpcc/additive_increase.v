(** HPCC (SIGCOMM 2019), Appendix A.3 and section 3.3: equilibria of R <- R U_target / U + a on any network, where U is
    the utilisation of a path's most loaded link. Every network has such an equilibrium: existence.v. *)

From Coq Require Import Reals Lra Lia Arith.
From fluidcc.shared Require Import sums.
From fluidcc.hpcc Require Import network fairness.

Local Open Scope R_scope.

(** Of the members of a finite set one has the least f. *)
Lemma least_member (n : nat) (member : nat -> Prop) (f : nat -> R) :
  (forall i, member i \/ ~ member i) ->
  (forall i, (i < n)%nat -> ~ member i) \/
  exists j, (j < n)%nat /\ member j /\ forall i, (i < n)%nat -> member i -> f j <= f i.
Proof.
  intros decided. induction n as [|n [none|(j & small & its & best)]]; [left; intros i small; lia| |];
    destruct (decided n) as [inside|outside].
  - right. exists n. repeat split; [lia|exact inside|]. intros i below here.
    destruct (Nat.eq_dec i n) as [same|inner]; [subst i; lra|]. exfalso. apply (none i); [lia|exact here].
  - left. intros i below. destruct (Nat.eq_dec i n) as [same|inner]; [subst i; exact outside|apply none; lia].
  - right. destruct (Rle_or_lt (f j) (f n)) as [earlier|later]; [exists j|exists n];
      (repeat split; [lia|assumption|]); intros i below here;
      (destruct (Nat.eq_dec i n) as [same|inner]; [subst i; lra|]); specialize (best i ltac:(lia) here); lra.
  - right. exists j. repeat split; [lia|exact its|]. intros i below here.
    destruct (Nat.eq_dec i n) as [same|inner]; [subst i; contradiction|apply best; [lia|exact here]].
Qed.

Section Additive_increase.

Context {net : Network}.

(** A.3: R <- R U_target / U + a [byte/s], with U = max U_i over the links of path j. *)
Definition next_rate (target a : R) (rates : nat -> R) (j : nat) : R :=
  rates j * (target / path_use rates j) + a.

(** Rates that are positive and that an update leaves as they are. *)
Definition at_rest (target a : R) (rates : nat -> R) : Prop :=
  forall j, (j < paths)%nat -> 0 < rates j /\ next_rate target a rates j = rates j.

(** Paths that cross link i. *)
Definition crossing (i : nat) : R := link_load (fun _ => 1) i.

(** U_target, and the additive increase a [byte/s]. *)
Variables (target a : R).

Hypothesis aim : 0 < target.
Hypothesis increase : 0 < a.

Section Rest.

Variable rates : nat -> R.

Hypothesis rest : at_rest target a rates.

Lemma rest_positive : all_positive rates.
Proof. intros j path. apply rest, path. Qed.

(** A.3: at an equilibrium the most loaded link of each path is used beyond the target. *)
Theorem paths_above_target (j : nat) : (j < paths)%nat -> target < path_use rates j.
Proof.
  intros path. destruct (rest j path) as [sign same].
  apply (register_rests_iff_above_target target a _ increase).
  - apply path_use_positive; [exact rest_positive|exact path].
  - exists (rates j). split; [exact sign|exact same].
Qed.

(** A.3: at an equilibrium R = a (1 - U_target / U)^(-1).
    Claim: hpcc-a3-equilibrium. *)
Theorem rate_at_rest (j : nat) : (j < paths)%nat -> rates j = a / (1 - target / path_use rates j).
Proof.
  intros path. destruct (rest j path) as [sign same].
  apply register_value; [exact increase| |exact sign|exact same].
  apply path_use_positive; [exact rest_positive|exact path].
Qed.

(** A.3: "R_(1) <= R_(2) <= ..., confirming that U_(1) >= U_(2) >= ...": a path has the smaller rate if and only if its
    most loaded link is used more. *)
Theorem smaller_rate_iff_more_used (j k : nat) :
  (j < paths)%nat -> (k < paths)%nat -> rates j < rates k <-> path_use rates k < path_use rates j.
Proof.
  intros path_j path_k.
  rewrite (rate_at_rest j path_j), (rate_at_rest k path_k) at 1.
  pose proof (paths_above_target j path_j) as above_j. pose proof (paths_above_target k path_k) as above_k.
  split; intros less.
  - apply Rnot_le_lt. intros [more|same].
    + pose proof (register_falls_with_use target a _ _ increase aim above_j more). lra.
    + rewrite same in less. lra.
  - apply register_falls_with_use; assumption.
Qed.

(** A.3: "U_(i) = U_target (1 - a / R_(i))^(-1)". *)
Theorem use_at_rest (j : nat) : (j < paths)%nat -> path_use rates j = target / (1 - a / rates j).
Proof.
  intros path. pose proof (rate_at_rest j path) as value. pose proof (paths_above_target j path) as above.
  set (use := path_use rates j) in *.
  replace (a / rates j) with (1 - target / use); [field; lra|].
  rewrite value. field. lra.
Qed.

(** A.3: "the highest utilization will be less than 100% if a < R (1 - U_target)", and only if: on every path of every
    network, with the path's own R and U; so also on one through the most loaded link.
    Claim: hpcc-a3-below-full. *)
Theorem below_full_iff_small_increase (j : nat) :
  (j < paths)%nat -> path_use rates j < 1 <-> a < rates j * (1 - target).
Proof.
  intros path. destruct (rest j path) as [sign same]. unfold next_rate in same.
  pose proof (paths_above_target j path) as above.
  set (use := path_use rates j) in *.
  assert (a = rates j * (1 - target / use)) as increase_is by lra.
  assert (target / use * use = target) as ratio by (field; lra).
  assert (0 < target / use) as factor by (apply Rdiv_lt_0_compat; lra).
  split; intros less.
  - rewrite increase_is. apply Rmult_lt_compat_l; [exact sign|].
    assert (target / use * use < target / use * 1) by (apply Rmult_lt_compat_l; lra). lra.
  - rewrite increase_is in less. apply Rmult_lt_reg_l in less; [|exact sign].
    apply Rmult_lt_reg_l with (target / use); [exact factor|]. lra.
Qed.

(** The rates on a link that is used beyond the target are at most a (1 - U_target / U_i)^(-1). *)
Lemma rate_at_most_link_value (i j : nat) :
  (i < links)%nat -> (j < paths)%nat -> crosses i j = true -> target < link_use rates i ->
  rates j <= a / (1 - target / link_use rates i).
Proof.
  intros link path on above. rewrite (rate_at_rest j path).
  destruct (link_use_at_most_path_use rates i j link on) as [more|same].
  - apply Rlt_le, register_falls_with_use; assumption.
  - rewrite same. lra.
Qed.

(** A.3: "the equilibrium utilizations are above U_target by an amount that increases with a": a link that n paths cross
    is above it by at most n a / C, on any network. *)
Theorem links_close_to_target (i : nat) :
  (i < links)%nat -> link_use rates i <= target + a * crossing i / capacity i.
Proof.
  intros link. pose proof (capacity_positive i link) as room.
  assert (0 <= crossing i) as count by (apply link_load_nonneg; intros j _; lra).
  destruct (Rle_or_lt (link_use rates i) target) as [low|above].
  - assert (0 <= a * crossing i / capacity i); [|lra].
    apply Rmult_le_pos; [apply Rmult_le_pos; lra|]. apply Rlt_le, Rinv_0_lt_compat, room.
  - set (use := link_use rates i) in *.
    assert (link_load rates i <= a / (1 - target / use) * crossing i) as most.
    { unfold crossing. rewrite <- link_load_scale. apply link_load_le. intros j path on.
      rewrite Rmult_1_r. apply rate_at_most_link_value; assumption. }
    rewrite <- (link_use_times_capacity _ i link) in most.
    apply close_to_target; [exact aim|exact room|exact above|exact most].
Qed.

(** 3.3: "the total additive increase every round should not exceed the bandwidth headroom, and thus no queue forms": on
    any network, a link on which the increases of all paths together are at most (1 - U_target) C is not used beyond its
    capacity. *)
Theorem increase_within_headroom (i : nat) :
  (i < links)%nat -> crossing i * a <= (1 - target) * capacity i -> link_use rates i <= 1.
Proof.
  intros link headroom. pose proof (capacity_positive i link) as room.
  pose proof (links_close_to_target i link) as close.
  assert (a * crossing i / capacity i <= 1 - target); [|lra].
  apply Rmult_le_reg_r with (capacity i); [exact room|].
  replace (a * crossing i / capacity i * capacity i) with (crossing i * a) by (field; lra). exact headroom.
Qed.

(** 3.3: if they are less, the link is used below its capacity. *)
Theorem increase_below_headroom (i : nat) :
  (i < links)%nat -> crossing i * a < (1 - target) * capacity i -> link_use rates i < 1.
Proof.
  intros link headroom. pose proof (capacity_positive i link) as room.
  pose proof (links_close_to_target i link) as close.
  assert (a * crossing i / capacity i < 1 - target); [|lra].
  apply Rmult_lt_reg_r with (capacity i); [exact room|].
  replace (a * crossing i / capacity i * capacity i) with (crossing i * a) by (field; lra). exact headroom.
Qed.

(** 3.3: the rule of thumb a = (1 - U_target) C / N, on any network: with N the largest number of paths that cross a
    link, and C the least capacity, no link is used beyond its capacity. *)
Theorem rule_of_thumb (i : nat) (most least : R) :
  (i < links)%nat -> 0 < most -> crossing i <= most -> least <= capacity i -> target <= 1 ->
  a = (1 - target) * least / most -> link_use rates i <= 1.
Proof.
  intros link some few wide sensible rule. apply increase_within_headroom; [exact link|].
  assert (crossing i * a <= most * a) as sum by (apply Rmult_le_compat_r; lra).
  assert (most * a = (1 - target) * least) as same by (rewrite rule; field; lra).
  assert ((1 - target) * least <= (1 - target) * capacity i) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(** ** Max-min fairness *)

(** The capacity that a link has at the equilibrium: U_i C_i if it is used beyond the target, U_target C_i otherwise
    [byte/s]. It is between U_target C_i and U_target C_i + n a ([links_close_to_target]). *)
Definition room_at_rest (i : nat) : R := Rmax target (link_use rates i) * capacity i.

(** A.3: the capacity of a link at the equilibrium exceeds U_target C_i by at most the increases of its paths, which
    tend to 0 with a. *)
Theorem room_close_to_target (i : nat) :
  (i < links)%nat -> room_at_rest i <= target * capacity i + a * crossing i.
Proof.
  intros link. pose proof (capacity_positive i link) as room.
  pose proof (links_close_to_target i link) as close.
  assert (0 <= crossing i) as count by (apply link_load_nonneg; intros j _; lra).
  assert (0 <= a * crossing i / capacity i) as sign.
  { apply Rmult_le_pos; [apply Rmult_le_pos; lra|]. apply Rlt_le, Rinv_0_lt_compat, room. }
  replace (target * capacity i + a * crossing i) with ((target + a * crossing i / capacity i) * capacity i)
    by (field; lra).
  apply Rmult_le_compat_r; [lra|]. apply Rmax_lub; lra.
Qed.

(** The rates at rest fit the capacities at rest. *)
Lemma rest_fits (i : nat) : (i < links)%nat -> link_load rates i <= room_at_rest i.
Proof.
  intros link. pose proof (capacity_positive i link) as room. unfold room_at_rest.
  rewrite <- (link_use_times_capacity rates i link) at 1.
  apply Rmult_le_compat_r; [lra|]. apply Rmax_r.
Qed.

(** A.3: "if a is small enough the rates will be approximately max-min fair": at the equilibrium they are exactly
    max-min fair for the capacities at rest, which are near U_target C_i ([room_close_to_target]). Rates that fit these
    and give path j more give some path k less that has no more than j. How near the rates are to the max-min fair ones
    of U_target C_i is not proved here.
    Claim: hpcc-a3-max-min. *)
Theorem equilibrium_is_max_min_fair (other : nat -> R) (j : nat) :
  (forall i, (i < links)%nat -> link_load other i <= room_at_rest i) ->
  (j < paths)%nat -> rates j < other j ->
  exists k, (k < paths)%nat /\ rates k <= rates j /\ other k < rates k.
Proof.
  intros fits path more.
  destruct (path_use_attained rates j rest_positive path) as (i & link & on & top).
  pose proof (paths_above_target j path) as above. rewrite <- top in above.
  assert (forall k, (k < paths)%nat -> crosses i k = true -> rates k <= rates j) as largest_here.
  { intros k small here. rewrite (rate_at_rest j path), <- top. apply rate_at_most_link_value; assumption. }
  assert (link_load other i <= link_load rates i) as full.
  { apply Rle_trans with (1 := fits i link). unfold room_at_rest.
    rewrite Rmax_right by lra. rewrite link_use_times_capacity by exact link. lra. }
  destruct (least_member paths (fun k => crosses i k = true /\ other k < rates k) (fun _ => 0))
    as [none|(k & small & its & _)].
  - intros k. destruct (crosses i k); [|right; intros [no _]; discriminate].
    destruct (Rlt_dec (other k) (rates k)) as [yes|no]; [left; split; [reflexivity|exact yes]|].
    right. intros [_ yes]. contradiction.
  - exfalso. assert (link_load rates i < link_load other i); [|lra].
    apply link_load_lt with j; [|exact path|exact on|exact more].
    intros k small here. apply Rnot_lt_le. intros less. apply (none k small). split; assumption.
  - destruct its as [here less]. exists k. split; [exact small|]. split; [apply largest_here; assumption|exact less].
Qed.

End Rest.

(** ** Uniqueness *)

(** Half of the uniqueness: of two equilibria the path with the least rate among those that differ has not the smaller
    rate in the first. *)
Lemma least_difference (first second : nat -> R) (j : nat) :
  at_rest target a first -> at_rest target a second -> (j < paths)%nat ->
  (forall k, (k < paths)%nat -> first k <> second k -> first j <= Rmin (first k) (second k)) ->
  ~ first j < second j.
Proof.
  intros first_rest second_rest path best less.
  pose proof (rest_positive first first_rest) as first_positive.
  destruct (path_use_attained first j first_positive path) as (i & link & on & top).
  pose proof (paths_above_target first first_rest j path) as above. rewrite <- top in above.
  assert (link_load first i < link_load second i) as grown.
  { apply link_load_lt with j; [|exact path|exact on|exact less].
    intros k small here. destruct (Req_dec (first k) (second k)) as [same|other]; [lra|].
    pose proof (best k small other) as bound. pose proof (Rmin_r (first k) (second k)) as at_most.
    assert (first k <= first j); [|lra].
    rewrite (rate_at_rest first first_rest j path), <- top.
    apply rate_at_most_link_value; assumption. }
  rewrite <- !(link_use_times_capacity _ i link) in grown.
  apply Rmult_lt_reg_r in grown; [|apply capacity_positive, link].
  pose proof (rate_at_most_link_value second second_rest i j link path on ltac:(lra)) as most.
  pose proof (register_falls_with_use target a _ _ increase aim above grown) as falls.
  pose proof (rate_at_rest first first_rest j path) as value. rewrite <- top in value. lra.
Qed.

(** A.3: there is at most one equilibrium: two have the same rates. *)
Theorem equilibrium_is_unique (first second : nat -> R) (k : nat) :
  at_rest target a first -> at_rest target a second -> (k < paths)%nat -> first k = second k.
Proof.
  intros first_rest second_rest path.
  destruct (least_member paths (fun j => first j <> second j) (fun j => Rmin (first j) (second j)))
    as [none|(j & small & apart & best)].
  - intros j. destruct (Req_dec (first j) (second j)) as [same|other]; [right; intros no; contradiction|].
    left. exact other.
  - destruct (Req_dec (first k) (second k)) as [same|other]; [exact same|]. exfalso. apply (none k path other).
  - exfalso. destruct (Rtotal_order (first j) (second j)) as [less|[same|more]]; [|contradiction|].
    + apply (least_difference first second j first_rest second_rest small); [|exact less].
      intros i bound other. apply Rle_trans with (2 := best i bound other). rewrite Rmin_left by lra. lra.
    + apply (least_difference second first j second_rest first_rest small); [|exact more].
      intros i bound other. rewrite (Rmin_comm (second i)).
      apply Rle_trans with (2 := best i bound (fun no => other (eq_sym no))). rewrite Rmin_right by lra. lra.
Qed.

End Additive_increase.

(** Rates do come to rest: on the parking lot, with U_target = 95 % and a = 2 %, at 49.5 % each. *)
Example rates_can_rest : at_rest (net := parking_lot) (95/100) (2/100) (fun _ => 99/200).
Proof.
  assert (forall i, (i < 2)%nat -> link_use (net := parking_lot) (fun _ => 99/200) i = 99/100) as use.
  { intros [|[|i]] link; [| |lia]; unfold link_use, link_load, share; simpl; lra. }
  intros j path. split; [lra|]. unfold next_rate.
  assert (path_use (net := parking_lot) (fun _ => 99/200) j = 99/100) as most.
  { unfold path_use. cbn in path. destruct j as [|[|[|j]]]; [| | |lia]; cbn -[link_use]; rewrite ?use by lia.
    - rewrite (Rmax_right 0) by lra. apply Rmax_right. lra.
    - apply Rmax_right. lra.
    - apply Rmax_right. lra. }
  rewrite most. lra.
Qed.
