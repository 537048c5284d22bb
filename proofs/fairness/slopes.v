(** Slopes of real functions and what rises by them, with no more axioms than those of the real numbers (the standard
    library's mean value theorem needs one more, and so does Coquelicot's auto_derive). *)

From Coq Require Import Reals Lra Psatz.
From Coquelicot Require Import Coquelicot.
From fluidcc.shared Require Import power.

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

(** That such an expression is continuous, if its divisors are not 0. *)
Ltac steady := apply continuity_pt_filterlim; reg.

Lemma slope_continuous (f : R -> R) (t df : R) : is_derive f t df -> continuous f t.
Proof. intros of_f. apply (ex_derive_continuous f t). now exists df. Qed.

Lemma integral_of_slope (f df : R -> R) (a b : R) :
  a <= b -> (forall t, a <= t <= b -> is_derive f t (df t)) -> (forall t, a <= t <= b -> continuous df t) ->
  is_RInt df a b (f b - f a).
Proof.
  intros ordered slope steady.
  apply (is_RInt_derive f df a b); rewrite Rmin_left, Rmax_right by exact ordered; assumption.
Qed.

(** A function of positive slope rises. *)
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

(** * The exponential *)

Lemma exp_above_parabola (x : R) : 0 < x -> 1 + x + x * x / 2 < exp x.
Proof.
  intros positive.
  enough (exp 0 - (1 + 0 + 0 * 0 / 2) < exp x - (1 + x + x * x / 2)) by (rewrite exp_0 in *; lra).
  apply (rises (fun u => exp u - (1 + u + u * u / 2)) (fun u => exp u - (1 + u)) 0 x positive).
  - intros t _. evar_last; [slopes | cbv beta; field].
  - intros t _. steady.
  - intros t [above _]. assert (line := exp_above_line t ltac:(lra)). lra.
Qed.

(** log (1 + u) > u - u^2/2, in a form without logarithms. *)
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
  - intros t _. steady.
  - intros t [above _]. apply Rmult_lt_0_compat; [nra | apply exp_pos].
Qed.
