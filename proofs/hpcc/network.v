(** Networks of HPCC (SIGCOMM 2019), Appendix A.2 and A.3: links, paths, capacities, and the load of links.

    Links and paths are numbered from 0; a function of a link or of a path counts only below [links] or [paths]. *)

From Coq Require Import Reals Lra Lia Arith.

Local Open Scope R_scope.

(** * Sums and maxima of finitely many numbers *)

(** The sum of f 0, ..., f (n - 1). *)
Fixpoint total (n : nat) (f : nat -> R) : R :=
  match n with
  | O => 0
  | S m => total m f + f m
  end.

(** The largest f i of those i below n that are [chosen]; 0 where none of these is above 0. *)
Fixpoint largest (n : nat) (chosen : nat -> bool) (f : nat -> R) : R :=
  match n with
  | O => 0
  | S m => if chosen m then Rmax (largest m chosen f) (f m) else largest m chosen f
  end.

Lemma total_ext (n : nat) (f g : nat -> R) :
  (forall j, (j < n)%nat -> f j = g j) -> total n f = total n g.
Proof.
  induction n as [|n IH]; intros same; simpl; [reflexivity|].
  rewrite IH by (intros j small; apply same; lia).
  rewrite (same n) by lia. reflexivity.
Qed.

Lemma total_le (n : nat) (f g : nat -> R) :
  (forall j, (j < n)%nat -> f j <= g j) -> total n f <= total n g.
Proof.
  induction n as [|n IH]; intros below; simpl; [lra|].
  apply Rplus_le_compat.
  - apply IH. intros j small. apply below. lia.
  - apply below. lia.
Qed.

Lemma total_lt (n : nat) (f g : nat -> R) (k : nat) :
  (forall j, (j < n)%nat -> f j <= g j) -> (k < n)%nat -> f k < g k -> total n f < total n g.
Proof.
  induction n as [|n IH]; intros below bound strict; simpl; [lia|].
  destruct (Nat.eq_dec k n) as [last|inner].
  - subst k. apply Rplus_le_lt_compat; [|exact strict].
    apply total_le. intros j small. apply below. lia.
  - apply Rplus_lt_le_compat; [|apply below; lia].
    apply IH; [|lia|exact strict]. intros j small. apply below. lia.
Qed.

Lemma total_nonneg (n : nat) (f : nat -> R) :
  (forall j, (j < n)%nat -> 0 <= f j) -> 0 <= total n f.
Proof.
  induction n as [|n IH]; intros above; simpl; [lra|].
  apply Rplus_le_le_0_compat.
  - apply IH. intros j small. apply above. lia.
  - apply above. lia.
Qed.

Lemma total_pos (n : nat) (f : nat -> R) (k : nat) :
  (forall j, (j < n)%nat -> 0 <= f j) -> (k < n)%nat -> 0 < f k -> 0 < total n f.
Proof.
  induction n as [|n IH]; intros above bound strict; simpl; [lia|].
  destruct (Nat.eq_dec k n) as [last|inner].
  - subst k. apply Rplus_le_lt_0_compat; [|exact strict].
    apply total_nonneg. intros j small. apply above. lia.
  - apply Rplus_lt_le_0_compat; [|apply above; lia].
    apply IH; [|lia|exact strict]. intros j small. apply above. lia.
Qed.

(** One term of a sum of numbers that are not negative is at most the sum. *)
Lemma total_term (n : nat) (f : nat -> R) (k : nat) :
  (forall j, (j < n)%nat -> 0 <= f j) -> (k < n)%nat -> f k <= total n f.
Proof.
  induction n as [|n IH]; intros above bound; simpl; [lia|].
  destruct (Nat.eq_dec k n) as [last|inner].
  - subst k. assert (0 <= total n f) by (apply total_nonneg; intros j small; apply above; lia). lra.
  - assert (f k <= total n f) by (apply IH; [intros j small; apply above; lia|lia]).
    assert (0 <= f n) by (apply above; lia). lra.
Qed.

(** Sums of terms in order are equal only if the terms are. *)
Lemma total_le_eq (n : nat) (f g : nat -> R) :
  (forall j, (j < n)%nat -> f j <= g j) -> total n f = total n g -> forall j, (j < n)%nat -> f j = g j.
Proof.
  intros below same j small.
  destruct (Rle_lt_or_eq_dec (f j) (g j) (below j small)) as [strict|equal]; [|exact equal].
  pose proof (total_lt n f g j below small strict). lra.
Qed.

Lemma total_zero (n : nat) : total n (fun _ => 0) = 0.
Proof. induction n as [|n IH]; simpl; [reflexivity|]. rewrite IH. lra. Qed.

Lemma total_const (n : nat) (c : R) : total n (fun _ => c) = INR n * c.
Proof. induction n as [|n IH]; [simpl; lra|]. rewrite S_INR. simpl total. rewrite IH. lra. Qed.

Lemma total_scale (n : nat) (c : R) (f : nat -> R) : total n (fun j => c * f j) = c * total n f.
Proof. induction n as [|n IH]; simpl; [lra|]. rewrite IH. lra. Qed.

Lemma total_plus (n : nat) (f g : nat -> R) : total n (fun j => f j + g j) = total n f + total n g.
Proof. induction n as [|n IH]; simpl; [lra|]. rewrite IH. lra. Qed.

Lemma total_minus (n : nat) (f g : nat -> R) : total n (fun j => f j - g j) = total n f - total n g.
Proof. induction n as [|n IH]; simpl; [lra|]. rewrite IH. lra. Qed.

(** The order of two sums does not matter. *)
Lemma total_swap (n m : nat) (f : nat -> nat -> R) :
  total n (fun i => total m (fun j => f i j)) = total m (fun j => total n (fun i => f i j)).
Proof.
  induction n as [|n IH]; simpl; [symmetry; apply total_zero|].
  rewrite IH, total_plus. reflexivity.
Qed.

(** A sum of which one term may differ from 0. *)
Lemma total_single (n : nat) (f : nat -> R) (k : nat) :
  (k < n)%nat -> (forall j, (j < n)%nat -> j <> k -> f j = 0) -> total n f = f k.
Proof.
  induction n as [|n IH]; intros bound others; simpl; [lia|].
  destruct (Nat.eq_dec k n) as [last|inner].
  - subst k. rewrite (total_ext n f (fun _ => 0)) by (intros j small; apply others; lia).
    rewrite total_zero. lra.
  - rewrite IH; [|lia|intros j small apart; apply others; lia].
    rewrite (others n) by lia. lra.
Qed.

(** A finite maximum is at most a bound that is not negative if and only if each of its numbers is. *)
Lemma largest_le (n : nat) (chosen : nat -> bool) (f : nat -> R) (bound : R) :
  0 <= bound -> (forall i, (i < n)%nat -> chosen i = true -> f i <= bound) -> largest n chosen f <= bound.
Proof.
  intros sign. induction n as [|n IH]; intros below; simpl; [exact sign|].
  assert (largest n chosen f <= bound) as inner by (apply IH; intros i small; apply below; lia).
  destruct (chosen n) eqn:here; [|exact inner].
  apply Rmax_lub; [exact inner|]. apply below; [lia|exact here].
Qed.

Lemma largest_ge (n : nat) (chosen : nat -> bool) (f : nat -> R) (i : nat) :
  (i < n)%nat -> chosen i = true -> f i <= largest n chosen f.
Proof.
  induction n as [|n IH]; intros small member; simpl; [lia|].
  destruct (Nat.eq_dec i n) as [last|inner].
  - subst i. rewrite member. apply Rmax_r.
  - assert (f i <= largest n chosen f) as before by (apply IH; [lia|exact member]).
    destruct (chosen n); [|exact before].
    apply Rle_trans with (1 := before). apply Rmax_l.
Qed.

Lemma largest_nonneg (n : nat) (chosen : nat -> bool) (f : nat -> R) : 0 <= largest n chosen f.
Proof.
  induction n as [|n IH]; simpl; [lra|].
  destruct (chosen n); [|exact IH].
  apply Rle_trans with (1 := IH). apply Rmax_l.
Qed.

(** A maximum above 0 is one of its numbers. *)
Lemma largest_attained (n : nat) (chosen : nat -> bool) (f : nat -> R) :
  0 < largest n chosen f -> exists i, (i < n)%nat /\ chosen i = true /\ f i = largest n chosen f.
Proof.
  induction n as [|n IH]; simpl; intros above; [lra|].
  assert (0 < largest n chosen f ->
    exists i, (i < S n)%nat /\ chosen i = true /\ f i = largest n chosen f) as earlier.
  { intros sign. destruct (IH sign) as (i & small & member & same). exists i. repeat split; [lia| |]; assumption. }
  destruct (chosen n) eqn:here; [|apply earlier, above].
  revert above. unfold Rmax. destruct (Rle_dec (largest n chosen f) (f n)) as [up|down]; intros above.
  - exists n. repeat split; [lia|exact here].
  - apply earlier, above.
Qed.

Lemma largest_monotone (n : nat) (chosen : nat -> bool) (f g : nat -> R) :
  (forall i, (i < n)%nat -> chosen i = true -> f i <= g i) -> largest n chosen f <= largest n chosen g.
Proof.
  intros below. apply largest_le; [apply largest_nonneg|].
  intros i small member. apply Rle_trans with (g i); [apply below; assumption|].
  apply largest_ge; assumption.
Qed.

Lemma largest_ext (n : nat) (chosen : nat -> bool) (f g : nat -> R) :
  (forall i, (i < n)%nat -> chosen i = true -> f i = g i) -> largest n chosen f = largest n chosen g.
Proof.
  intros same. apply Rle_antisym; apply largest_monotone; intros i small member; rewrite same; auto; apply Rle_refl.
Qed.

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

Lemma link_load_ext (before after : nat -> R) (i : nat) :
  (forall j, (j < paths)%nat -> crosses i j = true -> before j = after j) -> link_load before i = link_load after i.
Proof.
  intros same. apply total_ext. intros j small. unfold share.
  destruct (crosses i j) eqn:on; [apply same; assumption|reflexivity].
Qed.

Lemma link_load_scale (c : R) (rates : nat -> R) (i : nat) : link_load (fun j => c * rates j) i = c * link_load rates i.
Proof.
  unfold link_load. rewrite <- total_scale. apply total_ext. intros j _. unfold share. destruct (crosses i j); lra.
Qed.

Lemma link_load_plus (first second : nat -> R) (i : nat) :
  link_load (fun j => first j + second j) i = link_load first i + link_load second i.
Proof.
  unfold link_load. rewrite <- total_plus. apply total_ext. intros j _. unfold share. destruct (crosses i j); lra.
Qed.

Lemma link_load_minus (first second : nat -> R) (i : nat) :
  link_load (fun j => first j - second j) i = link_load first i - link_load second i.
Proof.
  unfold link_load. rewrite <- total_minus. apply total_ext. intros j _. unfold share. destruct (crosses i j); lra.
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

End Loads.
