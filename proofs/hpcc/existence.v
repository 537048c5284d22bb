(** HPCC (SIGCOMM 2019), Appendix A.3: R <- R U_target / U + a has an equilibrium on every network. The rates are found
    by filling: all paths rise together; where a link has reached the utilisation that its paths' rate asks for, its
    paths stop, and the others go on. With it the theorems of additive_increase.v, which begin with an equilibrium,
    speak of every network. *)

From Coq Require Import Reals Lra Lia Arith Bool.
From fluidcc.shared Require Import sums.
From fluidcc.hpcc Require Import network fairness additive_increase removal.

Local Open Scope R_scope.

(** * One link *)

(** The rate y > 0 at which (y - a) (held + free y) = aim y, of a link on which [free] paths have this rate, and others
    together [held]; [aim] is U_target C. *)
Definition level (a held free aim : R) : R :=
  ((aim + a * free - held) + sqrt ((held - aim - a * free) ^ 2 + 4 * free * (a * held))) / (2 * free).

Section Level.

Variables a held free aim : R.

Hypothesis increase : 0 < a.
Hypothesis others : 0 <= held.
Hypothesis some : 0 < free.
Hypothesis goal : 0 < aim.

Let b : R := held - aim - a * free.

Let s : R := sqrt (b ^ 2 + 4 * free * (a * held)).

Lemma inside_positive : 0 <= b ^ 2 + 4 * free * (a * held).
Proof.
  assert (0 <= a * held) as product by (apply Rmult_le_pos; lra).
  assert (0 <= 4 * free * (a * held)) as more by (apply Rmult_le_pos; lra).
  pose proof (pow2_ge_0 b) as square. lra.
Qed.

Lemma root_square : s * s = b ^ 2 + 4 * free * (a * held).
Proof. apply sqrt_sqrt, inside_positive. Qed.

Lemma root_at_least : 0 <= s /\ - b <= s /\ b <= s.
Proof.
  pose proof (sqrt_pos (b ^ 2 + 4 * free * (a * held))) as sign. fold s in sign.
  pose proof root_square as square.
  assert (0 <= a * held) as product by (apply Rmult_le_pos; lra).
  assert (0 <= 4 * free * (a * held)) as more by (apply Rmult_le_pos; lra).
  split; [exact sign|]. split; apply Rnot_lt_le; intros less; nra.
Qed.

Lemma level_is : level a held free aim = (- b + s) / (2 * free).
Proof. unfold level, s, b. f_equal. lra. Qed.

Lemma level_positive : 0 < level a held free aim.
Proof.
  rewrite level_is. apply Rdiv_lt_0_compat; [|lra].
  pose proof root_at_least as (sign & _ & above). pose proof root_square as square.
  destruct (Rle_lt_dec b 0) as [negative|positive].
  - destruct (Req_dec held 0) as [none|held_some].
    + assert (0 < a * free) by (apply Rmult_lt_0_compat; assumption).
      assert (b < 0) by (unfold b; lra). lra.
    + assert (0 < a * held) as product by (apply Rmult_lt_0_compat; lra).
      assert (0 < 4 * free * (a * held)) as more by (apply Rmult_lt_0_compat; lra).
      assert (0 < s) by nra. lra.
  - assert (aim < held) as held_more.
    { assert (0 < a * free) by (apply Rmult_lt_0_compat; assumption). unfold b in positive. lra. }
    assert (0 < a * held) as product by (apply Rmult_lt_0_compat; lra).
    assert (0 < 4 * free * (a * held)) as more by (apply Rmult_lt_0_compat; lra).
    nra.
Qed.

Lemma level_factors (y : R) :
  (y - a) * (held + free * y) - aim * y =
  free * (y - level a held free aim) * (y - (- b - s) / (2 * free)).
Proof.
  rewrite level_is. pose proof root_square as square.
  replace (free * (y - (- b + s) / (2 * free)) * (y - (- b - s) / (2 * free)))
    with (free * y ^ 2 + b * y + (b ^ 2 - s * s) / (4 * free)) by (field; lra).
  rewrite square. unfold b. field. lra.
Qed.

Lemma at_level :
  (level a held free aim - a) * (held + free * level a held free aim) = aim * level a held free aim.
Proof.
  pose proof (level_factors (level a held free aim)) as zero.
  replace (level a held free aim - level a held free aim) with 0 in zero by lra. lra.
Qed.

Lemma below_level_iff (y : R) :
  0 < y -> (y - a) * (held + free * y) <= aim * y <-> y <= level a held free aim.
Proof.
  intros positive. pose proof (level_factors y) as factors.
  pose proof root_at_least as (_ & other & _).
  assert (0 <= (b + s) / (2 * free)) as far by (apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]).
  assert (0 < y - (- b - s) / (2 * free)) as factor.
  { replace ((- b - s) / (2 * free)) with (- ((b + s) / (2 * free))) by (field; lra). lra. }
  set (p := y - (- b - s) / (2 * free)) in *. set (d := y - level a held free aim) in *.
  assert (0 < free * p) as slope by (apply Rmult_lt_0_compat; assumption).
  replace (free * d * p) with (free * p * d) in factors by ring.
  split; intros less.
  - assert (d <= 0); [|unfold d in *; lra]. apply Rnot_lt_le. intros more.
    assert (0 < free * p * d) by (apply Rmult_lt_0_compat; assumption). lra.
  - assert (d <= 0) as under by (unfold d; lra).
    assert (free * p * d <= 0); [|lra]. rewrite <- (Rmult_0_r (free * p)). apply Rmult_le_compat_l; lra.
Qed.

End Level.

(** What a link asks of a rate it asks of smaller ones. *)
Lemma smaller_rates_fit (a load aim rate y : R) :
  0 < a -> 0 <= load -> 0 < rate -> rate <= y -> (y - a) * load <= aim * y -> (rate - a) * load <= aim * rate.
Proof.
  intros increase nonneg positive order fits. apply Rmult_le_reg_r with y; [lra|].
  assert (a * rate * load <= a * y * load) as most.
  { apply Rmult_le_compat_r; [exact nonneg|]. apply Rmult_le_compat_l; lra. }
  assert (rate * ((y - a) * load) <= rate * (aim * y)) as scaled by (apply Rmult_le_compat_l; lra).
  lra.
Qed.

(** * Filling *)

Section Filling.

Context {net : Network}.

Lemma link_load_ext (before after : nat -> R) (i : nat) :
  (forall j, (j < paths)%nat -> crosses i j = true -> before j = after j) -> link_load before i = link_load after i.
Proof.
  intros same. apply total_ext. intros j path. unfold share.
  destruct (crosses i j) eqn:on; [apply same; assumption|reflexivity].
Qed.

Variables (target a : R).

Hypothesis aim : 0 < target.
Hypothesis increase : 0 < a.

(** All paths of link i have stopped. *)
Definition closed (stopped : nat -> bool) (i : nat) : Prop :=
  forall j, (j < paths)%nat -> crosses i j = true -> stopped j = true.

(** Rates on the way: paths that have not stopped have rate x; no link asks of a rate of its paths to be less; of each
    path that has stopped some link allows no more, and all of its paths have stopped. *)
Record filled (x : R) (rates : nat -> R) (stopped : nat -> bool) : Prop := {
  filled_positive : 0 < x;
  filled_moving : forall j, (j < paths)%nat -> stopped j = false -> rates j = x;
  filled_below : forall j, (j < paths)%nat -> 0 < rates j <= x;
  filled_fits : forall i j, (i < links)%nat -> (j < paths)%nat -> crosses i j = true ->
    (rates j - a) * link_load rates i <= target * capacity i * rates j;
  filled_reason : forall j, (j < paths)%nat -> stopped j = true ->
    exists i, (i < links)%nat /\ crosses i j = true /\ closed stopped i /\
      (rates j - a) * link_load rates i = target * capacity i * rates j
}.

Lemma filled_at_start : filled a (fun _ => a) (fun _ => false).
Proof.
  constructor.
  - exact increase.
  - reflexivity.
  - intros j _. lra.
  - intros i j link _ _. pose proof (capacity_positive i link) as room.
    assert (0 < target * capacity i * a) by (repeat apply Rmult_lt_0_compat; assumption).
    replace (a - a) with 0 by lra. lra.
  - discriminate.
Qed.

(** The rates with all moving paths at y. *)
Definition moved (rates : nat -> R) (stopped : nat -> bool) (y : R) (j : nat) : R := if stopped j then rates j else y.

(** The number of paths on link i that move. *)
Definition moving (stopped : nat -> bool) (i : nat) : R := free_load (fun _ => 1) stopped i.

Lemma load_of_moved (rates : nat -> R) (stopped : nat -> bool) (y : R) (i : nat) :
  link_load (moved rates stopped y) i = held_load rates stopped i + moving stopped i * y.
Proof.
  rewrite (two_parts (moved rates stopped y) stopped i). f_equal.
  - apply total_ext. intros j _. unfold share, moved. destruct (stopped j); [reflexivity|]. reflexivity.
  - unfold moving, free_load. rewrite Rmult_comm, <- total_scale. apply total_ext. intros j _.
    unfold share, moved. destruct (stopped j), (crosses i j); lra.
Qed.

Lemma some_moving (stopped : nat -> bool) (i j : nat) :
  (j < paths)%nat -> crosses i j = true -> stopped j = false -> 0 < moving stopped i.
Proof.
  intros path on free. apply total_pos with j; [|exact path|].
  - intros k _. unfold share. destruct (stopped k), (crosses i k); lra.
  - rewrite free, share_on by exact on. lra.
Qed.

Lemma held_nonneg (rates : nat -> R) (stopped : nat -> bool) (i : nat) :
  all_positive rates -> 0 <= held_load rates stopped i.
Proof.
  intros sign. apply total_nonneg. intros j path. destruct (stopped j); [|lra].
  apply share_nonneg; [apply all_positive_nonneg, sign|exact path].
Qed.

(** The rate at which link i stops its paths. *)
Definition stops (rates : nat -> R) (stopped : nat -> bool) (i : nat) : R :=
  level a (held_load rates stopped i) (moving stopped i) (target * capacity i).

Lemma open_or_closed (stopped : nat -> bool) (i : nat) :
  (exists j, (j < paths)%nat /\ crosses i j = true /\ stopped j = false) \/ closed stopped i.
Proof.
  destruct (open_link stopped i) eqn:crossed.
  - left. apply open_true, crossed.
  - right. intros j path on. destruct (stopped j) eqn:free; [reflexivity|].
    assert (open_link stopped i = true) by (apply open_true; exists j; tauto). congruence.
Qed.

Section Step.

Variables (x : R) (rates : nat -> R) (stopped : nat -> bool) (k : nat).

Hypothesis before : filled x rates stopped.
Hypothesis link_k : (k < links)%nat.
Hypothesis open_k : exists j, (j < paths)%nat /\ crosses k j = true /\ stopped j = false.
Hypothesis first : forall i, (i < links)%nat ->
  (exists j, (j < paths)%nat /\ crosses i j = true /\ stopped j = false) ->
  stops rates stopped k <= stops rates stopped i.

Notation y := (stops rates stopped k).
Notation after := (moved rates stopped y).

Lemma before_positive : all_positive rates.
Proof. intros j path. apply (filled_below _ _ _ before j path). Qed.

(** At y a link with moving paths lets them have y. *)
Lemma fits_below_stop (i : nat) (z : R) :
  (i < links)%nat -> (exists j, (j < paths)%nat /\ crosses i j = true /\ stopped j = false) -> 0 < z ->
  (z - a) * link_load (moved rates stopped z) i <= target * capacity i * z <-> z <= stops rates stopped i.
Proof.
  intros link (j & path & on & free) positive. rewrite load_of_moved.
  apply below_level_iff; [exact increase|apply held_nonneg, before_positive| |exact positive].
  apply some_moving with j; assumption.
Qed.

Lemma unchanged (j : nat) : (j < paths)%nat -> moved rates stopped x j = rates j.
Proof.
  intros path. unfold moved. destruct (stopped j) eqn:free; [reflexivity|].
  symmetry. apply (filled_moving _ _ _ before); assumption.
Qed.

Lemma rises : x <= y.
Proof.
  apply fits_below_stop; [exact link_k|exact open_k|apply (filled_positive _ _ _ before)|].
  destruct open_k as (j & path & on & free).
  rewrite (link_load_ext (moved rates stopped x) rates) by (intros l small _; apply unchanged, small).
  pose proof (filled_fits _ _ _ before k j link_k path on) as fits.
  rewrite (filled_moving _ _ _ before j path free) in fits. exact fits.
Qed.

Lemma closed_load_kept (i : nat) : closed stopped i -> link_load after i = link_load rates i.
Proof. intros all. apply link_load_ext. intros j path on. unfold moved. rewrite (all j path on). reflexivity. Qed.

Lemma after_below (j : nat) : (j < paths)%nat -> 0 < after j <= y.
Proof.
  intros path. pose proof rises as up. pose proof (filled_positive _ _ _ before) as sign. unfold moved.
  destruct (stopped j); [|lra]. pose proof (filled_below _ _ _ before j path). lra.
Qed.

Lemma after_filled : filled y after (fun j => orb (stopped j) (crosses k j)).
Proof.
  pose proof rises as up. pose proof (filled_positive _ _ _ before) as sign.
  constructor.
  - lra.
  - intros j path free. apply orb_false_iff in free. destruct free as [free _]. unfold moved. rewrite free. reflexivity.
  - exact after_below.
  - intros i j link path on. destruct (open_or_closed stopped i) as [open|all].
    + apply smaller_rates_fit with (y := y); [exact increase| |apply after_below, path|apply after_below, path|].
      * apply link_load_nonneg. intros l small. pose proof (after_below l small). lra.
      * apply fits_below_stop; [exact link|exact open|lra|]. apply first; assumption.
    + rewrite (closed_load_kept i all). unfold moved. rewrite (all j path on).
      apply (filled_fits _ _ _ before); assumption.
  - intros j path ice. destruct (stopped j) eqn:old.
    + destruct (filled_reason _ _ _ before j path old) as (i & link & on & all & same).
      exists i. split; [exact link|]. split; [exact on|]. split.
      * intros l small here. rewrite (all l small here). reflexivity.
      * rewrite (closed_load_kept i all). unfold moved. rewrite old. exact same.
    + simpl in ice. exists k. split; [exact link_k|]. split; [exact ice|]. split.
      * intros l small here. rewrite here. apply orb_true_r.
      * unfold moved at 1 3. rewrite old, load_of_moved. unfold stops. apply at_level.
        -- exact increase.
        -- apply held_nonneg, before_positive.
        -- apply some_moving with j; assumption.
Qed.

End Step.

Lemma filling_ends (m : nat) (x : R) (rates : nat -> R) (stopped : nat -> bool) :
  (count paths (fun j => negb (stopped j)) <= m)%nat -> filled x rates stopped ->
  exists top final, filled top final (fun _ => true).
Proof.
  revert x rates stopped. induction m as [|m IH]; intros x rates stopped few before.
  - assert (forall j, (j < paths)%nat -> stopped j = true) as all.
    { intros j path. destruct (stopped j) eqn:free; [reflexivity|].
      pose proof (count_positive paths (fun l => negb (stopped l)) j path) as some. simpl in some.
      rewrite free in some. specialize (some eq_refl). lia. }
    exists x, rates. constructor.
    + apply (filled_positive _ _ _ before).
    + discriminate.
    + apply (filled_below _ _ _ before).
    + apply (filled_fits _ _ _ before).
    + intros j path _. destruct (filled_reason _ _ _ before j path (all j path)) as (i & link & on & _ & same).
      exists i. repeat split; [exact link|exact on|exact same].
  - destruct (least_member links
      (fun i => exists j, (j < paths)%nat /\ crosses i j = true /\ stopped j = false) (stops rates stopped))
      as [none|(k & link & open & first)].
    + intros i. destruct (open_or_closed stopped i) as [open|all]; [left; exact open|right].
      intros (j & path & on & free). rewrite (all j path on) in free. discriminate.
    + apply (IH x rates stopped); [|exact before].
      destruct (count paths (fun j => negb (stopped j))) eqn:rest; [lia|].
      exfalso. destruct (least_member paths (fun j => stopped j = false) (fun _ => 0))
        as [nobody|(j & path & free & _)].
      * intros j. destruct (stopped j); [right; discriminate|left; reflexivity].
      * assert (count paths (fun j => negb (stopped j)) <= count paths (fun _ => false))%nat as zero.
        { apply count_le. intros j path moves. apply negb_true_iff in moves. exfalso. exact (nobody j path moves). }
        assert (forall p, count p (fun _ => false) = 0%nat) as empty by (induction p as [|p same]; simpl; lia).
        rewrite empty in zero. lia.
      * destruct (path_has_link j path) as (i & link & on). apply (none i link). exists j. tauto.
    + apply (IH (stops rates stopped k) (moved rates stopped (stops rates stopped k))
        (fun j => orb (stopped j) (crosses k j))).
      * destruct open as (j & path & on & free).
        assert (count paths (fun l => negb (orb (stopped l) (crosses k l)))
          < count paths (fun l => negb (stopped l)))%nat as fewer.
        { apply (count_lt paths _ _ j).
          - intros l small moves. apply negb_true_iff, orb_false_iff in moves. apply negb_true_iff. tauto.
          - exact path.
          - rewrite on, orb_true_r. reflexivity.
          - rewrite free. reflexivity. }
        lia.
      * apply after_filled with (x := x); assumption.
Qed.

(** A.3: every network has an equilibrium, for every target and every increase. The paper takes it for granted. *)
Theorem equilibrium_exists : exists rates, at_rest target a rates.
Proof.
  destruct (filling_ends paths a (fun _ => a) (fun _ => false)) as (top & rates & done);
    [apply count_at_most|exact filled_at_start|].
  exists rates. intros j path. destruct (filled_below _ _ _ done j path) as [sign _]. split; [exact sign|].
  assert (all_positive rates) as positive by (intros l small; apply (filled_below _ _ _ done l small)).
  pose proof (path_use_positive rates j positive path) as busy.
  assert ((rates j - a) * path_use rates j = target * rates j) as same.
  { destruct (filled_reason _ _ _ done j path eq_refl) as (i & link & on & _ & full).
    assert (forall l, (l < links)%nat -> link_load rates l = link_use rates l * capacity l) as loads
      by (intros l small; symmetry; apply link_use_times_capacity, small).
    rewrite (loads i link) in full. pose proof (capacity_positive i link) as room.
    assert ((rates j - a) * link_use rates i = target * rates j) as here
      by (apply Rmult_eq_reg_r with (capacity i); lra).
    assert (0 < link_use rates i) as used by (apply link_use_positive with j; assumption).
    assert (0 < target * rates j) as goal by (apply Rmult_lt_0_compat; assumption).
    assert (0 < rates j - a) as more.
    { apply Rnot_le_lt. intros less.
      assert ((rates j - a) * link_use rates i <= 0 * link_use rates i) by (apply Rmult_le_compat_r; lra). lra. }
    replace (path_use rates j) with (link_use rates i); [exact here|].
    apply Rle_antisym; [apply link_use_at_most_path_use; assumption|].
    apply path_use_le; [lra|]. intros l small crossed.
    pose proof (filled_fits _ _ _ done l j small path crossed) as fits.
    rewrite (loads l small) in fits. pose proof (capacity_positive l small) as room_l.
    apply Rmult_le_reg_l with (rates j - a); [exact more|]. rewrite here.
    apply Rmult_le_reg_r with (capacity l); [exact room_l|]. lra. }
  unfold next_rate. replace (rates j * (target / path_use rates j)) with (target * rates j / path_use rates j)
    by (field; lra).
  rewrite <- same. field. lra.
Qed.

End Filling.
