(** Fast convergence to fairness, section IV-B: a multiplicative decrease once per round trip, R(t), against one per
    s ACKs, S(t), and the fairness difference (2) of two flows.

    Rates are in bytes per unit of time, as the paper's bytes per nanosecond. *)

From Coq Require Import Reals Lra Psatz.
From Coquelicot Require Import Coquelicot.

Open Scope R_scope.

(** * Slopes *)

Lemma slope_const (c t : R) : is_derive (fun _ : R => c) t 0.
Proof. exact (is_derive_const (V := R_NormedModule) c t). Qed.

Lemma slope_id (t : R) : is_derive (fun u : R => u) t 1.
Proof. exact (is_derive_id (K := R_AbsRing) t). Qed.

Lemma slope_plus (f g : R -> R) (t df dg : R) :
  is_derive f t df -> is_derive g t dg -> is_derive (fun u => f u + g u) t (df + dg).
Proof. intros of_f of_g. exact (is_derive_plus f g t df dg of_f of_g). Qed.

Lemma slope_minus (f g : R -> R) (t df dg : R) :
  is_derive f t df -> is_derive g t dg -> is_derive (fun u => f u - g u) t (df - dg).
Proof. intros of_f of_g. exact (is_derive_minus f g t df dg of_f of_g). Qed.

Lemma slope_opp (f : R -> R) (t df : R) : is_derive f t df -> is_derive (fun u => - f u) t (- df).
Proof. intros of_f. exact (is_derive_opp f t df of_f). Qed.

Lemma slope_mult (f g : R -> R) (t df dg : R) :
  is_derive f t df -> is_derive g t dg -> is_derive (fun u => f u * g u) t (df * g t + f t * dg).
Proof. intros of_f of_g. exact (is_derive_mult f g t df dg of_f of_g Rmult_comm). Qed.

Lemma slope_exp (f : R -> R) (t df : R) :
  is_derive f t df -> is_derive (fun u => exp (f u)) t (df * exp (f t)).
Proof. intros of_f. exact (is_derive_comp exp f t _ _ (is_derive_exp (f t)) of_f). Qed.

(** The slope of an expression of sums, products, divisions by constants and exponentials. *)
Ltac slopes :=
  unfold Rdiv;
  repeat lazymatch goal with
  | |- is_derive (fun _ => ?c) _ _ => exact (slope_const c _)
  | |- is_derive (fun u => u) _ _ => exact (slope_id _)
  | |- is_derive (fun u => _ + _) _ _ => apply slope_plus
  | |- is_derive (fun u => _ - _) _ _ => apply slope_minus
  | |- is_derive (fun u => - _) _ _ => apply slope_opp
  | |- is_derive (fun u => _ * _) _ _ => apply slope_mult
  | |- is_derive (fun u => exp _) _ _ => apply slope_exp
  | |- is_derive exp _ _ => apply is_derive_exp
  | |- is_derive Ropp _ _ => change Ropp with (fun u => - u)
  | |- is_derive (Rplus ?c) _ _ => change (Rplus c) with (fun u => c + u)
  | |- is_derive (Rminus ?c) _ _ => change (Rminus c) with (fun u => c - u)
  | |- is_derive (Rmult ?c) _ _ => change (Rmult c) with (fun u => c * u)
  end.

Lemma slope_continuous (f : R -> R) (t df : R) : is_derive f t df -> continuous f t.
Proof. intros of_f. apply (ex_derive_continuous f t). now exists df. Qed.

Lemma integral_of_slope (f df : R -> R) (a b : R) :
  a <= b -> (forall t, a <= t <= b -> is_derive f t (df t)) -> (forall t, a <= t <= b -> continuous df t) ->
  is_RInt df a b (f b - f a).
Proof.
  intros ordered slope steady.
  apply (is_RInt_derive f df a b); rewrite Rmin_left, Rmax_right by exact ordered; assumption.
Qed.

(** A function of positive slope rises. (The standard library's own lemma needs an axiom more.) *)
Lemma rises (f df : R -> R) (a b : R) :
  a < b -> (forall t, a <= t <= b -> is_derive f t (df t)) -> (forall t, a <= t <= b -> continuous df t) ->
  (forall t, a < t < b -> 0 < df t) -> f a < f b.
Proof.
  intros ordered slope steady positive.
  assert (whole := integral_of_slope f df a b (Rlt_le _ _ ordered) slope steady).
  assert (more := RInt_gt_0 df a b ordered positive steady).
  rewrite (is_RInt_unique _ _ _ _ whole) in more. lra.
Qed.

Lemma never_falls (f df : R -> R) (a b : R) :
  a <= b -> (forall t, a <= t <= b -> is_derive f t (df t)) -> (forall t, a <= t <= b -> continuous df t) ->
  (forall t, a < t < b -> 0 <= df t) -> f a <= f b.
Proof.
  intros ordered slope steady positive.
  assert (whole := integral_of_slope f df a b ordered slope steady).
  assert (more := RInt_ge_0 df a b ordered (ex_intro _ _ whole) positive).
  rewrite (is_RInt_unique _ _ _ _ whole) in more. lra.
Qed.

Lemma falls (f df : R -> R) (a b : R) :
  a < b -> (forall t, a <= t <= b -> is_derive f t (df t)) -> (forall t, a <= t <= b -> continuous df t) ->
  (forall t, a < t < b -> df t < 0) -> f b < f a.
Proof.
  intros ordered slope steady negative.
  enough (- f a < - f b) by lra.
  apply (rises (fun t => - f t) (fun t => - df t) a b ordered).
  - intros t inside. apply slope_opp. now apply slope.
  - intros t inside. apply (continuous_opp df t). now apply steady.
  - intros t inside. specialize (negative t inside). lra.
Qed.

(** * The exponential function *)

Lemma exp_above_line (x : R) : 0 < x -> 1 + x < exp x.
Proof.
  intros positive.
  enough (exp 0 - (1 + 0) < exp x - (1 + x)) by (rewrite exp_0 in *; lra).
  assert (slope : forall t, is_derive (fun u => exp u - (1 + u)) t (exp t - 1)).
  { intros t. evar_last; [slopes | cbv beta; ring]. }
  assert (one : forall t, 0 < t -> 1 < exp t).
  { intros t positive_t. rewrite <- exp_0.
    apply (rises exp exp 0 t positive_t); intros u _.
    - apply is_derive_exp.
    - apply (slope_continuous exp u (exp u)), is_derive_exp.
    - apply exp_pos. }
  apply (rises (fun u => exp u - (1 + u)) (fun u => exp u - 1) 0 x positive).
  - intros t _. apply slope.
  - intros t _. apply (slope_continuous _ t (exp t)). evar_last; [slopes | cbv beta; ring].
  - intros t [above _]. specialize (one t above). lra.
Qed.

Lemma exp_above_parabola (x : R) : 0 < x -> 1 + x + x * x / 2 < exp x.
Proof.
  intros positive.
  enough (exp 0 - (1 + 0 + 0 * 0 / 2) < exp x - (1 + x + x * x / 2)) by (rewrite exp_0 in *; lra).
  apply (rises (fun u => exp u - (1 + u + u * u / 2)) (fun u => exp u - (1 + u)) 0 x positive).
  - intros t _. evar_last; [slopes | cbv beta; field].
  - intros t _. apply (slope_continuous _ t (exp t - 1)). evar_last; [slopes | cbv beta; ring].
  - intros t [above _]. assert (line := exp_above_line t above). lra.
Qed.

(** * The sign of (2)

    With a, b = C_i r/(s MTU) and x = beta t/r the difference (2) has the sign of gain - 1. *)

Definition gain (a b x : R) : R := (1 + a * x) * (1 + b * x) * exp (- x).

(** The slope of the gain, over exp(-x). *)
Definition tilt (a b x : R) : R := a + b - 1 + (2 * a * b - a - b) * x - a * b * (x * x).

Lemma gain_at_start (a b : R) : gain a b 0 = 1.
Proof. unfold gain. rewrite Ropp_0, exp_0. ring. Qed.

Lemma gain_slope (a b x : R) : is_derive (gain a b) x (exp (- x) * tilt a b x).
Proof. unfold gain, tilt. evar_last; [slopes | cbv beta; ring]. Qed.

Lemma gain_slope_continuous (a b x : R) : continuous (fun u => exp (- u) * tilt a b u) x.
Proof.
  apply (slope_continuous _ x (exp (- x) * (2 * a * b - a - b - a * b * (2 * x) - tilt a b x))).
  unfold tilt. evar_last; [slopes | cbv beta; ring].
Qed.

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

(** Up to 2 (a + b - 1)/(a^2 + b^2) the gain is above 1: ln(1 + u) > u - u^2/2, in a form without logarithms. *)
Lemma exp_below (u : R) : 0 < u -> exp (u - u * u / 2) < 1 + u.
Proof.
  intros positive.
  enough (1 < (1 + u) * exp (u * u / 2 - u)).
  { assert (both : exp (u - u * u / 2) * exp (u * u / 2 - u) = 1)
      by (rewrite <- exp_plus, <- exp_0; f_equal; ring).
    assert (weight := exp_pos (u * u / 2 - u)).
    apply (Rmult_lt_reg_r _ _ _ weight). rewrite both. assumption. }
  assert (start : (1 + 0) * exp (0 * 0 / 2 - 0) = 1).
  { replace (0 * 0 / 2 - 0) with 0 by field. rewrite exp_0. ring. }
  rewrite <- start at 1.
  apply (rises (fun v => (1 + v) * exp (v * v / 2 - v)) (fun v => v * v * exp (v * v / 2 - v)) 0 u positive).
  - intros t _. evar_last; [slopes | cbv beta; unfold Rdiv, Rminus; field].
  - intros t _.
    apply (slope_continuous _ t ((2 * t + t * t * (t - 1)) * exp (t * t / 2 - t))).
    evar_last; [slopes | cbv beta; unfold Rdiv, Rminus; field].
  - intros t [above _]. apply Rmult_lt_0_compat; [nra | apply exp_pos].
Qed.

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
    set (sum := _ + _ + - x). enough (0 < sum) by (assert (line := exp_above_line sum ltac:(assumption)); lra).
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
Proof.
  intros x. apply continuity_pt_filterlim.
  exact (slope_continuous _ x _ (gain_slope a b x)).
Qed.

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
    - intros u inside. unfold change.
      apply (continuous_mult (fun v => pull * (X v + bound))).
      + apply (continuous_mult (fun _ => pull)); [apply continuous_const |].
        apply (continuous_plus X (fun _ => bound)); [now apply steady | apply continuous_const].
      + apply (continuous_mult (fun v => apart v * apart v)).
        * apply (continuous_mult apart apart); exact (slope_continuous apart u _ (slope u inside)).
        * apply (slope_continuous _ u (- (pull * bound) * exp (- (pull * bound * u)))).
          evar_last; [slopes | cbv beta; ring].
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

End Solutions.
