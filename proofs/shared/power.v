(** The exponential's inequalities, the logarithm, and real powers of positive numbers, x^y = exp (y log x).

    They are those of Coq's library ([log_is_ln], [power_is_Rpower]), whose proofs assume the excluded middle. Here
    everything follows from the axioms of the reals alone: of the exponential's slope, that it is 1 at 0. *)

From Coq Require Import Reals Lra Lia.

Local Open Scope R_scope.

(** * The exponential *)

Lemma exp_opposite (x : R) : exp (- x) * exp x = 1.
Proof. rewrite <- exp_plus, Rplus_opp_l. apply exp_0. Qed.

Lemma exp_of_multiple (n : nat) (t : R) : exp (INR n * t) = exp t ^ n.
Proof.
  induction n as [|n IH].
  - simpl. rewrite Rmult_0_l. apply exp_0.
  - rewrite S_INR. replace ((INR n + 1) * t) with (t + INR n * t) by ring.
    rewrite exp_plus, IH. reflexivity.
Qed.

(** Half way between 0 and x the exponential is below its chord. *)
Lemma exp_below_chord (x : R) : exp (x / 2) <= (1 + exp x) / 2.
Proof.
  replace (exp x) with (exp (x / 2) * exp (x / 2)) by (rewrite <- exp_plus; f_equal; lra).
  pose proof (Rle_0_sqr (exp (x / 2) - 1)) as square. unfold Rsqr in square. lra.
Qed.

(** If it were below its tangent at 0 somewhere, it would be as much so, in proportion, half way to 0, and half way
    again, against its slope at 0. *)
Lemma exp_at_least_line (x : R) : 1 + x <= exp x.
Proof.
  apply Rnot_lt_le. intros below. set (gap := 1 + x - exp x). assert (0 < gap) as gap_sign by (unfold gap; lra).
  assert (x <> 0) as other by (intros zero; subst x; rewrite exp_0 in below; lra).
  assert (0 < Rabs x) as size by (apply Rabs_pos_lt, other).
  assert (forall n, exp (x * (/ 2) ^ n) <= 1 + (x - gap) * (/ 2) ^ n) as halves.
  { induction n as [|n IH]; [simpl; rewrite Rmult_1_r; unfold gap; lra|].
    pose proof (exp_below_chord (x * (/ 2) ^ n)) as chord.
    simpl pow. replace (x * (/ 2 * (/ 2) ^ n)) with (x * (/ 2) ^ n / 2) by field. lra. }
  destruct (derivable_pt_lim_exp_0 (gap / Rabs x)) as [delta near]; [apply Rdiv_lt_0_compat; assumption|].
  destruct (pow_lt_1_zero (/ 2)) with (y := delta / Rabs x) as [n small].
  { rewrite Rabs_pos_eq; lra. }
  { apply Rdiv_lt_0_compat; [apply cond_pos|exact size]. }
  specialize (small n (le_n n)). specialize (halves n).
  assert (0 < (/ 2) ^ n) as positive by (apply pow_lt; lra).
  set (part := (/ 2) ^ n) in *. rewrite Rabs_pos_eq in small by lra.
  assert (Rabs (x * part) = Rabs x * part) as scaled by (rewrite Rabs_mult, (Rabs_pos_eq part); lra).
  assert (x * part <> 0) as moved by (apply Rmult_integral_contrapositive; split; lra).
  assert (Rabs x * part < delta) as inside.
  { apply Rmult_lt_compat_l with (r := Rabs x) in small; [|exact size].
    replace (Rabs x * (delta / Rabs x)) with (pos delta) in small by (field; lra). exact small. }
  rewrite <- scaled in inside. specialize (near (x * part) moved inside). rewrite Rplus_0_l, exp_0 in near.
  apply Rmult_lt_compat_r with (r := Rabs (x * part)) in near; [|apply Rabs_pos_lt, moved].
  rewrite <- Rabs_mult, scaled in near.
  replace (((exp (x * part) - 1) / (x * part) - 1) * (x * part)) with (exp (x * part) - 1 - x * part) in near
    by (field; split; lra).
  replace (gap / Rabs x * (Rabs x * part)) with (gap * part) in near by (field; lra).
  apply Rabs_def2 in near. lra.
Qed.

Lemma exp_above_line (x : R) : x <> 0 -> 1 + x < exp x.
Proof.
  intros other. destruct (Rle_or_lt (1 + x / 2) 0) as [low|high].
  - pose proof (exp_pos x). lra.
  - pose proof (exp_at_least_line (x / 2)) as half.
    replace (exp x) with (exp (x / 2) * exp (x / 2)) by (rewrite <- exp_plus; f_equal; lra).
    assert ((1 + x / 2) * (1 + x / 2) <= exp (x / 2) * exp (x / 2)) as square by (apply Rmult_le_compat; lra).
    pose proof (Rsqr_pos_lt x other) as positive. unfold Rsqr in positive. lra.
Qed.

(** The exponential lies above its tangents. *)
Lemma exp_above_tangent (t s : R) : s <> t -> exp t * (1 + (s - t)) < exp s.
Proof.
  intros apart. replace (exp s) with (exp t * exp (s - t)) by (rewrite <- exp_plus; f_equal; lra).
  apply Rmult_lt_compat_l; [apply exp_pos|]. apply exp_above_line. lra.
Qed.

Lemma exp_rises (x y : R) : x < y -> exp x < exp y.
Proof.
  intros less. pose proof (exp_above_tangent x y ltac:(lra)) as above. pose proof (exp_pos x) as sign.
  assert (0 < exp x * (y - x)) by (apply Rmult_lt_0_compat; lra). lra.
Qed.

Lemma exp_rises_weakly (x y : R) : x <= y -> exp x <= exp y.
Proof. intros [less|same]; [apply Rlt_le, exp_rises, less|rewrite same; lra]. Qed.

Lemma exp_injective (x y : R) : exp x = exp y -> x = y.
Proof.
  intros same. destruct (Rtotal_order x y) as [less|[equal|more]]; [|exact equal|].
  - apply exp_rises in less. lra.
  - apply exp_rises in more. lra.
Qed.

Lemma exp_continuous : continuity exp.
Proof. apply derivable_continuous, derivable_exp. Qed.

(** * The logarithm *)

Lemma log_exists (x : R) : 0 < x -> {t : R | exp t = x}.
Proof.
  intros sign. assert (0 < / x) as inverse by (apply Rinv_0_lt_compat, sign).
  destruct (IVT (fun t => exp t - x) (- / x) x) as [t [_ root]].
  - apply continuity_minus; [exact exp_continuous|].
    apply continuity_const. intros first second. reflexivity.
  - lra.
  - rewrite exp_Ropp. pose proof (exp_at_least_line (/ x)) as large.
    apply Rlt_minus. rewrite <- (Rinv_inv x) at 2.
    apply Rinv_lt_contravar; [apply Rmult_lt_0_compat; lra|lra].
  - pose proof (exp_at_least_line x). lra.
  - exists t. lra.
Qed.

(** log x; 0 for the x that have none. *)
Definition log (x : R) : R :=
  match Rlt_dec 0 x with
  | left sign => proj1_sig (log_exists x sign)
  | right _ => 0
  end.

Lemma exp_log (x : R) : 0 < x -> exp (log x) = x.
Proof.
  intros sign. unfold log. destruct (Rlt_dec 0 x) as [yes|no]; [|contradiction].
  destruct (log_exists x yes) as [t root]. exact root.
Qed.

Lemma log_exp (t : R) : log (exp t) = t.
Proof. apply exp_injective, exp_log, exp_pos. Qed.

Lemma log_injective (x y : R) : 0 < x -> 0 < y -> log x = log y -> x = y.
Proof. intros first second same. rewrite <- (exp_log x first), <- (exp_log y second), same. reflexivity. Qed.

Lemma log_rises (x y : R) : 0 < x -> x < y -> log x < log y.
Proof.
  intros sign less. apply Rnot_le_lt. intros [more|same].
  - apply exp_rises in more. rewrite !exp_log in more by lra. lra.
  - apply log_injective in same; lra.
Qed.

Lemma log_negative (x : R) : 0 < x < 1 -> log x < 0.
Proof. intros inside. pose proof (exp_at_least_line (log x)) as line. rewrite exp_log in line by lra. lra. Qed.

Lemma log_of_product (x y : R) : 0 < x -> 0 < y -> log (x * y) = log x + log y.
Proof.
  intros first second. apply exp_injective. rewrite exp_plus, !exp_log; [reflexivity|exact second|exact first|].
  apply Rmult_lt_0_compat; assumption.
Qed.

Lemma log_is_ln (x : R) : 0 < x -> log x = ln x.
Proof. intros sign. apply exp_injective. rewrite exp_log, exp_ln by exact sign. reflexivity. Qed.

(** * Powers *)

(** x^y of a positive x. *)
Definition power (x y : R) : R := exp (y * log x).

Lemma power_is_Rpower (x y : R) : 0 < x -> power x y = Rpower x y.
Proof. intros sign. unfold power, Rpower. rewrite log_is_ln by exact sign. reflexivity. Qed.

Lemma power_positive (x y : R) : 0 < power x y.
Proof. apply exp_pos. Qed.

Lemma power_zero (x : R) : power x 0 = 1.
Proof. unfold power. rewrite Rmult_0_l. apply exp_0. Qed.

Lemma power_one (x : R) : 0 < x -> power x 1 = x.
Proof. intros sign. unfold power. rewrite Rmult_1_l. apply exp_log, sign. Qed.

Lemma power_plus (x y z : R) : power x (y + z) = power x y * power x z.
Proof. unfold power. rewrite <- exp_plus. f_equal. ring. Qed.

Lemma power_opposite (x y : R) : power x (- y) * power x y = 1.
Proof. rewrite <- power_plus, Rplus_opp_l. apply power_zero. Qed.

Lemma power_of_power (x y z : R) : power (power x y) z = power x (y * z).
Proof. unfold power. rewrite log_exp. f_equal. ring. Qed.

Lemma power_of_product (x y z : R) : 0 < x -> 0 < y -> power (x * y) z = power x z * power y z.
Proof.
  intros first second. unfold power. rewrite log_of_product by assumption. rewrite <- exp_plus. f_equal. ring.
Qed.

Lemma power_falls (x y z : R) : 0 < z -> 0 < x -> x < y -> power y (- z) < power x (- z).
Proof.
  intros exponent sign less. apply exp_rises. pose proof (log_rises x y sign less) as more.
  apply Rmult_lt_compat_l with (r := z) in more; lra.
Qed.

Lemma power_below_one (x y : R) : 0 < x < 1 -> 0 < y -> power x y < 1.
Proof.
  intros inside exponent. rewrite <- exp_0. apply exp_rises.
  rewrite <- (Rmult_0_r y). apply Rmult_lt_compat_l; [exact exponent|apply log_negative, inside].
Qed.

(** * Whole powers *)

Lemma power_pow (x y : R) (n : nat) : power x y ^ n = power x (INR n * y).
Proof. unfold power. rewrite <- exp_of_multiple. f_equal. ring. Qed.

Lemma power_nat (x : R) (n : nat) : 0 < x -> power x (INR n) = x ^ n.
Proof. intros sign. unfold power. rewrite exp_of_multiple, exp_log by exact sign. reflexivity. Qed.

Lemma pow_less (x y : R) (n : nat) : 0 <= x < y -> (0 < n)%nat -> x ^ n < y ^ n.
Proof.
  intros order some. destruct n as [|n]; [lia|]. simpl.
  assert (x ^ n <= y ^ n) as rest by (apply pow_incr; lra).
  assert (0 < y ^ n) as positive by (apply pow_lt; lra).
  apply Rle_lt_trans with (x * y ^ n); [apply Rmult_le_compat_l; lra|].
  apply Rmult_lt_compat_r; lra.
Qed.

Lemma pow_below_one (x : R) (n : nat) : 0 <= x < 1 -> (0 < n)%nat -> x ^ n < 1.
Proof. intros order some. rewrite <- (pow1 n). apply pow_less; assumption. Qed.
