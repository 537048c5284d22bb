(** Fast convergence to fairness, section IV-B: the function that has the sign of the fairness difference (2).

    With A, B = C_i r/(s MTU) and x = beta t/r the difference (2) has the sign of gain A B x - 1 (sampling.v). *)

From Coq Require Import Reals Lra Psatz.
From Coquelicot Require Import Coquelicot.
From fluidcc.shared Require Import power.
From fluidcc.fairness Require Import slopes.

Open Scope R_scope.

(** (1 + A x)(1 + B x) exp(-x). *)
Definition gain (a b x : R) : R := (1 + a * x) * (1 + b * x) * exp (- x).

(** The slope of the gain, over exp(-x). *)
Definition tilt (a b x : R) : R := a + b - 1 + (2 * a * b - a - b) * x - a * b * (x * x).

Lemma gain_at_start (a b : R) : gain a b 0 = 1.
Proof. unfold gain. rewrite Ropp_0, exp_0. ring. Qed.

Lemma gain_slope (a b x : R) : is_derive (gain a b) x (exp (- x) * tilt a b x).
Proof. unfold gain, tilt. evar_last; [slopes | cbv beta; ring]. Qed.

Lemma gain_slope_continuous (a b x : R) : continuous (fun u => exp (- u) * tilt a b u) x.
Proof. unfold tilt. steady. Qed.

Lemma gain_rises (a b x y : R) : x < y -> (forall z, x < z < y -> 0 < tilt a b z) -> gain a b x < gain a b y.
Proof.
  intros ordered up.
  apply (rises _ (fun u => exp (- u) * tilt a b u) _ _ ordered).
  - intros z _. apply gain_slope.
  - intros z _. apply gain_slope_continuous.
  - intros z inside. apply Rmult_lt_0_compat; [apply exp_pos | now apply up].
Qed.

Lemma gain_falls (a b x y : R) : x < y -> (forall z, x < z < y -> tilt a b z < 0) -> gain a b y < gain a b x.
Proof.
  intros ordered down.
  apply (falls _ (fun u => exp (- u) * tilt a b u) _ _ ordered).
  - intros z _. apply gain_slope.
  - intros z _. apply gain_slope_continuous.
  - intros z inside. specialize (down z inside). assert (weight := exp_pos (- z)). nra.
Qed.

(** Where a + b is at most 1 the gain only falls. *)
Lemma tilt_negative_without (a b x : R) : 0 < a -> 0 < b -> a + b <= 1 -> 0 < x -> tilt a b x < 0.
Proof.
  intros a_positive b_positive small positive. unfold tilt.
  assert (0 < a * b) by now apply Rmult_lt_0_compat.
  assert (2 * a * b - a - b < 0) by nra.
  assert (0 < x * x) by now apply Rmult_lt_0_compat.
  nra.
Qed.

(** Where the gain has begun to fall it goes on falling. *)
Lemma tilt_stays_negative (a b x y : R) :
  0 < a -> 0 < b -> 0 < x -> x < y -> tilt a b x <= 0 -> tilt a b y < 0.
Proof.
  intros a_positive b_positive positive ordered down.
  destruct (Rle_or_lt (a + b) 1) as [small | large].
  - apply tilt_negative_without; lra.
  - assert (0 < a * b) by now apply Rmult_lt_0_compat.
    assert (chord : y * tilt a b x - x * tilt a b y = (y - x) * (a + b - 1 + a * b * (x * y))) by (unfold tilt; ring).
    assert (0 < x * y) by (apply Rmult_lt_0_compat; lra).
    assert (0 < (y - x) * (a + b - 1 + a * b * (x * y))) by (apply Rmult_lt_0_compat; nra).
    assert (y * tilt a b x <= 0) by nra.
    destruct (Rlt_or_le (tilt a b y) 0) as [less | more]; [exact less | exfalso; nra].
Qed.

Lemma gain_once_lost (a b x y : R) :
  0 < a -> 0 < b -> 0 < x -> x < y -> gain a b x <= 1 -> gain a b y < 1.
Proof.
  intros a_positive b_positive positive ordered lost.
  destruct (Rle_or_lt (tilt a b x) 0) as [down | up].
  - enough (gain a b y < gain a b x) by lra.
    apply (gain_falls _ _ _ _ ordered). intros z [after _].
    now apply (tilt_stays_negative a b x z).
  - exfalso. enough (gain a b 0 < gain a b x) by (rewrite gain_at_start in *; lra).
    apply (gain_rises _ _ _ _ positive). intros z [above before].
    destruct (Rlt_or_le 0 (tilt a b z)) as [more | less]; [exact more | exfalso].
    assert (tilt a b x < 0) by now apply (tilt_stays_negative a b z x).
    lra.
Qed.

Lemma gain_without (a b x : R) : 0 < a -> 0 < b -> a + b <= 1 -> 0 < x -> gain a b x < 1.
Proof.
  intros a_positive b_positive small positive.
  rewrite <- (gain_at_start a b). apply (gain_falls _ _ _ _ positive).
  intros z [above _]. now apply tilt_negative_without.
Qed.

(** Up to 2 (a + b - 1)/(a^2 + b^2) the gain is above 1. *)
Lemma gain_early (a b x : R) :
  0 < a -> 0 < b -> 0 < x -> x * (a * a + b * b) < 2 * (a + b - 1) -> 1 < gain a b x.
Proof.
  intros a_positive b_positive positive early. unfold gain.
  assert (of_a := exp_below (a * x) (Rmult_lt_0_compat _ _ a_positive positive)).
  assert (of_b := exp_below (b * x) (Rmult_lt_0_compat _ _ b_positive positive)).
  assert (pos_a := exp_pos (a * x - a * x * (a * x) / 2)).
  assert (pos_b := exp_pos (b * x - b * x * (b * x) / 2)).
  assert (weight := exp_pos (- x)).
  apply Rlt_trans with (exp (a * x - a * x * (a * x) / 2) * exp (b * x - b * x * (b * x) / 2) * exp (- x)).
  - rewrite <- !exp_plus.
    set (sum := _ + _ + - x). enough (0 < sum) by (assert (line := exp_above_line sum ltac:(lra)); lra).
    unfold sum. assert (x * (x * (a * a + b * b)) < x * (2 * (a + b - 1))) by (apply Rmult_lt_compat_l; assumption).
    nra.
  - apply Rmult_lt_compat_r; [exact weight |].
    apply Rmult_gt_0_lt_compat; nra.
Qed.

(** From x = 8 a - 4 on, a the larger of both, the gain is below 1. *)
Lemma gain_late (a b x : R) : 0 < b -> b <= a -> 0 < x -> 8 * a - 4 <= x -> gain a b x < 1.
Proof.
  intros b_positive ordered positive late. unfold gain.
  assert (half := exp_above_parabola (x / 2) ltac:(lra)).
  assert (more : 1 + a * x < exp (x / 2)) by nra.
  assert (square : exp (x / 2) * exp (x / 2) * exp (- x) = 1).
  { rewrite <- !exp_plus, <- exp_0. f_equal. field. }
  assert (weight := exp_pos (- x)). rewrite <- square.
  apply Rmult_lt_compat_r; [exact weight |].
  apply Rmult_gt_0_lt_compat; nra.
Qed.

Lemma gain_continuous (a b : R) : continuity (gain a b).
Proof. intros x. unfold gain. reg. Qed.

Lemma gain_crosses (a b : R) : 0 < b -> b <= a -> 1 < a + b -> exists x, 0 < x /\ gain a b x = 1.
Proof.
  intros b_positive ordered large.
  assert (squares : 0 < a * a + b * b) by nra.
  set (early := (a + b - 1) / (a * a + b * b)).
  assert (early_positive : 0 < early) by (apply Rdiv_lt_0_compat; lra).
  set (late := Rmax early (8 * a - 4)).
  assert (above : 1 < gain a b early).
  { apply gain_early; try lra. unfold early.
    replace ((a + b - 1) / (a * a + b * b) * (a * a + b * b)) with (a + b - 1) by (field; lra). lra. }
  assert (below : gain a b late < 1).
  { apply gain_late; try lra.
    - apply Rlt_le_trans with early; [exact early_positive | apply Rmax_l].
    - apply Rmax_r. }
  destruct (IVT_gen (gain a b) early late 1 (gain_continuous a b)) as [x [inside value]].
  { rewrite Rmin_right, Rmax_left by lra. lra. }
  exists x. split; [| exact value].
  rewrite Rmin_left in inside by apply Rmax_l. lra.
Qed.
