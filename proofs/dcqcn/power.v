(** Powers of a positive number with a real exponent, as the fluid model has them: (1 - p)^(tau R).

    Coq's [Rpower] is the same number, see [power_is_Rpower], but its logarithm rests on the axiom of the excluded
    middle. This one does not: all that is used of [exp] is 1 + u < exp u, and that it is continuous. *)

From Coq Require Import Reals Lra Lia Psatz.

Open Scope R_scope.

(** * Lower and upper bounds of exp *)

Lemma exp_sum_limit (x : R) : Un_cv (fun n => sum_f_R0 (fun k => / INR (fact k) * x ^ k) n) (exp x).
Proof.
  unfold exp. destruct (exist_exp x) as [e is_sum]. exact is_sum.
Qed.

Lemma inverse_factorial_positive (k : nat) : 0 < / INR (fact k).
Proof. apply Rinv_0_lt_compat, INR_fact_lt_0. Qed.

Lemma inverse_factorial_at_most_one (k : nat) : / INR (fact k) <= 1.
Proof.
  assert (one_le : 1 <= INR (fact k)).
  { change 1 with (INR 1). apply le_INR. exact (lt_O_fact k). }
  apply Rmult_le_reg_l with (INR (fact k)); [lra |].
  rewrite Rinv_r; lra.
Qed.

Lemma exp_above_line_right (x : R) : 0 <= x -> 1 + x <= exp x.
Proof.
  intros nonnegative.
  replace (1 + x) with (sum_f_R0 (fun k => / INR (fact k) * x ^ k) 1) by (simpl; field).
  apply sum_incr; [apply exp_sum_limit |].
  intros k. apply Rmult_le_pos; [left; apply inverse_factorial_positive | apply pow_le, nonnegative].
Qed.

Lemma exp_below_geometric (x : R) : 0 <= x < 1 -> exp x <= / (1 - x).
Proof.
  intros [nonnegative below].
  apply Rle_cv_lim with
    (Un := fun n => sum_f_R0 (fun k => / INR (fact k) * x ^ k) n) (Vn := fun _ : nat => / (1 - x)).
  - intros n. apply Rle_trans with (sum_f_R0 (fun k => x ^ k) n).
    + apply sum_Rle. intros k _. rewrite <- (Rmult_1_l (x ^ k)) at 2.
      apply Rmult_le_compat_r; [apply pow_le, nonnegative | apply inverse_factorial_at_most_one].
    + rewrite tech3 by lra. unfold Rdiv. rewrite <- (Rmult_1_l (/ (1 - x))) at 2.
      apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra |].
      assert (rest := pow_le x (S n) nonnegative). lra.
  - apply exp_sum_limit.
  - intros eps positive. exists 0%nat. intros n _. unfold R_dist. rewrite Rminus_diag_eq, Rabs_R0 by reflexivity.
    exact positive.
Qed.

Lemma exp_opposite (x : R) : exp (- x) * exp x = 1.
Proof. rewrite <- exp_plus, Rplus_opp_l. apply exp_0. Qed.

Lemma exp_above_line (x : R) : 1 + x <= exp x.
Proof.
  destruct (Rle_lt_dec 0 x) as [nonnegative | negative].
  - apply exp_above_line_right, nonnegative.
  - assert (positive := exp_pos x).
    destruct (Rle_lt_dec x (-1)) as [far | near]; [lra |].
    assert (bound : exp (- x) <= / (1 - - x)) by (apply exp_below_geometric; lra).
    assert (inverse := exp_opposite x).
    assert (positive' := exp_pos (- x)).
    apply Rmult_le_reg_l with (exp (- x)); [exact positive' |].
    rewrite inverse.
    apply Rle_trans with (/ (1 - - x) * (1 + x)).
    + apply Rmult_le_compat_r; lra.
    + replace (1 - - x) with (1 + x) by ring. rewrite Rinv_l; lra.
Qed.

Lemma exp_strictly_above_line (x : R) : x <> 0 -> 1 + x < exp x.
Proof.
  intros moved.
  assert (half := exp_above_line (x / 2)).
  assert (squared : exp x = exp (x / 2) * exp (x / 2)) by (rewrite <- exp_plus; f_equal; field).
  assert (positive := exp_pos x).
  assert (square : 0 < x * x) by (apply Rsqr_pos_lt; exact moved).
  destruct (Rle_lt_dec x (-1)) as [far | near]; [lra |].
  rewrite squared. nra.
Qed.

Lemma exp_rises (x y : R) : x < y -> exp x < exp y.
Proof.
  intros less.
  replace y with (x + (y - x)) by ring. rewrite exp_plus.
  assert (more : 1 + (y - x) < exp (y - x)) by (apply exp_strictly_above_line; lra).
  assert (positive := exp_pos x). nra.
Qed.

Lemma exp_injective (x y : R) : exp x = exp y -> x = y.
Proof.
  intros same. destruct (Rtotal_order x y) as [less | [equal | more]]; [| exact equal |].
  - assert (rises := exp_rises x y less). lra.
  - assert (rises := exp_rises y x more). lra.
Qed.

(** * The logarithm *)

Lemma exp_continuous : continuity exp.
Proof. apply derivable_continuous. intros x. exists (exp x). apply derivable_pt_lim_exp. Qed.

Lemma log_exists (y : R) : 0 < y -> {x : R | exp x = y}.
Proof.
  intros positive.
  assert (inverse : 0 < / y) by (apply Rinv_0_lt_compat, positive).
  destruct (IVT (fun x => exp x - y) (- / y) y) as [x [_ root]].
  - apply continuity_minus; [exact exp_continuous | apply continuity_const; intros u v; reflexivity].
  - lra.
  - assert (large := exp_above_line (/ y)). assert (product := exp_opposite (/ y)).
    assert (unit : / y * y = 1) by (apply Rinv_l; lra).
    assert (small := exp_pos (- / y)).
    assert (more : exp (- / y) * (1 + / y) <= 1) by nra.
    nra.
  - assert (above := exp_above_line y). lra.
  - exists x. lra.
Qed.

(** The natural logarithm of a positive number; 0 of others. *)
Definition log (y : R) : R :=
  match Rlt_dec 0 y with
  | left positive => proj1_sig (log_exists y positive)
  | right _ => 0
  end.

Lemma exp_log (y : R) : 0 < y -> exp (log y) = y.
Proof.
  intros positive. unfold log. destruct (Rlt_dec 0 y) as [here | absurd]; [| lra].
  exact (proj2_sig (log_exists y here)).
Qed.

Lemma log_exp (x : R) : log (exp x) = x.
Proof. apply exp_injective, exp_log, exp_pos. Qed.

Lemma log_negative (y : R) : 0 < y < 1 -> log y < 0.
Proof.
  intros [positive below]. destruct (Rlt_le_dec (log y) 0) as [good | bad]; [exact good |].
  assert (line := exp_above_line (log y)). rewrite exp_log in line by exact positive. lra.
Qed.

(** * Powers *)

(** [power y n] is y^n of a positive y, and any real n. *)
Definition power (y n : R) : R := exp (n * log y).

Lemma power_exp (x n : R) : power (exp x) n = exp (n * x).
Proof. unfold power. rewrite log_exp. reflexivity. Qed.

Lemma power_positive (y n : R) : 0 < power y n.
Proof. apply exp_pos. Qed.

Lemma power_plus (y n m : R) : power y (n + m) = power y n * power y m.
Proof. unfold power. rewrite <- exp_plus. f_equal. ring. Qed.

Lemma power_pow (y n : R) (k : nat) : power y n ^ k = power y (INR k * n).
Proof.
  induction k as [| k hypothesis].
  - unfold power. simpl. rewrite Rmult_0_l, Rmult_0_l, exp_0. reflexivity.
  - rewrite S_INR. replace ((INR k + 1) * n) with (n + INR k * n) by ring.
    rewrite power_plus, <- hypothesis. reflexivity.
Qed.

Lemma power_nat (y : R) (k : nat) : 0 < y -> power y (INR k) = y ^ k.
Proof.
  intros positive. rewrite <- (Rmult_1_r (INR k)), <- power_pow. f_equal.
  unfold power. rewrite Rmult_1_l. apply exp_log, positive.
Qed.

Lemma power_opposite (y n : R) : power y (- n) * power y n = 1.
Proof. unfold power. rewrite Ropp_mult_distr_l_reverse. apply exp_opposite. Qed.

Lemma power_below_one (y n : R) : 0 < y < 1 -> 0 < n -> power y n < 1.
Proof.
  intros inside positive. unfold power. rewrite <- exp_0. apply exp_rises.
  assert (negative := log_negative y inside). nra.
Qed.

(** It is the standard library's power. This alone rests on the excluded middle, as [Rpower] itself does. *)
Lemma power_is_Rpower (y n : R) : 0 < y -> power y n = Rpower y n.
Proof.
  intros positive. unfold power, Rpower. do 2 f_equal. apply exp_injective.
  rewrite exp_log, Rpower.exp_ln by exact positive. reflexivity.
Qed.

(** * Whole powers *)

Lemma pow_less (x y : R) (n : nat) : 0 <= x < y -> (0 < n)%nat -> x ^ n < y ^ n.
Proof.
  intros order some. destruct n as [| n]; [lia |]. simpl.
  assert (rest : x ^ n <= y ^ n) by (apply pow_incr; lra).
  assert (positive_y : 0 < y ^ n) by (apply pow_lt; lra).
  apply Rle_lt_trans with (x * y ^ n); [apply Rmult_le_compat_l; lra |].
  apply Rmult_lt_compat_r; lra.
Qed.

Lemma pow_below_one (x : R) (n : nat) : 0 <= x < 1 -> (0 < n)%nat -> x ^ n < 1.
Proof. intros order some. rewrite <- (pow1 n). apply pow_less; assumption. Qed.
