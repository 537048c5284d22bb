(** HPCC (SIGCOMM 2019), Appendix A.3, equation (7): with a register for each link of its path, a source gets the
    alpha-fair rate. The capacities are those that are used at the equilibrium, U_i C_i. *)

From Coq Require Import Reals Lra Lia Arith.
From fluidcc.shared Require Import power sums.
From fluidcc.hpcc Require Import network.

Local Open Scope R_scope.

(** * Utility *)

(** The utility of rate x: x^(1 - alpha) / (1 - alpha), and log x for alpha = 1; 0 for the rate 0, which for alpha >= 1
    has no finite utility. *)
Definition utility (alpha x : R) : R :=
  if Req_EM_T alpha 1 then log x else if Rle_dec x 0 then 0 else power x (1 - alpha) / (1 - alpha).

(** Rates of finite utility. *)
Definition worthy (alpha x : R) : Prop := 0 < x \/ (x = 0 /\ alpha < 1).

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
    pose proof (exp_above_line (b * s) moved) as end_one.
    pose proof (exp_above_line s apart) as end_zero.
    apply Rmult_lt_compat_l with (r := - b) in end_zero; [|lra].
    apply Rmult_lt_reg_r with (- b); [lra|].
    replace ((exp (b * s) - 1) / b * - b) with (1 - exp (b * s)) by (field; exact other).
    lra.
Qed.

(** The utility lies below its tangent at any rate: it is strictly concave. *)
Lemma utility_below_tangent (alpha rate x : R) :
  0 < alpha -> 0 < rate -> worthy alpha x -> x <> rate ->
  utility alpha x < utility alpha rate + power rate (- alpha) * (x - rate).
Proof.
  intros exponent sign [above|[zero less]] apart; unfold utility.
  - set (s := log x - log rate).
    assert (s <> 0) as moved.
    { unfold s. intros same. apply apart. apply log_injective; [exact above|exact sign|lra]. }
    assert (x = rate * exp s) as scaled.
    { unfold s, Rminus. rewrite exp_plus, exp_Ropp, !exp_log by assumption. field. lra. }
    assert (power rate (- alpha) * (x - rate) = power rate (1 - alpha) * (exp s - 1)) as slope.
    { unfold Rminus at 2. rewrite power_plus, power_one by exact sign. rewrite scaled. ring. }
    rewrite slope. destruct (Req_EM_T alpha 1) as [one|other].
    + rewrite one. replace (1 - 1) with 0 by lra. rewrite power_zero.
      pose proof (exp_above_line s moved). unfold s in *. lra.
    + destruct (Rle_dec x 0) as [no|_]; [lra|]. destruct (Rle_dec rate 0) as [no|_]; [lra|].
      assert (power x (1 - alpha) = power rate (1 - alpha) * exp ((1 - alpha) * s)) as scaled_power.
      { unfold power. rewrite <- exp_plus. f_equal. unfold s. ring. }
      rewrite scaled_power.
      pose proof (power_below_tangent (1 - alpha) s ltac:(lra) ltac:(lra) moved) as tangent.
      apply Rmult_lt_compat_l with (r := power rate (1 - alpha)) in tangent; [|apply power_positive].
      unfold Rdiv in *. lra.
  - subst x. destruct (Req_EM_T alpha 1) as [one|other]; [lra|].
    destruct (Rle_dec 0 0) as [_|no]; [|lra]. destruct (Rle_dec rate 0) as [no|_]; [lra|].
    replace (power rate (- alpha) * (0 - rate)) with (- power rate (1 - alpha)).
    + replace (power rate (1 - alpha) / (1 - alpha) + - power rate (1 - alpha))
        with (power rate (1 - alpha) * (alpha / (1 - alpha))) by (field; lra).
      apply Rmult_lt_0_compat; [apply power_positive|]. apply Rdiv_lt_0_compat; lra.
    + unfold Rminus at 1. rewrite power_plus, power_one by exact sign. ring.
Qed.

Lemma utility_at_most_tangent (alpha rate x : R) :
  0 < alpha -> 0 < rate -> worthy alpha x ->
  utility alpha x <= utility alpha rate + power rate (- alpha) * (x - rate).
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
Hypothesis marginal_utility : forall j, (j < paths)%nat -> power (rates j) (- alpha) = path_price price j.

Variable other : nat -> R.

Hypothesis other_worthy : forall j, (j < paths)%nat -> worthy alpha (other j).
Hypothesis other_fits : forall i, (i < links)%nat -> link_load other i <= room i.

Lemma no_gain_at_the_prices : total paths (fun j => power (rates j) (- alpha) * (other j - rates j)) <= 0.
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
    utility alpha (rates j) + power (rates j) (- alpha) * (other j - rates j))).
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
    utility alpha (rates j) + power (rates j) (- alpha) * (other j - rates j))).
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
  power (path_price (fun i => power (registers i j) (- alpha)) j) (- 1 / alpha).

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

(** A.3: the register of a link that is never used beyond the target does not come to rest: it gains at least a in each
    round trip. U of each round trip may be another one. *)
Theorem register_below_target_grows (target a : R) (use register : nat -> R) (n : nat) :
  0 <= a -> 0 <= register 0%nat ->
  (forall t, 0 < use t) -> (forall t, use t <= target) ->
  (forall t, register (S t) = register t * (target / use t) + a) ->
  register 0%nat + INR n * a <= register n.
Proof.
  intros increase begin positive below update. induction n as [|n IH]; [simpl; lra|].
  rewrite S_INR, update. pose proof (positive n) as sign. pose proof (below n) as less.
  assert (0 <= register n) as held.
  { pose proof (pos_INR n) as count. assert (0 <= INR n * a) by (apply Rmult_le_pos; lra). lra. }
  assert (1 <= target / use n) as factor.
  { apply Rmult_le_reg_r with (use n); [exact sign|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  assert (register n * 1 <= register n * (target / use n)) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(** A.3: of a link that is used no more than [use] it grows at least geometrically, by U_target / use in each round
    trip. *)
Theorem register_of_idle_link_explodes (target a idle : R) (use register : nat -> R) (n : nat) :
  0 <= a -> 0 <= register 0%nat -> 0 < idle -> 0 < target ->
  (forall t, 0 < use t) -> (forall t, use t <= idle) ->
  (forall t, register (S t) = register t * (target / use t) + a) ->
  register 0%nat * (target / idle) ^ n <= register n.
Proof.
  intros increase begin some aim positive below update. induction n as [|n IH]; [simpl; lra|].
  assert (0 < target / idle) as factor by (apply Rdiv_lt_0_compat; lra).
  assert (0 <= register 0%nat * (target / idle) ^ n) as sign by (apply Rmult_le_pos; [lra|apply pow_le; lra]).
  assert (target / idle <= target / use n) as larger.
  { apply Rmult_le_compat_l; [lra|]. apply Rinv_le_contravar; [apply positive|apply below]. }
  rewrite update. simpl.
  assert (register 0%nat * (target / idle) ^ n * (target / idle) <= register n * (target / use n))
    by (apply Rmult_le_compat; lra). lra.
Qed.

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

(** What n rates of at most a / (1 - U_target / U) use of a capacity is above the target by at most n a / C. *)
Lemma close_to_target (target a use count room : R) :
  0 < target -> 0 < room -> target < use -> use * room <= a / (1 - target / use) * count ->
  use <= target + a * count / room.
Proof.
  intros aim sign above most.
  replace (a / (1 - target / use) * count) with (use * (a * count / (use - target))) in most by (field; lra).
  apply Rmult_le_reg_l in most; [|lra]. apply Rmult_le_compat_l with (r := use - target) in most; [|lra].
  replace ((use - target) * (a * count / (use - target))) with (a * count) in most by (field; lra).
  assert (use - target <= a * count / room); [|lra].
  apply Rmult_le_reg_r with room; [exact sign|].
  replace (a * count / room * room) with (a * count) by (field; lra). exact most.
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
Definition register_price (i : nat) : R :=
  power (a / (1 - target / link_use (register_rate alpha registers) i)) (- alpha).

Lemma path_price_positive (j : nat) :
  (j < paths)%nat -> 0 < path_price (fun i => power (registers i j) (- alpha)) j.
Proof.
  intros path. destruct (path_has_link j path) as (i & link & on).
  apply total_pos with i.
  - intros k _. destruct (crosses k j); [apply Rlt_le, power_positive|lra].
  - exact link.
  - rewrite on. apply power_positive.
Qed.

Lemma register_rate_power (j : nat) :
  (j < paths)%nat ->
  power (register_rate alpha registers j) (- alpha) = path_price (fun i => power (registers i j) (- alpha)) j.
Proof.
  intros path. unfold register_rate. rewrite power_of_power.
  replace (- 1 / alpha * - alpha) with 1 by (field; lra). apply power_one, path_price_positive, path.
Qed.

(** The marginal utility of a path's rate is the sum of its links' prices. *)
Lemma marginal_utility_is_price (j : nat) :
  (j < paths)%nat -> power (register_rate alpha registers j) (- alpha) = path_price register_price j.
Proof.
  intros path. rewrite register_rate_power by exact path. unfold path_price. apply total_ext. intros i link.
  destruct (crosses i j) eqn:on; [|reflexivity].
  unfold register_price. rewrite <- (register_at_rest i j link path on). reflexivity.
Qed.

(** A.3, (7): at an equilibrium of registers, at which all links are above U_target ([links_above_target]), the rates
    are alpha-fair for the capacities U_i C_i, the loads that they make: no rates that fit these have a larger sum of
    utilities.
    Claim: hpcc-a3-alpha-fair. *)
Theorem registers_give_alpha_fair (other : nat -> R) :
  (forall j, (j < paths)%nat -> worthy alpha (other j)) ->
  (forall i, (i < links)%nat -> link_load other i <= link_use (register_rate alpha registers) i * capacity i) ->
  total paths (fun j => utility alpha (other j)) <=
    total paths (fun j => utility alpha (register_rate alpha registers j)).
Proof.
  intros finite fits.
  apply prices_make_fair with (room := fun i => link_use (register_rate alpha registers) i * capacity i)
    (price := register_price); try assumption.
  - apply register_rate_positive.
  - intros i _. apply Rlt_le, power_positive.
  - intros i link. rewrite link_use_times_capacity by exact link. ring.
  - exact marginal_utility_is_price.
Qed.

(** A.3, (7): the rates at an equilibrium of registers are the only alpha-fair ones: other rates that fit have a smaller
    sum of utilities. *)
Theorem alpha_fair_rates_are_unique (other : nat -> R) (k : nat) :
  (forall j, (j < paths)%nat -> worthy alpha (other j)) ->
  (forall i, (i < links)%nat -> link_load other i <= link_use (register_rate alpha registers) i * capacity i) ->
  (k < paths)%nat -> other k <> register_rate alpha registers k ->
  total paths (fun j => utility alpha (other j)) <
    total paths (fun j => utility alpha (register_rate alpha registers j)).
Proof.
  intros finite fits path apart.
  apply prices_make_unique with (room := fun i => link_use (register_rate alpha registers) i * capacity i)
    (price := register_price) (k := k); try assumption.
  - apply register_rate_positive.
  - intros i _. apply Rlt_le, power_positive.
  - intros i link. rewrite link_use_times_capacity by exact link. ring.
  - exact marginal_utility_is_price.
Qed.

(** (7): a path's rate is at most each of its registers: what its link would give it if it were the only one. *)
Theorem rate_at_most_register (i j : nat) :
  (i < links)%nat -> (j < paths)%nat -> crosses i j = true -> register_rate alpha registers j <= registers i j.
Proof.
  intros link path on. destruct (rest i j link path on) as [sign _].
  apply Rnot_lt_le. intros more.
  pose proof (power_falls (registers i j) (register_rate alpha registers j) alpha exponent sign more) as less.
  rewrite register_rate_power in less by exact path.
  pose proof (total_term links (fun k => if crosses k j then power (registers k j) (- alpha) else 0) i) as term.
  simpl in term. rewrite on in term. unfold path_price in less.
  assert (power (registers i j) (- alpha) <=
    total links (fun k => if crosses k j then power (registers k j) (- alpha) else 0)) as most.
  { apply term; [|exact link]. intros k _. destruct (crosses k j); [apply Rlt_le, power_positive|lra]. }
  lra.
Qed.

(** A.3, (7): "as alpha grows the expression approaches min R_i": it is at most the least register, and at least that
    times (number of links)^(-1/alpha), which tends to 1. *)
Theorem rate_near_least_register (j : nat) (low : R) :
  (j < paths)%nat -> 0 < low ->
  (forall i, (i < links)%nat -> crosses i j = true -> low <= registers i j) ->
  low * power (INR links) (- 1 / alpha) <= register_rate alpha registers j.
Proof.
  intros path sign each.
  destruct (path_has_link j path) as (some & link & on).
  assert (0 < INR links) as count by (apply lt_0_INR; lia).
  apply Rnot_lt_le. intros less.
  apply power_falls with (z := alpha) in less; [|exact exponent|apply register_rate_positive, path].
  rewrite register_rate_power in less by exact path.
  rewrite power_of_product in less by (exact sign || apply power_positive).
  rewrite power_of_power in less.
  replace (- 1 / alpha * - alpha) with 1 in less by (field; lra).
  rewrite power_one in less by exact count.
  assert (path_price (fun i => power (registers i j) (- alpha)) j <= total links (fun _ => power low (- alpha)))
    as most.
  { apply total_le. intros i small. destruct (crosses i j) eqn:here; [|apply Rlt_le, power_positive].
    destruct (each i small here) as [more|same]; [|rewrite same; lra].
    apply Rlt_le, power_falls; [exact exponent|exact sign|exact more]. }
  rewrite total_const in most. lra.
Qed.

(** A.3: "the equilibrium utilizations are above U_target by an amount that increases with a": for a link that n paths
    cross by at most n a / C. *)
Theorem register_links_close_to_target (i : nat) :
  (i < links)%nat ->
  link_use (register_rate alpha registers) i <= target + a * link_load (fun _ => 1) i / capacity i.
Proof.
  intros link. pose proof (capacity_positive i link) as room.
  destruct (used_or_not i) as [(j & path & on)|off].
  - pose proof (links_above_target i j link path on) as above.
    set (use := link_use (register_rate alpha registers) i) in *.
    assert (link_load (register_rate alpha registers) i <= a / (1 - target / use) * link_load (fun _ => 1) i) as most.
    { rewrite <- link_load_scale. apply link_load_le. intros k small here.
      rewrite Rmult_1_r. unfold use. rewrite <- (register_at_rest i k link small here).
      apply rate_at_most_register; assumption. }
    rewrite <- (link_use_times_capacity _ i link) in most.
    apply close_to_target; [exact aim|exact room|exact above|exact most].
  - unfold link_use. rewrite !unused_link_load by exact off. unfold Rdiv. lra.
Qed.

End Registers.

(** ** Uniqueness *)

(** A link's price rises with its use. *)
Lemma price_rises_with_use (low high : R) :
  target < low -> low < high ->
  power (a / (1 - target / low)) (- alpha) < power (a / (1 - target / high)) (- alpha).
Proof.
  intros above more. apply power_falls; [exact exponent| |apply register_falls_with_use; assumption].
  replace (a / (1 - target / high)) with (a * high / (high - target)) by (field; lra).
  apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat|]; lra.
Qed.

(** Two links' prices and loads are in the same order. *)
Lemma prices_follow_loads (first second : nat -> nat -> R) (i : nat) :
  registers_at_rest alpha target a first -> registers_at_rest alpha target a second -> (i < links)%nat ->
  0 <= (register_price first i - register_price second i) *
    (link_load (register_rate alpha first) i - link_load (register_rate alpha second) i).
Proof.
  intros first_rest second_rest link. pose proof (capacity_positive i link) as room.
  destruct (used_or_not i) as [(j & path & on)|off]; [|rewrite !unused_link_load by exact off; lra].
  pose proof (links_above_target first first_rest i j link path on) as first_above.
  pose proof (links_above_target second second_rest i j link path on) as second_above.
  rewrite <- !(link_use_times_capacity _ i link), <- Rmult_minus_distr_r, <- Rmult_assoc. unfold register_price.
  apply Rmult_le_pos; [|lra].
  destruct (Rtotal_order (link_use (register_rate alpha first) i) (link_use (register_rate alpha second) i))
    as [less|[same|more]].
  - pose proof (price_rises_with_use _ _ first_above less) as rises.
    apply Rlt_le. rewrite <- Rmult_opp_opp. apply Rmult_lt_0_compat; lra.
  - rewrite same. lra.
  - pose proof (price_rises_with_use _ _ second_above more) as rises.
    apply Rlt_le, Rmult_lt_0_compat; lra.
Qed.

(** Two rates and their marginal utilities are in opposite order. *)
Lemma marginal_utility_falls (x y : R) :
  0 < x -> 0 < y -> x <> y -> (x - y) * (power x (- alpha) - power y (- alpha)) < 0.
Proof.
  intros x_sign y_sign apart. destruct (Rtotal_order x y) as [less|[equal|more]]; [|contradiction|].
  - pose proof (power_falls x y alpha exponent x_sign less) as falls.
    assert (0 < (y - x) * (power x (- alpha) - power y (- alpha))) by (apply Rmult_lt_0_compat; lra). lra.
  - pose proof (power_falls y x alpha exponent y_sign more) as falls.
    assert (0 < (x - y) * (power y (- alpha) - power x (- alpha))) by (apply Rmult_lt_0_compat; lra). lra.
Qed.

(** A.3, (7): there is at most one equilibrium: two have the same rates. *)
Theorem register_equilibrium_is_unique (first second : nat -> nat -> R) (k : nat) :
  registers_at_rest alpha target a first -> registers_at_rest alpha target a second -> (k < paths)%nat ->
  register_rate alpha first k = register_rate alpha second k.
Proof.
  intros first_rest second_rest path.
  set (R1 := register_rate alpha first). set (R2 := register_rate alpha second).
  destruct (Req_dec (R1 k) (R2 k)) as [same|apart]; [exact same|exfalso].
  assert (forall j, (j < paths)%nat -> R1 j <> R2 j ->
    (R1 j - R2 j) * (power (R1 j) (- alpha) - power (R2 j) (- alpha)) < 0) as opposed.
  { intros j small. apply marginal_utility_falls; apply register_rate_positive, small. }
  assert (total paths (fun j => (R1 j - R2 j) * (power (R1 j) (- alpha) - power (R2 j) (- alpha))) < 0) as negative.
  { rewrite <- (total_zero paths). apply total_lt with k; [|exact path|apply opposed; assumption].
    intros j small. destruct (Req_dec (R1 j) (R2 j)) as [equal|other].
    - rewrite equal. lra.
    - apply Rlt_le, opposed; assumption. }
  set (difference := fun i => register_price first i - register_price second i).
  assert (total paths (fun j => (R1 j - R2 j) * (power (R1 j) (- alpha) - power (R2 j) (- alpha))) =
    total links (fun i => difference i * link_load (fun j => R1 j - R2 j) i)) as exchange.
  { rewrite <- (prices_and_loads difference (fun j => R1 j - R2 j)). apply total_ext. intros j small.
    unfold R1, R2. rewrite (marginal_utility_is_price first first_rest j small).
    rewrite (marginal_utility_is_price second second_rest j small).
    unfold path_price. rewrite <- total_minus. f_equal. apply total_ext. intros i _.
    unfold difference. destruct (crosses i j); lra. }
  assert (0 <= total links (fun i => difference i * link_load (fun j => R1 j - R2 j) i)) as sign.
  { apply total_nonneg. intros i link. rewrite link_load_minus.
    apply prices_follow_loads; assumption. }
  lra.
Qed.

End At_rest.
End Fairness.

(** * An example *)

(** A parking lot of two links of capacity 1: path 0 crosses both, path 1 the first, path 2 the second. *)
Definition parking_lot : Network.
Proof.
  refine {|
    links := 2;
    paths := 3;
    crosses := fun i j => match j with O => true | S k => Nat.eqb i k end;
    capacity := fun _ => 1
  |}.
  - intros i _. lra.
  - intros [|[|[|j]]] small; [exists 0%nat|exists 0%nat|exists 1%nat|lia]; split; simpl; lia || reflexivity.
Defined.

(** Registers do come to rest: with U_target = 95 %, a = 3 % and alpha = 1 at U = 99.5 %, where the long path has half
    of what the others have. *)
Example registers_can_rest : registers_at_rest (net := parking_lot) 1 (95/100) (3/100) (fun _ _ => 199/300).
Proof.
  assert (0 < 199/300) as sign by lra.
  assert (power (199/300) (- (1)) = 300/199) as price.
  { apply Rmult_eq_reg_r with (power (199/300) 1).
    - rewrite <- power_plus. replace (- (1) + 1) with 0 by lra. rewrite power_zero, power_one by exact sign. field.
    - pose proof (power_positive (199/300) 1). lra. }
  assert (forall y, 0 < y -> power y (-1 / 1) = / y) as inverse.
  { intros y above. replace (-1 / 1) with (- (1)) by field. apply Rmult_eq_reg_r with (power y 1).
    - rewrite <- power_plus. replace (- (1) + 1) with 0 by lra. rewrite power_zero, power_one by exact above.
      field. lra.
    - pose proof (power_positive y 1). lra. }
  assert (register_rate (net := parking_lot) 1 (fun _ _ => 199/300) 0 = 199/600) as long.
  { unfold register_rate, path_price. simpl. rewrite price, inverse by lra. field. }
  assert (register_rate (net := parking_lot) 1 (fun _ _ => 199/300) 1 = 199/300) as first.
  { unfold register_rate, path_price. simpl. rewrite price, inverse by lra. field. }
  assert (register_rate (net := parking_lot) 1 (fun _ _ => 199/300) 2 = 199/300) as second.
  { unfold register_rate, path_price. simpl. rewrite price, inverse by lra. field. }
  intros i j link path on. split; [exact sign|].
  assert (link_use (net := parking_lot) (register_rate (net := parking_lot) 1 (fun _ _ => 199/300)) i = 199/200) as use.
  { unfold link_use, link_load, share. cbn in link.
    destruct i as [|[|i]]; [| |lia]; cbn -[register_rate]; rewrite long; try rewrite first; try rewrite second; lra. }
  unfold next_register. rewrite use. lra.
Qed.
