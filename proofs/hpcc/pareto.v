(** HPCC (SIGCOMM 2019), Appendix A.2: the recursion (5)-(6) on any network, and its Pareto optimal limit. *)

From Coq Require Import Reals Lra Lia Arith.
From fluidcc.shared Require Import limits sums.
From fluidcc.hpcc Require Import network.

Local Open Scope R_scope.

(** Rates R_j(0) > 0 [byte/s] at the start. *)
Class Start (net : Network) : Type := {
  start : nat -> R;
  start_positive : all_positive start
}.

(** Pareto optimal: feasible, and no feasible rates give one path more and no path less. *)
Definition pareto_optimal {net : Network} (rates : nat -> R) : Prop :=
  feasible rates /\
  forall other : nat -> R, feasible other -> (forall j, (j < paths)%nat -> rates j <= other j) ->
    forall j, (j < paths)%nat -> other j <= rates j.

Section Recursion.

Context {net : Network} {initial : Start net}.

(** R_j(n) [byte/s], (6): each round trip a path's rate is divided by the utilisation of its most loaded link. *)
Fixpoint rate (n j : nat) : R :=
  match n with
  | O => start j
  | S m => rate m j / path_use (rate m) j
  end.

(** Y_i(n) [byte/s], (5). *)
Definition load (n i : nat) : R := link_load (rate n) i.

(** U_i(n) = Y_i(n) / C_i. *)
Definition utilisation (n i : nat) : R := link_use (rate n) i.

(** m_j(n) = max over path j's links of Y_i(n) / C_i. *)
Definition highest (n j : nat) : R := path_use (rate n) j.

Lemma rate_step (n j : nat) : rate (S n) j = rate n j / highest n j.
Proof. reflexivity. Qed.

Lemma rates_positive (n : nat) : all_positive (rate n).
Proof.
  induction n as [|n IH]; intros j small.
  - apply start_positive, small.
  - rewrite rate_step. apply Rdiv_lt_0_compat; [apply IH, small|].
    apply path_use_positive; assumption.
Qed.

Lemma highest_positive (n j : nat) : (j < paths)%nat -> 0 < highest n j.
Proof. intros small. apply path_use_positive; [apply rates_positive|exact small]. Qed.

(** The inequality of the paper's proof, term by term: R_j(n+1) U_i(n) <= R_j(n) for each link i of path j. *)
Lemma share_step (n i j : nat) :
  (i < links)%nat -> (j < paths)%nat -> utilisation n i * share (rate (S n)) i j <= share (rate n) i j.
Proof.
  intros link path. unfold share. destruct (crosses i j) eqn:on; [|lra].
  pose proof (highest_positive n j path) as most.
  pose proof (rates_positive n j path) as sign.
  rewrite rate_step. unfold Rdiv. rewrite <- Rmult_assoc, (Rmult_comm (utilisation n i)).
  apply Rmult_le_reg_r with (highest n j); [exact most|].
  rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  apply Rmult_le_compat_l; [lra|].
  apply link_use_at_most_path_use; assumption.
Qed.

Lemma unused_load (n i : nat) : utilisation n i = 0 -> (i < links)%nat -> forall k, load k i = 0.
Proof.
  intros none link k. unfold load, link_load.
  rewrite (total_ext paths (share (rate k) i) (fun _ => 0)); [apply total_zero|].
  intros j small. unfold share. destruct (crosses i j) eqn:on; [|reflexivity].
  pose proof (link_use_positive (rate n) i j (rates_positive n) link small on) as some.
  unfold utilisation in none. lra.
Qed.

(** Lemma (i) of A.2: after one step, Y(n) <= C, whatever the rates at the start.
    Claim: hpcc-a2-feasible. *)
Theorem load_at_most_capacity (n i : nat) :
  (1 <= n)%nat -> (i < links)%nat -> load n i <= capacity i.
Proof.
  intros later link. destruct n as [|n]; [lia|clear later].
  pose proof (capacity_positive i link) as room.
  pose proof (link_use_nonneg (rate n) i (all_positive_nonneg _ (rates_positive n)) link) as sign.
  fold (utilisation n i) in sign.
  destruct (Rle_lt_or_eq_dec _ _ sign) as [some|none].
  - apply Rmult_le_reg_l with (utilisation n i); [exact some|].
    unfold utilisation at 2. rewrite link_use_times_capacity by exact link.
    unfold load, link_load. rewrite <- total_scale.
    apply total_le. intros j path. apply share_step; assumption.
  - rewrite (unused_load n i (eq_sym none) link). lra.
Qed.

(** Lemma (i) of A.2, in utilisations: U_i(n) <= 1 after the first step. *)
Theorem utilisation_at_most_one (n i : nat) :
  (1 <= n)%nat -> (i < links)%nat -> utilisation n i <= 1.
Proof. intros later link. apply link_use_at_most_one; [exact link|]. apply load_at_most_capacity; assumption. Qed.

(** The most loaded link of each path is at most full after the first step (proof of A.2's Lemma). *)
Theorem highest_at_most_one (n j : nat) : (1 <= n)%nat -> highest n j <= 1.
Proof.
  intros later. apply path_use_le; [lra|].
  intros i link on. apply utilisation_at_most_one; assumption.
Qed.

(** Lemma (ii) of A.2: after the first step no rate falls.
    Claim: hpcc-a2-monotone. *)
Theorem rates_never_fall (n j : nat) :
  (1 <= n)%nat -> (j < paths)%nat -> rate n j <= rate (S n) j.
Proof.
  intros later path. rewrite rate_step.
  pose proof (highest_positive n j path) as some. pose proof (highest_at_most_one n j later) as most.
  pose proof (rates_positive n j path) as sign.
  apply Rmult_le_reg_r with (highest n j); [exact some|].
  unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  rewrite <- (Rmult_1_r (rate n j)) at 2. apply Rmult_le_compat_l; lra.
Qed.

Lemma rates_never_fall_later (n p j : nat) :
  (1 <= n)%nat -> (n <= p)%nat -> (j < paths)%nat -> rate n j <= rate p j.
Proof.
  intros later order path. induction order as [|p order IH]; [lra|].
  apply Rle_trans with (1 := IH). apply rates_never_fall; [lia|exact path].
Qed.

Lemma loads_never_fall (n p i : nat) : (1 <= n)%nat -> (n <= p)%nat -> load n i <= load p i.
Proof. intros later order. apply link_load_le. intros j path _. apply rates_never_fall_later; assumption. Qed.

(** A path's rate is at most the capacity of its widest link, after the first step. *)
Lemma rate_at_most_widest (n j : nat) : (1 <= n)%nat -> (j < paths)%nat -> rate n j <= widest j.
Proof.
  intros later path. destruct (path_has_link j path) as (i & link & on).
  apply Rle_trans with (load n i).
  - apply rate_at_most_load; [apply all_positive_nonneg, rates_positive|exact path|exact on].
  - apply Rle_trans with (capacity i); [apply load_at_most_capacity; assumption|].
    apply capacity_at_most_widest; assumption.
Qed.

(** * Speed *)

(** A load rises at least by what one of its paths rises. *)
Lemma load_rise (n p i j : nat) :
  (1 <= n)%nat -> (n <= p)%nat -> (j < paths)%nat -> crosses i j = true ->
  load n i + (rate p j - rate n j) <= load p i.
Proof.
  intros later order path on.
  assert (load n i + (rate p j - rate n j) = link_load (raised (rate n) j (rate p j - rate n j)) i) as same.
  { rewrite raised_load, on by exact path. reflexivity. }
  rewrite same. apply link_load_le. intros k bound _. unfold raised. destruct (Nat.eqb_spec k j) as [here|other].
  - subst k. lra.
  - apply rates_never_fall_later; assumption.
Qed.

(** One step takes from a path's gap 1 - m_j at least the share that its rate has of its widest link. *)
Lemma gap_step (n j : nat) :
  (1 <= n)%nat -> (j < paths)%nat ->
  1 - highest (S n) j <= (1 - highest n j) * (1 - rate n j / widest j).
Proof.
  intros later path.
  destruct (path_use_attained (rate n) j (rates_positive n) path) as (i & link & on & same).
  fold (highest n j) in same. fold (utilisation n i) in same.
  pose proof (capacity_positive i link) as room.
  pose proof (capacity_at_most_widest i j link on) as wide.
  pose proof (rates_positive n j path) as sign.
  pose proof (highest_positive n j path) as some.
  pose proof (highest_at_most_one n j later) as most.
  pose proof (load_rise n (S n) i j later (le_S n n (le_n n)) path on) as rise.
  assert (rate n j * (1 - highest n j) <= rate (S n) j - rate n j) as growth.
  { rewrite rate_step. apply Rmult_le_reg_r with (highest n j); [exact some|].
    replace ((rate n j / highest n j - rate n j) * highest n j) with (rate n j * (1 - highest n j)) by (field; lra).
    rewrite <- (Rmult_1_r (rate n j * (1 - highest n j))) at 2. apply Rmult_le_compat_l; [|exact most].
    apply Rmult_le_pos; lra. }
  assert (utilisation n i + rate n j * (1 - highest n j) / capacity i <= highest (S n) j) as after.
  { apply Rle_trans with (utilisation (S n) i); [|apply link_use_at_most_path_use; assumption].
    apply Rmult_le_reg_r with (capacity i); [exact room|].
    rewrite Rmult_plus_distr_r. unfold utilisation. rewrite !link_use_times_capacity by exact link.
    replace (rate n j * (1 - highest n j) / capacity i * capacity i) with (rate n j * (1 - highest n j))
      by (field; lra).
    fold (load n i). fold (load (S n) i). lra. }
  assert (rate n j * (1 - highest n j) / widest j <= rate n j * (1 - highest n j) / capacity i) as narrow.
  { apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|]. apply Rinv_le_contravar; assumption. }
  rewrite same in after.
  replace ((1 - highest n j) * (1 - rate n j / widest j))
    with (1 - (highest n j + rate n j * (1 - highest n j) / widest j)) by (field; lra).
  lra.
Qed.

(** The share rate / widest that one step takes from the gap lies between 0 and 1. *)
Lemma kept_share (n j : nat) :
  (1 <= n)%nat -> (j < paths)%nat -> 0 <= 1 - rate n j / widest j < 1.
Proof.
  intros later path. pose proof (widest_positive j path) as wide.
  pose proof (rates_positive n j path) as sign. pose proof (rate_at_most_widest n j later path) as most.
  assert (rate n j / widest j <= 1).
  { apply Rmult_le_reg_r with (widest j); [exact wide|].
    replace (rate n j / widest j * widest j) with (rate n j) by (field; lra). lra. }
  assert (0 < rate n j / widest j) by (apply Rdiv_lt_0_compat; assumption).
  lra.
Qed.

(** A.2, corrected: the room 1 - m_j(n) on a path's most loaded link shrinks geometrically, at least by the factor 1 -
    R_j(1) / max C_i, the maximum over the path's links. The paper has it gone after as many steps as links. This is a
    bound; the factor in the long run is that of [free_load_closed_form], where its premises hold.
    Claim: hpcc-a2-rate. *)
Theorem room_shrinks_geometrically (n j : nat) :
  (1 <= n)%nat -> (j < paths)%nat ->
  1 - highest n j <= (1 - highest 1 j) * (1 - rate 1 j / widest j) ^ (n - 1).
Proof.
  intros later path. induction n as [|n IH]; [lia|clear later].
  destruct n as [|n]; [simpl pow; lra|].
  assert (1 <= S n)%nat as later by lia.
  pose proof (gap_step (S n) j later path) as step.
  pose proof (kept_share 1 j (le_n 1) path) as kept.
  assert (0 <= 1 - highest (S n) j) as gap by (pose proof (highest_at_most_one (S n) j later); lra).
  assert (rate 1 j / widest j <= rate (S n) j / widest j) as more.
  { apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, widest_positive, path|].
    apply rates_never_fall_later; [lia|exact later|exact path]. }
  apply Rle_trans with (1 := step).
  apply Rle_trans with ((1 - highest (S n) j) * (1 - rate 1 j / widest j)).
  { apply Rmult_le_compat_l; [exact gap|lra]. }
  replace (S (S n) - 1)%nat with (S (S n - 1)) by lia.
  rewrite <- tech_pow_Rmult, (Rmult_comm (1 - rate 1 j / widest j)), <- Rmult_assoc.
  apply Rmult_le_compat_r; [lra|]. apply IH, later.
Qed.

(** * Limit *)

Lemma later_rates_bounded (j : nat) : (j < paths)%nat -> has_ub (fun n => rate (S n) j).
Proof.
  intros path. exists (widest j). intros x (n & same). subst x.
  apply rate_at_most_widest; [lia|exact path].
Qed.

Lemma later_rates_grow (j : nat) : (j < paths)%nat -> Un_growing (fun n => rate (S n) j).
Proof. intros path n. apply rates_never_fall; [lia|exact path]. Qed.

(** The limit R_j [byte/s] of path j's rate. *)
Definition limit (j : nat) : R :=
  match lt_dec j paths with
  | left path => proj1_sig (growing_cv _ (later_rates_grow j path) (later_rates_bounded j path))
  | right _ => 0
  end.

(** A.2: every path's rate converges. *)
Theorem rates_converge (j : nat) : (j < paths)%nat -> Un_cv (fun n => rate n j) (limit j).
Proof.
  intros path. apply (shifted_limit (fun n => rate n j)). unfold limit.
  destruct (lt_dec j paths) as [inside|outside]; [|contradiction].
  apply proj2_sig.
Qed.

(** A.2: from the first step on rates come from below; none exceeds its limit. *)
Theorem rate_at_most_limit (n j : nat) : (1 <= n)%nat -> (j < paths)%nat -> rate n j <= limit j.
Proof.
  intros later path. destruct n as [|n]; [lia|].
  apply (growing_ineq (fun k => rate (S k) j)); [apply later_rates_grow, path|].
  intros eps positive. destruct (rates_converge j path eps positive) as (N & near).
  exists N. intros k far. apply near. lia.
Qed.

Lemma limit_positive : all_positive limit.
Proof.
  intros j path. apply Rlt_le_trans with (rate 1 j); [apply rates_positive, path|].
  apply rate_at_most_limit; [lia|exact path].
Qed.

Lemma total_converges (m : nat) (f : nat -> nat -> R) (l : nat -> R) :
  (forall j, (j < m)%nat -> Un_cv (fun n => f n j) (l j)) -> Un_cv (fun n => total m (f n)) (total m l).
Proof.
  induction m as [|m IH]; intros close; simpl.
  - apply constant_converges.
  - apply (CV_plus (fun n => total m (f n)) (fun n => f n m)).
    + apply IH. intros j small. apply close. lia.
    + apply close. lia.
Qed.

Lemma loads_converge (i : nat) : Un_cv (fun n => load n i) (link_load limit i).
Proof.
  apply (total_converges paths (fun n => share (rate n) i)). intros j path. unfold share.
  destruct (crosses i j); [apply rates_converge, path|].
  apply constant_converges.
Qed.

(** A.2: the limit is feasible. *)
Theorem limit_at_most_capacity (i : nat) : (i < links)%nat -> link_load limit i <= capacity i.
Proof.
  intros link. apply (limit_le (fun n => load n i)) with (first := 1%nat); [apply loads_converge|].
  intros n later. apply load_at_most_capacity; assumption.
Qed.

Lemma highest_at_most_limit (n j : nat) : (1 <= n)%nat -> highest n j <= path_use limit j.
Proof.
  intros later. apply (largest_monotone links (fun i => crosses i j)). intros i link on.
  apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, capacity_positive, link|].
  apply link_load_le. intros k path _. apply rate_at_most_limit; assumption.
Qed.

Lemma limit_path_use (j : nat) : (j < paths)%nat -> path_use limit j = 1.
Proof.
  intros path. apply Rle_antisym.
  - apply path_use_le; [lra|]. intros i link on. apply link_use_at_most_one; [exact link|].
    apply limit_at_most_capacity, link.
  - pose proof (kept_share 1 j (le_n 1) path) as kept. set (factor := 1 - rate 1 j / widest j) in *.
    apply (limit_le (fun n => 1 - factor ^ n)) with (first := 0%nat).
    + apply geometric_converges with 1 factor; [exact kept|]. intros n.
      replace (1 - factor ^ n - 1) with (- factor ^ n) by ring.
      rewrite Rabs_Ropp, Rabs_pos_eq by (apply pow_le; lra). lra.
    + intros n _. pose proof (highest_at_most_limit (S n) j ltac:(lia)) as under.
      pose proof (room_shrinks_geometrically (S n) j ltac:(lia) path) as room. fold factor in room.
      replace (S n - 1)%nat with n in room by lia. pose proof (highest_positive 1 j path) as some.
      assert ((1 - highest 1 j) * factor ^ n <= 1 * factor ^ n).
      { apply Rmult_le_compat_r; [apply pow_le|]; lra. }
      lra.
Qed.

(** A.2: in the limit every path crosses a saturated link, Y_i = C_i. *)
Theorem every_path_ends_saturated (j : nat) :
  (j < paths)%nat -> exists i, (i < links)%nat /\ crosses i j = true /\ link_load limit i = capacity i.
Proof.
  intros path. destruct (path_use_attained limit j limit_positive path) as (i & link & on & same).
  exists i. repeat split; [exact link|exact on|].
  apply link_use_one; [exact link|]. rewrite same. apply limit_path_use, path.
Qed.

(** A.2, corrected: a rate's distance from its limit shrinks by the same factor as the room on the path. *)
Theorem rates_near_limit (n j : nat) :
  (1 <= n)%nat -> (j < paths)%nat ->
  limit j - rate n j <= widest j * (1 - highest 1 j) * (1 - rate 1 j / widest j) ^ (n - 1).
Proof.
  intros later path.
  destruct (path_use_attained (rate n) j (rates_positive n) path) as (i & link & on & same).
  fold (highest n j) in same.
  assert (limit j <= rate n j + (capacity i - load n i)) as room.
  { apply (limit_le (fun p => rate p j)) with (first := n); [apply rates_converge, path|]. intros p far.
    pose proof (load_rise n p i j later far path on) as rise.
    assert (load p i <= capacity i) by (apply load_at_most_capacity; [lia|exact link]). lra. }
  assert (load n i = highest n j * capacity i) as busy.
  { rewrite <- same. symmetry. apply link_use_times_capacity, link. }
  assert (capacity i * (1 - highest n j) <= widest j * (1 - highest n j)) as wide.
  { apply Rmult_le_compat_r; [pose proof (highest_at_most_one n j later); lra|].
    apply capacity_at_most_widest; assumption. }
  assert (widest j * (1 - highest n j)
    <= widest j * ((1 - highest 1 j) * (1 - rate 1 j / widest j) ^ (n - 1))) as bound.
  { apply Rmult_le_compat_l; [apply Rlt_le, widest_positive, path|].
    apply room_shrinks_geometrically; assumption. }
  lra.
Qed.

End Recursion.

(** * Pareto optimality *)

Section Optimality.

Context {net : Network}.

(** Feasible rates with a saturated link on every path are Pareto optimal (last step of A.2's proof). *)
Lemma saturated_paths_are_optimal (rates : nat -> R) :
  feasible rates ->
  (forall j, (j < paths)%nat -> exists i, (i < links)%nat /\ crosses i j = true /\ link_load rates i = capacity i) ->
  pareto_optimal rates.
Proof.
  intros fits saturated. split; [exact fits|]. intros other within above j path.
  destruct (saturated j path) as (i & link & on & full).
  apply Rnot_lt_le. intros more.
  assert (link_load rates i < link_load other i) as excess.
  { apply link_load_lt with j; [|exact path|exact on|exact more]. intros k bound _. apply above, bound. }
  pose proof (within i link). lra.
Qed.

(** Path j crosses a saturated link, or has room on all its links. *)
Lemma room_on_path (rates : nat -> R) (j n : nat) :
  (n <= links)%nat -> feasible rates ->
  (exists i, (i < n)%nat /\ crosses i j = true /\ link_load rates i = capacity i) \/
  (exists more, 0 < more /\ forall i, (i < n)%nat -> crosses i j = true -> link_load rates i + more <= capacity i).
Proof.
  intros within fits. induction n as [|n IH]; [right; exists 1; split; [lra|lia]|].
  destruct IH as [(i & link & on & full)|(more & positive & room)]; [lia| |].
  - left. exists i. repeat split; [lia|exact on|exact full].
  - destruct (crosses n j) eqn:on.
    + destruct (Rle_lt_or_eq_dec _ _ (fits n within)) as [slack|full].
      * right. exists (Rmin more (capacity n - link_load rates n)). split; [apply Rmin_pos; lra|].
        intros i link here. destruct (Nat.eq_dec i n) as [last|inner].
        -- subst i. pose proof (Rmin_r more (capacity n - link_load rates n)). lra.
        -- assert (link_load rates i + more <= capacity i) by (apply room; [lia|exact here]).
           pose proof (Rmin_l more (capacity n - link_load rates n)). lra.
      * left. exists n. repeat split; [lia|exact on|exact full].
    + right. exists more. split; [exact positive|]. intros i link here.
      destruct (Nat.eq_dec i n) as [last|inner]; [subst i; congruence|]. apply room; [lia|exact here].
Qed.

(** A.2: feasible rates are Pareto optimal if and only if every path crosses a saturated link. *)
Theorem optimal_iff_every_path_saturated (rates : nat -> R) :
  feasible rates ->
  pareto_optimal rates <->
  (forall j, (j < paths)%nat -> exists i, (i < links)%nat /\ crosses i j = true /\ link_load rates i = capacity i).
Proof.
  intros fits. split; [|apply saturated_paths_are_optimal, fits].
  intros (_ & best) j path.
  destruct (room_on_path rates j links (le_n links) fits) as [full|(more & positive & room)]; [exact full|].
  exfalso.
  assert (raised rates j more j <= rates j) as bad.
  { apply best; [| |exact path].
    - intros i link. rewrite raised_load by exact path.
      destruct (crosses i j) eqn:on; [apply room; assumption|pose proof (fits i link); lra].
    - intros k _. unfold raised. destruct (Nat.eqb k j); lra. }
  unfold raised in bad. rewrite Nat.eqb_refl in bad. lra.
Qed.

(** A.2: the recursion (5)-(6) converges, from any rates above 0, to a Pareto optimal allocation.
    Claim: hpcc-a2-limit. *)
Theorem limit_is_pareto_optimal {initial : Start net} : pareto_optimal limit.
Proof.
  apply saturated_paths_are_optimal; [exact limit_at_most_capacity|exact every_path_ends_saturated].
Qed.

(** A.2, the same in numbers: feasible rates that give no path less than the limit give none more. *)
Theorem no_path_gains_unless_another_loses {initial : Start net} (other : nat -> R) (j : nat) :
  feasible other -> (forall k, (k < paths)%nat -> limit k <= other k) -> (j < paths)%nat -> other j <= limit j.
Proof. intros fits above path. apply limit_is_pareto_optimal; assumption. Qed.

End Optimality.
