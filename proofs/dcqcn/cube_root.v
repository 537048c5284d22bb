(** DCQCN's fixed point for small p (ECN or Delay, CoNEXT 2016): p is about p0, with
    p0^3 = R_AI N^2/(tau' C^2) (1/B + N/(T C))^2.

    The cube root is above p at settings such as the paper's, by a share of at most (5 + (F + 2) M) p0/3, with M the
    larger of B and T C/N in packets. *)

From Coq Require Import Reals Lra Lia Psatz.
From fluidcc.shared Require Import power.
From fluidcc.dcqcn Require Import hazard fixed_point.

Open Scope R_scope.

Lemma cube_order (x y : R) : 0 <= y -> x ^ 3 < y ^ 3 -> x < y.
Proof.
  intros nonnegative cubes. destruct (Rlt_le_dec x y) as [good | bad]; [exact good |].
  assert (absurd : y ^ 3 <= x ^ 3) by (apply pow_incr; lra). lra.
Qed.

Lemma cube_order_weak (x y : R) : 0 <= y -> x ^ 3 <= y ^ 3 -> x <= y.
Proof.
  intros nonnegative cubes. destruct (Rle_lt_dec x y) as [good | bad]; [exact good |].
  assert (absurd : y ^ 3 < x ^ 3) by (apply pow_less; [lra | lia]). lra.
Qed.

Lemma exp_falls (u v : R) : u <= v -> exp (- v) <= exp (- u).
Proof. intros order. apply exp_rises_weakly. lra. Qed.

Lemma event_above (n x : R) : 0 < n -> 0 < x -> exp (- ((1 + n) * x)) / n < event n x.
Proof.
  intros positive_n positive_x. unfold event.
  assert (product : 0 < n * x) by (apply Rmult_lt_0_compat; assumption).
  assert (numerator := saturation_above x positive_x).
  assert (denominator := growth_below (n * x) product).
  assert (above := exp_above_one (n * x) product).
  assert (split : exp (- ((1 + n) * x)) * exp (n * x) = exp (- x)) by (rewrite <- exp_plus; f_equal; ring).
  assert (small := exp_pos (- ((1 + n) * x))).
  apply Rmult_lt_reg_r with (exp (n * x) - 1); [lra |].
  replace ((1 - exp (- x)) / (exp (n * x) - 1) * (exp (n * x) - 1)) with (1 - exp (- x)) by (field; lra).
  apply Rlt_trans with (2 := numerator).
  replace (x * exp (- x)) with (exp (- ((1 + n) * x)) / n * (n * x * exp (n * x))) by (rewrite <- split; field; lra).
  apply Rmult_lt_compat_l; [apply Rdiv_lt_0_compat; assumption | exact denominator].
Qed.

Section Sides.

Variables K F n m k l : R.
Hypothesis positive_K : 0 < K.
Hypothesis positive_F : 0 < F.
Hypothesis positive_n : 0 < n.
Hypothesis positive_m : 0 < m.
Hypothesis positive_k : 0 < k.
Hypothesis positive_l : 0 < l.

Lemma left_side_at_most (x : R) : 0 < x -> left_side k l x <= l * k ^ 2 * x ^ 3.
Proof.
  intros positive_x. unfold left_side.
  assert (first := saturation_positive k x positive_k positive_x).
  assert (second := saturation_positive l x positive_l positive_x).
  assert (below_k := saturation_below_line (k * x) (Rmult_lt_0_compat _ _ positive_k positive_x)).
  assert (below_l := saturation_below_line (l * x) (Rmult_lt_0_compat _ _ positive_l positive_x)).
  replace (l * k ^ 2 * x ^ 3) with (l * x * (k * x) ^ 2) by ring.
  apply Rmult_le_compat; [lra | apply pow_le; lra | lra | apply pow_incr; lra].
Qed.

Lemma left_side_at_least (x : R) :
  0 < x -> l * k ^ 2 * x ^ 3 * exp (- ((l + 2 * k) * x)) <= left_side k l x.
Proof.
  intros positive_x. unfold left_side.
  assert (product_k : 0 < k * x) by (apply Rmult_lt_0_compat; assumption).
  assert (product_l : 0 < l * x) by (apply Rmult_lt_0_compat; assumption).
  assert (above_k := saturation_above (k * x) product_k).
  assert (above_l := saturation_above (l * x) product_l).
  assert (exp_k := exp_pos (- (k * x))). assert (exp_l := exp_pos (- (l * x))).
  assert (parts : exp (- ((l + 2 * k) * x)) = exp (- (l * x)) * exp (- (k * x)) ^ 2).
  { simpl. rewrite Rmult_1_r, <- !exp_plus. f_equal. ring. }
  rewrite parts.
  replace (l * k ^ 2 * x ^ 3 * (exp (- (l * x)) * exp (- (k * x)) ^ 2))
    with (l * x * exp (- (l * x)) * (k * x * exp (- (k * x))) ^ 2) by ring.
  apply Rmult_le_compat; [| apply pow_le | lra | apply pow_incr; split; [| lra]];
    apply Rmult_le_pos; lra.
Qed.

Lemma right_side_at_most (x : R) :
  0 < x -> l + 2 * k <= F * n -> l + 2 * k <= F * m ->
  right_side K F n m x < K * (/ n + / m) ^ 2 * exp (- ((l + 2 * k) * x)).
Proof.
  intros positive_x first second. unfold right_side.
  assert (at_n := event_positive n x positive_n positive_x).
  assert (at_m := event_positive m x positive_m positive_x).
  assert (below_n := event_below_rate n x positive_n positive_x).
  assert (below_m := event_below_rate m x positive_m positive_x).
  set (E := exp (- ((l + 2 * k) * x))). assert (positive_E : 0 < E) by apply exp_pos.
  assert (weight_n : exp (- (F * n * x)) <= E) by (apply exp_falls; nra).
  assert (weight_m : exp (- (F * m * x)) <= E) by (apply exp_falls; nra).
  assert (positive_n' := exp_pos (- (F * n * x))). assert (positive_m' := exp_pos (- (F * m * x))).
  replace (K * (/ n + / m) ^ 2 * E) with (K * (/ n + / m) * (E * / n + E * / m)) by ring.
  assert (rise_n : exp (- (F * n * x)) * event n x < E * / n) by nra.
  assert (rise_m : exp (- (F * m * x)) * event m x < E * / m) by nra.
  apply Rmult_gt_0_lt_compat; [nra | nra | | lra].
  apply Rmult_lt_compat_l; lra.
Qed.

Lemma right_side_at_least (M x : R) :
  0 < x -> n <= M -> m <= M ->
  K * (/ n + / m) ^ 2 * exp (- ((2 + (F + 2) * M) * x)) <= right_side K F n m x.
Proof.
  intros positive_x first second. unfold right_side.
  assert (above_n := event_above n x positive_n positive_x).
  assert (above_m := event_above m x positive_m positive_x).
  assert (inverse_n := Rinv_0_lt_compat n positive_n). assert (inverse_m := Rinv_0_lt_compat m positive_m).
  set (D := exp (- ((1 + M) * x))). assert (positive_D : 0 < D) by apply exp_pos.
  set (E := exp (- (F * M * x))). assert (positive_E : 0 < E) by apply exp_pos.
  assert (parts : exp (- ((2 + (F + 2) * M) * x)) = D * (E * D)).
  { unfold D, E. rewrite <- !exp_plus. f_equal. ring. }
  rewrite parts.
  assert (low_n : D * / n <= event n x).
  { left. apply Rle_lt_trans with (2 := above_n). apply Rmult_le_compat_r; [lra |]. apply exp_falls. nra. }
  assert (low_m : D * / m <= event m x).
  { left. apply Rle_lt_trans with (2 := above_m). apply Rmult_le_compat_r; [lra |]. apply exp_falls. nra. }
  assert (weight_n : E <= exp (- (F * n * x))).
  { apply exp_falls. apply Rmult_le_compat_r; [lra | apply Rmult_le_compat_l; lra]. }
  assert (weight_m : E <= exp (- (F * m * x))).
  { apply exp_falls. apply Rmult_le_compat_r; [lra | apply Rmult_le_compat_l; lra]. }
  assert (positive_n' : 0 < D * / n) by (apply Rmult_lt_0_compat; assumption).
  assert (positive_m' : 0 < D * / m) by (apply Rmult_lt_0_compat; assumption).
  replace (K * (/ n + / m) ^ 2 * (D * (E * D)))
    with (K * (D * / n + D * / m) * (E * (D * / n) + E * (D * / m))) by ring.
  assert (rise_n : E * (D * / n) <= exp (- (F * n * x)) * event n x) by (apply Rmult_le_compat; lra).
  assert (rise_m : E * (D * / m) <= exp (- (F * m * x)) * event m x) by (apply Rmult_le_compat; lra).
  assert (positive_n'' : 0 < E * (D * / n)) by (apply Rmult_lt_0_compat; assumption).
  assert (positive_m'' : 0 < E * (D * / m)) by (apply Rmult_lt_0_compat; assumption).
  apply Rmult_le_compat; [apply Rmult_le_pos; lra | lra | apply Rmult_le_compat_l; lra | lra].
Qed.

End Sides.

Section CubeRoot.

Variables (s : settings) (N p alpha R_T R_C p0 : R).
Hypothesis all_positive : positive s.
Hypothesis some_flows : 0 < N.
Hypothesis rest : at_rest s N p alpha R_T R_C.
Hypothesis positive_root : 0 < p0.
Hypothesis is_cube_root :
  p0 ^ 3 = increase s * N ^ 2 / (alpha_interval s * line_rate s ^ 2)
    * (1 / byte_counter s + N / (timer s * line_rate s)) ^ 2.

Lemma cube_by_rate :
  alpha_interval s * R_C * (cnp_interval s * R_C) ^ 2 * p0 ^ 3
  = strength s R_C * (/ byte_counter s + / (timer s * R_C)) ^ 2.
Proof.
  rewrite is_cube_root, (rate_at_rest_is_fair_share s N some_flows p alpha R_T R_C rest).
  unfold strength. destruct all_positive. field. repeat split; lra.
Qed.

Lemma sides_at_rest :
  left_side (cnp_interval s * R_C) (alpha_interval s * R_C) (hazard p)
  = right_side (strength s R_C) (stages s) (byte_counter s) (timer s * R_C) (hazard p).
Proof.
  assert (equal := cuts_are_raises s N all_positive some_flows p alpha R_T R_C rest).
  rewrite cuts_by_hazard, raises_by_hazard in equal by apply rest. exact equal.
Qed.

Lemma marking_below_hazard : p < hazard p.
Proof.
  assert (inside := marks_some _ _ _ _ _ _ rest).
  assert (line := saturation_below_line (hazard p) (hazard_positive p inside)).
  rewrite unmarked in line by exact inside. lra.
Qed.

Lemma hazard_below_cube_root :
  alpha_interval s + 2 * cnp_interval s <= stages s * timer s ->
  (alpha_interval s + 2 * cnp_interval s) * (line_rate s / N) <= stages s * byte_counter s ->
  hazard p < p0.
Proof.
  intros by_timer by_bytes. assert (inside := marks_some _ _ _ _ _ _ rest).
  assert (positive_rate := rate_at_rest_positive s N all_positive some_flows p alpha R_T R_C rest).
  rewrite <- (rate_at_rest_is_fair_share s N some_flows p alpha R_T R_C rest) in by_bytes.
  assert (positive_x := hazard_positive p inside). set (x := hazard p) in *.
  assert (packets_a := cnp_packets_positive s R_C all_positive positive_rate).
  assert (packets_alpha := alpha_packets_positive s R_C all_positive positive_rate).
  assert (packets_timer := timer_packets_positive s R_C all_positive positive_rate).
  assert (meet := sides_at_rest). fold x in meet.
  assert (least := left_side_at_least _ _ packets_a packets_alpha x positive_x).
  assert (most : right_side (strength s R_C) (stages s) (byte_counter s) (timer s * R_C) x
    < strength s R_C * (/ byte_counter s + / (timer s * R_C)) ^ 2
      * exp (- ((alpha_interval s * R_C + 2 * (cnp_interval s * R_C)) * x))).
  { apply right_side_at_most;
      [apply strength_positive; assumption | apply byte_counter_positive, all_positive | exact packets_timer
      | exact positive_x | lra | nra]. }
  rewrite <- cube_by_rate in most.
  set (E := exp (- ((alpha_interval s * R_C + 2 * (cnp_interval s * R_C)) * x))) in *.
  assert (positive_E : 0 < E) by apply exp_pos.
  set (G := alpha_interval s * R_C * (cnp_interval s * R_C) ^ 2) in *.
  assert (positive_G : 0 < G) by (unfold G; apply Rmult_lt_0_compat; [assumption | apply pow_lt; assumption]).
  apply cube_order; [lra |].
  apply Rmult_lt_reg_l with (G * E); [apply Rmult_lt_0_compat; assumption |].
  replace (G * E * x ^ 3) with (G * x ^ 3 * E) by ring.
  replace (G * E * p0 ^ 3) with (G * p0 ^ 3 * E) by ring. lra.
Qed.

(** ECN or Delay: the cube root p0 is above p, if alpha's interval and two CNP intervals take no longer than F timers,
    and send no more than F byte counters. How far above is another question: [cube_root_is_near].
    Claim: dcqcn-conext-cube-root. *)
Theorem cube_root_is_above :
  alpha_interval s + 2 * cnp_interval s <= stages s * timer s ->
  (alpha_interval s + 2 * cnp_interval s) * (line_rate s / N) <= stages s * byte_counter s ->
  p < p0.
Proof.
  intros by_timer by_bytes. assert (below := hazard_below_cube_root by_timer by_bytes).
  assert (marks := marking_below_hazard). lra.
Qed.

(** ECN or Delay: p is not below the cube root p0 by more than a share of (5 + (F + 2) M) p0/3, where M is at least B
    and T C/N. With [cube_root_is_above] it follows that p/p0 tends to 1 as R_AI, and with it p0, tends to 0. With Table
    14 M is 10 000 packets and more, and this says nothing: there p0 is 19 % to 44 % too high.
    Claim: dcqcn-conext-small-p. *)
Theorem cube_root_is_near (M : R) :
  byte_counter s <= M -> timer s * (line_rate s / N) <= M ->
  p0 * (1 - (5 + (stages s + 2) * M) / 3 * p0) <= p.
Proof.
  intros first second. assert (inside := marks_some _ _ _ _ _ _ rest).
  assert (positive_rate := rate_at_rest_positive s N all_positive some_flows p alpha R_T R_C rest).
  rewrite <- (rate_at_rest_is_fair_share s N some_flows p alpha R_T R_C rest) in second.
  assert (positive_x := hazard_positive p inside).
  assert (packets_a := cnp_packets_positive s R_C all_positive positive_rate).
  assert (packets_alpha := alpha_packets_positive s R_C all_positive positive_rate).
  assert (packets_timer := timer_packets_positive s R_C all_positive positive_rate).
  assert (positive_F := stages_positive s all_positive).
  assert (positive_B := byte_counter_positive s all_positive).
  set (x := hazard p) in *. set (kappa := (2 + (stages s + 2) * M) / 3).
  assert (positive_kappa : 0 < kappa) by (unfold kappa; nra).
  assert (saturates := saturation_above x positive_x). unfold x in saturates at 2 3.
  rewrite unmarked in saturates by exact inside.
  assert (marks : 1 - p = exp (- x)) by (symmetry; apply unmarked, inside). rewrite marks in saturates.
  replace ((5 + (stages s + 2) * M) / 3) with (kappa + 1) by (unfold kappa; field).
  destruct (Rle_lt_dec x p0) as [less | more].
  - assert (meet := sides_at_rest). fold x in meet.
    assert (most := left_side_at_most _ _ packets_a packets_alpha x positive_x).
    assert (least := right_side_at_least (strength s R_C) (stages s) (byte_counter s) (timer s * R_C)
      (strength_positive s R_C all_positive positive_rate) positive_F positive_B packets_timer M x positive_x
      first second).
    rewrite <- cube_by_rate in least.
    set (G := alpha_interval s * R_C * (cnp_interval s * R_C) ^ 2) in *.
    assert (positive_G : 0 < G) by (unfold G; apply Rmult_lt_0_compat; [assumption | apply pow_lt; assumption]).
    assert (cube : exp (- ((2 + (stages s + 2) * M) * x)) = exp (- (kappa * x)) ^ 3).
    { simpl. rewrite Rmult_1_r, <- !exp_plus. f_equal. unfold kappa. field. }
    rewrite cube in least.
    assert (root : p0 * exp (- (kappa * x)) <= x).
    { apply cube_order_weak; [lra |]. apply Rmult_le_reg_l with G; [exact positive_G |].
      replace (G * (p0 * exp (- (kappa * x))) ^ 3) with (G * p0 ^ 3 * exp (- (kappa * x)) ^ 3) by ring. lra. }
    assert (both : exp (- (kappa * x)) * exp (- x) = exp (- ((kappa + 1) * x))).
    { rewrite <- exp_plus. f_equal. ring. }
    assert (line := exp_at_least_line (- ((kappa + 1) * x))). rewrite <- both in line.
    assert (positive_exp := exp_pos (- x)).
    assert (scaled : p0 * exp (- (kappa * x)) * exp (- x) <= x * exp (- x)) by (apply Rmult_le_compat_r; lra).
    apply Rle_trans with (p0 * (1 - (kappa + 1) * x)).
    + apply Rmult_le_compat_l; [lra |]. apply Rplus_le_compat_l, Ropp_le_contravar.
      apply Rmult_le_compat_l; lra.
    + apply Rle_trans with (p0 * (exp (- (kappa * x)) * exp (- x))); [apply Rmult_le_compat_l; lra | lra].
  - assert (falls : exp (- x) < exp (- p0)) by (apply exp_rises; lra).
    assert (saturates' := saturation_above p0 positive_root).
    assert (line := exp_at_least_line (- p0)).
    nra.
Qed.

End CubeRoot.
