(** Networks of HPCC (SIGCOMM 2019), Appendix A.2 and A.3: links, paths, capacities, and the load of links.

    Links and paths are numbered from 0; a function of a link or of a path counts only below [links] or [paths]. *)

From Coq Require Import Reals Lra Lia Arith.
From fluidcc.shared Require Import sums.

Local Open Scope R_scope.

(** * Networks *)

(** Resources i = 0, ..., links - 1 and paths j = 0, ..., paths - 1 (A.2). [crosses i j] is A_ij = 1, [capacity i] is
    C_i [byte/s], the target capacity; every path has a link: no column of A is zero. *)
Class Network : Type := {
  links : nat;
  paths : nat;
  crosses : nat -> nat -> bool;
  capacity : nat -> R;
  capacity_positive : forall i, (i < links)%nat -> 0 < capacity i;
  path_has_link : forall j, (j < paths)%nat -> exists i, (i < links)%nat /\ crosses i j = true
}.

Section Loads.

Context {net : Network}.

(** Rates R_j [byte/s] of which each is above 0, as at the start, R(0). *)
Definition all_positive (rates : nat -> R) : Prop := forall j, (j < paths)%nat -> 0 < rates j.

Definition none_negative (rates : nat -> R) : Prop := forall j, (j < paths)%nat -> 0 <= rates j.

(** What path j brings to link i: A_ij R_j [byte/s]. *)
Definition share (rates : nat -> R) (i j : nat) : R := if crosses i j then rates j else 0.

(** Y_i = sum over j of A_ij R_j [byte/s], (5). *)
Definition link_load (rates : nat -> R) (i : nat) : R := total paths (share rates i).

(** U_i = Y_i / C_i. *)
Definition link_use (rates : nat -> R) (i : nat) : R := link_load rates i / capacity i.

(** m_j = max over i of A_ij Y_i / C_i: the utilisation of path j's most loaded link, the denominator of (6). *)
Definition path_use (rates : nat -> R) (j : nat) : R := largest links (fun i => crosses i j) (link_use rates).

(** The largest capacity [byte/s] of path j's links. *)
Definition widest (j : nat) : R := largest links (fun i => crosses i j) capacity.

(** No link is loaded beyond its capacity: Y <= C. *)
Definition feasible (rates : nat -> R) : Prop := forall i, (i < links)%nat -> link_load rates i <= capacity i.

(** A link that some path crosses. *)
Definition used (i : nat) : Prop := exists j, (j < paths)%nat /\ crosses i j = true.

Lemma all_positive_nonneg (rates : nat -> R) : all_positive rates -> none_negative rates.
Proof. intros sign j small. apply Rlt_le, sign, small. Qed.

Lemma share_on (rates : nat -> R) (i j : nat) : crosses i j = true -> share rates i j = rates j.
Proof. unfold share. intros on. rewrite on. reflexivity. Qed.

Lemma share_off (rates : nat -> R) (i j : nat) : crosses i j = false -> share rates i j = 0.
Proof. unfold share. intros off. rewrite off. reflexivity. Qed.

Lemma share_nonneg (rates : nat -> R) (i j : nat) : none_negative rates -> (j < paths)%nat -> 0 <= share rates i j.
Proof. unfold share. intros sign small. destruct (crosses i j); [apply sign, small|lra]. Qed.

Lemma link_load_nonneg (rates : nat -> R) (i : nat) : none_negative rates -> 0 <= link_load rates i.
Proof. intros sign. apply total_nonneg. intros j small. apply share_nonneg; assumption. Qed.

Lemma link_load_positive (rates : nat -> R) (i j : nat) :
  all_positive rates -> (j < paths)%nat -> crosses i j = true -> 0 < link_load rates i.
Proof.
  intros sign small on. apply total_pos with j; [|exact small|].
  - intros k bound. apply share_nonneg; [apply all_positive_nonneg, sign|exact bound].
  - rewrite share_on by exact on. apply sign, small.
Qed.

(** A path's rate is at most the load of each of its links. *)
Lemma rate_at_most_load (rates : nat -> R) (i j : nat) :
  none_negative rates -> (j < paths)%nat -> crosses i j = true -> rates j <= link_load rates i.
Proof.
  intros sign small on. rewrite <- (share_on rates i j on).
  apply (total_term paths (share rates i) j); [|exact small].
  intros k bound. apply share_nonneg; assumption.
Qed.

Lemma link_load_le (before after : nat -> R) (i : nat) :
  (forall j, (j < paths)%nat -> crosses i j = true -> before j <= after j) -> link_load before i <= link_load after i.
Proof.
  intros below. apply total_le. intros j small. unfold share.
  destruct (crosses i j) eqn:on; [apply below; assumption|lra].
Qed.

Lemma link_load_lt (before after : nat -> R) (i k : nat) :
  (forall j, (j < paths)%nat -> crosses i j = true -> before j <= after j) ->
  (k < paths)%nat -> crosses i k = true -> before k < after k -> link_load before i < link_load after i.
Proof.
  intros below small on strict. apply total_lt with k; [|exact small|rewrite !share_on by exact on; exact strict].
  intros j bound. unfold share. destruct (crosses i j) eqn:here; [apply below; assumption|lra].
Qed.

Lemma link_load_scale (c : R) (rates : nat -> R) (i : nat) : link_load (fun j => c * rates j) i = c * link_load rates i.
Proof.
  unfold link_load. rewrite <- total_scale. apply total_ext. intros j _. unfold share. destruct (crosses i j); lra.
Qed.

Lemma link_load_minus (first second : nat -> R) (i : nat) :
  link_load (fun j => first j - second j) i = link_load first i - link_load second i.
Proof.
  unfold link_load. rewrite <- total_minus. apply total_ext. intros j _. unfold share. destruct (crosses i j); lra.
Qed.

(** Rates of which path j's is raised by [more]. *)
Definition raised (rates : nat -> R) (j : nat) (more : R) (k : nat) : R :=
  if Nat.eqb k j then rates k + more else rates k.

Lemma raised_load (rates : nat -> R) (j : nat) (more : R) (i : nat) :
  (j < paths)%nat -> link_load (raised rates j more) i = link_load rates i + (if crosses i j then more else 0).
Proof.
  intros path.
  assert (link_load (fun k => raised rates j more k - rates k) i = (if crosses i j then more else 0)) as difference.
  { unfold link_load. rewrite (total_single paths _ j path).
    - unfold share, raised. rewrite Nat.eqb_refl. destruct (crosses i j); lra.
    - intros k _ apart. unfold share, raised. apply Nat.eqb_neq in apart. rewrite apart. destruct (crosses i k); lra. }
  rewrite link_load_minus in difference. lra.
Qed.

(** Prices of links: their sum over a path, times its rate, summed over paths, is price times load, summed over
    links. *)
Lemma prices_and_loads (price rates : nat -> R) :
  total paths (fun j => rates j * total links (fun i => if crosses i j then price i else 0)) =
  total links (fun i => price i * link_load rates i).
Proof.
  rewrite (total_ext links _ (fun i => total paths (fun j => price i * share rates i j))).
  - rewrite total_swap. apply total_ext. intros j _. rewrite <- total_scale. apply total_ext. intros i _.
    unfold share. destruct (crosses i j); lra.
  - intros i _. unfold link_load. rewrite total_scale. reflexivity.
Qed.

Lemma link_use_nonneg (rates : nat -> R) (i : nat) : none_negative rates -> (i < links)%nat -> 0 <= link_use rates i.
Proof.
  intros sign small. unfold link_use. apply Rmult_le_pos; [apply link_load_nonneg, sign|].
  apply Rlt_le, Rinv_0_lt_compat, capacity_positive, small.
Qed.

Lemma link_use_positive (rates : nat -> R) (i j : nat) :
  all_positive rates -> (i < links)%nat -> (j < paths)%nat -> crosses i j = true -> 0 < link_use rates i.
Proof.
  intros sign link path on. unfold link_use. apply Rdiv_lt_0_compat; [|apply capacity_positive, link].
  apply link_load_positive with j; assumption.
Qed.

Lemma link_use_times_capacity (rates : nat -> R) (i : nat) :
  (i < links)%nat -> link_use rates i * capacity i = link_load rates i.
Proof. intros small. unfold link_use. pose proof (capacity_positive i small). field. lra. Qed.

(** U_i <= 1 says the same as Y_i <= C_i, and U_i = 1 the same as Y_i = C_i. *)
Lemma link_use_at_most_one (rates : nat -> R) (i : nat) :
  (i < links)%nat -> link_use rates i <= 1 <-> link_load rates i <= capacity i.
Proof.
  intros small. pose proof (capacity_positive i small) as room. rewrite <- (link_use_times_capacity rates i small).
  split; intros most.
  - rewrite <- (Rmult_1_l (capacity i)) at 2. apply Rmult_le_compat_r; lra.
  - apply Rmult_le_reg_r with (capacity i); lra.
Qed.

Lemma link_use_one (rates : nat -> R) (i : nat) :
  (i < links)%nat -> link_use rates i = 1 <-> link_load rates i = capacity i.
Proof.
  intros small. pose proof (capacity_positive i small) as room. rewrite <- (link_use_times_capacity rates i small).
  split; intros same; [rewrite same; lra|].
  apply Rmult_eq_reg_r with (capacity i); lra.
Qed.

Lemma link_use_at_most_path_use (rates : nat -> R) (i j : nat) :
  (i < links)%nat -> crosses i j = true -> link_use rates i <= path_use rates j.
Proof. intros small on. apply (largest_ge links (fun k => crosses k j)); assumption. Qed.

Lemma path_use_nonneg (rates : nat -> R) (j : nat) : 0 <= path_use rates j.
Proof. apply largest_nonneg. Qed.

Lemma path_use_positive (rates : nat -> R) (j : nat) : all_positive rates -> (j < paths)%nat -> 0 < path_use rates j.
Proof.
  intros sign small. destruct (path_has_link j small) as (i & link & on).
  apply Rlt_le_trans with (link_use rates i).
  - apply link_use_positive with j; assumption.
  - apply link_use_at_most_path_use; assumption.
Qed.

(** One of path j's links is its most loaded one. *)
Lemma path_use_attained (rates : nat -> R) (j : nat) :
  all_positive rates -> (j < paths)%nat ->
  exists i, (i < links)%nat /\ crosses i j = true /\ link_use rates i = path_use rates j.
Proof.
  intros sign small.
  apply (largest_attained links (fun i => crosses i j)), (path_use_positive rates j); assumption.
Qed.

Lemma path_use_le (rates : nat -> R) (j : nat) (bound : R) :
  0 <= bound -> (forall i, (i < links)%nat -> crosses i j = true -> link_use rates i <= bound) ->
  path_use rates j <= bound.
Proof. apply (largest_le links (fun i => crosses i j)). Qed.

Lemma capacity_at_most_widest (i j : nat) : (i < links)%nat -> crosses i j = true -> capacity i <= widest j.
Proof. intros small on. apply (largest_ge links (fun k => crosses k j)); assumption. Qed.

Lemma widest_positive (j : nat) : (j < paths)%nat -> 0 < widest j.
Proof.
  intros small. destruct (path_has_link j small) as (i & link & on).
  apply Rlt_le_trans with (capacity i); [apply capacity_positive, link|].
  apply capacity_at_most_widest; assumption.
Qed.

(** The load [byte/s] of frozen paths on link i, and of the free ones. *)
Definition held_load (rates : nat -> R) (frozen : nat -> bool) (i : nat) : R :=
  total paths (fun j => if frozen j then share rates i j else 0).

Definition free_load (rates : nat -> R) (frozen : nat -> bool) (i : nat) : R :=
  total paths (fun j => if frozen j then 0 else share rates i j).

Lemma two_parts (rates : nat -> R) (frozen : nat -> bool) (i : nat) :
  link_load rates i = held_load rates frozen i + free_load rates frozen i.
Proof.
  unfold held_load, free_load. rewrite <- total_plus. apply total_ext. intros j _. destruct (frozen j); lra.
Qed.

Lemma held_at_most_load (rates : nat -> R) (frozen : nat -> bool) (i : nat) :
  none_negative rates -> held_load rates frozen i <= link_load rates i.
Proof.
  intros sign. apply total_le. intros j path. destruct (frozen j); [lra|]. apply share_nonneg; assumption.
Qed.

Lemma free_load_positive (rates : nat -> R) (frozen : nat -> bool) (i j : nat) :
  all_positive rates -> (j < paths)%nat -> crosses i j = true -> frozen j = false -> 0 < free_load rates frozen i.
Proof.
  intros sign path on free. apply total_pos with j; [|exact path|].
  - intros k small. destruct (frozen k); [lra|]. apply share_nonneg; [apply all_positive_nonneg, sign|exact small].
  - rewrite free, share_on by exact on. apply sign, path.
Qed.

End Loads.
