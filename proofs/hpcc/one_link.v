(** HPCC (SIGCOMM 2019), Appendix A.3 and section 3.3: R <- R U_target / U + a of N flows on one link.

    The rule of thumb is about windows: read W_init, the bandwidth-delay product, for the capacity C, W_AI for a, and
    windows for rates. *)

From Coq Require Import Reals Lra Lia Arith.
From fluidcc.shared Require Import limits sums.

Local Open Scope R_scope.

Section One_link.

(** N flows, capacity C [byte/s], U_target, and the additive increase a [byte/s]. *)
Variables (flows : nat) (capacity target a : R).

Hypothesis some : (0 < flows)%nat.
Hypothesis room : 0 < capacity.
Hypothesis aim : 0 < target.
Hypothesis increase : 0 < a.

(** U = sum of R_j / C. *)
Definition use (rates : nat -> R) : R := total flows rates / capacity.

(** A.3: R_j <- R_j U_target / U + a. *)
Definition next (rates : nat -> R) (j : nat) : R := rates j * (target / use rates) + a.

(** Rates after n round trips. *)
Fixpoint after (n : nat) (start : nat -> R) : nat -> R :=
  match n with
  | O => start
  | S m => next (after m start)
  end.

(** What is left of a difference between flows after a round trip: U_target / U at the equilibrium. *)
Definition shrink : R := target / (target + INR flows * a / capacity).

Definition all_above_zero (rates : nat -> R) : Prop := forall j, (j < flows)%nat -> 0 < rates j.

Definition still (rates : nat -> R) : Prop := forall j, (j < flows)%nat -> next rates j = rates j.

Lemma flows_count : 0 < INR flows.
Proof. apply lt_0_INR, some. Qed.

Lemma final_load : 0 < target * capacity + INR flows * a.
Proof.
  pose proof flows_count as count.
  apply Rplus_lt_0_compat; apply Rmult_lt_0_compat; assumption.
Qed.

Lemma total_positive (rates : nat -> R) : all_above_zero rates -> 0 < total flows rates.
Proof.
  intros sign. apply total_pos with 0%nat; [|exact some|apply sign, some].
  intros j small. apply Rlt_le, sign, small.
Qed.

(** A.3: whatever the rates were, after one round trip the load is U_target C + N a. *)
Theorem load_after_one_round_trip (rates : nat -> R) :
  all_above_zero rates -> total flows (next rates) = target * capacity + INR flows * a.
Proof.
  intros sign. pose proof (total_positive rates sign) as positive.
  unfold next. rewrite total_plus, total_const.
  rewrite (total_ext flows _ (fun j => target / use rates * rates j)) by (intros j _; ring).
  rewrite total_scale. f_equal. unfold use. field. split; lra.
Qed.

Lemma next_positive (rates : nat -> R) : all_above_zero rates -> all_above_zero (next rates).
Proof.
  intros sign j small. pose proof (total_positive rates sign) as positive. unfold next.
  apply Rplus_lt_0_compat; [|exact increase]. apply Rmult_lt_0_compat; [apply sign, small|].
  apply Rdiv_lt_0_compat; [exact aim|]. apply Rdiv_lt_0_compat; assumption.
Qed.

Lemma after_positive (start : nat -> R) (n : nat) : all_above_zero start -> all_above_zero (after n start).
Proof. intros sign. induction n as [|n IH]; [exact sign|]. apply next_positive, IH. Qed.

Lemma load_stays (start : nat -> R) (n : nat) :
  all_above_zero start -> total flows (after (S n) start) = target * capacity + INR flows * a.
Proof. intros sign. apply load_after_one_round_trip, after_positive, sign. Qed.

(** From the second round trip on the update is linear. *)
Lemma next_is_linear (start : nat -> R) (n j : nat) :
  all_above_zero start -> after (S (S n)) start j = after (S n) start j * shrink + a.
Proof.
  intros sign. change (after (S (S n)) start j) with (next (after (S n) start) j).
  unfold next, use. rewrite load_stays by exact sign. unfold shrink. f_equal. f_equal.
  pose proof final_load as positive. field. split; lra.
Qed.

(** A.3: differences between flows shrink by U_target / U in each round trip after the first. *)
Theorem differences_shrink (start : nat -> R) (n j k : nat) :
  all_above_zero start ->
  after (S n) start j - after (S n) start k = (after 1 start j - after 1 start k) * shrink ^ n.
Proof.
  intros sign. induction n as [|n IH]; [simpl; ring|].
  rewrite !next_is_linear by exact sign. simpl pow.
  replace (after (S n) start j * shrink + a - (after (S n) start k * shrink + a))
    with ((after (S n) start j - after (S n) start k) * shrink) by ring.
  rewrite IH. ring.
Qed.

(** The rate that all flows have at the equilibrium: (U_target C + N a) / N [byte/s]. *)
Definition fair_rate : R := (target * capacity + INR flows * a) / INR flows.

Lemma fair_rate_rests : fair_rate * shrink + a = fair_rate.
Proof.
  pose proof flows_count as count. pose proof final_load as positive.
  unfold fair_rate, shrink. field. repeat split; lra.
Qed.

(** A.3: each rate goes to the fair one as geometrically. *)
Theorem distance_from_fair_rate (start : nat -> R) (n j : nat) :
  all_above_zero start -> after (S n) start j - fair_rate = (after 1 start j - fair_rate) * shrink ^ n.
Proof.
  intros sign. induction n as [|n IH]; [simpl; ring|].
  rewrite next_is_linear by exact sign. rewrite <- fair_rate_rests at 1. simpl pow.
  replace (after (S n) start j * shrink + a - (fair_rate * shrink + a))
    with ((after (S n) start j - fair_rate) * shrink) by ring.
  rewrite IH. ring.
Qed.

Lemma shrink_between : 0 < shrink < 1.
Proof.
  pose proof flows_count as count.
  assert (0 < INR flows * a / capacity) as extra.
  { apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat|]; assumption. }
  unfold shrink. split.
  - apply Rdiv_lt_0_compat; lra.
  - apply Rmult_lt_reg_r with (target + INR flows * a / capacity); [lra|].
    unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.

(** A.3: all rates converge to the fair one, from any rates above 0. *)
Theorem rates_converge (start : nat -> R) (j : nat) :
  all_above_zero start -> Un_cv (fun n => after n start j) fair_rate.
Proof.
  intros sign. pose proof shrink_between as between. apply (shifted_limit (fun n => after n start j)).
  apply geometric_converges with (Rabs (after 1 start j - fair_rate)) shrink; [lra|].
  intros n. rewrite distance_from_fair_rate by exact sign.
  rewrite Rabs_mult, (Rabs_pos_eq (shrink ^ n)) by (apply pow_le; lra). lra.
Qed.

(** ** The equilibrium *)

(** A.3: the load at the equilibrium: U = U_target + N a / C. *)
Theorem use_at_equilibrium (rates : nat -> R) :
  all_above_zero rates -> still rates -> use rates = target + INR flows * a / capacity.
Proof.
  intros sign rest. unfold use.
  rewrite <- (total_ext flows (next rates) rates rest), load_after_one_round_trip by exact sign. field. lra.
Qed.

(** A.3: at the equilibrium all flows have the same rate. *)
Theorem rates_at_equilibrium (rates : nat -> R) (j : nat) :
  all_above_zero rates -> still rates -> (j < flows)%nat -> rates j = fair_rate.
Proof.
  intros sign rest small. pose proof (rest j small) as same. unfold next in same.
  rewrite (use_at_equilibrium rates sign rest) in same. fold shrink in same.
  pose proof fair_rate_rests as fair. pose proof shrink_between as between.
  apply Rmult_eq_reg_r with (1 - shrink); lra.
Qed.

(** A.3: on one link the fair rate for all flows is an equilibrium. *)
Theorem equilibrium_exists : all_above_zero (fun _ => fair_rate) /\ still (fun _ => fair_rate).
Proof.
  pose proof flows_count as count. pose proof final_load as positive.
  split.
  - intros j _. apply Rdiv_lt_0_compat; assumption.
  - intros j _. unfold next, use. rewrite total_const. rewrite <- fair_rate_rests at 3. f_equal. f_equal.
    unfold fair_rate, shrink. field. repeat split; lra.
Qed.

(** A.3: U < 1 if and only if a < (1 - U_target) C / N. *)
Theorem below_full_iff (rates : nat -> R) :
  all_above_zero rates -> still rates -> use rates < 1 <-> a < (1 - target) * capacity / INR flows.
Proof.
  intros sign rest. pose proof flows_count as count. rewrite (use_at_equilibrium rates sign rest).
  assert (INR flows * a / capacity * capacity = INR flows * a) as whole by (field; lra).
  assert ((1 - target) * capacity / INR flows * INR flows = (1 - target) * capacity) as share by (field; lra).
  split; intros less.
  - apply Rmult_lt_reg_r with (INR flows); [exact count|]. rewrite share.
    apply Rmult_lt_compat_r with (r := capacity) in less; [|exact room].
    rewrite Rmult_plus_distr_r, whole in less. lra.
  - apply Rmult_lt_compat_r with (r := INR flows) in less; [|exact count]. rewrite share in less.
    apply Rmult_lt_reg_r with capacity; [exact room|]. rewrite Rmult_plus_distr_r, whole. lra.
Qed.

(** 3.3, at equilibrium: what is beyond the capacity, of windows the queue: N a - (1 - U_target) C. With a by the rule
    it is above 0 if there are more flows than expected ([rule_keeps_queue_empty_iff]), and the rates do come to it
    ([rates_converge]).
    Claim: hpcc-33-beyond. *)
Theorem excess_at_equilibrium (rates : nat -> R) :
  all_above_zero rates -> still rates -> total flows rates - capacity = INR flows * a - (1 - target) * capacity.
Proof.
  intros sign rest.
  rewrite <- (total_ext flows (next rates) rates rest), load_after_one_round_trip by exact sign. ring.
Qed.

(** ** The rule of thumb *)

Section Rule.

(** N of the rule: the number of flows that is expected. *)
Variable expected : R.

Hypothesis expected_some : 0 < expected.
Hypothesis sensible : target < 1.
Hypothesis rule : a = (1 - target) * capacity / expected.

Variable rates : nat -> R.

Hypothesis rates_positive : all_above_zero rates.
Hypothesis rest : still rates.

(** 3.3: by the rule W_AI = W_init (1 - eta) / N the headroom is used in proportion to the flows that there are. *)
Theorem rule_uses_headroom : use rates = target + (1 - target) * INR flows / expected.
Proof. rewrite (use_at_equilibrium rates rates_positive rest), rule. field. split; lra. Qed.

Lemma rule_share : use rates - 1 = (1 - target) / expected * (INR flows - expected).
Proof. rewrite rule_uses_headroom. field. lra. Qed.

(** 3.3: "thus no queue forms": by the rule the link is not used beyond its capacity if and only if there are no more
    flows than expected. *)
Theorem rule_keeps_queue_empty_iff : use rates <= 1 <-> INR flows <= expected.
Proof.
  pose proof rule_share as share.
  assert (0 < (1 - target) / expected) as slope by (apply Rdiv_lt_0_compat; lra).
  split; intros most.
  - apply Rnot_lt_le. intros more.
    assert (0 < (1 - target) / expected * (INR flows - expected)) by (apply Rmult_lt_0_compat; lra). lra.
  - assert (0 <= (1 - target) / expected * (expected - INR flows)) by (apply Rmult_le_pos; lra). lra.
Qed.

(** 3.3: by the rule a link is below its capacity if and only if there are fewer flows than expected.
    Claim: hpcc-33-rule. *)
Theorem rule_below_full_iff : use rates < 1 <-> INR flows < expected.
Proof.
  pose proof rule_share as share.
  assert (0 < (1 - target) / expected) as slope by (apply Rdiv_lt_0_compat; lra).
  split; intros less.
  - apply Rnot_le_lt. intros more.
    assert (0 <= (1 - target) / expected * (INR flows - expected)) by (apply Rmult_le_pos; lra). lra.
  - assert (0 < (1 - target) / expected * (expected - INR flows)) by (apply Rmult_lt_0_compat; lra). lra.
Qed.

(** 3.3: with as many flows as expected the rule sits exactly on the boundary. *)
Theorem rule_sits_on_boundary : INR flows = expected -> use rates = 1.
Proof. intros same. rewrite rule_uses_headroom, same. field. lra. Qed.

End Rule.
End One_link.

(** A.3: "a smaller a: slower convergence", on one link: the smaller a is, the less a difference shrinks in a round
    trip.
    Claim: hpcc-a3-slower. *)
Theorem smaller_increase_is_slower (flows : nat) (capacity target a b : R) :
  (0 < flows)%nat -> 0 < capacity -> 0 < target -> 0 < a -> a < b ->
  shrink flows capacity target b < shrink flows capacity target a.
Proof.
  intros some room aim sign less. unfold shrink.
  assert (0 < INR flows) as count by (apply lt_0_INR, some).
  assert (0 < INR flows * a / capacity) as first by (apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat|]; assumption).
  assert (INR flows * a / capacity < INR flows * b / capacity) as more.
  { apply Rmult_lt_compat_r; [apply Rinv_0_lt_compat, room|]. apply Rmult_lt_compat_l; assumption. }
  apply Rmult_lt_compat_l; [exact aim|]. apply Rinv_lt_contravar; [apply Rmult_lt_0_compat|]; lra.
Qed.
