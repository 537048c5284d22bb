(** HPCC (SIGCOMM 2019), Appendix A.2: which links the recursion (5)-(6) saturates, when, and which it never does. *)

From Coq Require Import Reals Lra Lia Arith.
From fluidcc.shared Require Import limits sums.
From fluidcc.hpcc Require Import network pareto.

Local Open Scope R_scope.

Section Saturation.

Context {net : Network} {initial : Start net}.

(** ** Which links a step fills *)

Lemma used_utilisation (n i : nat) : (i < links)%nat -> used i -> 0 < utilisation n i.
Proof. intros link (j & path & on). apply link_use_positive with j; [apply rates_positive| | |]; assumption. Qed.

(** A path's share of a link's load after the step, times the link's utilisation before it, is its share before, if the
    link is the most loaded of the path. *)
Lemma share_kept (n i j : nat) :
  (j < paths)%nat -> (crosses i j = true -> utilisation n i = highest n j) ->
  utilisation n i * share (rate (S n)) i j = share (rate n) i j.
Proof.
  intros path busiest. unfold share. destruct (crosses i j); [|lra].
  rewrite rate_step, busiest by reflexivity. pose proof (highest_positive n j path). field. lra.
Qed.

(** A link is full after a step if, before it, it was the most loaded link of each of its paths. *)
Lemma saturates_if_busiest (n i : nat) :
  (i < links)%nat -> used i ->
  (forall j, (j < paths)%nat -> crosses i j = true -> utilisation n i = highest n j) -> load (S n) i = capacity i.
Proof.
  intros link some busiest. pose proof (used_utilisation n i link some) as positive.
  apply Rmult_eq_reg_l with (utilisation n i); [|lra].
  transitivity (load n i); [|symmetry; apply link_use_times_capacity, link].
  unfold load, link_load. rewrite <- total_scale. apply total_ext.
  intros j path. apply share_kept; [exact path|]. apply busiest, path.
Qed.

Lemma busiest_if_saturated (n i j : nat) :
  (i < links)%nat -> (j < paths)%nat -> crosses i j = true ->
  load (S n) i = capacity i -> utilisation n i = highest n j.
Proof.
  intros link path on full.
  assert (utilisation n i * load (S n) i = load n i) as same.
  { rewrite full. apply link_use_times_capacity, link. }
  unfold load, link_load in same. rewrite <- total_scale in same.
  assert (utilisation n i * share (rate (S n)) i j = share (rate n) i j) as term.
  { apply (total_le_eq paths (fun k => utilisation n i * share (rate (S n)) i k) (share (rate n) i)).
    - intros k small. apply share_step; assumption.
    - exact same.
    - exact path. }
  rewrite !share_on, rate_step in term by exact on.
  pose proof (highest_positive n j path) as most. pose proof (rates_positive n j path) as sign.
  apply Rmult_eq_reg_r with (rate n j / highest n j).
  - rewrite term. field. lra.
  - assert (0 < rate n j / highest n j) by (apply Rdiv_lt_0_compat; assumption). lra.
Qed.

(** A.2: a step saturates a link that is in use if and only if, before it, no link of any of its paths was more loaded.
    This holds from the start on, n = 0. *)
Theorem saturates_iff_busiest_on_its_paths (n i : nat) :
  (i < links)%nat -> used i ->
  load (S n) i = capacity i <->
  (forall j, (j < paths)%nat -> crosses i j = true -> utilisation n i = highest n j).
Proof.
  intros link some. split; [|apply saturates_if_busiest; assumption].
  intros full j path on. apply busiest_if_saturated; assumption.
Qed.

(** A.2, proof: the most loaded link of the network is saturated by the next step.
    Claim: hpcc-a2-saturated. *)
Theorem busiest_link_saturates (n k : nat) :
  (k < links)%nat -> used k -> (forall i, (i < links)%nat -> utilisation n i <= utilisation n k) ->
  load (S n) k = capacity k.
Proof.
  intros link some busiest. apply saturates_if_busiest; [exact link|exact some|].
  intros j path on. apply Rle_antisym.
  - apply link_use_at_most_path_use; assumption.
  - apply path_use_le; [apply Rlt_le, used_utilisation; assumption|].
    intros i other _. apply busiest, other.
Qed.

(** A.2 and 3.2: a network of one link has it at its target load after one step, and from then on. *)
Theorem single_link_full_after_one_step (n : nat) :
  links = 1%nat -> (1 <= n)%nat -> used 0 -> load n 0 = capacity 0.
Proof.
  intros one later some. destruct n as [|n]; [lia|].
  apply busiest_link_saturates; [lia|exact some|].
  intros i link. assert (i = 0)%nat by lia. subst i. lra.
Qed.

(** ** What is saturated stays so *)

(** A path with a saturated link has m_j = 1: it is frozen. *)
Lemma saturated_link_freezes (n i j : nat) :
  (1 <= n)%nat -> (i < links)%nat -> crosses i j = true -> load n i = capacity i -> highest n j = 1.
Proof.
  intros later link on full. apply Rle_antisym; [apply highest_at_most_one, later|].
  rewrite <- (proj2 (link_use_one (rate n) i link) full). apply link_use_at_most_path_use; assumption.
Qed.

Lemma saturated_next (n i : nat) :
  (1 <= n)%nat -> (i < links)%nat -> load n i = capacity i -> load (S n) i = capacity i.
Proof.
  intros later link full. apply Rle_antisym; [apply load_at_most_capacity; [lia|exact link]|].
  rewrite <- full. apply loads_never_fall; [exact later|lia].
Qed.

(** A.2, proof: after the first step, a link that is saturated stays saturated. *)
Theorem saturated_link_stays_saturated (n p i : nat) :
  (1 <= n)%nat -> (n <= p)%nat -> (i < links)%nat -> load n i = capacity i -> load p i = capacity i.
Proof.
  intros later order link full. induction order as [|p order IH]; [exact full|].
  apply saturated_next; [lia|exact link|exact IH].
Qed.

(** A.2 and 3.2: a bottleneck, a link that is the most loaded one of each of its paths at the start, is at its target
    load after one step, and from then on: the single link of a network is one, and so is the single bottleneck of an
    incast.
    Claim: hpcc-a2-one-step. *)
Theorem bottleneck_full_after_one_step (n i : nat) :
  (1 <= n)%nat -> (i < links)%nat -> used i ->
  (forall j, (j < paths)%nat -> crosses i j = true -> utilisation 0 i = highest 0 j) -> load n i = capacity i.
Proof.
  intros later link some busiest. apply saturated_link_stays_saturated with 1%nat; [lia|exact later|exact link|].
  apply saturates_iff_busiest_on_its_paths; assumption.
Qed.

(** A.2, proof: after the first step, the rates of paths through a saturated link no longer change. *)
Theorem rates_through_saturated_link_stay (n p i j : nat) :
  (1 <= n)%nat -> (n <= p)%nat -> (i < links)%nat -> (j < paths)%nat -> crosses i j = true ->
  load n i = capacity i -> rate p j = rate n j.
Proof.
  intros later order link path on full. induction order as [|p order IH]; [reflexivity|].
  rewrite rate_step, (saturated_link_freezes p i j); [lra|lia|exact link|exact on|].
  apply saturated_link_stays_saturated with n; assumption.
Qed.

(** A.2, proof: after the first step, the rates of paths through a saturated link are at their limits. *)
Theorem rates_through_saturated_link_are_final (n i j : nat) :
  (1 <= n)%nat -> (i < links)%nat -> (j < paths)%nat -> crosses i j = true -> load n i = capacity i ->
  limit j = rate n j.
Proof.
  intros later link path on full. apply Rle_antisym; [|apply rate_at_most_limit; assumption].
  apply (limit_le (fun p => rate p j)) with (first := n); [apply rates_converge, path|].
  intros p far. rewrite (rates_through_saturated_link_stay n p i j) by assumption. lra.
Qed.

Lemma rate_stops_iff_saturated (n j : nat) :
  (j < paths)%nat -> rate (S n) j = rate n j <-> highest n j = 1.
Proof.
  intros path. pose proof (highest_positive n j path) as most. pose proof (rates_positive n j path) as sign.
  rewrite rate_step. split; [|intros one; rewrite one; lra].
  intros same. apply Rmult_eq_reg_l with (rate n j); [|lra].
  rewrite <- same at 1. field. lra.
Qed.

(** A.2: after the first step, rates stop changing if and only if they are Pareto optimal. *)
Theorem rates_stop_iff_pareto_optimal (n : nat) :
  (1 <= n)%nat -> (forall j, (j < paths)%nat -> rate (S n) j = rate n j) <-> pareto_optimal (rate n).
Proof.
  intros later.
  assert (feasible (rate n)) as fits by (intros i link; apply load_at_most_capacity; assumption).
  rewrite (optimal_iff_every_path_saturated (rate n) fits). split; intros all j path.
  - pose proof (proj1 (rate_stops_iff_saturated n j path) (all j path)) as one.
    destruct (path_use_attained (rate n) j (rates_positive n) path) as (i & link & on & same).
    exists i. repeat split; [exact link|exact on|].
    apply link_use_one; [exact link|]. rewrite same. exact one.
  - apply rate_stops_iff_saturated; [exact path|].
    destruct (all j path) as (i & link & on & full). apply saturated_link_freezes with i; assumption.
Qed.

(** ** What never saturates *)

Lemma unsaturated_next (n i k j : nat) :
  (1 <= n)%nat -> (i < links)%nat -> (k < links)%nat -> (j < paths)%nat ->
  crosses k j = true -> crosses i j = true -> load n k = capacity k -> load n i < capacity i ->
  load (S n) i < capacity i.
Proof.
  intros later link frozen path through on full room.
  assert (load (S n) i <= capacity i) as most by (apply load_at_most_capacity; [lia|exact link]).
  destruct (Rle_lt_or_eq_dec _ _ most) as [below|reached]; [exact below|].
  pose proof (busiest_if_saturated n i j link path on reached) as busy.
  rewrite (saturated_link_freezes n k j later frozen through full) in busy.
  apply (link_use_one (rate n) i link) in busy. fold (load n i) in busy. lra.
Qed.

(** A.2, against Lemma (iii): after the first step, a link with room, one of whose paths crosses a saturated link k, is
    never saturated, however many steps are taken. *)
Theorem link_with_frozen_path_never_saturates (n p i k j : nat) :
  (1 <= n)%nat -> (n <= p)%nat -> (i < links)%nat -> (k < links)%nat -> (j < paths)%nat ->
  crosses k j = true -> crosses i j = true -> load n k = capacity k -> load n i < capacity i ->
  load p i < capacity i.
Proof.
  intros later order link frozen path through on full room.
  induction order as [|p order IH]; [exact room|].
  apply (unsaturated_next p i k j); try assumption; [lia|].
  apply saturated_link_stays_saturated with n; assumption.
Qed.

(** ** The last free paths of a link *)

(** x(n+1) = x(n) C / (F + x(n)) gives 1/x(n) - 1/(C - F) = (F/C)^(n-1) (1/x(1) - 1/(C - F)). *)
Lemma closed_form (x : nat -> R) (room held : R) (n : nat) :
  0 <= held < room -> (forall m, (1 <= m)%nat -> 0 < x m) ->
  (forall m, (1 <= m)%nat -> x (S m) = x m / ((held + x m) / room)) ->
  (1 <= n)%nat -> / x n - / (room - held) = (held / room) ^ (n - 1) * (/ x 1%nat - / (room - held)).
Proof.
  intros sizes positive step later. induction n as [|n IH]; [lia|clear later].
  destruct n as [|n]; [simpl pow; lra|].
  assert (1 <= S n)%nat as later by lia.
  replace (S (S n) - 1)%nat with (S (S n - 1)) by lia.
  rewrite <- tech_pow_Rmult, Rmult_assoc, <- (IH later), (step (S n) later).
  pose proof (positive (S n) later) as sign. field. repeat split; lra.
Qed.

(** A.2, corrected: where, from the first step on, some paths of link i are frozen and link i is the most loaded one of
    all the others, the load x of these tends to what the load F of the frozen ones leaves, X = C_i - F, by the factor
    F / C_i a step: 1/x(n) - 1/X = (F/C_i)^(n-1) (1/x(1) - 1/X). *)
Theorem free_load_closed_form (n i j : nat) (frozen : nat -> bool) :
  (1 <= n)%nat -> (i < links)%nat -> (j < paths)%nat -> crosses i j = true -> frozen j = false ->
  (forall k m, (1 <= m)%nat -> (k < paths)%nat -> crosses i k = true -> frozen k = true -> rate m k = rate 1 k) ->
  (forall k m, (1 <= m)%nat -> (k < paths)%nat -> crosses i k = true -> frozen k = false ->
    highest m k = utilisation m i) ->
  / free_load (rate n) frozen i - / (capacity i - held_load (rate 1) frozen i) =
  (held_load (rate 1) frozen i / capacity i) ^ (n - 1) *
  (/ free_load (rate 1) frozen i - / (capacity i - held_load (rate 1) frozen i)).
Proof.
  intros later link path on free still busiest.
  apply (closed_form (fun m => free_load (rate m) frozen i)); [| | |exact later].
  - pose proof (free_load_positive (rate 1) frozen i j (rates_positive 1) path on free) as sign.
    pose proof (load_at_most_capacity 1 i (le_n 1) link) as most.
    unfold load in most. rewrite (two_parts (rate 1) frozen) in most. split; [|lra].
    apply total_nonneg. intros k small. destruct (frozen k); [|lra].
    apply share_nonneg; [apply all_positive_nonneg, rates_positive|exact small].
  - intros m _. apply free_load_positive with j; [apply rates_positive|exact path|exact on|exact free].
  - intros m beyond.
    assert (held_load (rate m) frozen i = held_load (rate 1) frozen i) as held.
    { apply total_ext. intros k small. destruct (frozen k) eqn:ice; [|reflexivity].
      unfold share. destruct (crosses i k) eqn:here; [apply still; assumption|reflexivity]. }
    replace ((held_load (rate 1) frozen i + free_load (rate m) frozen i) / capacity i) with (utilisation m i).
    2:{ rewrite <- held. unfold utilisation, link_use. rewrite (two_parts (rate m) frozen). reflexivity. }
    pose proof (link_use_positive (rate m) i j (rates_positive m) link path on) as some. fold (utilisation m i) in some.
    unfold free_load, Rdiv. rewrite (Rmult_comm (total _ _)), <- total_scale.
    apply total_ext. intros k small. destruct (frozen k) eqn:ice; [lra|].
    unfold share. destruct (crosses i k) eqn:here; [|lra].
    rewrite rate_step, (busiest k m) by assumption. unfold Rdiv. apply Rmult_comm.
Qed.

Lemma one_free_path (rates : nat -> R) (i j : nat) :
  (j < paths)%nat -> crosses i j = true -> free_load rates (fun k => negb (Nat.eqb k j)) i = rates j.
Proof.
  intros path on. unfold free_load. rewrite (total_single paths _ j path).
  - rewrite Nat.eqb_refl. simpl. apply share_on, on.
  - intros k _ apart. apply Nat.eqb_neq in apart. rewrite apart. reflexivity.
Qed.

(** The same where path j alone is free on link i, and the others hold F = Y_i(1) - R_j(1) of it. *)
Theorem last_free_path_closed_form (n i j : nat) :
  (1 <= n)%nat -> (i < links)%nat -> (j < paths)%nat -> crosses i j = true ->
  (forall k m, (1 <= m)%nat -> (k < paths)%nat -> crosses i k = true -> k <> j -> rate m k = rate 1 k) ->
  (forall m, (1 <= m)%nat -> highest m j = utilisation m i) ->
  / rate n j - / (capacity i - (load 1 i - rate 1 j)) =
  ((load 1 i - rate 1 j) / capacity i) ^ (n - 1) * (/ rate 1 j - / (capacity i - (load 1 i - rate 1 j))).
Proof.
  intros later link path on still busiest.
  set (frozen := fun k => negb (Nat.eqb k j)).
  assert (load 1 i - rate 1 j = held_load (rate 1) frozen i) as held.
  { unfold load. rewrite (two_parts (rate 1) frozen). unfold frozen. rewrite one_free_path by assumption. lra. }
  rewrite held, <- (one_free_path (rate n) i j path on), <- (one_free_path (rate 1) i j path on).
  apply (free_load_closed_form n i j frozen); try assumption.
  - unfold frozen. rewrite Nat.eqb_refl. reflexivity.
  - intros k m beyond small here ice. apply still; try assumption.
    unfold frozen in ice. apply Bool.negb_true_iff, Nat.eqb_neq in ice. exact ice.
  - intros k m beyond _ _ ice. unfold frozen in ice. apply Bool.negb_false_iff, Nat.eqb_eq in ice. subst k.
    apply busiest, beyond.
Qed.

(** ** What the start decides *)

(** A.2: the ratio of the rates of two paths with the same links never changes. *)
Theorem rates_on_the_same_links_keep_their_ratio (n a b : nat) :
  (a < paths)%nat -> (b < paths)%nat -> (forall i, (i < links)%nat -> crosses i a = crosses i b) ->
  rate n a * start b = rate n b * start a.
Proof.
  intros first second same. induction n as [|n IH]; [simpl; lra|].
  assert (highest n b = highest n a) as equal.
  { apply Rle_antisym; apply path_use_le; try apply path_use_nonneg; intros i link on;
      apply link_use_at_most_path_use; try exact link; rewrite <- on; [|symmetry]; apply same, link. }
  rewrite !rate_step, equal. pose proof (highest_positive n a first) as most.
  apply Rmult_eq_reg_r with (highest n a); [|lra].
  replace (rate n a / highest n a * start b * highest n a) with (rate n a * start b) by (field; lra).
  rewrite IH. field. lra.
Qed.

(** A.2: "the allocation will not in general be fair, and will depend on R(0)": in the limit two paths with the same
    links have rates in proportion to those at the start.
    Claim: hpcc-a2-start. *)
Theorem limit_keeps_the_ratio_of_the_start (a b : nat) :
  (a < paths)%nat -> (b < paths)%nat -> (forall i, (i < links)%nat -> crosses i a = crosses i b) ->
  limit a * start b = limit b * start a.
Proof.
  intros first second same.
  assert (forall j c, (j < paths)%nat -> Un_cv (fun n => rate n j * c) (limit j * c)) as scaled.
  { intros j c path. apply CV_mult; [apply rates_converge, path|apply constant_converges]. }
  apply UL_sequence with (fun n => rate n a * start b); [apply scaled, first|].
  intros eps positive. destruct (scaled b (start a) second eps positive) as (N & near).
  exists N. intros n far. rewrite (rates_on_the_same_links_keep_their_ratio n a b first second same). apply near, far.
Qed.

End Saturation.
