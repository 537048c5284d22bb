(** Real powers of positive numbers, x^y = exp (y log x), and the exponential's inequalities.

    They are those of Coq's library ([log_is_ln], [power_is_Rpower]), whose proofs assume the excluded middle. Here
    everything follows from the axioms of the reals alone. *)

From Coq Require Import Reals Lra Lia.

Local Open Scope R_scope.

(** * The exponential *)

Lemma exp_of_multiple (n : nat) (t : R) : exp (INR n * t) = exp t ^ n.
Proof.
  induction n as [|n IH].
  - simpl. rewrite Rmult_0_l. apply exp_0.
  - rewrite S_INR. replace ((INR n + 1) * t) with (t + INR n * t) by ring.
    rewrite exp_plus, IH. reflexivity.
Qed.

(** Bernoulli's inequality. *)
Lemma bernoulli (n : nat) (h : R) : -1 <= h -> 1 + INR n * h <= (1 + h) ^ n.
Proof.
  intros above. induction n as [|n IH].
  - simpl. lra.
  - rewrite S_INR. simpl pow.
    assert ((1 + h) * (1 + INR n * h) <= (1 + h) * (1 + h) ^ n) as step by (apply Rmult_le_compat_l; lra).
    pose proof (pos_INR n) as sign.
    assert (0 <= INR n * (h * h)) by (apply Rmult_le_pos; [exact sign|apply Rle_0_sqr]). lra.
Qed.

Lemma whole_number_beyond (x : R) : exists n, (0 < n)%nat /\ x < INR n.
Proof.
  destruct (Rle_or_lt x 0) as [below|above].
  - exists 1%nat. split; [lia|]. simpl. lra.
  - destruct (archimed_cor1 (/ x) (Rinv_0_lt_compat x above)) as (n & small & positive).
    exists n. split; [exact positive|].
    assert (0 < INR n) as sign by (apply lt_0_INR; exact positive).
    apply Rinv_lt_contravar in small; [|apply Rmult_lt_0_compat; apply Rinv_0_lt_compat; assumption].
    rewrite !Rinv_inv in small. exact small.
Qed.

(** Near 0 the exponential is at least its tangent, but for an error that is small next to the distance. *)
Lemma exp_near_zero (error : R) :
  0 < error -> exists delta, 0 < delta /\ forall h, Rabs h < delta -> 1 + (h - error * Rabs h) <= exp h.
Proof.
  intros sign. destruct (derivable_pt_lim_exp_0 error sign) as [delta near].
  exists delta. split; [apply cond_pos|]. intros h small.
  destruct (Req_dec h 0) as [zero|other].
  - subst h. rewrite Rabs_R0, exp_0. lra.
  - pose proof (near h other small) as close. rewrite Rplus_0_l, exp_0 in close.
    assert (0 < Rabs h) as size by (apply Rabs_pos_lt, other).
    apply Rmult_lt_compat_r with (r := Rabs h) in close; [|exact size].
    rewrite <- Rabs_mult in close.
    replace (((exp h - 1) / h - 1) * h) with (exp h - 1 - h) in close by (field; exact other).
    apply Rabs_def2 in close. lra.
Qed.

Lemma exp_at_least (x : R) : 1 + x <= exp x.
Proof.
  destruct (Req_dec x 0) as [zero|other]; [subst x; rewrite exp_0; lra|].
  assert (0 < Rabs x) as size by (apply Rabs_pos_lt, other).
  apply le_epsilon. intros e sign.
  set (error := e / Rabs x). assert (0 < error) as error_sign by (apply Rdiv_lt_0_compat; assumption).
  destruct (exp_near_zero error error_sign) as (delta & delta_sign & near).
  destruct (whole_number_beyond (Rabs x / delta + (1 + error) * Rabs x)) as (n & positive & many).
  assert (0 < INR n) as count by (apply lt_0_INR, positive).
  assert (0 < Rabs x / delta) as first by (apply Rdiv_lt_0_compat; assumption).
  assert (0 < (1 + error) * Rabs x) as second by (apply Rmult_lt_0_compat; lra).
  assert (Rabs (x / INR n) = Rabs x / INR n) as scaled.
  { unfold Rdiv. rewrite Rabs_mult, Rabs_inv, (Rabs_pos_eq (INR n)) by lra. reflexivity. }
  assert (Rabs x / INR n < delta) as small.
  { apply Rmult_lt_reg_r with (INR n / delta); [apply Rdiv_lt_0_compat; assumption|].
    replace (Rabs x / INR n * (INR n / delta)) with (Rabs x / delta) by (field; lra).
    replace (delta * (INR n / delta)) with (INR n) by (field; lra). lra. }
  pose proof (near (x / INR n)) as step. rewrite scaled in step. specialize (step small).
  set (h := x / INR n - error * (Rabs x / INR n)) in step.
  assert (INR n * h = x - e) as total_of_steps by (unfold h, error; field; lra).
  assert (-1 <= h) as above.
  { apply Rmult_le_reg_l with (INR n); [exact count|]. rewrite total_of_steps.
    assert (error * Rabs x = e) by (unfold error; field; lra).
    pose proof (Rle_abs (- x)) as low. rewrite Rabs_Ropp in low. lra. }
  pose proof (bernoulli n h above) as power. rewrite total_of_steps in power.
  assert ((1 + h) ^ n <= exp (x / INR n) ^ n) as grows by (apply pow_incr; lra).
  rewrite <- exp_of_multiple in grows.
  replace (INR n * (x / INR n)) with x in grows by (field; lra). lra.
Qed.

Lemma exp_above_line (x : R) : x <> 0 -> 1 + x < exp x.
Proof.
  intros other. destruct (Rle_or_lt (1 + x / 2) 0) as [low|high].
  - pose proof (exp_pos x). lra.
  - pose proof (exp_at_least (x / 2)) as half.
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

Lemma exp_grows (x y : R) : x < y -> exp x < exp y.
Proof.
  intros less. pose proof (exp_above_tangent x y ltac:(lra)) as above.
  pose proof (exp_pos x) as sign.
  assert (0 < exp x * (y - x)) by (apply Rmult_lt_0_compat; lra). lra.
Qed.

Lemma exp_injective (x y : R) : exp x = exp y -> x = y.
Proof.
  intros same. destruct (Rtotal_order x y) as [less|[equal|more]]; [|exact equal|].
  - apply exp_grows in less. lra.
  - apply exp_grows in more. lra.
Qed.

(** * The logarithm *)

Lemma log_exists (x : R) : 0 < x -> {t : R | exp t = x}.
Proof.
  intros sign. assert (0 < / x) as inverse by (apply Rinv_0_lt_compat, sign).
  destruct (IVT (fun t => exp t - x) (- / x) x) as [t [_ root]].
  - apply continuity_minus; [apply derivable_continuous, derivable_exp|].
    apply continuity_const. intros first second. reflexivity.
  - lra.
  - rewrite exp_Ropp. pose proof (exp_at_least (/ x)) as large.
    apply Rlt_minus. rewrite <- (Rinv_inv x) at 2.
    apply Rinv_lt_contravar; [apply Rmult_lt_0_compat; lra|lra].
  - pose proof (exp_at_least x). lra.
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

Lemma log_grows (x y : R) : 0 < x -> x < y -> log x < log y.
Proof.
  intros sign less. destruct (Rlt_or_le (log x) (log y)) as [done|other]; [exact done|exfalso].
  destruct other as [more|same].
  - apply exp_grows in more. rewrite !exp_log in more by lra. lra.
  - apply log_injective in same; lra.
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

Lemma power_one (x : R) : 0 < x -> power x 1 = x.
Proof. intros sign. unfold power. rewrite Rmult_1_l. apply exp_log, sign. Qed.

Lemma power_zero (x : R) : power x 0 = 1.
Proof. unfold power. rewrite Rmult_0_l. apply exp_0. Qed.

Lemma power_plus (x y z : R) : power x (y + z) = power x y * power x z.
Proof. unfold power. rewrite <- exp_plus. f_equal. ring. Qed.

Lemma power_of_power (x y z : R) : power (power x y) z = power x (y * z).
Proof. unfold power. rewrite log_exp. f_equal. ring. Qed.

Lemma log_of_product (x y : R) : 0 < x -> 0 < y -> log (x * y) = log x + log y.
Proof.
  intros first second. apply exp_injective. rewrite exp_plus, !exp_log; [reflexivity|exact second|exact first|].
  apply Rmult_lt_0_compat; assumption.
Qed.

Lemma power_of_product (x y z : R) : 0 < x -> 0 < y -> power (x * y) z = power x z * power y z.
Proof.
  intros first second. unfold power. rewrite log_of_product by assumption. rewrite <- exp_plus. f_equal. ring.
Qed.

Lemma power_grows (x y z : R) : 0 < z -> 0 < x -> x < y -> power x z < power y z.
Proof.
  intros exponent sign less. apply exp_grows, Rmult_lt_compat_l; [exact exponent|].
  apply log_grows; assumption.
Qed.

Lemma power_falls (x y z : R) : 0 < z -> 0 < x -> x < y -> power y (- z) < power x (- z).
Proof.
  intros exponent sign less. apply exp_grows. pose proof (log_grows x y sign less) as more.
  apply Rmult_lt_compat_l with (r := z) in more; lra.
Qed.

Lemma power_nat (x : R) (n : nat) : 0 < x -> power x (INR n) = x ^ n.
Proof. intros sign. unfold power. rewrite exp_of_multiple, exp_log by exact sign. reflexivity. Qed.
