(** HPCC (SIGCOMM 2019), Appendix A.3, equation (7): with a register for each link of its path, a source gets the
    alpha-fair rate. The capacities are those that are used at the equilibrium, U_i C_i. *)

From Coq Require Import Reals Lra Lia Arith.
From fluidcc.hpcc Require Import network.

Local Open Scope R_scope.

(** * Utility *)

(** The utility of rate x: x^(1 - alpha) / (1 - alpha), and log x for alpha = 1; 0 for the rate 0, which for alpha >= 1
    has no finite utility. *)
Definition utility (alpha x : R) : R :=
  if Req_EM_T alpha 1 then ln x else if Rle_dec x 0 then 0 else Rpower x (1 - alpha) / (1 - alpha).

(** Rates of finite utility. *)
Definition worthy (alpha x : R) : Prop := 0 < x \/ (x = 0 /\ alpha < 1).

Lemma power_positive (x y : R) : 0 < Rpower x y.
Proof. apply exp_pos. Qed.

(** x^(-alpha) falls as x grows. *)
Lemma power_falls (alpha x y : R) : 0 < alpha -> 0 < x -> x < y -> Rpower y (- alpha) < Rpower x (- alpha).
Proof.
  intros exponent sign less. rewrite !Rpower_Ropp. apply Rinv_lt_contravar.
  - apply Rmult_lt_0_compat; apply power_positive.
  - apply Rlt_Rpower_l; lra.
Qed.

Lemma exp_above_tangent (t s : R) : s <> t -> exp t * (1 + (s - t)) < exp s.
Proof.
  intros apart. replace (exp s) with (exp t * exp (s - t)) by (rewrite <- exp_plus; f_equal; lra).
  apply Rmult_lt_compat_l; [apply exp_pos|]. apply exp_ineq1. lra.
Qed.

(** The power b < 1 of e^s grows less than e^s. *)
Lemma power_below_tangent (b s : R) : b < 1 -> b <> 0 -> s <> 0 -> (exp (b * s) - 1) / b < exp s - 1.
Proof.
  intros less other apart.
  assert (0 < b \/ b < 0) as [positive|negative] by lra.
  - assert (b * s <> s) as away.
    { intros same. apply apart. apply Rmult_eq_reg_l with (1 - b); lra. }
    assert (b * s <> 0) as moved by (apply Rmult_integral_contrapositive; split; assumption).
    pose proof (exp_above_tangent (b * s) s (fun same => away (eq_sym same))) as end_one.
    pose proof (exp_above_tangent (b * s) 0 (fun same => moved (eq_sym same))) as end_zero.
    rewrite exp_0 in end_zero.
    apply Rmult_lt_compat_l with (r := b) in end_one; [|exact positive].
    apply Rmult_lt_compat_l with (r := 1 - b) in end_zero; [|lra].
    apply Rmult_lt_reg_r with b; [exact positive|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l by exact other.
    pose proof (exp_pos (b * s)). nra.
  - assert (b * s <> 0) as moved by (apply Rmult_integral_contrapositive; split; assumption).
    pose proof (exp_ineq1 (b * s) moved) as end_one.
    pose proof (exp_ineq1 s apart) as end_zero.
    apply Rmult_lt_compat_l with (r := - b) in end_zero; [|lra].
    apply Rmult_lt_reg_r with (- b); [lra|].
    replace ((exp (b * s) - 1) / b * - b) with (1 - exp (b * s)) by (field; exact other).
    lra.
Qed.

(** The utility lies below its tangent at any rate: it is strictly concave. *)
Lemma utility_below_tangent (alpha rate x : R) :
  0 < alpha -> 0 < rate -> worthy alpha x -> x <> rate ->
  utility alpha x < utility alpha rate + Rpower rate (- alpha) * (x - rate).
Proof.
  intros exponent sign [above|[zero less]] apart; unfold utility.
  - set (s := ln x - ln rate).
    assert (s <> 0) as moved.
    { unfold s. intros same. apply apart. apply ln_inv; [exact above|exact sign|lra]. }
    assert (x = rate * exp s) as scaled.
    { unfold s, Rminus. rewrite exp_plus, exp_Ropp, !exp_ln by assumption. field. lra. }
    assert (Rpower rate (- alpha) * (x - rate) = Rpower rate (1 - alpha) * (exp s - 1)) as slope.
    { unfold Rminus at 2. rewrite Rpower_plus, Rpower_1 by exact sign. rewrite scaled. ring. }
    rewrite slope. destruct (Req_EM_T alpha 1) as [one|other].
    + rewrite one. replace (1 - 1) with 0 by lra. rewrite Rpower_O by exact sign.
      pose proof (exp_ineq1 s moved). unfold s in *. lra.
    + destruct (Rle_dec x 0) as [no|_]; [lra|]. destruct (Rle_dec rate 0) as [no|_]; [lra|].
      assert (Rpower x (1 - alpha) = Rpower rate (1 - alpha) * exp ((1 - alpha) * s)) as power.
      { unfold Rpower. rewrite <- exp_plus. f_equal. unfold s. ring. }
      rewrite power.
      pose proof (power_below_tangent (1 - alpha) s ltac:(lra) ltac:(lra) moved) as tangent.
      apply Rmult_lt_compat_l with (r := Rpower rate (1 - alpha)) in tangent; [|apply power_positive].
      unfold Rdiv in *. lra.
  - subst x. destruct (Req_EM_T alpha 1) as [one|other]; [lra|].
    destruct (Rle_dec 0 0) as [_|no]; [|lra]. destruct (Rle_dec rate 0) as [no|_]; [lra|].
    replace (Rpower rate (- alpha) * (0 - rate)) with (- Rpower rate (1 - alpha)).
    + replace (Rpower rate (1 - alpha) / (1 - alpha) + - Rpower rate (1 - alpha))
        with (Rpower rate (1 - alpha) * (alpha / (1 - alpha))) by (field; lra).
      apply Rmult_lt_0_compat; [apply power_positive|]. apply Rdiv_lt_0_compat; lra.
    + unfold Rminus at 1. rewrite Rpower_plus, Rpower_1 by exact sign. ring.
Qed.

Lemma utility_at_most_tangent (alpha rate x : R) :
  0 < alpha -> 0 < rate -> worthy alpha x ->
  utility alpha x <= utility alpha rate + Rpower rate (- alpha) * (x - rate).
Proof.
  intros exponent sign finite. destruct (Req_dec x rate) as [same|apart].
  - subst x. lra.
  - apply Rlt_le, utility_below_tangent; assumption.
Qed.

Section Fairness.

Context {net : Network}.

(** * Prices *)

(** What the links of path j ask for together. *)
Definition path_price (price : nat -> R) (j : nat) : R := total links (fun i => if crosses i j then price i else 0).

Section Prices.

(** alpha of the utility, C_i of each link [byte/s], prices, and rates R_j [byte/s]. *)
Variables (alpha : R) (room price rates : nat -> R).

Hypothesis exponent : 0 < alpha.
Hypothesis rates_positive : all_positive rates.
Hypothesis prices_not_negative : forall i, (i < links)%nat -> 0 <= price i.
Hypothesis priced_links_full : forall i, (i < links)%nat -> price i * (room i - link_load rates i) = 0.
Hypothesis marginal_utility : forall j, (j < paths)%nat -> Rpower (rates j) (- alpha) = path_price price j.

Variable other : nat -> R.

Hypothesis other_worthy : forall j, (j < paths)%nat -> worthy alpha (other j).
Hypothesis other_fits : forall i, (i < links)%nat -> link_load other i <= room i.

Lemma no_gain_at_the_prices : total paths (fun j => Rpower (rates j) (- alpha) * (other j - rates j)) <= 0.
Proof.
  rewrite (total_ext paths _ (fun j => (other j - rates j) * path_price price j)).
  - unfold path_price. rewrite (prices_and_loads price (fun j => other j - rates j)).
    rewrite <- (total_zero links). apply total_le. intros i link. rewrite link_load_minus.
    pose proof (priced_links_full i link) as full.
    assert (price i * link_load other i <= price i * room i) as most.
    { apply Rmult_le_compat_l; [apply prices_not_negative|apply other_fits]; exact link. }
    lra.
  - intros j path. rewrite marginal_utility by exact path. ring.
Qed.

(** Kelly's prices: rates at which every path's marginal utility is the sum of its links' prices, where only full links
    have a price, have the largest sum of utilities of all rates that fit. *)
Lemma prices_make_fair :
  total paths (fun j => utility alpha (other j)) <= total paths (fun j => utility alpha (rates j)).
Proof.
  apply Rle_trans with (total paths (fun j =>
    utility alpha (rates j) + Rpower (rates j) (- alpha) * (other j - rates j))).
  - apply total_le. intros j path.
    apply utility_at_most_tangent; [exact exponent|apply rates_positive, path|apply other_worthy, path].
  - rewrite total_plus. pose proof no_gain_at_the_prices. lra.
Qed.

(** And no other rates that fit have as much. *)
Lemma prices_make_unique (k : nat) :
  (k < paths)%nat -> other k <> rates k ->
  total paths (fun j => utility alpha (other j)) < total paths (fun j => utility alpha (rates j)).
Proof.
  intros path apart.
  apply Rlt_le_trans with (total paths (fun j =>
    utility alpha (rates j) + Rpower (rates j) (- alpha) * (other j - rates j))).
  - apply total_lt with k; [|exact path|].
    + intros j small.
      apply utility_at_most_tangent; [exact exponent|apply rates_positive, small|apply other_worthy, small].
    + apply utility_below_tangent;
        [exact exponent|apply rates_positive, path|apply other_worthy, path|exact apart].
  - rewrite total_plus. pose proof no_gain_at_the_prices. lra.
Qed.

End Prices.

(** * Registers *)

(** (7): R_j = (sum over the links i of path j of R_ij^(-alpha))^(-1/alpha) [byte/s], of its registers R_ij. *)
Definition register_rate (alpha : R) (registers : nat -> nat -> R) (j : nat) : R :=
  Rpower (path_price (fun i => Rpower (registers i j) (- alpha)) j) (- 1 / alpha).

(** A.3: R_ij <- R_ij U_target / U_i + a, of the register of path j for link i. *)
Definition next_register (alpha target a : R) (registers : nat -> nat -> R) (i j : nat) : R :=
  registers i j * (target / link_use (register_rate alpha registers) i) + a.

(** Registers that are positive and that an update leaves as they are. *)
Definition registers_at_rest (alpha target a : R) (registers : nat -> nat -> R) : Prop :=
  forall i j, (i < links)%nat -> (j < paths)%nat -> crosses i j = true ->
    0 < registers i j /\ next_register alpha target a registers i j = registers i j.

Lemma register_rate_positive (alpha : R) (registers : nat -> nat -> R) : all_positive (register_rate alpha registers).
Proof. intros j path. apply power_positive. Qed.

(** A link that no path crosses has no load. *)
Lemma unused_link_load (rates : nat -> R) (i : nat) :
  (forall j, (j < paths)%nat -> crosses i j = false) -> link_load rates i = 0.
Proof.
  intros off. rewrite <- (total_zero paths). apply total_ext. intros j path. apply share_off, off, path.
Qed.

Lemma used_or_not (i : nat) :
  (exists j, (j < paths)%nat /\ crosses i j = true) \/ (forall j, (j < paths)%nat -> crosses i j = false).
Proof.
  induction paths as [|n IH]; [right; intros j small; lia|].
  destruct (crosses i n) eqn:last; [left; exists n; split; [lia|exact last]|].
  destruct IH as [(j & small & on)|off].
  - left. exists j. split; [lia|exact on].
  - right. intros j small. destruct (Nat.eq_dec j n) as [same|inner]; [subst j; exact last|apply off; lia].
Qed.

Section One_register.

(** U_target, the additive increase a [byte/s], and U of a link. *)
Variables (target a use : R).

Hypothesis increase : 0 < a.
Hypothesis use_positive : 0 < use.

(** A.3: a register comes to rest at a positive rate if and only if its link is used beyond the target. *)
Theorem register_rests_iff_above_target :
  (exists r, 0 < r /\ r * (target / use) + a = r) <-> target < use.
Proof.
  split.
  - intros (r & sign & same). apply Rnot_le_lt. intros below.
    assert (1 <= target / use) as grows.
    { apply Rmult_le_reg_r with use; [exact use_positive|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
    assert (r * 1 <= r * (target / use)) by (apply Rmult_le_compat_l; lra). lra.
  - intros above. exists (a * use / (use - target)). split.
    + apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat|]; lra.
    + field. lra.
Qed.

(** A.3: "at an equilibrium point R_i = a (1 - U_target / U_i)^(-1)". *)
Lemma register_value (r : R) : 0 < r -> r * (target / use) + a = r -> r = a / (1 - target / use).
Proof.
  intros sign same.
  assert (target < use) as above by (apply register_rests_iff_above_target; exists r; split; assumption).
  assert (0 < 1 - target / use) as less.
  { apply Rlt_Rminus. apply Rmult_lt_reg_r with use; [exact use_positive|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  apply Rmult_eq_reg_r with (1 - target / use); [|lra].
  unfold Rdiv at 2. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

End One_register.

(** A register at rest is the smaller, the more its link is used. *)
Lemma register_falls_with_use (target a low high : R) :
  0 < a -> 0 < target -> target < low -> low < high -> a / (1 - target / high) < a / (1 - target / low).
Proof.
  intros increase aim above more.
  replace (a / (1 - target / high)) with (a * high / (high - target)) by (field; lra).
  replace (a / (1 - target / low)) with (a * low / (low - target)) by (field; lra).
  apply Rmult_lt_reg_r with ((high - target) * (low - target)); [apply Rmult_lt_0_compat; lra|].
  replace (a * high / (high - target) * ((high - target) * (low - target)))
    with (a * high * (low - target)) by (field; lra).
  replace (a * low / (low - target) * ((high - target) * (low - target)))
    with (a * low * (high - target)) by (field; lra).
  assert (0 < a * (target * (high - low))) by (repeat apply Rmult_lt_0_compat; lra). lra.
Qed.

(** ** The equilibrium *)

Section At_rest.

(** alpha of (7), U_target, and the additive increase a [byte/s]. *)
Variables (alpha target a : R).

Hypothesis exponent : 0 < alpha.
Hypothesis aim : 0 < target.
Hypothesis increase : 0 < a.

Section Registers.

Variable registers : nat -> nat -> R.

Hypothesis rest : registers_at_rest alpha target a registers.

Let rates : nat -> R := register_rate alpha registers.
Let use : nat -> R := link_use rates.

(** A.3: at an equilibrium of registers every link that a path crosses is used beyond the target. *)
Theorem links_above_target (i j : nat) :
  (i < links)%nat -> (j < paths)%nat -> crosses i j = true -> target < link_use (register_rate alpha registers) i.
Proof.
  intros link path on. destruct (rest i j link path on) as [sign same].
  apply (register_rests_iff_above_target target a).
  - exact increase.
  - apply link_use_positive with j; [apply register_rate_positive|exact link|exact path|exact on].
  - exists (registers i j). split; [exact sign|exact same].
Qed.

(** A.3: at an equilibrium R_ij = a (1 - U_target / U_i)^(-1): all paths have the same register for a link. *)
Theorem register_at_rest (i j : nat) :
  (i < links)%nat -> (j < paths)%nat -> crosses i j = true ->
  registers i j = a / (1 - target / link_use (register_rate alpha registers) i).
Proof.
  intros link path on. destruct (rest i j link path on) as [sign same].
  apply register_value; [exact increase| |exact sign|exact same].
  apply link_use_positive with j; [apply register_rate_positive|exact link|exact path|exact on].
Qed.

(** A link's price: the power -alpha of its register. *)
Definition register_price (i : nat) : R := Rpower (a / (1 - target / link_use (register_rate alpha registers) i)) (- alpha).

Lemma path_price_positive (j : nat) :
  (j < paths)%nat -> 0 < path_price (fun i => Rpower (registers i j) (- alpha)) j.
Proof.
  intros path. destruct (path_has_link j path) as (i & link & on).
  apply total_pos with i.
  - intros k _. destruct (crosses k j); [apply Rlt_le, power_positive|lra].
  - exact link.
  - rewrite on. apply power_positive.
Qed.

(** The marginal utility of a path's rate is the sum of its links' prices. *)
Lemma marginal_utility_is_price (j : nat) :
  (j < paths)%nat -> Rpower (register_rate alpha registers j) (- alpha) = path_price register_price j.
Proof.
  intros path. unfold register_rate. rewrite Rpower_mult.
  replace (- 1 / alpha * - alpha) with 1 by (field; lra).
  rewrite Rpower_1 by (apply path_price_positive, path).
  unfold path_price. apply total_ext. intros i link. destruct (crosses i j) eqn:on; [|reflexivity].
  unfold register_price. rewrite <- (register_at_rest i j link path on). reflexivity.
Qed.

(** A.3, (7): at an equilibrium of registers the rates are alpha-fair for the capacities U_i C_i: no rates that fit these
    have a larger sum of utilities. *)
Theorem registers_give_alpha_fair (other : nat -> R) :
  (forall j, (j < paths)%nat -> worthy alpha (other j)) ->
  (forall i, (i < links)%nat -> link_load other i <= link_use (register_rate alpha registers) i * capacity i) ->
  total paths (fun j => utility alpha (other j)) <=
    total paths (fun j => utility alpha (register_rate alpha registers j)).
Proof.
  intros finite fits.
  apply prices_make_fair with (room := fun i => link_use (register_rate alpha registers) i * capacity i)
    (price := register_price).
  - exact exponent.
  - apply register_rate_positive.
  - intros i _. apply Rlt_le, power_positive.
  - intros i link. rewrite link_use_times_capacity by exact link. ring.
  - exact marginal_utility_is_price.
  - exact finite.
  - exact fits.
Qed.

(** A.3, (7): and they are the only ones: other rates that fit have a smaller sum of utilities. *)
Theorem alpha_fair_rates_are_unique (other : nat -> R) (k : nat) :
  (forall j, (j < paths)%nat -> worthy alpha (other j)) ->
  (forall i, (i < links)%nat -> link_load other i <= link_use (register_rate alpha registers) i * capacity i) ->
  (k < paths)%nat -> other k <> register_rate alpha registers k ->
  total paths (fun j => utility alpha (other j)) <
    total paths (fun j => utility alpha (register_rate alpha registers j)).
Proof.
  intros finite fits path apart.
  apply prices_make_unique with (room := fun i => link_use (register_rate alpha registers) i * capacity i)
    (price := register_price) (k := k).
  - exact exponent.
  - apply register_rate_positive.
  - intros i _. apply Rlt_le, power_positive.
  - intros i link. rewrite link_use_times_capacity by exact link. ring.
  - exact marginal_utility_is_price.
  - exact finite.
  - exact fits.
  - exact path.
  - exact apart.
Qed.

End Registers.
End At_rest.
End Fairness.
