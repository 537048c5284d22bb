(** DCQCN (SIGCOMM 2015), section 5.1: where the fixed point of the senders meets RED's ramp (5).

    RED marks with p on its ramp up to Pmax, and with 1 beyond it: no queue marks with Pmax < p < 1. *)

From Coq Require Import Reals Lra Psatz.
From fluidcc.shared Require Import power.
From fluidcc.dcqcn Require Import hazard fixed_point.

Open Scope R_scope.

(** The ramp of (5): thresholds in order, and marks up to Pmax, a probability. *)
Definition is_ramp (kmin kmax pmax : R) : Prop := kmin < kmax /\ 0 < pmax <= 1.

Section Ramp.

Variables kmin kmax pmax : R.
Hypothesis ramp : is_ramp kmin kmax pmax.

Lemma red_on_ramp (q : R) : kmin < q <= kmax -> red kmin kmax pmax q = (q - kmin) / (kmax - kmin) * pmax.
Proof.
  intros between. unfold red. destruct (Rle_dec q kmin) as [absurd | _]; [lra |].
  destruct (Rle_dec q kmax) as [_ | absurd]; [reflexivity | lra].
Qed.

Lemma red_inverse (p : R) :
  0 < p <= pmax ->
  let q := kmin + p / pmax * (kmax - kmin) in kmin < q <= kmax /\ red kmin kmax pmax q = p.
Proof.
  intros [positive_p at_most] q. destruct ramp as [thresholds [positive_pmax _]].
  assert (share : 0 < p / pmax <= 1).
  { split; [apply Rdiv_lt_0_compat; assumption |].
    apply Rmult_le_reg_r with pmax; [exact positive_pmax |].
    replace (p / pmax * pmax) with p by (field; lra). lra. }
  assert (between : kmin < q <= kmax) by (unfold q; nra).
  split; [exact between |]. rewrite red_on_ramp by exact between. unfold q. field. lra.
Qed.

(** (5): a queue that marks some packets but not all stands on the ramp. *)
Theorem partial_marking_is_on_the_ramp (q : R) : 0 < red kmin kmax pmax q < 1 -> kmin < q <= kmax.
Proof.
  unfold red. destruct (Rle_dec q kmin) as [low | above]; [lra |].
  destruct (Rle_dec q kmax) as [within | beyond]; lra.
Qed.

(** (5): the ramp marks with at most Pmax. *)
Theorem ramp_marks_at_most_pmax (q : R) : kmin < q <= kmax -> red kmin kmax pmax q <= pmax.
Proof.
  intros between. rewrite red_on_ramp by exact between. destruct ramp as [thresholds [positive_pmax _]].
  assert (share : (q - kmin) / (kmax - kmin) <= 1).
  { apply Rmult_le_reg_r with (kmax - kmin); [lra |].
    replace ((q - kmin) / (kmax - kmin) * (kmax - kmin)) with (q - kmin) by (field; lra). lra. }
  nra.
Qed.

(** (5): some queue marks with p, strictly between 0 and 1, if and only if p is at most Pmax. *)
Theorem some_queue_marks_iff (p : R) : 0 < p < 1 -> ((exists q, red kmin kmax pmax q = p) <-> p <= pmax).
Proof.
  intros inside. split.
  - intros [q marks]. assert (partial : 0 < red kmin kmax pmax q < 1) by (rewrite marks; exact inside).
    rewrite <- marks. apply ramp_marks_at_most_pmax, partial_marking_is_on_the_ramp, partial.
  - intros at_most. exists (kmin + p / pmax * (kmax - kmin)). apply red_inverse. lra.
Qed.

(** (5): the queue that marks with p is Kmin + p/Pmax (Kmax - Kmin), and no other is. *)
Theorem queue_of_a_marking (p q : R) :
  0 < p < 1 -> red kmin kmax pmax q = p -> q = kmin + p / pmax * (kmax - kmin).
Proof.
  intros inside marks. assert (between : kmin < q <= kmax).
  { apply partial_marking_is_on_the_ramp. rewrite marks. exact inside. }
  rewrite red_on_ramp in marks by exact between. destruct ramp as [thresholds [positive_pmax _]].
  rewrite <- marks. field. lra.
Qed.

(** The whole model, (5) to (9), with a queue. *)
Definition fixed_point (s : settings) (N q alpha R_T R_C : R) : Prop :=
  at_rest s N (red kmin kmax pmax q) alpha R_T R_C.

Section Senders.

Variables (s : settings) (N : R).
Hypothesis all_positive : positive s.
Hypothesis some_flows : 0 < N.

(** Section 5.1: the queue of a fixed point stands on RED's ramp. *)
Theorem queue_at_rest_is_on_the_ramp (q alpha R_T R_C : R) : fixed_point s N q alpha R_T R_C -> kmin < q <= kmax.
Proof. intros rest. apply partial_marking_is_on_the_ramp. exact (marks_some _ _ _ _ _ _ rest). Qed.

(** Section 5.1: with p the marking that the senders need, (5) to (9), with equal rates, have a fixed point if and only
    if p <= Pmax. The paper says that there always is one. *)
Theorem fixed_point_exists_iff (p alpha R_T R_C : R) :
  at_rest s N p alpha R_T R_C ->
  ((exists q alpha' R_T' R_C', fixed_point s N q alpha' R_T' R_C') <-> p <= pmax).
Proof.
  intros rest. rewrite <- (some_queue_marks_iff p (marks_some _ _ _ _ _ _ rest)). split.
  - intros [q [alpha' [R_T' [R_C' rest']]]]. exists q.
    exact (marking_at_rest_is_unique s N all_positive some_flows _ _ _ _ _ _ _ _ rest' rest).
  - intros [q marks]. exists q, alpha, R_T, R_C. unfold fixed_point. rewrite marks. exact rest.
Qed.

(** Section 5.1: (5) to (9), with equal rates, have at most one fixed point: one queue. *)
Theorem queue_at_rest_is_unique (q alpha R_T R_C q' alpha' R_T' R_C' : R) :
  fixed_point s N q alpha R_T R_C -> fixed_point s N q' alpha' R_T' R_C' -> q = q'.
Proof.
  intros rest rest'.
  assert (same := marking_at_rest_is_unique s N all_positive some_flows _ _ _ _ _ _ _ _ rest rest').
  assert (inside := marks_some _ _ _ _ _ _ rest'). rewrite <- same in inside.
  rewrite (queue_of_a_marking _ q inside eq_refl). symmetry.
  apply queue_of_a_marking; [exact inside | symmetry; exact same].
Qed.

(** Section 5.1: with p the marking that the senders need, (5) to (9), with equal rates, have exactly one fixed point if
    and only if p <= Pmax, and none otherwise. The paper says that there always is one. Of unequal rates this says
    nothing.
    Claim: dcqcn-51-unique. *)
Theorem one_fixed_point_iff (p alpha R_T R_C : R) :
  at_rest s N p alpha R_T R_C ->
  ((exists! rest : R * R * R * R, let '(q, alpha', R_T', R_C') := rest in fixed_point s N q alpha' R_T' R_C')
   <-> p <= pmax).
Proof.
  intros rest. rewrite <- (fixed_point_exists_iff p alpha R_T R_C rest). split.
  - intros [[[[q alpha'] R_T'] R_C'] [found _]]. exists q, alpha', R_T', R_C'. exact found.
  - intros [q [alpha' [R_T' [R_C' found]]]]. exists (q, alpha', R_T', R_C'). split; [exact found |].
    intros [[[q2 alpha2] R_T2] R_C2] other.
    assert (same := queue_at_rest_is_unique _ _ _ _ _ _ _ _ found other). subst q2.
    destruct (one_fixed_point s N all_positive some_flows) as [one [_ only]].
    assert (first := only (red kmin kmax pmax q, alpha', R_T', R_C') found).
    assert (second := only (red kmin kmax pmax q, alpha2, R_T2, R_C2) other).
    rewrite first in second. injection second as alphas targets rates. subst. reflexivity.
Qed.

(** For Pmax < 1 it is enough to look at the two sides of the equation for p at Pmax: there is a fixed point if and only
    if marks at Pmax cut at least as much as increases raise. *)
Theorem fixed_point_exists_by_sign :
  pmax < 1 ->
  ((exists q alpha R_T R_C, fixed_point s N q alpha R_T R_C)
   <-> raises s pmax (line_rate s / N) <= cuts s pmax (line_rate s / N)).
Proof.
  intros below. destruct ramp as [_ [positive_pmax _]].
  destruct (one_fixed_point s N all_positive some_flows) as [[[[p alpha] R_T] R_C] [rest _]].
  rewrite (fixed_point_exists_iff p alpha R_T R_C rest).
  assert (iff := marking_is_above_iff s N all_positive some_flows p alpha R_T R_C pmax rest (conj positive_pmax below)).
  rewrite (rate_at_rest_is_fair_share s N some_flows p alpha R_T R_C rest) in iff.
  destruct iff as [to from]. split.
  - intros at_most. destruct (Rle_lt_dec (raises s pmax (line_rate s / N)) (cuts s pmax (line_rate s / N)))
      as [good | bad]; [exact good |]. apply from in bad. lra.
  - intros enough. destruct (Rle_lt_dec p pmax) as [good | bad]; [exact good |]. apply to in bad. lra.
Qed.

(** Section 5.1: with Pmax = 1 there is always a fixed point. *)
Theorem fixed_point_exists_if_pmax_is_one : pmax = 1 -> exists q alpha R_T R_C, fixed_point s N q alpha R_T R_C.
Proof.
  intros all. destruct (one_fixed_point s N all_positive some_flows) as [[[[p alpha] R_T] R_C] [rest _]].
  apply (fixed_point_exists_iff p alpha R_T R_C rest). assert (inside := marks_some _ _ _ _ _ _ rest). lra.
Qed.

End Senders.

End Ramp.
