(** Fast convergence to fairness, section IV-B: the fairness difference (2) has one peak, from which it diminishes until
    it changes its sign. *)

From Coq Require Import Reals Lra Psatz.
From Coquelicot Require Import Coquelicot.
From fluidcc.fairness Require Import slopes gain sampling.

Open Scope R_scope.

(** * The slope of (2)

    With A, B = C_i r/(s MTU) and x = beta t/r the difference (2) is (C1 - C0) lead A B x. *)

Section Loads.

Variables a b : R.
Hypotheses (a_positive : 0 < a) (b_positive : 0 < b).

(** (1 + a x)(1 + b x) and its slope. *)
Let w (x : R) : R := (1 + a * x) * (1 + b * x).
Let dw (x : R) : R := a + b + 2 * a * b * x.

Definition lead (x : R) : R := exp (- x) - / w x.

(** The slope of the lead is positive where this is above 1. *)
Definition push (x : R) : R := dw x * exp x / w x ^ 2.

(** The slope of the push, over the push. *)
Definition turning (x : R) : R :=
  1 - 2 * ((a / (1 + a * x)) ^ 2 + a / (1 + a * x) * (b / (1 + b * x)) + (b / (1 + b * x)) ^ 2) /
      (a / (1 + a * x) + b / (1 + b * x)).

Lemma w_positive (x : R) : 0 <= x -> 0 < w x.
Proof. intros later. unfold w. apply Rmult_lt_0_compat; nra. Qed.

Lemma dw_positive (x : R) : 0 <= x -> 0 < dw x.
Proof.
  intros later. unfold dw. assert (0 < a * b) by now apply Rmult_lt_0_compat.
  assert (0 <= a * b * x) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma w_slope (x : R) : is_derive w x (dw x).
Proof. unfold w, dw. evar_last; [slopes | cbv beta; ring]. Qed.

Lemma lead_slope (x : R) : 0 <= x -> is_derive lead x (- exp (- x) + dw x / w x ^ 2).
Proof.
  intros later. assert (positive := w_positive x later). unfold lead. evar_last.
  - apply (slope_minus (fun u => exp (- u)) (fun u => / w u)).
    + slopes.
    + apply (is_derive_inv w x (dw x)); [apply w_slope | lra].
  - cbv beta. field. lra.
Qed.

Lemma push_slope (x : R) : 0 <= x -> is_derive push x (push x * turning x).
Proof.
  intros later. assert (positive := w_positive x later). assert (up := dw_positive x later). evar_last.
  - apply (slope_mult (fun u => dw u * exp u) (fun u => / w u ^ 2)).
    + unfold dw. slopes.
    + apply (is_derive_inv (fun u => w u ^ 2) x (2 * (w x * dw x))); [| nra].
      apply (is_derive_ext (fun u => w u * w u)); [intros u; change (w u * w u = w u ^ 2); ring |].
      evar_last; [apply (slope_mult w w); apply w_slope | cbv beta; ring].
  - cbv beta. unfold push, turning, w, dw in *.
    assert (0 < 1 + a * x) by nra. assert (0 < 1 + b * x) by nra. field. repeat split; try lra; nra.
Qed.

Lemma lower_quotient (u p q : R) :
  0 < p -> p < u -> 0 < q -> (p ^ 2 + p * q + q ^ 2) / (p + q) < (u ^ 2 + u * q + q ^ 2) / (u + q).
Proof.
  intros p_positive below q_positive.
  apply (Rmult_lt_reg_r ((p + q) * (u + q))); [apply Rmult_lt_0_compat; lra |].
  replace ((p ^ 2 + p * q + q ^ 2) / (p + q) * ((p + q) * (u + q))) with ((p ^ 2 + p * q + q ^ 2) * (u + q))
    by (field; lra).
  replace ((u ^ 2 + u * q + q ^ 2) / (u + q) * ((p + q) * (u + q))) with ((u ^ 2 + u * q + q ^ 2) * (p + q))
    by (field; lra).
  enough (0 < (u - p) * (u * p + q * (u + p))) by lra.
  apply Rmult_lt_0_compat; [lra |]. assert (0 < u * p) by (apply Rmult_lt_0_compat; lra).
  assert (0 < q * (u + p)) by (apply Rmult_lt_0_compat; lra). lra.
Qed.

Lemma lower_quotients (u v p q : R) :
  0 < p -> p < u -> 0 < q -> q < v -> (p ^ 2 + p * q + q ^ 2) / (p + q) < (u ^ 2 + u * v + v ^ 2) / (u + v).
Proof.
  intros p_positive p_below q_positive q_below.
  apply Rlt_trans with (1 := lower_quotient u p q p_positive p_below q_positive).
  assert (second := lower_quotient v q u q_positive q_below ltac:(lra)).
  rewrite (Rplus_comm q u), (Rplus_comm v u) in second.
  replace (q ^ 2 + q * u + u ^ 2) with (u ^ 2 + u * q + q ^ 2) in second by ring.
  replace (v ^ 2 + v * u + u ^ 2) with (u ^ 2 + u * v + v ^ 2) in second by ring. exact second.
Qed.

Lemma quotient_falls (c x y : R) : 0 < c -> 0 <= x -> x < y -> 0 < c / (1 + c * y) < c / (1 + c * x).
Proof.
  intros positive later ordered. assert (0 <= c * x) by now apply Rmult_le_pos; [apply Rlt_le |].
  assert (c * x < c * y) by now apply Rmult_lt_compat_l.
  split; [apply Rdiv_lt_0_compat; lra |].
  apply Rmult_lt_compat_l; [exact positive |]. apply Rinv_lt_contravar; [apply Rmult_lt_0_compat |]; lra.
Qed.

Lemma turning_rises (x y : R) : 0 <= x -> x < y -> turning x < turning y.
Proof.
  intros later ordered. unfold turning.
  destruct (quotient_falls a x y a_positive later ordered) as [p_positive p_below].
  destruct (quotient_falls b x y b_positive later ordered) as [q_positive q_below].
  assert (lower := lower_quotients _ _ _ _ p_positive p_below q_positive q_below).
  set (p := a / (1 + a * y)) in *. set (q := b / (1 + b * y)) in *.
  set (u := a / (1 + a * x)) in *. set (v := b / (1 + b * x)) in *.
  unfold Rdiv in *. lra.
Qed.

Lemma push_positive (x : R) : 0 <= x -> 0 < push x.
Proof.
  intros later. assert (positive := w_positive x later). assert (up := dw_positive x later).
  apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; [exact up | apply exp_pos] | nra].
Qed.

Lemma turning_continuous (x : R) : 0 <= x -> continuous (fun u => push u * turning u) x.
Proof.
  intros later. assert (0 < 1 + a * x) by nra. assert (0 < 1 + b * x) by nra.
  assert (0 < a / (1 + a * x)) by (apply Rdiv_lt_0_compat; lra).
  assert (0 < b / (1 + b * x)) by (apply Rdiv_lt_0_compat; lra).
  assert (0 < w x ^ 2) by (apply pow_lt, w_positive, later).
  unfold push, turning, w, dw in *. steady; lra.
Qed.

(** Between two places at which the push is at most 1 it is below 1. *)
Lemma push_between (x y z : R) : 0 <= x -> x < z < y -> push x <= 1 -> push y <= 1 -> push z < 1.
Proof.
  intros later [after before] x_low y_low.
  destruct (Rle_or_lt (turning z) 0) as [down | up].
  - apply Rlt_le_trans with (2 := x_low).
    apply (falls push (fun u => push u * turning u) x z after).
    + intros u inside. apply push_slope. lra.
    + intros u inside. apply turning_continuous. lra.
    + intros u inside. assert (positive := push_positive u ltac:(lra)).
      assert (less := turning_rises u z ltac:(lra) ltac:(lra)). nra.
  - apply Rlt_le_trans with (2 := y_low).
    apply (rises push (fun u => push u * turning u) z y before).
    + intros u inside. apply push_slope. lra.
    + intros u inside. apply turning_continuous. lra.
    + intros u inside. assert (positive := push_positive u ltac:(lra)).
      assert (more := turning_rises z u ltac:(lra) ltac:(lra)). nra.
Qed.

Lemma lead_slope_continuous (x : R) : 0 <= x -> continuous (fun u => - exp (- u) + dw u / w u ^ 2) x.
Proof.
  intros later. assert (0 < w x ^ 2) by (apply pow_lt, w_positive, later). unfold w, dw in *. steady; lra.
Qed.

Lemma slope_by_push (x : R) : 0 <= x -> - exp (- x) + dw x / w x ^ 2 = exp (- x) * (push x - 1).
Proof.
  intros later. assert (positive := w_positive x later). unfold push. rewrite exp_Ropp.
  assert (weight := exp_pos x). field. split; lra.
Qed.

Lemma lead_rises (x y : R) : 0 <= x -> x < y -> (forall z, x < z < y -> 1 < push z) -> lead x < lead y.
Proof.
  intros later ordered up. apply (rises lead (fun u => - exp (- u) + dw u / w u ^ 2) x y ordered).
  - intros z inside. apply lead_slope. lra.
  - intros z inside. apply lead_slope_continuous. lra.
  - intros z inside. rewrite slope_by_push by lra. specialize (up z inside).
    apply Rmult_lt_0_compat; [apply exp_pos | lra].
Qed.

Lemma lead_falls (x y : R) : 0 <= x -> x < y -> (forall z, x < z < y -> push z < 1) -> lead y < lead x.
Proof.
  intros later ordered down. apply (falls lead (fun u => - exp (- u) + dw u / w u ^ 2) x y ordered).
  - intros z inside. apply lead_slope. lra.
  - intros z inside. apply lead_slope_continuous. lra.
  - intros z inside. rewrite slope_by_push by lra. specialize (down z inside). assert (weight := exp_pos (- z)). nra.
Qed.

(** Where the gain is back at 1 it falls, and the push is below 1. *)
Lemma push_at_change (x : R) : 0 < x -> gain a b x = 1 -> push x < 1.
Proof.
  intros positive level. assert (some := w_positive x ltac:(lra)).
  assert (down : tilt a b x < 0).
  { apply Rnot_le_lt. intros up. enough (gain a b 0 < gain a b x) by (rewrite gain_at_start in *; lra).
    apply (gain_rises _ _ _ _ positive). intros z [above before].
    destruct (Rlt_or_le 0 (tilt a b z)) as [more | less]; [exact more | exfalso].
    assert (tilt a b x < 0) by now apply (tilt_stays_negative a b z x). lra. }
  assert (slower : dw x < w x) by (unfold tilt in down; unfold dw, w; lra).
  assert (same : exp x = w x).
  { unfold gain in level. fold (w x) in level. rewrite exp_Ropp in level. assert (weight := exp_pos x).
    apply (f_equal (fun v => v * exp x)) in level. rewrite Rmult_assoc, Rinv_l in level; lra. }
  unfold push. rewrite same. apply (Rmult_lt_reg_r (w x ^ 2)); [nra |].
  replace (dw x * w x / w x ^ 2 * w x ^ 2) with (dw x * w x) by (field; lra). nra.
Qed.

Lemma push_crosses (x : R) : 1 < a + b -> 0 < x -> push x < 1 -> exists p, 0 < p < x /\ push p = 1.
Proof.
  intros large positive low.
  set (sign := fun u => dw u * exp u - w u * w u).
  assert (steady : continuity sign) by (intros u; unfold sign, dw, w; reg).
  assert (back : forall u, 0 <= u -> sign u = w u ^ 2 * (push u - 1)).
  { intros u later. assert (some := w_positive u later). unfold sign, push. field. lra. }
  assert (at_start : 0 < sign 0) by (unfold sign, dw, w; rewrite exp_0; lra).
  assert (at_end : sign x < 0).
  { rewrite back by lra. assert (some := w_positive x ltac:(lra)). assert (0 < w x ^ 2) by nra. nra. }
  destruct (IVT_gen sign 0 x 0 steady) as [p [inside zero]]; [rewrite Rmin_right, Rmax_left by lra; lra |].
  rewrite Rmin_left, Rmax_right in inside by lra. exists p.
  assert (p <> 0) by (intros start; subst p; lra). assert (p <> x) by (intros ends; subst p; lra).
  split; [lra |]. rewrite back in zero by lra.
  assert (some := w_positive p ltac:(lra)). assert (0 < w p ^ 2) by nra.
  apply Rmult_integral in zero. lra.
Qed.

End Loads.

(** * The peak *)

Section TwoFlows.

Variables beta r s MTU C1 C0 : R.
Hypotheses (beta_positive : 0 < beta) (r_positive : 0 < r) (s_positive : 0 < s) (MTU_positive : 0 < MTU).
Hypotheses (slow_positive : 0 < C0) (faster : C0 < C1).

Let sample_positive : 0 < s * MTU.
Proof. now apply Rmult_lt_0_compat. Qed.

Let A := C1 * r / (s * MTU).
Let B := C0 * r / (s * MTU).

Let A_positive : 0 < A.
Proof. apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; lra | exact sample_positive]. Qed.

Let B_is_positive : 0 < B.
Proof. now apply B_positive. Qed.

Lemma difference_by_lead (t : R) :
  0 <= t -> difference beta r s MTU C1 C0 t = (C1 - C0) * lead A B (beta * t / r).
Proof.
  intros later. rewrite difference_by_gain by assumption. fold A B. set (x := beta * t / r).
  assert (0 <= x) by (unfold x; apply Rdiv_le_0_compat; [apply Rmult_le_pos |]; lra).
  assert (0 <= A * x) by (apply Rmult_le_pos; lra). assert (0 <= B * x) by (apply Rmult_le_pos; lra).
  unfold lead, gain. field. lra.
Qed.

(** Section IV-B, Figure 4: under the paper's condition the difference (2) rises up to one time, from which it
    diminishes until it changes its sign; up to there it is positive ([difference_changes_sign_once]), in Figure 4 for
    522 us ([figure_4_ahead]).
    Claim: sf-figure. *)
Theorem difference_has_one_peak :
  1 / r < (C1 + C0) / (s * MTU) ->
  exists peak change, 0 < peak < change /\ difference beta r s MTU C1 C0 change = 0 /\
    (forall t u, 0 <= t -> t < u <= peak -> difference beta r s MTU C1 C0 t < difference beta r s MTU C1 C0 u) /\
    (forall t u, peak <= t -> t < u <= change -> difference beta r s MTU C1 C0 u < difference beta r s MTU C1 C0 t).
Proof.
  intros condition. assert (large := condition).
  apply condition_in_loads in large; try assumption. fold A B in large.
  destruct (difference_changes_sign_once beta r s MTU C1 C0 beta_positive r_positive s_positive MTU_positive
              slow_positive faster condition) as [change [change_positive [level _]]].
  set (x := beta * change / r).
  assert (x_positive : 0 < x) by now apply (proj1 (time_positive beta r beta_positive r_positive change)).
  assert (gain_level : gain A B x = 1) by (apply level_by_gain in level; try assumption; lra).
  assert (low : push A B x < 1) by now apply push_at_change.
  destruct (push_crosses A B A_positive B_is_positive x large x_positive low) as [p [inside top]].
  assert (back : beta * (p * r / beta) / r = p) by (field; lra).
  assert (order : forall t u, t < u <-> beta * t / r < beta * u / r).
  { intros t u. split; [now apply time_ordered |]. intros less. apply Rnot_le_lt. intros more.
    destruct (Rle_lt_or_eq_dec u t more) as [before | same]; [| subst; lra].
    assert (other := time_ordered beta r beta_positive r_positive u t before). lra. }
  assert (scale : 0 < C1 - C0) by lra.
  assert (peak_positive : 0 < p * r / beta) by (apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat |]; lra).
  exists (p * r / beta), change. split; [split |].
  - exact peak_positive.
  - apply (proj2 (order _ _)). rewrite back. apply inside.
  - split; [exact level | split]; intros t u above [ordered before]; rewrite !difference_by_lead by lra;
      apply Rmult_lt_compat_l; try exact scale.
    + assert (now_ : 0 <= beta * t / r) by (apply Rdiv_le_0_compat; [apply Rmult_le_pos |]; lra).
      apply lead_rises; [exact A_positive | exact B_is_positive | exact now_ | now apply (proj1 (order t u)) |].
      intros z [after until].
      assert (below : beta * u / r <= p).
      { apply Rnot_lt_le. intros more. rewrite <- back in more. apply (proj2 (order _ _)) in more. lra. }
      apply Rnot_le_lt. intros less.
      assert (wrong := push_between A B A_positive B_is_positive z x p ltac:(lra) ltac:(lra) less ltac:(lra)). lra.
    + assert (start : p <= beta * t / r).
      { apply Rnot_lt_le. intros more. rewrite <- back in more. apply (proj2 (order _ _)) in more. lra. }
      apply lead_falls; [exact A_positive | exact B_is_positive | lra | now apply (proj1 (order t u)) |].
      intros z [after until].
      assert (ends : beta * u / r <= x).
      { unfold x. apply Rnot_lt_le. intros more. apply (proj2 (order _ _)) in more. lra. }
      apply (push_between A B A_positive B_is_positive p x z); lra.
Qed.

End TwoFlows.
