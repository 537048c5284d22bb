(** Fast convergence to fairness, section IV-B: a multiplicative decrease once per round trip, R(t), against one per
    s ACKs, S(t), and the fairness difference (2) of two flows.

    Rates are in bytes per unit of time, as the paper's bytes per nanosecond. *)

From Coq Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From fluidcc.shared Require Import power.
From fluidcc.fairness Require Import slopes gain.

Open Scope R_scope.

(** * The paper's model *)

(** R_i(t), decreased once per round trip r from the rate C on: the solution of R' = -beta R/r. *)
Definition per_trip (beta r C t : R) : R := C * exp (- (beta * t / r)).

(** S_i(t), decreased once per s ACKs of MTU bytes from the rate C on: the solution of S' = -beta S^2/(s MTU). *)
Definition per_acks (beta s MTU C t : R) : R := C / (1 + beta * C * t / (s * MTU)).

(** The left side of (2): by how much the rates of sampling are nearer to each other. *)
Definition difference (beta r s MTU C1 C0 t : R) : R :=
  (per_trip beta r C1 t - per_trip beta r C0 t) - (per_acks beta s MTU C1 t - per_acks beta s MTU C0 t).

(** The paper's equations of a rate X from time 0 on. *)
Definition decreases_per_trip (beta r : R) (X : R -> R) : Prop :=
  forall t, 0 <= t -> is_derive X t (- (beta * X t / r)).

Definition decreases_per_acks (beta s MTU : R) (X : R -> R) : Prop :=
  forall t, 0 <= t -> is_derive X t (- (beta * X t ^ 2 / (s * MTU))).

Section Solutions.

Variables beta r s MTU C : R.
Hypotheses (beta_positive : 0 < beta) (r_positive : 0 < r) (s_positive : 0 < s) (MTU_positive : 0 < MTU).
Hypothesis C_positive : 0 < C.

Let sample_positive : 0 < s * MTU.
Proof. now apply Rmult_lt_0_compat. Qed.

Lemma divisor_above_one (t : R) : 0 <= t -> 1 <= 1 + beta * C * t / (s * MTU).
Proof.
  intros later. enough (0 <= beta * C * t / (s * MTU)) by lra.
  apply Rdiv_le_0_compat; [| exact sample_positive].
  apply Rmult_le_pos; [| exact later]. apply Rlt_le. now apply Rmult_lt_0_compat.
Qed.

(** Section IV-B: C exp(-beta t/r) solves the equation of a decrease per round trip. *)
Theorem per_trip_solves : decreases_per_trip beta r (per_trip beta r C).
Proof.
  intros t _. unfold per_trip. evar_last; [slopes | cbv beta; unfold Rdiv; ring].
Qed.

(** Section IV-B: C/(1 + beta C t/(s MTU)) solves the equation of a decrease per s ACKs. *)
Theorem per_acks_solves : decreases_per_acks beta s MTU (per_acks beta s MTU C).
Proof.
  intros t later. assert (divisor := divisor_above_one t later). unfold per_acks.
  assert (below : is_derive (fun u => 1 + beta * C * u / (s * MTU)) t (beta * C / (s * MTU))).
  { evar_last; [slopes | cbv beta; unfold Rdiv; ring]. }
  evar_last.
  - apply (slope_mult (fun _ => C) (fun u => / (1 + beta * C * u / (s * MTU)))).
    + apply slope_const.
    + apply (is_derive_inv _ _ _ below). lra.
  - cbv beta. field. split; [| split]; try lra.
    intros zero. apply (f_equal (fun v => v / (s * MTU))) in zero.
    replace ((s * MTU + beta * C * t) / (s * MTU)) with (1 + beta * C * t / (s * MTU)) in zero by (field; lra).
    unfold Rdiv in zero at 2. lra.
Qed.

(** Section IV-B: no other rate that starts at C decreases per round trip as the equation says. *)
Theorem per_trip_is_the_only_solution (X : R -> R) (t : R) :
  decreases_per_trip beta r X -> X 0 = C -> 0 <= t -> X t = per_trip beta r C t.
Proof.
  intros solves start later.
  set (scaled := fun u => X u * exp (beta * u / r)).
  assert (flat : forall u, 0 <= u <= t -> is_derive scaled u 0).
  { intros u [u_later _]. unfold scaled. evar_last.
    - apply (slope_mult X (fun v => exp (beta * v / r))); [now apply solves |].
      apply slope_exp. slopes.
    - cbv beta. unfold Rdiv. ring. }
  assert (steady : forall u, 0 <= u <= t -> continuous (fun _ : R => 0) u) by (intros; apply continuous_const).
  assert (up := never_falls scaled (fun _ => 0) 0 t later flat steady ltac:(intros; lra)).
  assert (down := never_falls (fun u => - scaled u) (fun _ => 0) 0 t later
    ltac:(intros u inside; evar_last; [apply slope_opp, (flat u inside) | ring]) steady ltac:(intros; lra)).
  cbv beta in down. assert (same : scaled t = scaled 0) by lra.
  unfold scaled in same. rewrite start in same. unfold per_trip.
  replace (beta * 0 / r) with 0 in same by (field; lra). rewrite exp_0 in same.
  rewrite exp_Ropp. apply (Rmult_eq_reg_r (exp (beta * t / r))); [| apply Rgt_not_eq, exp_pos].
  rewrite same. field. apply Rgt_not_eq, exp_pos.
Qed.

(** Section IV-B: no other rate that starts at C decreases per s ACKs as the equation says. *)
Theorem per_acks_is_the_only_solution (X : R -> R) (t : R) :
  decreases_per_acks beta s MTU X -> X 0 = C -> 0 <= t -> X t = per_acks beta s MTU C t.
Proof.
  intros solves start later.
  assert (steady : forall u, 0 <= u <= t -> continuous X u).
  { intros u [u_later _]. exact (slope_continuous X u _ (solves u u_later)). }
  destruct (bounded_continuity X 0 t steady) as [bound below].
  set (apart := fun u => X u * (1 + beta * C * u / (s * MTU)) - C).
  set (pull := 2 * (beta / (s * MTU))).
  assert (pull_positive : 0 < pull) by (unfold pull; apply Rmult_lt_0_compat; [lra | now apply Rdiv_lt_0_compat]).
  assert (slope : forall u, 0 <= u <= t -> is_derive apart u (- (beta / (s * MTU)) * X u * apart u)).
  { intros u [u_later _]. unfold apart. evar_last.
    - apply slope_minus; [| apply slope_const].
      apply (slope_mult X (fun v => 1 + beta * C * v / (s * MTU))); [now apply solves |]. slopes.
    - cbv beta. unfold Rdiv. ring. }
  set (weighed := fun u => - (apart u * apart u * exp (- (pull * bound * u)))).
  set (change := fun u => pull * (X u + bound) * (apart u * apart u * exp (- (pull * bound * u)))).
  assert (weighed_slope : forall u, 0 <= u <= t -> is_derive weighed u (change u)).
  { intros u inside. unfold weighed, change. evar_last.
    - apply slope_opp, (slope_mult (fun v => apart v * apart v) (fun v => exp (- (pull * bound * v)))).
      + apply (slope_mult apart apart); now apply slope.
      + slopes.
    - cbv beta. unfold pull, Rdiv. ring. }
  assert (grows : weighed 0 <= weighed t).
  { apply (never_falls weighed change 0 t later weighed_slope).
    - intros u inside. assert (of_X : continuity_pt X u) by (apply continuity_pt_filterlim; now apply steady).
      unfold change, apart. steady; lra.
    - intros u [above before]. unfold change.
      assert (near := below u ltac:(lra)). change (norm (X u)) with (Rabs (X u)) in near.
      assert (0 <= X u + bound) by (apply Rabs_def2 in near; lra).
      apply Rmult_le_pos; [apply Rmult_le_pos; lra |].
      apply Rmult_le_pos; [apply Rle_0_sqr | apply Rlt_le, exp_pos]. }
  assert (level : apart 0 = 0) by (unfold apart; rewrite start; field; lra).
  assert (none : apart t = 0).
  { unfold weighed in grows. rewrite level in grows.
    assert (weight := exp_pos (- (pull * bound * t))).
    assert (square := Rle_0_sqr (apart t)). unfold Rsqr in square.
    assert (apart t * apart t = 0) by nra. now apply Rsqr_0_uniq. }
  unfold apart in none. unfold per_acks. assert (divisor := divisor_above_one t later).
  set (whole := 1 + beta * C * t / (s * MTU)) in *.
  apply (Rmult_eq_reg_r whole); [| lra].
  replace (C / whole * whole) with C by (field; lra). lra.
Qed.

(** Section IV-B: over one decrease interval f = s MTU/S the rate is multiplied by 1/(1 + beta) (the paper: "decreases
    by a factor of beta").
    Claim: sf-beta. *)
Theorem interval_of_sampling (t : R) :
  0 <= t -> per_acks beta s MTU C (t + s * MTU / per_acks beta s MTU C t) = per_acks beta s MTU C t / (1 + beta).
Proof.
  intros later. unfold per_acks. assert (divisor := divisor_above_one t later).
  set (x := 1 + beta * C * t / (s * MTU)) in *.
  assert (shifted : 1 + beta * C * (t + s * MTU / (C / x)) / (s * MTU) = x * (1 + beta)).
  { replace (beta * C * (t + s * MTU / (C / x)) / (s * MTU)) with (beta * C * t / (s * MTU) + beta * x)
      by (field; lra). unfold x. ring. }
  rewrite shifted. field. lra.
Qed.

(** Section IV-B: and over a round trip, in the other model, by exp(-beta). *)
Theorem interval_per_trip (t : R) : per_trip beta r C (t + r) = exp (- beta) * per_trip beta r C t.
Proof.
  unfold per_trip. replace (- (beta * (t + r) / r)) with (- beta + - (beta * t / r)) by (field; lra).
  rewrite exp_plus. ring.
Qed.

End Solutions.

Section TwoFlows.

Variables beta r s MTU C1 C0 : R.
Hypotheses (beta_positive : 0 < beta) (r_positive : 0 < r) (s_positive : 0 < s) (MTU_positive : 0 < MTU).
Hypotheses (slow_positive : 0 < C0) (faster : C0 < C1).

Let sample_positive : 0 < s * MTU.
Proof. now apply Rmult_lt_0_compat. Qed.

Let A := C1 * r / (s * MTU).
Let B := C0 * r / (s * MTU).

Lemma B_positive : 0 < B.
Proof. apply Rdiv_lt_0_compat; [now apply Rmult_lt_0_compat | exact sample_positive]. Qed.

Lemma A_above_B : B < A.
Proof. apply Rmult_lt_compat_r; [now apply Rinv_0_lt_compat | now apply Rmult_lt_compat_r]. Qed.

(** The paper's condition in A and B. *)
Lemma condition_in_loads : 1 / r < (C1 + C0) / (s * MTU) <-> 1 < A + B.
Proof.
  assert (same : A + B = r * ((C1 + C0) / (s * MTU))) by (unfold A, B; field; lra).
  assert (unit : r * (1 / r) = 1) by (field; lra).
  rewrite same. split; intros large.
  - rewrite <- unit. now apply Rmult_lt_compat_l.
  - apply (Rmult_lt_reg_l r); [exact r_positive | now rewrite unit].
Qed.

Lemma time_positive (t : R) : 0 < t <-> 0 < beta * t / r.
Proof.
  replace (beta * t / r) with (t * (beta / r)) by (field; lra).
  assert (scale : 0 < beta / r) by now apply Rdiv_lt_0_compat.
  split; intros positive; [now apply Rmult_lt_0_compat | nra].
Qed.

Lemma time_ordered (t u : R) : t < u -> beta * t / r < beta * u / r.
Proof.
  intros ordered. apply Rmult_lt_compat_r; [now apply Rinv_0_lt_compat | now apply Rmult_lt_compat_l].
Qed.

Lemma load_times (C t : R) : C * r / (s * MTU) * (beta * t / r) = beta * C * t / (s * MTU).
Proof. field. lra. Qed.

Lemma difference_by_gain (t : R) :
  0 <= t ->
  difference beta r s MTU C1 C0 t =
  (C1 - C0) / ((1 + A * (beta * t / r)) * (1 + B * (beta * t / r))) * (gain A B (beta * t / r) - 1).
Proof.
  intros later. unfold difference, per_trip, per_acks, gain.
  rewrite <- !load_times. fold A B. set (x := beta * t / r).
  assert (0 <= x) by (unfold x; apply Rdiv_le_0_compat; [apply Rmult_le_pos |]; lra).
  assert (positive := B_positive). assert (larger := A_above_B).
  replace (beta * C1 * t / (s * MTU)) with (A * x) by (unfold A, x; field; lra).
  replace (beta * C0 * t / (s * MTU)) with (B * x) by (unfold B, x; field; lra).
  assert (0 <= A * x) by (apply Rmult_le_pos; lra). assert (0 <= B * x) by (apply Rmult_le_pos; lra).
  assert (cross : C1 * B = C0 * A) by (unfold A, B; field; lra).
  transitivity ((C1 - C0) * exp (- x) - (C1 - C0) / ((1 + A * x) * (1 + B * x))).
  - enough (C1 / (1 + A * x) - C0 / (1 + B * x) = (C1 - C0) / ((1 + A * x) * (1 + B * x))) by lra.
    replace (C1 - C0) with (C1 * (1 + B * x) - C0 * (1 + A * x)) by nra. field. lra.
  - field. lra.
Qed.

Lemma divisors_positive (t : R) :
  0 <= t -> 0 < (C1 - C0) / ((1 + A * (beta * t / r)) * (1 + B * (beta * t / r))).
Proof.
  intros later.
  assert (0 <= beta * t / r) by (apply Rdiv_le_0_compat; [apply Rmult_le_pos |]; lra).
  assert (positive := B_positive). assert (larger := A_above_B).
  apply Rdiv_lt_0_compat; [lra | apply Rmult_lt_0_compat; nra].
Qed.

Lemma ahead_by_gain (t : R) :
  0 <= t -> 0 < difference beta r s MTU C1 C0 t <-> 1 < gain A B (beta * t / r).
Proof.
  intros later. rewrite difference_by_gain by exact later.
  assert (factor := divisors_positive t later). split; intros more; nra.
Qed.

Lemma behind_by_gain (t : R) :
  0 <= t -> difference beta r s MTU C1 C0 t < 0 <-> gain A B (beta * t / r) < 1.
Proof.
  intros later. rewrite difference_by_gain by exact later.
  assert (factor := divisors_positive t later). split; intros less; nra.
Qed.

Lemma level_by_gain (t : R) :
  0 <= t -> difference beta r s MTU C1 C0 t = 0 <-> gain A B (beta * t / r) = 1.
Proof.
  intros later.
  destruct (ahead_by_gain t later) as [ahead ahead_back], (behind_by_gain t later) as [behind behind_back].
  split; intros level; apply Rle_antisym; apply Rnot_lt_le; intros other.
  - specialize (ahead_back other). lra.
  - specialize (behind_back other). lra.
  - specialize (ahead other). lra.
  - specialize (behind other). lra.
Qed.

(** Section IV-B, (2): the difference of any rates that solve the paper's equations from these starts is the one
    of the closed forms.
    Claim: sf-closed. *)
Theorem difference_of_solutions (R1 R0 S1 S0 : R -> R) (t : R) :
  decreases_per_trip beta r R1 -> decreases_per_trip beta r R0 ->
  decreases_per_acks beta s MTU S1 -> decreases_per_acks beta s MTU S0 ->
  R1 0 = C1 -> S1 0 = C1 -> R0 0 = C0 -> S0 0 = C0 -> 0 <= t ->
  (R1 t - R0 t) - (S1 t - S0 t) = difference beta r s MTU C1 C0 t.
Proof.
  intros of_R1 of_R0 of_S1 of_S0 R1_start S1_start R0_start S0_start later. unfold difference.
  rewrite (per_trip_is_the_only_solution beta r C1 r_positive R1 t of_R1 R1_start later).
  rewrite (per_trip_is_the_only_solution beta r C0 r_positive R0 t of_R0 R0_start later).
  rewrite (per_acks_is_the_only_solution beta s MTU C1) with (X := S1); auto; [| lra].
  rewrite (per_acks_is_the_only_solution beta s MTU C0) with (X := S0); auto.
Qed.

(** Section IV-B: the slope of (2) at 0, with the right sides of the paper's equations put in, is positive if and only
    if 1/r < (C1 + C0)/(s MTU), as the paper says. *)
Theorem gap_closes_sooner_iff :
  0 < (- (beta * C1 / r) - - (beta * C0 / r)) - (- (beta * C1 ^ 2 / (s * MTU)) - - (beta * C0 ^ 2 / (s * MTU)))
  <-> 1 / r < (C1 + C0) / (s * MTU).
Proof.
  replace (_ - _) with (beta * (C1 - C0) * ((C1 + C0) / (s * MTU) - 1 / r)) by (field; lra).
  assert (0 < beta * (C1 - C0)) by (apply Rmult_lt_0_compat; lra).
  split; intros positive; nra.
Qed.

(** Section IV-B: the slope of (2) at 0. *)
Theorem slope_at_start :
  is_derive (difference beta r s MTU C1 C0) 0 (beta * (C1 - C0) * ((C1 + C0) / (s * MTU) - 1 / r)).
Proof.
  assert (fast : 0 < C1) by lra. assert (now : 0 <= 0) by lra. unfold difference.
  evar_last.
  - apply slope_minus; apply slope_minus.
    + exact (per_trip_solves beta r C1 0 now).
    + exact (per_trip_solves beta r C0 0 now).
    + exact (per_acks_solves beta s MTU C1 beta_positive s_positive MTU_positive fast 0 now).
    + exact (per_acks_solves beta s MTU C0 beta_positive s_positive MTU_positive slow_positive 0 now).
  - unfold per_trip, per_acks. replace (- (beta * 0 / r)) with 0 by (field; lra). rewrite exp_0.
    replace (1 + beta * C1 * 0 / (s * MTU)) with 1 by (field; lra).
    replace (1 + beta * C0 * 0 / (s * MTU)) with 1 by (field; lra). field. lra.
Qed.

(** Section IV-B, (2): both are equally fair at the start. *)
Theorem level_at_start : difference beta r s MTU C1 C0 0 = 0.
Proof.
  apply level_by_gain; [lra |]. replace (beta * 0 / r) with 0 by (field; lra). apply gain_at_start.
Qed.

(** Section IV-B, (2): under the condition sampling is ahead at least until
    2 (A + B - 1)/(A^2 + B^2) r/beta, where A, B = C_i r/(s MTU). *)
Theorem ahead_early (t : R) :
  0 < t ->
  t * beta * ((C1 * r / (s * MTU)) ^ 2 + (C0 * r / (s * MTU)) ^ 2) <
    2 * r * (C1 * r / (s * MTU) + C0 * r / (s * MTU) - 1) ->
  0 < difference beta r s MTU C1 C0 t.
Proof.
  fold A B. intros positive early. apply ahead_by_gain; [lra |].
  assert (low := B_positive). assert (larger := A_above_B).
  apply gain_early; try lra; [now apply (proj1 (time_positive t)) |].
  replace (beta * t / r * (A * A + B * B)) with (t * beta * (A ^ 2 + B ^ 2) / r) by (field; lra).
  apply (Rmult_lt_reg_r r); [exact r_positive |].
  replace (t * beta * (A ^ 2 + B ^ 2) / r * r) with (t * beta * (A ^ 2 + B ^ 2)) by (field; lra). lra.
Qed.

(** Section IV-B, (2): from (8 A - 4) r/beta on sampling is behind, where A = C1 r/(s MTU). *)
Theorem behind_late (t : R) :
  0 < t -> (8 * (C1 * r / (s * MTU)) - 4) * (r / beta) <= t -> difference beta r s MTU C1 C0 t < 0.
Proof.
  fold A. intros positive late. apply behind_by_gain; [lra |].
  assert (low := B_positive). assert (larger := A_above_B).
  apply gain_late; try lra; [now apply (proj1 (time_positive t)) |].
  replace (8 * A - 4) with (beta * ((8 * A - 4) * (r / beta)) / r) by (field; lra).
  apply Rmult_le_compat_r; [now apply Rlt_le, Rinv_0_lt_compat | now apply Rmult_le_compat_l; [apply Rlt_le |]].
Qed.

(** Section IV-B, (2): where sampling is no longer ahead it is behind from then on. *)
Theorem once_lost_stays_behind (t u : R) :
  0 < t -> t < u -> difference beta r s MTU C1 C0 t <= 0 -> difference beta r s MTU C1 C0 u < 0.
Proof.
  intros positive ordered lost. apply behind_by_gain; [lra |].
  assert (low := B_positive). assert (larger := A_above_B).
  apply (gain_once_lost A B (beta * t / r) (beta * u / r)); try lra.
  - now apply (proj1 (time_positive t)).
  - now apply time_ordered.
  - apply Rnot_lt_le. intros more. apply ahead_by_gain in more; lra.
Qed.

(** Section IV-B, (2): before a time at which sampling is not behind it is ahead. *)
Theorem ahead_until (t u : R) :
  0 < t -> t < u -> 0 <= difference beta r s MTU C1 C0 u -> 0 < difference beta r s MTU C1 C0 t.
Proof.
  intros positive ordered held. apply Rnot_le_lt. intros lost.
  assert (behind := once_lost_stays_behind t u positive ordered lost). lra.
Qed.

(** Section IV-B: without the condition the difference (2) is negative at all times. *)
Theorem behind_without_condition (t : R) :
  (C1 + C0) / (s * MTU) <= 1 / r -> 0 < t -> difference beta r s MTU C1 C0 t < 0.
Proof.
  intros small positive. apply behind_by_gain; [lra |].
  assert (low := B_positive). assert (larger := A_above_B).
  apply gain_without; try lra.
  - apply Rnot_lt_le. intros large. apply condition_in_loads in large. lra.
  - now apply (proj1 (time_positive t)).
Qed.

(** Section IV-B: the difference (2) is positive just after 0 if and only if 1/r < (C1 + C0)/(s MTU), as the paper says.
    Claim: sf-condition. *)
Theorem ahead_at_first_iff :
  (exists until, 0 < until /\ forall t, 0 < t < until -> 0 < difference beta r s MTU C1 C0 t)
  <-> 1 / r < (C1 + C0) / (s * MTU).
Proof.
  split.
  - intros [until [until_positive ahead]]. apply Rnot_le_lt. intros small.
    assert (behind := behind_without_condition (until / 2) small ltac:(lra)).
    specialize (ahead (until / 2) ltac:(lra)). lra.
  - intros large. apply condition_in_loads in large.
    assert (low := B_positive). assert (larger := A_above_B).
    assert (squares : 0 < A ^ 2 + B ^ 2) by nra.
    exists (2 * r * (A + B - 1) / (beta * (A ^ 2 + B ^ 2))).
    assert (both : 0 < beta * (A ^ 2 + B ^ 2)) by now apply Rmult_lt_0_compat.
    split; [apply Rdiv_lt_0_compat; [nra | exact both] |].
    intros t [above before]. apply ahead_early; [exact above |]. fold A B.
    apply (Rmult_lt_compat_r _ _ _ both) in before.
    replace (2 * r * (A + B - 1) / (beta * (A ^ 2 + B ^ 2)) * (beta * (A ^ 2 + B ^ 2)))
      with (2 * r * (A + B - 1)) in before by (field; lra). lra.
Qed.

(** Section IV-B: under the paper's condition the difference (2) is positive up to one time and negative after it.
    (The paper has it positive throughout.)
    Claim: sf-once. *)
Theorem difference_changes_sign_once :
  1 / r < (C1 + C0) / (s * MTU) ->
  exists change, 0 < change /\ difference beta r s MTU C1 C0 change = 0 /\
    (forall t, 0 < t < change -> 0 < difference beta r s MTU C1 C0 t) /\
    (forall t, change < t -> difference beta r s MTU C1 C0 t < 0).
Proof.
  intros large. apply condition_in_loads in large.
  assert (low := B_positive). assert (larger := A_above_B).
  destruct (gain_crosses A B low ltac:(lra) large) as [x [x_positive crosses]].
  exists (x * r / beta).
  assert (back : beta * (x * r / beta) / r = x) by (field; lra).
  assert (change_positive : 0 < x * r / beta) by (apply time_positive; now rewrite back).
  assert (level : difference beta r s MTU C1 C0 (x * r / beta) = 0).
  { apply level_by_gain; [lra |]. now rewrite back. }
  split; [exact change_positive | split; [exact level | split]].
  - intros t [above before]. apply (ahead_until t (x * r / beta)); lra.
  - intros t after. apply (once_lost_stays_behind (x * r / beta) t); lra.
Qed.

(** Section IV-B: there is no second time at which (2) changes its sign. *)
Theorem change_of_sign_is_unique (t u : R) :
  0 < t -> 0 < u -> difference beta r s MTU C1 C0 t = 0 -> difference beta r s MTU C1 C0 u = 0 -> t = u.
Proof.
  intros t_positive u_positive t_level u_level.
  destruct (Rtotal_order t u) as [before | [same | after]]; [| exact same |]; exfalso.
  - assert (behind := once_lost_stays_behind t u t_positive before ltac:(lra)). lra.
  - assert (behind := once_lost_stays_behind u t u_positive after ltac:(lra)). lra.
Qed.

(** Section IV-B: "over time the fairness difference diminishes": it stays below (C1 - C0) exp(-beta t/r). *)
Theorem difference_diminishes (t : R) :
  0 <= t -> difference beta r s MTU C1 C0 t < (C1 - C0) * exp (- (beta * t / r)).
Proof.
  intros later. rewrite difference_by_gain by exact later.
  assert (factor := divisors_positive t later). set (x := beta * t / r) in *.
  assert (0 <= x) by (unfold x; apply Rdiv_le_0_compat; [apply Rmult_le_pos |]; lra).
  assert (low := B_positive). assert (larger := A_above_B).
  assert (whole : (C1 - C0) / ((1 + A * x) * (1 + B * x)) * gain A B x = (C1 - C0) * exp (- x)).
  { unfold gain. field. nra. }
  lra.
Qed.

(** Section IV-B: as a ratio the rates become fair with sampling: this is what is left at t. *)
Theorem ratio_with_sampling (t : R) :
  0 <= t ->
  per_acks beta s MTU C1 t / per_acks beta s MTU C0 t = 1 + (C1 - C0) / (C0 * (1 + beta * C1 * t / (s * MTU))).
Proof.
  intros later. unfold per_acks.
  assert (fast := divisor_above_one beta s MTU C1 beta_positive s_positive MTU_positive ltac:(lra) t later).
  assert (slow := divisor_above_one beta s MTU C0 beta_positive s_positive MTU_positive ltac:(lra) t later).
  assert (cross : beta * C0 * t / (s * MTU) = C0 * (beta * C1 * t / (s * MTU)) / C1) by (field; lra).
  rewrite cross in *. set (x := beta * C1 * t / (s * MTU)) in *. field.
  repeat split; try lra.
  intros zero. apply (Rmult_eq_compat_r (/ C1)) in zero.
  replace ((C1 + C0 * x) * / C1) with (1 + C0 * x / C1) in zero by (field; lra). lra.
Qed.

(** Section IV-B: with sampling the ratio of the rates falls at all times.
    Claim: sf-ratio. *)
Theorem ratio_with_sampling_falls (t u : R) :
  0 <= t -> t < u ->
  per_acks beta s MTU C1 u / per_acks beta s MTU C0 u < per_acks beta s MTU C1 t / per_acks beta s MTU C0 t.
Proof.
  intros later ordered. rewrite !ratio_with_sampling by lra.
  assert (first := divisor_above_one beta s MTU C1 beta_positive s_positive MTU_positive ltac:(lra) t later).
  assert (more : beta * C1 * t / (s * MTU) < beta * C1 * u / (s * MTU)).
  { apply Rmult_lt_compat_r; [now apply Rinv_0_lt_compat |].
    apply Rmult_lt_compat_l; [apply Rmult_lt_0_compat; lra | exact ordered]. }
  apply Rplus_lt_compat_l, Rmult_lt_compat_l; [lra |].
  apply Rinv_lt_contravar; [apply Rmult_lt_0_compat; nra | nra].
Qed.

(** Section IV-B: with sampling the ratio of the rates tends to 1: what is above 1 is less than a constant over t.
    Claim: sf-ratio-any. *)
Theorem ratio_with_sampling_tends_to_one (t : R) :
  0 < t ->
  per_acks beta s MTU C1 t / per_acks beta s MTU C0 t - 1 < s * MTU * (C1 - C0) / (beta * C0 * C1) / t.
Proof.
  intros positive. rewrite ratio_with_sampling by lra.
  replace (s * MTU * (C1 - C0) / (beta * C0 * C1) / t) with ((C1 - C0) / (C0 * (beta * C1 * t / (s * MTU))))
    by (field; lra).
  assert (amount : 0 < beta * C1 * t / (s * MTU)).
  { apply Rdiv_lt_0_compat; [repeat apply Rmult_lt_0_compat; lra | exact sample_positive]. }
  set (x := beta * C1 * t / (s * MTU)) in *.
  enough ((C1 - C0) / (C0 * (1 + x)) < (C1 - C0) / (C0 * x)) by lra.
  apply Rmult_lt_compat_l; [lra |].
  apply Rinv_lt_contravar; [apply Rmult_lt_0_compat; nra | nra].
Qed.

(** Section IV-B: a decrease per round trip leaves the ratio of the rates as it was, which (2) does not show. *)
Theorem ratio_per_trip_stays (t : R) : per_trip beta r C1 t / per_trip beta r C0 t = C1 / C0.
Proof. unfold per_trip. assert (weight := exp_pos (- (beta * t / r))). field. lra. Qed.

End TwoFlows.

(** * Figure 4

    beta = 0.5, r = 30 000 ns, s = 30, MTU = 1000 B, C1 and C0 100 and 50 Gb/s, 12.5 and 6.25 B/ns. *)

Lemma power_of_quotient (p q : Z) (n : nat) :
  (0 < q)%Z -> (IZR p / IZR q) ^ n = IZR (p ^ Z.of_nat n) / IZR (q ^ Z.of_nat n).
Proof.
  intros positive. apply IZR_lt in positive. unfold Rdiv.
  rewrite Rpow_mult_distr, pow_inv, !pow_IZR by lra. reflexivity.
Qed.

Lemma power_at_most (p q m : Z) (n : nat) :
  (0 < q)%Z -> (p ^ Z.of_nat n <= m * q ^ Z.of_nat n)%Z -> (IZR p / IZR q) ^ n <= IZR m.
Proof.
  intros positive below. rewrite power_of_quotient by exact positive. apply Rle_div_l.
  - apply Rlt_gt, IZR_lt, Z.pow_pos_nonneg; lia.
  - rewrite <- mult_IZR. now apply IZR_le.
Qed.

Lemma power_at_least (p q m : Z) (n : nat) :
  (0 < q)%Z -> (m * q ^ Z.of_nat n <= p ^ Z.of_nat n)%Z -> IZR m <= (IZR p / IZR q) ^ n.
Proof.
  intros positive above. rewrite power_of_quotient by exact positive. apply Rle_div_r.
  - apply Rlt_gt, IZR_lt, Z.pow_pos_nonneg; lia.
  - rewrite <- mult_IZR. now apply IZR_le.
Qed.

Lemma exp_of_87_tenths : exp (87 / 10) <= 6030.
Proof.
  assert (small : exp (87 / 10 / 256) <= 1034583 / 1000000).
  { set (u := 34583 / 1000000). apply Rle_trans with (exp (u - u * u / 2)).
    - apply exp_rises_weakly. unfold u. lra.
    - assert (below := exp_below u ltac:(unfold u; lra)). unfold u in *. lra. }
  replace (87 / 10) with (INR 256 * (87 / 10 / 256)) by (rewrite INR_IZR_INZ; simpl; field).
  rewrite exp_of_multiple. apply Rle_trans with ((1034583 / 1000000) ^ 256).
  - apply pow_incr. split; [apply Rlt_le, exp_pos | exact small].
  - apply power_at_most; [reflexivity |]. apply Z.leb_le. vm_compute. reflexivity.
Qed.

Lemma exp_of_523_sixtieths : 6101 <= exp (523 / 60).
Proof.
  assert (small : 1919843449 / 1887436800 <= exp (523 / 60 / 512)).
  { assert (above := exp_above_parabola (523 / 60 / 512) ltac:(lra)). lra. }
  replace (523 / 60) with (INR 512 * (523 / 60 / 512)) by (rewrite INR_IZR_INZ; simpl; field).
  rewrite exp_of_multiple. apply Rle_trans with ((1919843449 / 1887436800) ^ 512).
  - apply power_at_least; [reflexivity |]. apply Z.leb_le. vm_compute. reflexivity.
  - apply pow_incr. split; [lra | exact small].
Qed.

Lemma figure_4_by_gain (t : R) :
  0 <= t ->
  difference (1 / 2) 30000 30 1000 (25 / 2) (25 / 4) t =
  (25 / 4) / ((1 + 25 / 2 * (t / 60000)) * (1 + 25 / 4 * (t / 60000))) * (gain (25 / 2) (25 / 4) (t / 60000) - 1).
Proof.
  intros later. rewrite difference_by_gain by lra.
  replace (1 / 2 * t / 30000) with (t / 60000) by field.
  replace (25 / 2 * 30000 / (30 * 1000)) with (25 / 2) by field.
  replace (25 / 4 * 30000 / (30 * 1000)) with (25 / 4) by field.
  replace (25 / 2 - 25 / 4) with (25 / 4) by field. reflexivity.
Qed.

(** Section IV-B, Figure 4: with its settings sampling is ahead for 522 us. *)
Theorem figure_4_ahead (t : R) :
  0 < t <= 522000 -> 0 < difference (1 / 2) 30000 30 1000 (25 / 2) (25 / 4) t.
Proof.
  intros [above before].
  assert (held : 0 < difference (1 / 2) 30000 30 1000 (25 / 2) (25 / 4) 522000).
  { rewrite figure_4_by_gain by lra. apply Rmult_lt_0_compat; [lra |]. unfold gain.
    replace (522000 / 60000) with (87 / 10) by field. rewrite exp_Ropp.
    assert (weight := exp_pos (87 / 10)). assert (most := exp_of_87_tenths).
    enough (exp (87 / 10) * / exp (87 / 10) < (1 + 25 / 2 * (87 / 10)) * (1 + 25 / 4 * (87 / 10)) * / exp (87 / 10))
      by (rewrite Rinv_r in *; lra).
    apply Rmult_lt_compat_r; [now apply Rinv_0_lt_compat | lra]. }
  destruct (Rle_lt_or_eq_dec t 522000 before) as [less | same].
  - apply (ahead_until (1 / 2) 30000 30 1000 (25 / 2) (25 / 4)) with (u := 522000); lra.
  - now rewrite same.
Qed.

(** Section IV-B, Figure 4: with its settings sampling is behind from 523 us on. *)
Theorem figure_4_behind (t : R) :
  523000 <= t -> difference (1 / 2) 30000 30 1000 (25 / 2) (25 / 4) t < 0.
Proof.
  intros later.
  assert (lost : difference (1 / 2) 30000 30 1000 (25 / 2) (25 / 4) 523000 < 0).
  { rewrite figure_4_by_gain by lra. unfold gain.
    replace (523000 / 60000) with (523 / 60) by field. rewrite exp_Ropp.
    assert (weight := exp_pos (523 / 60)). assert (least := exp_of_523_sixtieths).
    enough ((1 + 25 / 2 * (523 / 60)) * (1 + 25 / 4 * (523 / 60)) * / exp (523 / 60)
              < exp (523 / 60) * / exp (523 / 60)) by (rewrite Rinv_r in *; nra).
    apply Rmult_lt_compat_r; [now apply Rinv_0_lt_compat | lra]. }
  destruct (Rle_lt_or_eq_dec 523000 t later) as [more | same].
  - apply (once_lost_stays_behind (1 / 2) 30000 30 1000 (25 / 2) (25 / 4)) with (t := 523000); lra.
  - now rewrite <- same.
Qed.
