(** DCQCN's equation for the marking probability, by the hazard x = - ln(1 - p): (1 - p)^n = exp(- n x).

    Its left side rises from 0, its right side falls to 0, so that they meet once. *)

From Coq Require Import Reals Lra Psatz.
From fluidcc.shared Require Import power.

Open Scope R_scope.

(** * One increase in n packets: falls as marks become more *)

(** b and d by the hazard x = - ln(1 - p). *)
Definition event (n x : R) : R := (1 - exp (- x)) / (exp (n * x) - 1).

Lemma exp_above_one (u : R) : 0 < u -> 1 < exp u.
Proof. intros positive_u. assert (line := exp_above_line u). lra. Qed.

Lemma exp_opposite_below_one (u : R) : 0 < u -> exp (- u) < 1.
Proof. intros positive_u. rewrite <- exp_0. apply exp_rises. lra. Qed.

Lemma saturation_below_line (u : R) : 0 < u -> 1 - exp (- u) < u.
Proof. intros positive_u. assert (line := exp_above_line (- u)). lra. Qed.

Lemma saturation_above (u : R) : 0 < u -> u * exp (- u) < 1 - exp (- u).
Proof.
  intros positive_u. assert (line := exp_above_line u). assert (inverse := exp_opposite u).
  assert (small := exp_pos (- u)). assert (above : 1 + u < exp u) by (apply line; lra). nra.
Qed.

Lemma growth_below (u : R) : 0 < u -> exp u - 1 < u * exp u.
Proof.
  intros positive_u. assert (line := saturation_below_line u positive_u). assert (inverse := exp_opposite u).
  assert (large := exp_pos u). nra.
Qed.

Lemma event_positive (n x : R) : 0 < n -> 0 < x -> 0 < event n x.
Proof.
  intros positive_n positive_x. unfold event.
  assert (numerator := exp_opposite_below_one x positive_x).
  assert (product : 0 < n * x) by (apply Rmult_lt_0_compat; assumption).
  assert (denominator := exp_above_one (n * x) product).
  apply Rdiv_lt_0_compat; lra.
Qed.

Lemma event_falls (n x z : R) : 0 < n -> 0 < x < z -> event n z < event n x.
Proof.
  intros positive_n [positive_x less]. unfold event.
  set (h := z - x). assert (positive_h : 0 < h) by (unfold h; lra).
  assert (nx : 0 < n * x) by (apply Rmult_lt_0_compat; lra).
  assert (nz : 0 < n * z) by (apply Rmult_lt_0_compat; lra).
  assert (nh : 0 < n * h) by (apply Rmult_lt_0_compat; lra).
  assert (first : exp (- z) = exp (- x) * exp (- h)) by (rewrite <- exp_plus; f_equal; unfold h; ring).
  assert (second : exp (n * z) = exp (n * x) * exp (n * h)) by (rewrite <- exp_plus; f_equal; unfold h; ring).
  assert (bound_D := saturation_above x positive_x).
  assert (bound_G := saturation_below_line h positive_h).
  assert (bound_G' := exp_opposite_below_one h positive_h).
  assert (bound_E := growth_below (n * x) nx).
  assert (bound_E' := exp_above_one (n * x) nx).
  assert (bound_H : 1 + n * h < exp (n * h)) by (apply exp_above_line; lra).
  assert (above_z := exp_above_one (n * z) nz).
  assert (positive_D := exp_pos (- x)).
  rewrite first, second in *.
  set (D := exp (- x)) in *. set (G := exp (- h)) in *. set (E := exp (n * x)) in *. set (H := exp (n * h)) in *.
  assert (lower : (x * D) * (E * (n * h)) < (1 - D) * (E * (H - 1))).
  { apply Rmult_gt_0_lt_compat; [nra | nra | nra |]. apply Rmult_lt_compat_l; lra. }
  assert (upper : (D * (1 - G)) * (E - 1) < (D * h) * (n * x * E)).
  { apply Rmult_gt_0_lt_compat; [lra | nra | | lra]. apply Rmult_lt_compat_l; lra. }
  apply Rmult_lt_reg_r with ((E - 1) * (E * H - 1)); [apply Rmult_lt_0_compat; lra |].
  replace ((1 - D * G) / (E * H - 1) * ((E - 1) * (E * H - 1))) with ((1 - D * G) * (E - 1)) by (field; lra).
  replace ((1 - D) / (E - 1) * ((E - 1) * (E * H - 1))) with ((1 - D) * (E * H - 1)) by (field; lra).
  nra.
Qed.

Lemma event_below (n x : R) : 0 < n -> 0 < x -> event n x < (1 - exp (- x)) / (n * x).
Proof.
  intros positive_n positive_x. unfold event.
  assert (numerator := exp_opposite_below_one x positive_x).
  assert (product : 0 < n * x) by (apply Rmult_lt_0_compat; assumption).
  assert (denominator : 1 + n * x < exp (n * x)) by (apply exp_above_line; lra).
  apply Rmult_lt_compat_l; [lra |].
  apply Rinv_lt_contravar; [apply Rmult_lt_0_compat |]; lra.
Qed.

Lemma event_below_rate (n x : R) : 0 < n -> 0 < x -> event n x < / n.
Proof.
  intros positive_n positive_x. apply Rlt_trans with (1 := event_below n x positive_n positive_x).
  assert (numerator := saturation_below_line x positive_x).
  apply Rmult_lt_reg_r with (n * x); [apply Rmult_lt_0_compat; assumption |].
  replace ((1 - exp (- x)) / (n * x) * (n * x)) with (1 - exp (- x)) by (field; lra).
  replace (/ n * (n * x)) with x by (field; lra). exact numerator.
Qed.

Lemma event_below_inverse (n x : R) : 0 < n -> 0 < x -> event n x < / n * / x.
Proof.
  intros positive_n positive_x. apply Rlt_trans with (1 := event_below n x positive_n positive_x).
  assert (numerator := exp_pos (- x)).
  assert (product : 0 < n * x) by (apply Rmult_lt_0_compat; assumption).
  replace (/ n * / x) with (1 * / (n * x)) by (field; lra).
  apply Rmult_lt_compat_r; [apply Rinv_0_lt_compat, product | lra].
Qed.

(** * Both sides by the hazard: the left one rises from 0, the right one falls to 0 *)

Definition left_side (k m x : R) : R := (1 - exp (- (m * x))) * (1 - exp (- (k * x))) ^ 2.
Definition right_side (K F n m x : R) : R :=
  K * (event n x + event m x) * (exp (- (F * n * x)) * event n x + exp (- (F * m * x)) * event m x).

Lemma saturation_rises (k x z : R) : 0 < k -> x < z -> 1 - exp (- (k * x)) < 1 - exp (- (k * z)).
Proof.
  intros positive_k less. assert (falls : exp (- (k * z)) < exp (- (k * x))) by (apply exp_rises; nra). lra.
Qed.

Lemma saturation_positive (k x : R) : 0 < k -> 0 < x -> 0 < 1 - exp (- (k * x)).
Proof.
  intros positive_k positive_x.
  assert (below := exp_opposite_below_one (k * x) (Rmult_lt_0_compat k x positive_k positive_x)). lra.
Qed.

Lemma left_side_positive (k m x : R) : 0 < k -> 0 < m -> 0 < x -> 0 < left_side k m x.
Proof.
  intros positive_k positive_m positive_x. unfold left_side.
  assert (first := saturation_positive m x positive_m positive_x).
  assert (second := saturation_positive k x positive_k positive_x).
  apply Rmult_lt_0_compat; [exact first |]. apply pow_lt, second.
Qed.

Lemma left_side_rises (k m x z : R) : 0 < k -> 0 < m -> 0 < x < z -> left_side k m x < left_side k m z.
Proof.
  intros positive_k positive_m [positive_x less]. unfold left_side.
  assert (first := saturation_positive m x positive_m positive_x).
  assert (second := saturation_positive k x positive_k positive_x).
  assert (first' := saturation_rises m x z positive_m less).
  assert (second' := saturation_rises k x z positive_k less).
  apply Rmult_gt_0_lt_compat; [apply pow_lt; lra | lra | exact first' |].
  simpl. nra.
Qed.

Lemma left_side_below (k m x : R) : 0 < k -> 0 < m -> 0 < x -> left_side k m x < m * x.
Proof.
  intros positive_k positive_m positive_x. unfold left_side.
  assert (product : 0 < m * x) by (apply Rmult_lt_0_compat; assumption).
  assert (first := saturation_positive m x positive_m positive_x).
  assert (second := saturation_positive k x positive_k positive_x).
  assert (line := saturation_below_line (m * x) product).
  assert (small := exp_pos (- (k * x))).
  assert (square : (1 - exp (- (k * x))) ^ 2 < 1) by (simpl; nra).
  assert (square' : 0 < (1 - exp (- (k * x))) ^ 2) by (apply pow_lt, second).
  nra.
Qed.

Lemma weighted_event_falls (F n x z : R) :
  0 < F -> 0 < n -> 0 < x < z -> exp (- (F * n * z)) * event n z < exp (- (F * n * x)) * event n x.
Proof.
  intros positive_F positive_n [positive_x less].
  assert (weight : 0 < F * n) by (apply Rmult_lt_0_compat; assumption).
  apply Rmult_gt_0_lt_compat.
  - apply event_positive; lra.
  - apply exp_pos.
  - apply exp_rises. nra.
  - apply event_falls; lra.
Qed.

Lemma right_side_falls (K F n m x z : R) :
  0 < K -> 0 < F -> 0 < n -> 0 < m -> 0 < x < z -> right_side K F n m z < right_side K F n m x.
Proof.
  intros positive_K positive_F positive_n positive_m order. unfold right_side.
  assert (z_positive : 0 < z) by lra. destruct order as [positive_x less].
  assert (first := event_falls n x z positive_n (conj positive_x less)).
  assert (second := event_falls m x z positive_m (conj positive_x less)).
  assert (third := weighted_event_falls F n x z positive_F positive_n (conj positive_x less)).
  assert (fourth := weighted_event_falls F m x z positive_F positive_m (conj positive_x less)).
  assert (at_n := event_positive n x positive_n positive_x).
  assert (at_m := event_positive m x positive_m positive_x).
  assert (at_n' := event_positive n z positive_n z_positive).
  assert (at_m' := event_positive m z positive_m z_positive).
  assert (weight := exp_pos (- (F * n * z))). assert (weight' := exp_pos (- (F * m * z))).
  apply Rmult_gt_0_lt_compat; [nra | nra | | lra].
  apply Rmult_lt_compat_l; lra.
Qed.

Lemma right_side_positive (K F n m x : R) :
  0 < K -> 0 < n -> 0 < m -> 0 < x -> 0 < right_side K F n m x.
Proof.
  intros positive_K positive_n positive_m positive_x. unfold right_side.
  assert (at_n := event_positive n x positive_n positive_x).
  assert (at_m := event_positive m x positive_m positive_x).
  assert (weight := exp_pos (- (F * n * x))). assert (weight' := exp_pos (- (F * m * x))).
  apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; lra | nra].
Qed.

Lemma weight_below_one (F n x : R) : 0 < F -> 0 < n -> 0 < x -> exp (- (F * n * x)) < 1.
Proof.
  intros positive_F positive_n positive_x. apply exp_opposite_below_one.
  apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat |]; assumption.
Qed.

Lemma right_side_below (K F n m x : R) :
  0 < K -> 0 < F -> 0 < n -> 0 < m -> 0 < x -> right_side K F n m x < K * (/ n + / m) ^ 2 * / x ^ 2.
Proof.
  intros positive_K positive_F positive_n positive_m positive_x. unfold right_side.
  assert (at_n := event_positive n x positive_n positive_x).
  assert (at_m := event_positive m x positive_m positive_x).
  assert (bound_n := event_below_inverse n x positive_n positive_x).
  assert (bound_m := event_below_inverse m x positive_m positive_x).
  assert (weight := exp_pos (- (F * n * x))). assert (weight' := exp_pos (- (F * m * x))).
  assert (small := weight_below_one F n x positive_F positive_n positive_x).
  assert (small' := weight_below_one F m x positive_F positive_m positive_x).
  set (u := (/ n + / m) * / x).
  replace (K * (/ n + / m) ^ 2 * / x ^ 2) with (K * u * u) by (unfold u; field; lra).
  apply Rmult_gt_0_lt_compat; [nra | unfold u; nra | | unfold u; nra].
  apply Rmult_lt_compat_l; [exact positive_K | unfold u; lra].
Qed.

(** * They meet *)

(** The difference times its denominators, which is continuous everywhere. *)
Definition difference (K F n m k l x : R) : R :=
  left_side k l x * ((exp (n * x) - 1) * (exp (m * x) - 1)) ^ 2
  - K * ((1 - exp (- x)) * ((exp (m * x) - 1) + (exp (n * x) - 1)))
    * ((1 - exp (- x)) * (exp (- (F * n * x)) * (exp (m * x) - 1) + exp (- (F * m * x)) * (exp (n * x) - 1))).

Lemma difference_of_sides (K F n m k l x : R) :
  0 < n -> 0 < m -> 0 < x ->
  difference K F n m k l x
  = (left_side k l x - right_side K F n m x) * ((exp (n * x) - 1) * (exp (m * x) - 1)) ^ 2.
Proof.
  intros positive_n positive_m positive_x. unfold difference, right_side, event.
  assert (first := exp_above_one (n * x) (Rmult_lt_0_compat n x positive_n positive_x)).
  assert (second := exp_above_one (m * x) (Rmult_lt_0_compat m x positive_m positive_x)).
  field. lra.
Qed.

Lemma difference_continuous (K F n m k l : R) : continuity (difference K F n m k l).
Proof. intros x. unfold difference, left_side. reg. Qed.

Lemma denominators_positive (n m x : R) :
  0 < n -> 0 < m -> 0 < x -> 0 < ((exp (n * x) - 1) * (exp (m * x) - 1)) ^ 2.
Proof.
  intros positive_n positive_m positive_x.
  assert (first := exp_above_one (n * x) (Rmult_lt_0_compat n x positive_n positive_x)).
  assert (second := exp_above_one (m * x) (Rmult_lt_0_compat m x positive_m positive_x)).
  apply pow_lt, Rmult_lt_0_compat; lra.
Qed.

Section Meeting.

Variables K F n m k l : R.
Hypothesis positive_K : 0 < K.
Hypothesis positive_F : 0 < F.
Hypothesis positive_n : 0 < n.
Hypothesis positive_m : 0 < m.
Hypothesis positive_k : 0 < k.
Hypothesis positive_l : 0 < l.

Lemma left_less_near_0 : exists x, 0 < x <= 1 /\ left_side k l x < right_side K F n m x.
Proof.
  assert (last : 0 < right_side K F n m 1) by (apply right_side_positive; lra).
  assert (ratio : 0 < right_side K F n m 1 / l) by (apply Rdiv_lt_0_compat; assumption).
  exists (Rmin 1 (right_side K F n m 1 / l)).
  set (x := Rmin 1 (right_side K F n m 1 / l)).
  assert (at_most_1 : x <= 1) by apply Rmin_l.
  assert (at_most : x <= right_side K F n m 1 / l) by apply Rmin_r.
  assert (positive_x : 0 < x) by (apply Rmin_glb_lt; lra).
  split; [lra |].
  apply Rlt_le_trans with (l * x); [apply left_side_below; assumption |].
  apply Rle_trans with (right_side K F n m 1).
  - replace (right_side K F n m 1) with (l * (right_side K F n m 1 / l)) by (field; lra).
    apply Rmult_le_compat_l; lra.
  - destruct at_most_1 as [less | equal]; [| rewrite equal; lra].
    left. apply right_side_falls; lra.
Qed.

Lemma left_more_far_away : exists x, 1 < x /\ right_side K F n m x < left_side k l x.
Proof.
  assert (first : 0 < left_side k l 1) by (apply left_side_positive; lra).
  set (S := K * (/ n + / m) ^ 2).
  assert (positive_S : 0 < S).
  { unfold S. assert (one := Rinv_0_lt_compat n positive_n). assert (two := Rinv_0_lt_compat m positive_m).
    apply Rmult_lt_0_compat; [exact positive_K | apply pow_lt; lra]. }
  assert (ratio : 0 < S / left_side k l 1) by (apply Rdiv_lt_0_compat; assumption).
  exists (1 + S / left_side k l 1). set (x := 1 + S / left_side k l 1).
  assert (large : 1 < x) by (unfold x; lra).
  split; [exact large |].
  assert (bound : right_side K F n m x < S * / x ^ 2) by (apply right_side_below; lra).
  assert (rises : left_side k l 1 < left_side k l x) by (apply left_side_rises; lra).
  assert (enough : S * / x ^ 2 <= left_side k l 1); [| lra].
  assert (square : 0 < x ^ 2) by (apply pow_lt; lra).
  apply Rmult_le_reg_r with (x ^ 2); [exact square |].
  replace (S * / x ^ 2 * x ^ 2) with S by (field; lra).
  assert (exact_product : left_side k l 1 * (S / left_side k l 1) = S) by (field; lra).
  assert (more : S <= left_side k l 1 * x) by (unfold x; lra).
  simpl. nra.
Qed.

Lemma sides_meet : exists x, 0 < x /\ left_side k l x = right_side K F n m x.
Proof.
  destruct left_less_near_0 as [low [[low_positive low_at_most] low_less]].
  destruct left_more_far_away as [high [high_above high_more]].
  destruct (IVT (difference K F n m k l) low high) as [x [[above below] root]].
  - apply difference_continuous.
  - lra.
  - rewrite difference_of_sides by assumption.
    assert (square := denominators_positive n m low positive_n positive_m low_positive). nra.
  - rewrite difference_of_sides by lra.
    assert (square : 0 < ((exp (n * high) - 1) * (exp (m * high) - 1)) ^ 2) by (apply denominators_positive; lra).
    nra.
  - assert (positive_x : 0 < x) by lra. exists x. split; [exact positive_x |].
    rewrite difference_of_sides in root by assumption.
    assert (square := denominators_positive n m x positive_n positive_m positive_x).
    apply Rmult_integral in root. destruct root as [equal | absurd]; lra.
Qed.

Lemma left_less_iff (x root : R) :
  0 < x -> 0 < root -> left_side k l root = right_side K F n m root ->
  (left_side k l x < right_side K F n m x <-> x < root).
Proof.
  intros positive_x positive_root meet. split.
  - intros less. destruct (Rtotal_order x root) as [before | [equal | after]]; [exact before | |].
    + rewrite equal in less. lra.
    + assert (rises := left_side_rises k l root x positive_k positive_l (conj positive_root after)).
      assert (falls := right_side_falls K F n m root x positive_K positive_F positive_n positive_m
        (conj positive_root after)).
      lra.
  - intros before.
    assert (rises := left_side_rises k l x root positive_k positive_l (conj positive_x before)).
    assert (falls := right_side_falls K F n m x root positive_K positive_F positive_n positive_m
      (conj positive_x before)).
    lra.
Qed.

End Meeting.
