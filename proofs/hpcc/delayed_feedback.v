(** HPCC (SIGCOMM 2019), section 1 and Appendix A.1, A.3: "stability is guaranteed": the load of one link, when sources
    learn of it d round trips late.

    S(n+1) = S(n) U_target C / S(n-d) + N a, with S the sum of rates. Near the equilibrium S, to first order, the
    deviation x obeys x(n+1) = lambda x(n) - lambda x(n-d), with lambda = U_target C / S = U_target / U between 0 and 1.
    *)

From Coq Require Import Reals Lra Lia Arith.
From fluidcc.shared Require Import limits.

Local Open Scope R_scope.

(** * The linear recursion *)

(** The load's slope in the load of the last round trip is lambda. *)
Lemma slope_in_load (aim seen extra : R) (load : R) :
  derivable_pt_lim (fun s => s * (aim / seen) + extra) load (aim / seen).
Proof.
  assert (derivable_pt_lim (fun s => s * (aim / seen) + extra) load (1 * (aim / seen) + load * 0 + 0)) as slope.
  { apply (derivable_pt_lim_plus (fun s => s * (aim / seen)) (fun _ => extra)); [|apply derivable_pt_lim_const].
    apply (derivable_pt_lim_mult (fun s => s) (fun _ => aim / seen)); [apply derivable_pt_lim_id|].
    apply derivable_pt_lim_const. }
  rewrite Rmult_1_l, Rmult_0_r, !Rplus_0_r in slope. exact slope.
Qed.

(** And in the load that is seen, - lambda, at the equilibrium. *)
Lemma slope_in_seen_load (aim extra load : R) :
  load <> 0 -> derivable_pt_lim (fun seen => load * (aim / seen) + extra) load (- (aim / load)).
Proof.
  intros other.
  assert (derivable_pt_lim (fun seen => load * (aim / seen) + extra) load
    (0 * (aim / load) + load * ((0 * load - 1 * aim) / Rsqr load) + 0)) as slope.
  { apply (derivable_pt_lim_plus (fun seen => load * (aim / seen)) (fun _ => extra)); [|apply derivable_pt_lim_const].
    apply (derivable_pt_lim_mult (fun _ => load) (fun seen => aim / seen)); [apply derivable_pt_lim_const|].
    apply (derivable_pt_lim_div (fun _ => aim) (fun seen => seen)); [apply derivable_pt_lim_const| |exact other].
    apply derivable_pt_lim_id. }
  replace (- (aim / load)) with (0 * (aim / load) + load * ((0 * load - 1 * aim) / Rsqr load) + 0); [exact slope|].
  unfold Rsqr. field. exact other.
Qed.

(** Deviations of the load of which sources learn so many round trips late. *)
Definition late (delay : nat) (lambda : R) (x : nat -> R) : Prop :=
  forall n, x (S (delay + n)) = lambda * x (delay + n)%nat - lambda * x n.

(** * Recursions of second order with complex roots *)

Section Second_order.

Variables (p q : R) (x : nat -> R).

Hypothesis recursion : forall n, x (S (S n)) = - p * x (S n) - q * x n.

(** A quadratic form that each step multiplies by q, the product of the roots. *)
Definition energy (n : nat) : R := x (S n) ^ 2 + p * x (S n) * x n + q * x n ^ 2.

Lemma energy_is_geometric (n : nat) : energy n = energy 0 * q ^ n.
Proof.
  induction n as [|n IH]; [simpl; ring|].
  replace (energy (S n)) with (q * energy n); [rewrite IH; simpl; ring|].
  unfold energy. rewrite recursion. ring.
Qed.

Lemma square_below_energy (n : nat) : x n ^ 2 * (q - p ^ 2 / 4) <= energy n.
Proof.
  pose proof (pow2_ge_0 (x (S n) + p * x n / 2)) as square. unfold energy.
  replace (x (S n) ^ 2 + p * x (S n) * x n + q * x n ^ 2)
    with ((x (S n) + p * x n / 2) ^ 2 + x n ^ 2 * (q - p ^ 2 / 4)) by field. lra.
Qed.

Lemma second_order_bound (n : nat) : x n ^ 2 * (q - p ^ 2 / 4) <= energy 0 * q ^ n.
Proof. rewrite <- energy_is_geometric. apply square_below_energy. Qed.

Hypothesis complex : p ^ 2 / 4 < q.

Lemma product_positive : 0 < q.
Proof. pose proof (pow2_ge_0 p). lra. Qed.

Lemma second_order_geometric : exists most, 0 <= most /\ forall n, Rabs (x n) <= most * sqrt q ^ n.
Proof.
  pose proof product_positive as sign.
  assert (0 <= energy 0) as start.
  { apply Rle_trans with (2 := square_below_energy 0).
    apply Rmult_le_pos; [apply pow2_ge_0|lra]. }
  exists (sqrt (energy 0 / (q - p ^ 2 / 4))). split; [apply sqrt_pos|]. intros n.
  assert (0 <= energy 0 / (q - p ^ 2 / 4)) as ratio.
  { apply Rmult_le_pos; [exact start|]. apply Rlt_le, Rinv_0_lt_compat. lra. }
  assert (0 <= sqrt q ^ n) as power by (apply pow_le, sqrt_pos).
  rewrite <- (Rabs_pos_eq (sqrt (energy 0 / (q - p ^ 2 / 4)) * sqrt q ^ n))
    by (apply Rmult_le_pos; [apply sqrt_pos|exact power]).
  apply Rsqr_le_abs_0. rewrite Rsqr_mult, Rsqr_sqrt by exact ratio.
  replace (Rsqr (sqrt q ^ n)) with (q ^ n).
  - apply Rmult_le_reg_r with (q - p ^ 2 / 4); [lra|].
    replace (energy 0 / (q - p ^ 2 / 4) * q ^ n * (q - p ^ 2 / 4)) with (energy 0 * q ^ n) by (field; lra).
    replace (Rsqr (x n)) with (x n ^ 2) by (unfold Rsqr; ring). apply second_order_bound.
  - unfold Rsqr. rewrite <- Rpow_mult_distr, sqrt_sqrt by lra. reflexivity.
Qed.

End Second_order.

Section Late.

Variable lambda : R.

Hypothesis between : 0 < lambda < 1.

(** * In time, and one round trip late *)

(** A.3, one link, near the equilibrium: if sources know the last round trip's load, a deviation of it is gone after one
    round trip. *)
Theorem in_time_is_stable (x : nat -> R) (n : nat) : late 0 lambda x -> x (S n) = 0.
Proof. intros recursion. pose proof (recursion n) as step. simpl in step. rewrite step. ring. Qed.

(** A.3, one link, near the equilibrium: one round trip late, each deviation is bounded by one that falls by sqrt lambda
    in a round trip. *)
Theorem one_round_trip_late_decays (x : nat -> R) (n : nat) :
  late 1 lambda x ->
  x n ^ 2 * (lambda - lambda ^ 2 / 4) <= (x 1%nat ^ 2 - lambda * x 1%nat * x 0%nat + lambda * x 0%nat ^ 2) * lambda ^ n.
Proof.
  intros recursion.
  pose proof (second_order_bound (- lambda) lambda x) as bound. unfold energy in bound.
  replace (x 1%nat ^ 2 - lambda * x 1%nat * x 0%nat + lambda * x 0%nat ^ 2)
    with (x 1%nat ^ 2 + - lambda * x 1%nat * x 0%nat + lambda * x 0%nat ^ 2) by ring.
  replace (lambda - lambda ^ 2 / 4) with (lambda - (- lambda) ^ 2 / 4) by field.
  apply bound. intros m. pose proof (recursion m) as step. simpl in step. rewrite step. ring.
Qed.

(** A.3, one link: the equilibrium of feedback one round trip late is stable against small deviations, those of the
    linear recursion, whatever the target and the increase are. All sources have one round trip.
    Claim: hpcc-a3-stability. *)
Theorem one_round_trip_late_is_stable (x : nat -> R) : late 1 lambda x -> Un_cv x 0.
Proof.
  intros recursion.
  destruct (second_order_geometric (- lambda) lambda x) as (most & sign & below).
  - intros m. pose proof (recursion m) as step. simpl in step. rewrite step. ring.
  - assert (0 < lambda * (4 - lambda)) by (apply Rmult_lt_0_compat; lra). simpl. lra.
  - apply geometric_converges with most (sqrt lambda).
    + split; [apply sqrt_pos|]. rewrite <- sqrt_1. apply sqrt_lt_1_alt. lra.
    + intros n. rewrite Rminus_0_r. apply below.
Qed.

(** * Two round trips late *)

(** The characteristic polynomial z^3 - lambda z^2 + lambda has a root between -1 and - lambda/3. *)
Lemma real_root : exists r, -1 < r < - lambda / 3 /\ r ^ 3 - lambda * r ^ 2 + lambda = 0.
Proof.
  destruct (IVT (fun z => z ^ 3 - lambda * z ^ 2 + lambda) (-1) (- lambda / 3)) as [r [range root]].
  - apply derivable_continuous. intros z. reg.
  - lra.
  - lra.
  - replace ((- lambda / 3) ^ 3 - lambda * (- lambda / 3) ^ 2 + lambda)
      with (lambda * (1 - 4 / 27 * lambda ^ 2)) by field.
    apply Rmult_lt_0_compat; [lra|].
    assert (lambda * lambda < 1 * 1) by (apply Rmult_le_0_lt_compat; lra). simpl. lra.
  - exists r. split; [|exact root]. destruct range as [low high]. split.
    + destruct low as [less|same]; [exact less|exfalso]. rewrite <- same in root. lra.
    + destruct high as [less|same]; [exact less|exfalso]. rewrite same in root.
      replace ((- lambda / 3) ^ 3 - lambda * (- lambda / 3) ^ 2 + lambda)
        with (lambda * (1 - 4 / 27 * lambda ^ 2)) in root by field.
      assert (lambda * lambda < 1 * 1) by (apply Rmult_le_0_lt_compat; lra).
      assert (0 < lambda * (1 - 4 / 27 * lambda ^ 2)) by (apply Rmult_lt_0_compat; [lra|simpl; lra]). lra.
Qed.

Section Root.

Variable r : R.

Hypothesis range : -1 < r < - lambda / 3.
Hypothesis root : r ^ 3 - lambda * r ^ 2 + lambda = 0.

(** The product of the other two roots. *)
Let q : R := r * (r - lambda).

Lemma root_product : - r * q = lambda.
Proof. unfold q. simpl in root. lra. Qed.

Lemma others_complex : (r - lambda) ^ 2 / 4 < q.
Proof.
  unfold q. assert (0 < (lambda - r) * (- lambda - 3 * r)) as positive by (apply Rmult_lt_0_compat; lra).
  simpl. lra.
Qed.

(** They are inside the unit circle if and only if lambda^2 < 1/2. *)
Lemma product_below_one_iff : q < 1 <-> lambda ^ 2 < 1 / 2.
Proof.
  pose proof root_product as product.
  assert ((r + lambda) * (r ^ 2 - 2 * lambda * r + 2 * lambda ^ 2) = lambda * (2 * lambda ^ 2 - 1)) as factored.
  { replace (lambda * (2 * lambda ^ 2 - 1)) with (r ^ 3 - lambda * r ^ 2 + 2 * lambda ^ 3 -
      (r ^ 3 - lambda * r ^ 2 + lambda)) by ring. rewrite root. ring. }
  assert (0 < r ^ 2 - 2 * lambda * r + 2 * lambda ^ 2) as positive.
  { pose proof (pow2_ge_0 (r - lambda)) as square.
    assert (0 < lambda * lambda) by (apply Rmult_lt_0_compat; lra). simpl in square |- *. lra. }
  set (quadratic := r ^ 2 - 2 * lambda * r + 2 * lambda ^ 2) in *.
  split; intros less.
  - assert (r + lambda < 0) as beyond.
    { assert (- r * q < - r * 1) by (apply Rmult_lt_compat_l; lra). lra. }
    assert (0 < - (r + lambda) * quadratic) by (apply Rmult_lt_0_compat; lra).
    apply Rmult_lt_reg_l with lambda; [lra|]. lra.
  - assert (r + lambda < 0) as beyond.
    { apply Rnot_le_lt. intros no.
      assert (0 <= (r + lambda) * quadratic) by (apply Rmult_le_pos; lra).
      assert (0 < lambda * (1 - 2 * lambda ^ 2)) by (apply Rmult_lt_0_compat; lra). lra. }
    apply Rmult_lt_reg_l with (- r); [lra|]. lra.
Qed.

Variable x : nat -> R.

Hypothesis recursion : late 2 lambda x.

(** Without the real root's part a solution is one of second order. *)
Lemma rest_is_second_order (n : nat) :
  x (S (S (S n))) - r * x (S (S n)) = - (r - lambda) * (x (S (S n)) - r * x (S n)) - q * (x (S n) - r * x n).
Proof.
  pose proof (recursion n) as step. simpl in step. rewrite step.
  pose proof root_product as product. unfold q in *.
  replace (- (r - lambda) * (x (S (S n)) - r * x (S n)) - r * (r - lambda) * (x (S n) - r * x n))
    with (- (r - lambda) * x (S (S n)) - - r * (r * (r - lambda)) * x n) by ring.
  rewrite product. ring.
Qed.

Lemma late_converges : lambda ^ 2 < 1 / 2 -> Un_cv x 0.
Proof.
  intros small. apply product_below_one_iff in small.
  destruct (second_order_geometric (r - lambda) q (fun n => x (S n) - r * x n)) as (most & sign & below).
  - exact rest_is_second_order.
  - exact others_complex.
  - assert (sqrt q < 1) as inside by (rewrite <- sqrt_1; apply sqrt_lt_1_alt; pose proof others_complex as complex;
      pose proof (pow2_ge_0 (r - lambda)); lra).
    pose proof (sqrt_pos q) as root_sign.
    set (u := (1 + Rmax (sqrt q) (- r)) / 2).
    pose proof (Rmax_l (sqrt q) (- r)) as left_side. pose proof (Rmax_r (sqrt q) (- r)) as right_side.
    assert (Rmax (sqrt q) (- r) < 1) as top by (apply Rmax_lub_lt; lra).
    assert (- r < u < 1) as above by (unfold u; lra).
    set (bound := Rabs (x 0%nat) + most / (u + r)).
    assert (0 <= most / (u + r)) as ratio.
    { apply Rmult_le_pos; [exact sign|]. apply Rlt_le, Rinv_0_lt_compat. lra. }
    pose proof (Rabs_pos (x 0%nat)) as start.
    apply geometric_converges with bound u; [lra|].
    intros n. rewrite Rminus_0_r. induction n as [|n IH]; [unfold bound; simpl; lra|].
    replace (x (S n)) with (r * x n + (x (S n) - r * x n)) by ring.
    apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_mult, (Rabs_left r) by lra.
    assert (0 <= u ^ n) as power by (apply pow_le; lra).
    assert (most * sqrt q ^ n <= most * u ^ n) as rest.
    { apply Rmult_le_compat_l; [exact sign|]. apply pow_incr. unfold u. lra. }
    assert (- r * Rabs (x n) <= - r * (bound * u ^ n)) as first by (apply Rmult_le_compat_l; lra).
    pose proof (below n) as second. simpl in second.
    assert (most * u ^ n <= (u + r) * bound * u ^ n) as room.
    { apply Rmult_le_compat_r; [exact power|]. unfold bound.
      assert (0 <= (u + r) * Rabs (x 0%nat)) by (apply Rmult_le_pos; lra).
      replace ((u + r) * (Rabs (x 0%nat) + most / (u + r))) with ((u + r) * Rabs (x 0%nat) + most) by (field; lra).
      lra. }
    simpl pow. lra.
Qed.

(** At lambda^2 >= 1/2 the solution from 1, 0, 0 does not converge to 0. *)
Lemma late_does_not_converge :
  1 / 2 <= lambda ^ 2 -> x 0%nat = 1 -> x 1%nat = 0 -> x 2%nat = 0 -> ~ Un_cv x 0.
Proof.
  intros large first second third limit.
  assert (1 <= q) as outside.
  { apply Rnot_lt_le. intros no. apply product_below_one_iff in no. lra. }
  set (y := fun n => x (S n) - r * x n).
  pose proof (energy_is_geometric (r - lambda) q y rest_is_second_order) as geometric.
  assert (energy (r - lambda) q y 0 = q * r ^ 2) as start.
  { unfold energy, y. rewrite first, second, third. ring. }
  assert (0 < r ^ 2) as positive by (simpl; assert (0 < - r * - r) by (apply Rmult_lt_0_compat; lra); lra).
  assert (0 < q * r ^ 2) as start_sign by (apply Rmult_lt_0_compat; lra).
  assert (forall n, q * r ^ 2 <= energy (r - lambda) q y n) as stays.
  { intros n. rewrite geometric, start. rewrite <- (Rmult_1_r (q * r ^ 2)) at 1.
    apply Rmult_le_compat_l; [lra|]. apply pow_R1_Rle, outside. }
  assert (Un_cv y 0) as y_limit.
  { apply Un_cv_ext with (2 := combination_vanishes _ x 1 (- r) (later_limit x 0 limit) limit).
    intros n. unfold y. ring. }
  pose proof (later_limit y 0 y_limit) as y_later.
  assert (Un_cv (fun n => - energy (r - lambda) q y n) 0) as energy_limit.
  { apply Un_cv_ext with (2 := combination_vanishes _ _ (- 1) (- q)
      (product_vanishes _ _ y_later (combination_vanishes _ _ 1 (r - lambda) y_later y_limit))
      (product_vanishes _ _ y_limit y_limit)).
    intros n. unfold energy. ring. }
  pose proof (limit_le _ 0 (- (q * r ^ 2)) 0 energy_limit (fun n _ => Ropp_le_contravar _ _ (stays n))) as bad. lra.
Qed.

End Root.

(** The solution from 1, 0, 0: three numbers at a time. *)
Fixpoint from_one (n : nat) : R * R * R :=
  match n with
  | O => (1, 0, 0)
  | S m => let '(a, b, c) := from_one m in (b, c, lambda * c - lambda * a)
  end.

Lemma from_one_is_late : late 2 lambda (fun n => fst (fst (from_one n))).
Proof.
  intros n. simpl. destruct (from_one n) as [[a b] c]. simpl. reflexivity.
Qed.

(** A.3, one link: feedback two round trips late is stable against small deviations if and only if lambda = U_target / U
    is below sqrt (1/2), about 0.7071. *)
Theorem two_round_trips_late_stable_iff :
  (forall x, late 2 lambda x -> Un_cv x 0) <-> lambda ^ 2 < 1 / 2.
Proof.
  destruct real_root as (r & range & root). split.
  - intros stable. apply Rnot_le_lt. intros large.
    set (x := fun n => fst (fst (from_one n))).
    apply (late_does_not_converge r range root x from_one_is_late large); try reflexivity.
    apply stable, from_one_is_late.
  - intros small x recursion. apply (late_converges r range root x recursion small).
Qed.

End Late.

(** At the paper's target of 95 %, and a link used beyond it up to its capacity, feedback two round trips late is not
    stable: some small deviation does not die out. *)
Theorem two_round_trips_late_unstable_at_95_percent (use : R) :
  95/100 < use <= 1 -> exists x, late 2 (95/100 / use) x /\ ~ Un_cv x 0.
Proof.
  intros range. set (lambda := 95/100 / use).
  assert (lambda * use = 95/100) as whole by (unfold lambda; field; lra).
  assert (0 < lambda) as sign by (apply Rdiv_lt_0_compat; lra).
  assert (95/100 <= lambda) as high.
  { assert (lambda * use <= lambda * 1) by (apply Rmult_le_compat_l; lra). lra. }
  assert (lambda < 1) as low by (apply Rmult_lt_reg_r with use; lra).
  destruct (real_root lambda (conj sign low)) as (r & inside & root).
  exists (fun n => fst (fst (from_one lambda n))). split; [apply from_one_is_late|].
  apply (late_does_not_converge lambda (conj sign low) r inside root); try reflexivity.
  - apply from_one_is_late.
  - assert (95/100 * (95/100) <= lambda * lambda) by (apply Rmult_le_compat; lra). simpl. lra.
Qed.
