(** DCQCN's fluid model (SIGCOMM 2015, section 5.1): its fixed point with equal rates.

    Equations (5) to (9) at rest leave one equation for the marking probability p. For all settings it has exactly one
    root in (0, 1). A queue that marks with it stands on RED's ramp if and only if it is at most Pmax.
    Neither g nor the delay tau* enters. Data are counted in packets, as the powers of 1 - p need. *)

From Coq Require Import Reals Lra Psatz.
From fluidcc.shared Require Import power.
From fluidcc.dcqcn Require Import hazard.

Open Scope R_scope.

(** * The model *)

(** Settings of the senders, and the rate of their link. Table 14 has the paper's values. *)
Record settings := Settings {
  line_rate : R; (* C, rate of the bottleneck [packets/s] *)
  cnp_interval : R; (* tau, least time between two CNPs of a flow [s] *)
  alpha_interval : R; (* tau', period of alpha's update [s] *)
  timer : R; (* T, period of rate increases by time [s] *)
  byte_counter : R; (* B, data between rate increases by bytes [packets] *)
  stages : R; (* F, steps of fast recovery [1] *)
  increase : R; (* R_AI, additive increase of the target [packets/s] *)
  gain : R (* g, weight of the last mark in alpha [1] *)
}.

Record positive (s : settings) : Prop := {
  line_rate_positive : 0 < line_rate s;
  cnp_interval_positive : 0 < cnp_interval s;
  alpha_interval_positive : 0 < alpha_interval s;
  timer_positive : 0 < timer s;
  byte_counter_positive : 0 < byte_counter s;
  stages_positive : 0 < stages s;
  increase_positive : 0 < increase s;
  gain_positive : 0 < gain s
}.

(** (5), RED: marking probability of a queue q; all of q, kmin and kmax in one unit. *)
Definition red (kmin kmax pmax q : R) : R :=
  if Rle_dec q kmin then 0
  else if Rle_dec q kmax then (q - kmin) / (kmax - kmin) * pmax
  else 1.

(** (6), dq/dt [packets/s] of N flows with current rate R_C. *)
Definition queue_slope (s : settings) (N R_C : R) : R := N * R_C - line_rate s.

(** (7), d alpha/dt [1/s]; [p] and [r] are p and R_C a delay tau* ago, here and below. *)
Definition alpha_slope (s : settings) (alpha p r : R) : R :=
  gain s / alpha_interval s * ((1 - power (1 - p) (alpha_interval s * r)) - alpha).

(** (8), dR_T/dt [packets/s^2] of the target rate. *)
Definition target_slope (s : settings) (R_T R_C p r : R) : R :=
  - ((R_T - R_C) / cnp_interval s) * (1 - power (1 - p) (cnp_interval s * r))
  + increase s * r
    * (power (1 - p) (stages s * byte_counter s) * p / (power (1 - p) (- byte_counter s) - 1))
  + increase s * r
    * (power (1 - p) (stages s * timer s * r) * p / (power (1 - p) (- (timer s * r)) - 1)).

(** (9), dR_C/dt [packets/s^2] of the current rate. *)
Definition rate_slope (s : settings) (alpha R_T R_C p r : R) : R :=
  - (R_C * alpha / (2 * cnp_interval s)) * (1 - power (1 - p) (cnp_interval s * r))
  + (R_T - R_C) / 2 * (r * p / (power (1 - p) (- byte_counter s) - 1))
  + (R_T - R_C) / 2 * (r * p / (power (1 - p) (- (timer s * r)) - 1)).

(** A fixed point of (6) to (9) with equal rates: nothing moves, so what was a delay ago is what is now. At p = 0 and at
    p = 1, where the printed fractions are limits, there is none: (8) rises at p = 0, and (9) falls at p = 1. *)
Record at_rest (s : settings) (N p alpha R_T R_C : R) : Prop := {
  marks_some : 0 < p < 1;
  queue_rests : queue_slope s N R_C = 0;
  alpha_rests : alpha_slope s alpha p R_C = 0;
  target_rests : target_slope s R_T R_C p R_C = 0;
  rate_rests : rate_slope s alpha R_T R_C p R_C = 0
}.

(** The coefficients of (8) and (9) that a later paper (ECN or Delay, CoNEXT 2016) calls a to e. *)
Definition a (s : settings) (p r : R) : R := 1 - power (1 - p) (cnp_interval s * r).
Definition b (s : settings) (p : R) : R := p / (power (1 - p) (- byte_counter s) - 1).
Definition c (s : settings) (p : R) : R := power (1 - p) (stages s * byte_counter s) * b s p.
Definition d (s : settings) (p r : R) : R := p / (power (1 - p) (- (timer s * r)) - 1).
Definition e (s : settings) (p r : R) : R := power (1 - p) (stages s * timer s * r) * d s p r.

(** Share of alpha's periods in which a CNP comes, which alpha is at rest. *)
Definition marked (s : settings) (p r : R) : R := 1 - power (1 - p) (alpha_interval s * r).

(** The two sides of the equation for p: what cuts, and what raises, the rates. *)
Definition cuts (s : settings) (p r : R) : R := marked s p r * a s p r ^ 2.
Definition raises (s : settings) (p r : R) : R :=
  cnp_interval s ^ 2 * increase s * r * (b s p + d s p r) * (c s p + e s p r).

(** * The equation for p *)

(** The hazard of marking: x with 1 - p = exp(- x). *)
Definition hazard (p : R) : R := - log (1 - p).

Lemma hazard_positive (p : R) : 0 < p < 1 -> 0 < hazard p.
Proof.
  intros inside. unfold hazard. assert (negative : log (1 - p) < 0) by (apply log_negative; lra). lra.
Qed.

Lemma unmarked (p : R) : 0 < p < 1 -> exp (- hazard p) = 1 - p.
Proof. intros inside. unfold hazard. rewrite Ropp_involutive. apply exp_log. lra. Qed.

Lemma hazard_rises (p q : R) : 0 < p < 1 -> 0 < q < 1 -> (hazard p < hazard q <-> p < q).
Proof.
  intros inside_p inside_q.
  assert (at_p := unmarked p inside_p). assert (at_q := unmarked q inside_q).
  split; intros less.
  - assert (falls : exp (- hazard q) < exp (- hazard p)) by (apply exp_rises; lra). lra.
  - destruct (Rtotal_order (hazard p) (hazard q)) as [before | [equal | after]]; [exact before | |].
    + rewrite equal in at_p. lra.
    + assert (rises : exp (- hazard p) < exp (- hazard q)) by (apply exp_rises; lra). lra.
Qed.

Lemma power_by_hazard (p n : R) : power (1 - p) n = exp (- (n * hazard p)).
Proof. unfold power, hazard. f_equal. ring. Qed.

Lemma opposite_power_by_hazard (p n : R) : power (1 - p) (- n) = exp (n * hazard p).
Proof. unfold power, hazard. f_equal. ring. Qed.

(** Product of the settings before (b + d)(c + e). *)
Definition strength (s : settings) (r : R) : R := cnp_interval s ^ 2 * increase s * r.

Section Equation.

Variables (s : settings) (r : R).
Hypothesis all_positive : positive s.
Hypothesis positive_rate : 0 < r.

Lemma strength_positive : 0 < strength s r.
Proof.
  destruct all_positive. unfold strength.
  apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; [apply pow_lt |] |]; assumption.
Qed.

Lemma timer_packets_positive : 0 < timer s * r.
Proof. destruct all_positive. apply Rmult_lt_0_compat; assumption. Qed.

Lemma cnp_packets_positive : 0 < cnp_interval s * r.
Proof. destruct all_positive. apply Rmult_lt_0_compat; assumption. Qed.

Lemma alpha_packets_positive : 0 < alpha_interval s * r.
Proof. destruct all_positive. apply Rmult_lt_0_compat; assumption. Qed.

Lemma b_by_hazard (p : R) : 0 < p < 1 -> b s p = event (byte_counter s) (hazard p).
Proof.
  intros inside. unfold b, event. rewrite opposite_power_by_hazard, unmarked by exact inside. f_equal. ring.
Qed.

Lemma d_by_hazard (p : R) : 0 < p < 1 -> d s p r = event (timer s * r) (hazard p).
Proof.
  intros inside. unfold d, event. rewrite opposite_power_by_hazard, unmarked by exact inside. f_equal. ring.
Qed.

Lemma cuts_by_hazard (p : R) :
  cuts s p r = left_side (cnp_interval s * r) (alpha_interval s * r) (hazard p).
Proof. unfold cuts, marked, a, left_side. rewrite !power_by_hazard. reflexivity. Qed.

Lemma raises_by_hazard (p : R) :
  0 < p < 1 ->
  raises s p r = right_side (strength s r) (stages s) (byte_counter s) (timer s * r) (hazard p).
Proof.
  intros inside. unfold raises, right_side, strength, c, e.
  rewrite b_by_hazard, d_by_hazard, !power_by_hazard by exact inside.
  rewrite <- (Rmult_assoc (stages s) (timer s) r). reflexivity.
Qed.

Lemma b_positive (p : R) : 0 < p < 1 -> 0 < b s p.
Proof.
  intros inside. rewrite b_by_hazard by exact inside. destruct all_positive.
  apply event_positive; [assumption | apply hazard_positive, inside].
Qed.

Lemma d_positive (p : R) : 0 < p < 1 -> 0 < d s p r.
Proof.
  intros inside. rewrite d_by_hazard by exact inside.
  apply event_positive; [apply timer_packets_positive | apply hazard_positive, inside].
Qed.

Lemma c_positive (p : R) : 0 < p < 1 -> 0 < c s p.
Proof. intros inside. apply Rmult_lt_0_compat; [apply power_positive | apply b_positive, inside]. Qed.

Lemma e_positive (p : R) : 0 < p < 1 -> 0 < e s p r.
Proof. intros inside. apply Rmult_lt_0_compat; [apply power_positive | apply d_positive, inside]. Qed.

Lemma a_positive (p : R) : 0 < p < 1 -> 0 < a s p r.
Proof.
  intros inside. unfold a.
  assert (below : power (1 - p) (cnp_interval s * r) < 1); [| lra].
  apply power_below_one; [lra | apply cnp_packets_positive].
Qed.

Lemma marked_positive (p : R) : 0 < p < 1 -> 0 < marked s p r.
Proof.
  intros inside. unfold marked.
  assert (below : power (1 - p) (alpha_interval s * r) < 1); [| lra].
  apply power_below_one; [lra | apply alpha_packets_positive].
Qed.

(** The equation for p, marked a^2 = tau^2 R_AI R (b + d) (c + e), has a root in (0, 1) at every rate R. *)
Lemma equation_has_a_root : exists p, 0 < p < 1 /\ cuts s p r = raises s p r.
Proof.
  destruct (sides_meet (strength s r) (stages s) (byte_counter s) (timer s * r)
    (cnp_interval s * r) (alpha_interval s * r)) as [x [positive_x meet]];
    [apply strength_positive | apply stages_positive, all_positive | apply byte_counter_positive, all_positive
    | apply timer_packets_positive | apply cnp_packets_positive | apply alpha_packets_positive |].
  exists (1 - exp (- x)).
  assert (inside : 0 < 1 - exp (- x) < 1).
  { assert (below := exp_opposite_below_one x positive_x). assert (above := exp_pos (- x)). lra. }
  assert (same : hazard (1 - exp (- x)) = x).
  { unfold hazard. replace (1 - (1 - exp (- x))) with (exp (- x)) by ring. rewrite log_exp. ring. }
  split; [exact inside |].
  rewrite cuts_by_hazard, raises_by_hazard, same by exact inside. exact meet.
Qed.

(** Below the root increases are more than cuts, from it on they are not. *)
Lemma cuts_less_iff (p root : R) :
  0 < p < 1 -> 0 < root < 1 -> cuts s root r = raises s root r ->
  (cuts s p r < raises s p r <-> p < root).
Proof.
  intros inside inside_root meet. destruct all_positive.
  rewrite <- (hazard_rises p root) by assumption.
  rewrite cuts_by_hazard, raises_by_hazard in * by assumption.
  apply left_less_iff;
    [apply strength_positive | assumption | assumption | apply timer_packets_positive | apply cnp_packets_positive
    | apply alpha_packets_positive | apply hazard_positive, inside | apply hazard_positive, inside_root | exact meet].
Qed.

Lemma equation_has_one_root (p q : R) :
  0 < p < 1 -> 0 < q < 1 -> cuts s p r = raises s p r -> cuts s q r = raises s q r -> p = q.
Proof.
  intros inside_p inside_q root_p root_q.
  assert (one := cuts_less_iff p q inside_p inside_q root_q).
  assert (other := cuts_less_iff q p inside_q inside_p root_p).
  destruct (Rtotal_order p q) as [less | [equal | more]]; [| exact equal |].
  - apply one in less. lra.
  - apply other in more. lra.
Qed.

End Equation.

(** * Fixed points *)

Section FixedPoint.

Variables (s : settings) (N : R).
Hypothesis all_positive : positive s.
Hypothesis some_flows : 0 < N.

(** Section 5.1, (10): at a fixed point each flow has its share of the line. *)
Theorem rate_at_rest_is_fair_share (p alpha R_T R_C : R) :
  at_rest s N p alpha R_T R_C -> R_C = line_rate s / N.
Proof.
  intros rest. assert (slope := queue_rests _ _ _ _ _ _ rest). unfold queue_slope in slope.
  apply Rmult_eq_reg_l with N; [| lra]. replace (N * (line_rate s / N)) with (line_rate s) by (field; lra). lra.
Qed.

Lemma fair_share_positive : 0 < line_rate s / N.
Proof. apply Rdiv_lt_0_compat; [apply line_rate_positive, all_positive | exact some_flows]. Qed.

Lemma rate_at_rest_positive (p alpha R_T R_C : R) : at_rest s N p alpha R_T R_C -> 0 < R_C.
Proof. intros rest. rewrite (rate_at_rest_is_fair_share _ _ _ _ rest). exact fair_share_positive. Qed.

Lemma coefficients_positive (p alpha R_T R_C : R) :
  at_rest s N p alpha R_T R_C ->
  0 < R_C /\ 0 < a s p R_C /\ 0 < b s p /\ 0 < c s p /\ 0 < d s p R_C /\ 0 < e s p R_C.
Proof.
  intros rest. assert (inside := marks_some _ _ _ _ _ _ rest).
  assert (positive_rate := rate_at_rest_positive _ _ _ _ rest).
  split; [exact positive_rate |]. split; [now apply a_positive |]. split; [now apply b_positive |].
  split; [now apply c_positive |]. split; [now apply d_positive | now apply e_positive].
Qed.

(** Section 5.1, (7): alpha at a fixed point is the share of its periods in which a packet is marked. *)
Theorem alpha_at_rest (p alpha R_T R_C : R) :
  at_rest s N p alpha R_T R_C -> alpha = 1 - power (1 - p) (alpha_interval s * R_C).
Proof.
  intros rest. assert (slope := alpha_rests _ _ _ _ _ _ rest). unfold alpha_slope in slope.
  assert (factor : 0 < gain s / alpha_interval s).
  { apply Rdiv_lt_0_compat; [apply gain_positive | apply alpha_interval_positive]; exact all_positive. }
  apply Rmult_integral in slope. destruct slope as [absurd | equal]; lra.
Qed.

Lemma target_slope_short (R_T R_C p : R) :
  target_slope s R_T R_C p R_C
  = increase s * R_C * (c s p + e s p R_C) - (R_T - R_C) / cnp_interval s * a s p R_C.
Proof. unfold target_slope, c, e, b, d, a, Rdiv. ring. Qed.

Lemma rate_slope_short (alpha R_T R_C p : R) :
  rate_slope s alpha R_T R_C p R_C
  = (R_T - R_C) / 2 * R_C * (b s p + d s p R_C) - R_C * alpha / (2 * cnp_interval s) * a s p R_C.
Proof. unfold rate_slope, b, d, a, Rdiv. ring. Qed.

(** Section 5.1, (8): at a fixed point the target exceeds the rate by tau R_AI R_C (c + e)/a. *)
Theorem target_at_rest (p alpha R_T R_C : R) :
  at_rest s N p alpha R_T R_C ->
  R_T = R_C + cnp_interval s * increase s * R_C * (c s p + e s p R_C) / a s p R_C.
Proof.
  intros rest. assert (slope := target_rests _ _ _ _ _ _ rest). rewrite target_slope_short in slope.
  destruct (coefficients_positive _ _ _ _ rest) as [_ [positive_a _]].
  assert (positive_tau := cnp_interval_positive _ all_positive).
  apply Rmult_eq_reg_r with (a s p R_C / cnp_interval s);
    [| apply Rgt_not_eq, Rdiv_lt_0_compat; assumption].
  replace ((R_C + cnp_interval s * increase s * R_C * (c s p + e s p R_C) / a s p R_C) * (a s p R_C / cnp_interval s))
    with (R_C * (a s p R_C / cnp_interval s) + increase s * R_C * (c s p + e s p R_C)) by (field; lra).
  replace ((R_T - R_C) / cnp_interval s * a s p R_C) with ((R_T - R_C) * (a s p R_C / cnp_interval s)) in slope
    by (field; lra).
  lra.
Qed.

(** (8) at rest. *)
Lemma gap_at_rest (p alpha R_T R_C : R) :
  at_rest s N p alpha R_T R_C ->
  (R_T - R_C) * a s p R_C = cnp_interval s * increase s * R_C * (c s p + e s p R_C).
Proof.
  intros rest. assert (target := target_rests _ _ _ _ _ _ rest). rewrite target_slope_short in target.
  assert (tau := cnp_interval_positive _ all_positive).
  replace ((R_T - R_C) * a s p R_C) with (cnp_interval s * ((R_T - R_C) / cnp_interval s * a s p R_C)) by (field; lra).
  replace ((R_T - R_C) / cnp_interval s * a s p R_C) with (increase s * R_C * (c s p + e s p R_C)) by lra. ring.
Qed.

(** (9) at rest. *)
Lemma balance_at_rest (p alpha R_T R_C : R) :
  at_rest s N p alpha R_T R_C ->
  alpha * a s p R_C = cnp_interval s * (R_T - R_C) * (b s p + d s p R_C).
Proof.
  intros rest. assert (rate := rate_rests _ _ _ _ _ _ rest). rewrite rate_slope_short in rate.
  assert (tau := cnp_interval_positive _ all_positive).
  assert (positive_rate := rate_at_rest_positive _ _ _ _ rest).
  set (bd := b s p + d s p R_C) in *. set (cut := a s p R_C) in *.
  apply Rmult_eq_reg_l with (R_C / (2 * cnp_interval s)); [| apply Rgt_not_eq, Rdiv_lt_0_compat; lra].
  replace (R_C / (2 * cnp_interval s) * (alpha * cut)) with (R_C * alpha / (2 * cnp_interval s) * cut)
    by (field; lra).
  replace (R_C / (2 * cnp_interval s) * (cnp_interval s * (R_T - R_C) * bd)) with ((R_T - R_C) / 2 * R_C * bd)
    by (field; lra).
  lra.
Qed.

(** ECN or Delay (CoNEXT 2016): the fixed point of DCQCN solves a^2 alpha/((b + d)(c + e)) = tau^2 R_AI R_C. Derived
    here from (8) and (9). *)
Theorem marking_equation (p alpha R_T R_C : R) :
  at_rest s N p alpha R_T R_C ->
  a s p R_C ^ 2 * alpha / ((b s p + d s p R_C) * (c s p + e s p R_C)) = cnp_interval s ^ 2 * increase s * R_C.
Proof.
  intros rest. assert (gap := gap_at_rest _ _ _ _ rest). assert (balance := balance_at_rest _ _ _ _ rest).
  destruct (coefficients_positive _ _ _ _ rest)
    as [positive_rate [positive_a [positive_b [positive_c [positive_d positive_e]]]]].
  set (bd := b s p + d s p R_C) in *. set (ce := c s p + e s p R_C) in *. set (cut := a s p R_C) in *.
  assert (positive_bd : 0 < bd) by (unfold bd; lra). assert (positive_ce : 0 < ce) by (unfold ce; lra).
  replace (cut ^ 2 * alpha) with (cut * (alpha * cut)) by ring.
  rewrite balance.
  replace (cut * (cnp_interval s * (R_T - R_C) * bd)) with (cnp_interval s * bd * ((R_T - R_C) * cut)) by ring.
  rewrite gap. field. lra.
Qed.

Lemma cuts_are_raises (p alpha R_T R_C : R) : at_rest s N p alpha R_T R_C -> cuts s p R_C = raises s p R_C.
Proof.
  intros rest. assert (equation := marking_equation p alpha R_T R_C rest).
  destruct (coefficients_positive _ _ _ _ rest)
    as [positive_rate [positive_a [positive_b [positive_c [positive_d positive_e]]]]].
  unfold cuts, raises, marked. rewrite <- (alpha_at_rest p alpha R_T R_C rest), <- equation. field. lra.
Qed.

(** Conversely, a root of the equation for p is the marking of a fixed point. *)
Lemma rest_at_root (p : R) :
  let r := line_rate s / N in
  0 < p < 1 -> cuts s p r = raises s p r ->
  at_rest s N p (marked s p r) (r + cnp_interval s * increase s * r * (c s p + e s p r) / a s p r) r.
Proof.
  intros r inside root. assert (positive_rate : 0 < r) by exact fair_share_positive.
  assert (tau := cnp_interval_positive _ all_positive).
  assert (tau' := alpha_interval_positive _ all_positive).
  assert (positive_a := a_positive s r all_positive positive_rate p inside).
  constructor.
  - exact inside.
  - unfold queue_slope, r. field. lra.
  - unfold alpha_slope, marked. ring.
  - rewrite target_slope_short. field. lra.
  - rewrite rate_slope_short. unfold cuts, raises in root.
    replace (r + cnp_interval s * increase s * r * (c s p + e s p r) / a s p r - r)
      with (cnp_interval s * increase s * r * (c s p + e s p r) / a s p r) by ring.
    apply Rmult_eq_reg_r with (2 * cnp_interval s * a s p r); [| apply Rgt_not_eq; repeat apply Rmult_lt_0_compat; lra].
    rewrite Rmult_0_l.
    replace ((cnp_interval s * increase s * r * (c s p + e s p r) / a s p r / 2 * r * (b s p + d s p r)
        - r * marked s p r / (2 * cnp_interval s) * a s p r) * (2 * cnp_interval s * a s p r))
      with (r * (cnp_interval s ^ 2 * increase s * r * (b s p + d s p r) * (c s p + e s p r)
        - marked s p r * a s p r ^ 2)) by (field; lra).
    rewrite root. ring.
Qed.

(** Section 5.1: (6) to (9), with equal rates, have exactly one fixed point (p, alpha, R_T, R_C) with p in (0, 1), for
    any positive settings and any number of flows. Whether a queue marks with this p is another question:
    [one_fixed_point_iff] in ramp.v. *)
Theorem one_fixed_point :
  exists! rest : R * R * R * R, let '(p, alpha, R_T, R_C) := rest in at_rest s N p alpha R_T R_C.
Proof.
  set (r := line_rate s / N). assert (positive_rate : 0 < r) by exact fair_share_positive.
  destruct (equation_has_a_root s r all_positive positive_rate) as [p [inside root]].
  exists (p, marked s p r, r + cnp_interval s * increase s * r * (c s p + e s p r) / a s p r, r).
  split; [apply rest_at_root; assumption |].
  intros [[[q alpha] R_T] R_C] rest.
  assert (rate := rate_at_rest_is_fair_share q alpha R_T R_C rest). fold r in rate.
  assert (same : p = q).
  { apply (equation_has_one_root s r); [assumption | assumption | assumption | apply rest | assumption |].
    rewrite <- rate. exact (cuts_are_raises q alpha R_T R_C rest). }
  rewrite (target_at_rest q alpha R_T R_C rest), (alpha_at_rest q alpha R_T R_C rest), rate, <- same. reflexivity.
Qed.

(** ECN or Delay (CoNEXT 2016): the equation for p has a single root.
    Claim: dcqcn-conext-fixed-point. *)
Theorem marking_equation_has_one_root :
  let R_C := line_rate s / N in
  exists! p, 0 < p < 1
    /\ a s p R_C ^ 2 * (1 - power (1 - p) (alpha_interval s * R_C))
       = cnp_interval s ^ 2 * increase s * R_C * (b s p + d s p R_C) * (c s p + e s p R_C).
Proof.
  intros R_C. assert (positive_rate : 0 < R_C) by exact fair_share_positive.
  destruct (equation_has_a_root s R_C all_positive positive_rate) as [p [inside root]].
  exists p. split.
  - split; [exact inside |]. unfold cuts, raises, marked in root. rewrite <- root. ring.
  - intros q [inside_q root_q]. apply (equation_has_one_root s R_C); try assumption.
    unfold cuts, raises, marked. rewrite <- root_q. ring.
Qed.

(** Section 5.1: two fixed points mark with the same probability. *)
Theorem marking_at_rest_is_unique (p alpha R_T R_C p' alpha' R_T' R_C' : R) :
  at_rest s N p alpha R_T R_C -> at_rest s N p' alpha' R_T' R_C' -> p = p'.
Proof.
  intros rest rest'.
  assert (rate := rate_at_rest_is_fair_share _ _ _ _ rest). assert (rate' := rate_at_rest_is_fair_share _ _ _ _ rest').
  assert (root := cuts_are_raises _ _ _ _ rest). assert (root' := cuts_are_raises _ _ _ _ rest').
  rewrite rate in root. rewrite rate' in root'.
  apply (equation_has_one_root s (line_rate s / N));
    [exact all_positive | exact fair_share_positive | apply rest | apply rest' | exact root | exact root'].
Qed.

(** The marking at rest is above any p at which increases outweigh cuts, and only those. *)
Theorem marking_is_above_iff (p alpha R_T R_C bound : R) :
  at_rest s N p alpha R_T R_C -> 0 < bound < 1 -> (bound < p <-> cuts s bound R_C < raises s bound R_C).
Proof.
  intros rest inside. symmetry.
  apply cuts_less_iff; [exact all_positive | apply (rate_at_rest_positive _ _ _ _ rest) | exact inside | apply rest |].
  exact (cuts_are_raises _ _ _ _ rest).
Qed.

(** Section 5.1, (8): the target rate at rest is above the current rate. *)
Theorem target_is_above_rate (p alpha R_T R_C : R) : at_rest s N p alpha R_T R_C -> R_C < R_T.
Proof.
  intros rest. rewrite (target_at_rest _ _ _ _ rest).
  destruct (coefficients_positive _ _ _ _ rest)
    as [positive_rate [positive_a [positive_b [positive_c [positive_d positive_e]]]]].
  assert (gap : 0 < cnp_interval s * increase s * R_C * (c s p + e s p R_C) / a s p R_C); [| lra].
  apply Rdiv_lt_0_compat; [| exact positive_a]. repeat apply Rmult_lt_0_compat; try lra.
  - apply cnp_interval_positive, all_positive.
  - apply increase_positive, all_positive.
Qed.

(** Section 5.1, (8) and (9): the target at rest is above the current rate by less than the geometric mean of R_AI and
    R_C. *)
Theorem target_is_near_rate (p alpha R_T R_C : R) :
  at_rest s N p alpha R_T R_C -> (R_T - R_C) ^ 2 < increase s * R_C.
Proof.
  intros rest. assert (inside := marks_some _ _ _ _ _ _ rest).
  assert (gap := gap_at_rest _ _ _ _ rest). assert (balance := balance_at_rest _ _ _ _ rest).
  destruct (coefficients_positive _ _ _ _ rest)
    as [positive_rate [positive_a [positive_b [positive_c [positive_d positive_e]]]]].
  assert (positive_alpha := marked_positive s R_C all_positive positive_rate p inside).
  assert (small_alpha : marked s p R_C < 1).
  { unfold marked. assert (unmarked_share := power_positive (1 - p) (alpha_interval s * R_C)). lra. }
  assert (same : alpha = marked s p R_C) by exact (alpha_at_rest _ _ _ _ rest).
  assert (tau := cnp_interval_positive _ all_positive).
  assert (positive_increase := increase_positive _ all_positive).
  assert (less_c : c s p < b s p).
  { unfold c. assert (weight : power (1 - p) (stages s * byte_counter s) < 1); [| nra].
    apply power_below_one; [lra |].
    apply Rmult_lt_0_compat; [apply stages_positive | apply byte_counter_positive]; exact all_positive. }
  assert (less_e : e s p R_C < d s p R_C).
  { unfold e. assert (weight : power (1 - p) (stages s * timer s * R_C) < 1); [| nra].
    apply power_below_one; [lra |].
    repeat apply Rmult_lt_0_compat; [apply stages_positive | apply timer_positive | assumption]; exact all_positive. }
  set (bd := b s p + d s p R_C) in *. set (ce := c s p + e s p R_C) in *. set (cut := a s p R_C) in *.
  assert (order : 0 < ce < bd) by (unfold ce, bd; lra).
  assert (product : (R_T - R_C) ^ 2 * bd = increase s * R_C * (alpha * ce)).
  { apply Rmult_eq_reg_l with (cnp_interval s * cut); [| apply Rgt_not_eq, Rmult_lt_0_compat; assumption].
    replace (cnp_interval s * cut * ((R_T - R_C) ^ 2 * bd))
      with ((R_T - R_C) * cut * (cnp_interval s * (R_T - R_C) * bd)) by ring.
    rewrite gap, <- balance. ring. }
  apply Rmult_lt_reg_r with bd; [lra |]. rewrite product.
  apply Rmult_lt_compat_l; [apply Rmult_lt_0_compat; assumption |]. rewrite same. nra.
Qed.

End FixedPoint.

(** One flow alone would rest with a target above the line rate. Section 5.1 says nothing of a limit of R_T, and (8) has
    none; a NIC has one. *)
Theorem one_flow_aims_above_the_line (s : settings) (p alpha R_T R_C : R) :
  positive s -> at_rest s 1 p alpha R_T R_C -> line_rate s < R_T.
Proof.
  intros all_positive rest.
  assert (rate := rate_at_rest_is_fair_share s 1 Rlt_0_1 p alpha R_T R_C rest).
  assert (above := target_is_above_rate s 1 all_positive Rlt_0_1 p alpha R_T R_C rest).
  rewrite rate in above. lra.
Qed.

(** From two flows on the target at rest is below the line rate, if R_AI is at most half of that. *)
Theorem several_flows_aim_below_the_line (s : settings) (N p alpha R_T R_C : R) :
  positive s -> 2 <= N -> 2 * increase s <= line_rate s -> at_rest s N p alpha R_T R_C -> R_T < line_rate s.
Proof.
  intros all_positive several small rest. assert (some : 0 < N) by lra.
  assert (rate := queue_rests _ _ _ _ _ _ rest). unfold queue_slope in rate.
  assert (positive_rate := rate_at_rest_positive s N all_positive some p alpha R_T R_C rest).
  assert (near := target_is_near_rate s N all_positive some p alpha R_T R_C rest).
  assert (above := target_is_above_rate s N all_positive some p alpha R_T R_C rest).
  destruct (Rlt_le_dec R_T (line_rate s)) as [good | bad]; [exact good | exfalso].
  assert (gap : (N - 1) * R_C <= R_T - R_C) by lra.
  assert (square : ((N - 1) * R_C) ^ 2 <= (R_T - R_C) ^ 2).
  { apply pow_incr. split; [apply Rmult_le_pos; lra | exact gap]. }
  assert (double : 2 * (increase s * R_C) <= N * R_C * R_C).
  { replace (N * R_C) with (line_rate s) by lra. nra. }
  assert (flows : N <= 2 * (N - 1) ^ 2) by nra.
  assert (squares : N * (R_C * R_C) <= 2 * (N - 1) ^ 2 * (R_C * R_C)) by (apply Rmult_le_compat_r; nra).
  nra.
Qed.
