(** HPCC (SIGCOMM 2019), Appendix A.2: the proof's removal of saturated links, repaired.

    The proof of Lemma (iii) removes a saturated link together with all paths through it, but not the load of these
    paths on other links. Here that load is taken off the capacities: frozen paths keep their rates, and (6) is applied
    to the others on what the frozen ones leave. Then the end comes after at most min(I, J) steps. *)

From Coq Require Import Reals Lra Lia Arith Bool.
From fluidcc.shared Require Import sums.
From fluidcc.hpcc Require Import network pareto.

Local Open Scope R_scope.

(** * Counting *)

(** One of 0, ..., n - 1 has the property. *)
Fixpoint any (n : nat) (p : nat -> bool) : bool :=
  match n with
  | O => false
  | S m => orb (any m p) (p m)
  end.

(** The number of those that have it. *)
Fixpoint count (n : nat) (p : nat -> bool) : nat :=
  match n with
  | O => 0
  | S m => (count m p + if p m then 1 else 0)%nat
  end.

Lemma any_true (n : nat) (p : nat -> bool) : any n p = true <-> exists i, (i < n)%nat /\ p i = true.
Proof.
  induction n as [|n IH]; simpl.
  - split; [discriminate|]. intros (i & small & _). lia.
  - rewrite orb_true_iff, IH. split.
    + intros [(i & small & has)|has]; [exists i|exists n]; (split; [lia|exact has]).
    + intros (i & small & has). destruct (Nat.eq_dec i n) as [last|inner].
      * right. subst i. exact has.
      * left. exists i. split; [lia|exact has].
Qed.

Lemma any_false (n : nat) (p : nat -> bool) (i : nat) : any n p = false -> (i < n)%nat -> p i = false.
Proof.
  intros none small. destruct (p i) eqn:has; [|reflexivity].
  assert (any n p = true) by (apply any_true; exists i; split; assumption). congruence.
Qed.

Lemma count_at_most (n : nat) (p : nat -> bool) : (count n p <= n)%nat.
Proof. induction n as [|n IH]; simpl; [lia|]. destruct (p n); lia. Qed.

Lemma count_positive (n : nat) (p : nat -> bool) (i : nat) : (i < n)%nat -> p i = true -> (0 < count n p)%nat.
Proof.
  induction n as [|n IH]; intros small has; simpl; [lia|].
  destruct (Nat.eq_dec i n) as [last|inner]; [subst i; rewrite has; lia|].
  assert (0 < count n p)%nat by (apply IH; [lia|exact has]). lia.
Qed.

Lemma count_le (n : nat) (p q : nat -> bool) :
  (forall i, (i < n)%nat -> p i = true -> q i = true) -> (count n p <= count n q)%nat.
Proof.
  induction n as [|n IH]; intros within; simpl; [lia|].
  assert (count n p <= count n q)%nat by (apply IH; intros i small; apply within; lia).
  destruct (p n) eqn:here; [rewrite (within n) by (lia || exact here)|]; lia.
Qed.

Lemma count_lt (n : nat) (p q : nat -> bool) (k : nat) :
  (forall i, (i < n)%nat -> p i = true -> q i = true) -> (k < n)%nat -> p k = false -> q k = true ->
  (count n p < count n q)%nat.
Proof.
  induction n as [|n IH]; intros within small off on; simpl; [lia|].
  destruct (Nat.eq_dec k n) as [last|inner].
  - subst k. rewrite off, on.
    assert (count n p <= count n q)%nat by (apply count_le; intros i below; apply within; lia). lia.
  - assert (count n p < count n q)%nat by (apply IH; [intros i below; apply within; lia|lia|exact off|exact on]).
    destruct (p n) eqn:here; [rewrite (within n) by (lia || exact here)|]; lia.
Qed.

(** * The repaired step *)

Section Step.

Context {net : Network}.

(** The free paths' load over what the frozen ones leave of the capacity. *)
Definition residual_use (rates : nat -> R) (frozen : nat -> bool) (i : nat) : R :=
  free_load rates frozen i / (capacity i - held_load rates frozen i).

(** (6) for the free paths, on residual capacities. *)
Definition residual_step (rates : nat -> R) (frozen : nat -> bool) (j : nat) : R :=
  if frozen j then rates j else rates j / largest links (fun i => crosses i j) (residual_use rates frozen).

(** Y_i = C_i. *)
Definition full (rates : nat -> R) (i : nat) : bool :=
  if Req_EM_T (link_load rates i) (capacity i) then true else false.

(** Frozen from now on: what was so, and paths that cross a saturated link. *)
Definition freeze (rates : nat -> R) (frozen : nat -> bool) (j : nat) : bool :=
  orb (frozen j) (any links (fun i => andb (crosses i j) (full rates i))).

(** A link that a free path crosses. *)
Definition open_link (frozen : nat -> bool) (i : nat) : bool :=
  any paths (fun j => andb (crosses i j) (negb (frozen j))).

Lemma full_true (rates : nat -> R) (i : nat) : full rates i = true <-> link_load rates i = capacity i.
Proof.
  unfold full. destruct (Req_EM_T (link_load rates i) (capacity i)) as [same|apart]; [tauto|].
  split; [discriminate|contradiction].
Qed.

Lemma open_true (frozen : nat -> bool) (i : nat) :
  open_link frozen i = true <-> exists j, (j < paths)%nat /\ crosses i j = true /\ frozen j = false.
Proof.
  unfold open_link. rewrite any_true.
  split; intros (j & path & both); exists j; rewrite andb_true_iff, negb_true_iff in *; tauto.
Qed.

Lemma freeze_false (rates : nat -> R) (frozen : nat -> bool) (j : nat) :
  freeze rates frozen j = false <->
  frozen j = false /\ forall i, (i < links)%nat -> crosses i j = true -> link_load rates i <> capacity i.
Proof.
  unfold freeze. rewrite orb_false_iff. split; intros (before & none); (split; [exact before|]).
  - intros i link on same. pose proof (any_false _ _ i none link) as clear. simpl in clear.
    apply full_true in same. rewrite on, same in clear. discriminate.
  - destruct (any links (fun i => andb (crosses i j) (full rates i))) eqn:some; [|reflexivity].
    apply any_true in some. destruct some as (i & link & both). apply andb_true_iff in both.
    destruct both as (on & same). apply full_true in same. exfalso. apply (none i link on same).
Qed.

Lemma closed_load (rates : nat -> R) (frozen : nat -> bool) (i : nat) :
  open_link frozen i = false -> link_load rates i = held_load rates frozen i.
Proof.
  intros closed. apply total_ext. intros j path. destruct (frozen j) eqn:ice; [reflexivity|].
  unfold share. destruct (crosses i j) eqn:on; [|reflexivity].
  assert (open_link frozen i = true) by (apply open_true; exists j; tauto). congruence.
Qed.

(** Frozen paths fit on all links, and leave room where a free path crosses. *)
Definition leaves_room (rates : nat -> R) (frozen : nat -> bool) : Prop :=
  forall i, (i < links)%nat ->
    held_load rates frozen i <= capacity i /\ (open_link frozen i = true -> held_load rates frozen i < capacity i).

Section OneStep.

Context (rates : nat -> R) (frozen : nat -> bool).
Hypothesis sign : all_positive rates.
Hypothesis room : leaves_room rates frozen.

Notation after := (residual_step rates frozen).
Notation tightest := (fun j => largest links (fun i => crosses i j) (residual_use rates frozen)).

Lemma residual_use_positive (i : nat) :
  (i < links)%nat -> open_link frozen i = true -> 0 < residual_use rates frozen i.
Proof.
  intros link crossed. pose proof (proj2 (room i link) crossed) as left.
  apply open_true in crossed. destruct crossed as (j & path & on & free).
  apply Rdiv_lt_0_compat; [apply free_load_positive with j; assumption|lra].
Qed.

Lemma tightest_positive (j : nat) : (j < paths)%nat -> frozen j = false -> 0 < tightest j.
Proof.
  intros path free. destruct (path_has_link j path) as (i & link & on).
  apply Rlt_le_trans with (residual_use rates frozen i).
  - apply residual_use_positive; [exact link|]. apply open_true. exists j. tauto.
  - apply (largest_ge links (fun k => crosses k j)); assumption.
Qed.

Lemma after_positive : all_positive after.
Proof.
  intros j path. unfold residual_step. destruct (frozen j) eqn:ice; [apply sign, path|].
  apply Rdiv_lt_0_compat; [apply sign, path|apply tightest_positive; assumption].
Qed.

Lemma held_kept (i : nat) : held_load after frozen i = held_load rates frozen i.
Proof.
  apply total_ext. intros j _. unfold share, residual_step. destruct (frozen j); [|reflexivity].
  destruct (crosses i j); reflexivity.
Qed.

Lemma free_share_step (i j : nat) :
  (i < links)%nat -> (j < paths)%nat ->
  residual_use rates frozen i * (if frozen j then 0 else share after i j) <= (if frozen j then 0 else share rates i j).
Proof.
  intros link path. unfold share, residual_step. destruct (frozen j) eqn:ice; [lra|].
  destruct (crosses i j) eqn:on; [|lra].
  pose proof (tightest_positive j path ice) as positive. pose proof (sign j path) as moving. simpl in positive.
  apply Rmult_le_reg_r with (tightest j); [exact positive|]. simpl.
  unfold Rdiv. rewrite Rmult_assoc, (Rmult_assoc (rates j)), Rinv_l, Rmult_1_r by lra.
  rewrite Rmult_comm. apply Rmult_le_compat_l; [lra|].
  apply (largest_ge links (fun k => crosses k j)); assumption.
Qed.

Lemma free_load_step (i : nat) :
  (i < links)%nat -> open_link frozen i = true ->
  free_load after frozen i <= capacity i - held_load rates frozen i.
Proof.
  intros link crossed. pose proof (residual_use_positive i link crossed) as positive.
  pose proof (proj2 (room i link) crossed) as left.
  apply Rmult_le_reg_l with (residual_use rates frozen i); [exact positive|].
  replace (residual_use rates frozen i * (capacity i - held_load rates frozen i)) with (free_load rates frozen i)
    by (unfold residual_use; field; lra).
  unfold free_load at 1. rewrite <- total_scale. apply total_le. intros j path. apply free_share_step; assumption.
Qed.

Lemma after_feasible : feasible after.
Proof.
  intros i link. destruct (open_link frozen i) eqn:crossed.
  - rewrite (two_parts after frozen), held_kept. pose proof (free_load_step i link crossed). lra.
  - rewrite (closed_load after frozen i crossed), held_kept. apply (room i link).
Qed.

(** The tightest of all open links is full after the step. *)
Lemma tightest_fills (k : nat) :
  (k < links)%nat -> open_link frozen k = true ->
  (forall i, (i < links)%nat -> open_link frozen i = true ->
    residual_use rates frozen i <= residual_use rates frozen k) ->
  link_load after k = capacity k.
Proof.
  intros link crossed highest. pose proof (residual_use_positive k link crossed) as positive.
  pose proof (proj2 (room k link) crossed) as left.
  rewrite (two_parts after frozen), held_kept.
  assert (free_load after frozen k = capacity k - held_load rates frozen k) as fills; [|lra].
  apply Rmult_eq_reg_l with (residual_use rates frozen k); [|lra].
  replace (residual_use rates frozen k * (capacity k - held_load rates frozen k)) with (free_load rates frozen k)
    by (unfold residual_use; field; lra).
  unfold free_load at 1. rewrite <- total_scale. apply total_ext. intros j path.
  unfold share, residual_step. destruct (frozen j) eqn:ice; [lra|]. destruct (crosses k j) eqn:on; [|lra].
  assert (tightest j = residual_use rates frozen k) as same.
  { apply Rle_antisym; [|apply (largest_ge links (fun i => crosses i j)); assumption].
    apply largest_le; [lra|]. intros i other here. apply highest; [exact other|]. apply open_true. exists j. tauto. }
  simpl in same. rewrite same. field. lra.
Qed.

Lemma some_link_fills (j : nat) :
  (j < paths)%nat -> frozen j = false ->
  exists k, (k < links)%nat /\ open_link frozen k = true /\ link_load after k = capacity k.
Proof.
  intros path free.
  destruct (largest_attained links (open_link frozen) (residual_use rates frozen)) as (k & link & crossed & most).
  - destruct (path_has_link j path) as (i & link & on).
    assert (open_link frozen i = true) as crossed by (apply open_true; exists j; tauto).
    apply Rlt_le_trans with (residual_use rates frozen i); [apply residual_use_positive; assumption|].
    apply largest_ge; assumption.
  - exists k. split; [exact link|]. split; [exact crossed|]. apply tightest_fills; [exact link|exact crossed|].
    intros i other here. rewrite most. apply largest_ge; assumption.
Qed.

(** Freezing opens no link, and closes those that are full. *)
Lemma open_before (i : nat) : open_link (freeze after frozen) i = true -> open_link frozen i = true.
Proof.
  rewrite !open_true. intros (j & path & on & free). apply freeze_false in free. exists j. tauto.
Qed.

Lemma full_closes (i : nat) :
  (i < links)%nat -> link_load after i = capacity i -> open_link (freeze after frozen) i = false.
Proof.
  intros link same. destruct (open_link (freeze after frozen) i) eqn:crossed; [|reflexivity].
  apply open_true in crossed. destruct crossed as (j & _ & on & free). apply freeze_false in free.
  exfalso. apply (proj2 free i link on same).
Qed.

Lemma leaves_room_next : leaves_room after (freeze after frozen).
Proof.
  intros i link. pose proof (after_feasible i link) as fits.
  pose proof (held_at_most_load after (freeze after frozen) i (all_positive_nonneg _ after_positive)) as part.
  split; [lra|]. intros crossed.
  destruct (Rle_lt_or_eq_dec _ _ fits) as [below|same]; [lra|].
  rewrite (full_closes i link same) in crossed. discriminate.
Qed.

(** Fewer links are open after the step, if any path is free. *)
Lemma open_links_decrease (j : nat) :
  (j < paths)%nat -> frozen j = false ->
  (count links (open_link (freeze after frozen)) < count links (open_link frozen))%nat.
Proof.
  intros path free. destruct (some_link_fills j path free) as (k & link & crossed & same).
  apply count_lt with k; [|exact link|apply full_closes; assumption|exact crossed].
  intros i _. apply open_before.
Qed.

(** And fewer paths are free. *)
Lemma free_paths_decrease (j : nat) :
  (j < paths)%nat -> frozen j = false ->
  (count paths (fun k => negb (freeze after frozen k)) < count paths (fun k => negb (frozen k)))%nat.
Proof.
  intros path free. destruct (some_link_fills j path free) as (k & link & crossed & same).
  apply open_true in crossed. destruct crossed as (l & other & on & loose).
  apply count_lt with l; [|exact other| |rewrite loose; reflexivity].
  - intros i _. rewrite !negb_true_iff. intros later. apply freeze_false in later. tauto.
  - apply negb_false_iff. apply not_false_iff_true. intros later. apply freeze_false in later.
    apply (proj2 later k link on same).
Qed.

End OneStep.

End Step.

(** * The repaired recursion *)

Section Removal.

Context {net : Network} {initial : Start net}.

(** Rates [byte/s] and frozen paths after n steps; at the start no path is frozen. *)
Fixpoint repaired (n : nat) : (nat -> R) * (nat -> bool) :=
  match n with
  | O => (start, fun _ => false)
  | S m =>
      let moved := residual_step (fst (repaired m)) (snd (repaired m)) in
      (moved, freeze moved (snd (repaired m)))
  end.

Definition repaired_rate (n j : nat) : R := fst (repaired n) j.

Definition frozen_after (n j : nat) : bool := snd (repaired n) j.

Definition repaired_load (n i : nat) : R := link_load (repaired_rate n) i.

Lemma repaired_sound (n : nat) :
  all_positive (fst (repaired n)) /\ leaves_room (fst (repaired n)) (snd (repaired n)).
Proof.
  induction n as [|n (sign & room)]; simpl.
  - split; [apply start_positive|]. intros i link. pose proof (capacity_positive i link) as capacious.
    unfold held_load. rewrite total_zero. split; [lra|intros _; lra].
  - split; [apply after_positive; assumption|apply leaves_room_next; assumption].
Qed.

(** A.2, proof, repaired: no link is overloaded after the first step. *)
Theorem repaired_load_at_most_capacity (n i : nat) :
  (1 <= n)%nat -> (i < links)%nat -> repaired_load n i <= capacity i.
Proof.
  intros later link. destruct n as [|n]; [lia|]. destruct (repaired_sound n) as (sign & room).
  apply (after_feasible (fst (repaired n)) (snd (repaired n))); assumption.
Qed.

(** A.2, proof, repaired: "at each subsequent step at least one more resource becomes bottlenecked": while a path is
    free, a step fills a link that a free path crosses. *)
Theorem repaired_step_fills_another_link (n j : nat) :
  (j < paths)%nat -> frozen_after n j = false ->
  exists k, (k < links)%nat /\
    (exists l, (l < paths)%nat /\ crosses k l = true /\ frozen_after n l = false) /\
    repaired_load (S n) k = capacity k.
Proof.
  intros path free. destruct (repaired_sound n) as (sign & room).
  destruct (some_link_fills (fst (repaired n)) (snd (repaired n)) sign room j path free) as (k & link & crossed & same).
  exists k. split; [exact link|]. split; [apply open_true, crossed|exact same].
Qed.

Lemma steps_and_open_links (n j : nat) :
  (j < paths)%nat -> frozen_after n j = false -> (n + count links (open_link (snd (repaired n))) <= links)%nat.
Proof.
  revert j. induction n as [|n IH]; intros j path free; [apply count_at_most|].
  destruct (repaired_sound n) as (sign & room).
  assert (frozen_after n j = false) as before by (apply freeze_false in free; tauto).
  pose proof (open_links_decrease _ _ sign room j path before) as fewer.
  pose proof (IH j path before) as bound. simpl snd. lia.
Qed.

Lemma steps_and_free_paths (n j : nat) :
  (j < paths)%nat -> frozen_after n j = false ->
  (n + count paths (fun k => negb (snd (repaired n) k)) <= paths)%nat.
Proof.
  revert j. induction n as [|n IH]; intros j path free; [apply count_at_most|].
  destruct (repaired_sound n) as (sign & room).
  assert (frozen_after n j = false) as before by (apply freeze_false in free; tauto).
  pose proof (free_paths_decrease _ _ sign room j path before) as fewer.
  pose proof (IH j path before) as bound. simpl snd. lia.
Qed.

(** A.2, Lemma (iii), repaired: all paths are frozen after as many steps as there are links, or paths, whichever are
    fewer. *)
Theorem all_frozen_after_min_links_paths (n j : nat) :
  (Nat.min links paths <= n)%nat -> (j < paths)%nat -> frozen_after n j = true.
Proof.
  intros enough path. apply not_false_iff_true. intros free.
  pose proof (steps_and_open_links n j path free) as by_links.
  pose proof (steps_and_free_paths n j path free) as by_paths.
  assert (0 < count paths (fun k => negb (snd (repaired n) k)))%nat as loose.
  { apply count_positive with j; [exact path|]. apply negb_true_iff, free. }
  assert (0 < count links (open_link (snd (repaired n))))%nat as open.
  { destruct (path_has_link j path) as (i & link & on).
    apply count_positive with i; [exact link|]. apply open_true. exists j. tauto. }
  lia.
Qed.

(** A.2, Lemma (iii), repaired: from then on rates are constant. *)
Theorem repaired_rates_constant (n j : nat) :
  (Nat.min links paths <= n)%nat -> (j < paths)%nat -> repaired_rate n j = repaired_rate (Nat.min links paths) j.
Proof.
  intros enough path. induction enough as [|n enough IH]; [reflexivity|].
  rewrite <- IH. unfold repaired_rate. simpl. unfold residual_step.
  pose proof (all_frozen_after_min_links_paths n j enough path) as ice. unfold frozen_after in ice.
  rewrite ice. reflexivity.
Qed.

(** A frozen path crosses a saturated link, and no free path crosses that. *)
Lemma frozen_for_a_reason (n j : nat) :
  (j < paths)%nat -> frozen_after n j = true ->
  exists i, (i < links)%nat /\ crosses i j = true /\ open_link (snd (repaired n)) i = false /\
    repaired_load n i = capacity i.
Proof.
  revert j. induction n as [|n IH]; intros j path ice; [discriminate ice|].
  destruct (repaired_sound n) as (sign & room).
  destruct (frozen_after n j) eqn:before.
  - destruct (IH j path before) as (i & link & on & closed & same).
    exists i. repeat split; [exact link|exact on| |].
    + apply not_true_iff_false. intros crossed.
      apply (open_before (fst (repaired n)) (snd (repaired n)) i) in crossed. congruence.
    + unfold repaired_load, repaired_rate. simpl.
      rewrite (closed_load _ (snd (repaired n)) i closed), held_kept.
      rewrite <- (closed_load (fst (repaired n)) (snd (repaired n)) i closed). exact same.
  - unfold frozen_after in ice, before. simpl in ice. unfold freeze in ice. rewrite before in ice. simpl in ice.
    apply any_true in ice. destruct ice as (i & link & both). apply andb_true_iff in both.
    destruct both as (on & same). apply full_true in same.
    exists i. repeat split; [exact link|exact on| |exact same].
    apply full_closes; assumption.
Qed.

(** A.2, Lemma (iii), repaired: after at most min(I, J) steps the rates are Pareto optimal.
    Claim: hpcc-a2-removal. *)
Theorem repaired_rates_are_pareto_optimal (n : nat) :
  (Nat.min links paths <= n)%nat -> pareto_optimal (repaired_rate n).
Proof.
  intros enough. apply saturated_paths_are_optimal.
  - intros i link. destruct (repaired_sound n) as (_ & room).
    rewrite (closed_load (repaired_rate n) (snd (repaired n)) i); [apply (room i link)|].
    apply not_true_iff_false. intros crossed. apply open_true in crossed.
    destruct crossed as (j & path & _ & free).
    pose proof (all_frozen_after_min_links_paths n j enough path) as ice. unfold frozen_after in ice. congruence.
  - intros j path. pose proof (all_frozen_after_min_links_paths n j enough path) as ice.
    destruct (frozen_for_a_reason n j path ice) as (i & link & on & _ & same).
    exists i. tauto.
Qed.

End Removal.
