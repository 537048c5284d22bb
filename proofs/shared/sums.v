(** Sums and maxima of finitely many numbers. *)

From Coq Require Import Reals Lra Lia Arith.

Local Open Scope R_scope.

(** * Sums *)

(** The sum of f 0, ..., f (n - 1). *)
Fixpoint total (n : nat) (f : nat -> R) : R :=
  match n with
  | O => 0
  | S m => total m f + f m
  end.

Lemma total_zero (n : nat) : total n (fun _ => 0) = 0.
Proof. induction n as [|n IH]; simpl; [reflexivity|]. rewrite IH. lra. Qed.

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
Proof. intros above. rewrite <- (total_zero n). apply total_le, above. Qed.

Lemma total_pos (n : nat) (f : nat -> R) (k : nat) :
  (forall j, (j < n)%nat -> 0 <= f j) -> (k < n)%nat -> 0 < f k -> 0 < total n f.
Proof.
  intros above bound strict. rewrite <- (total_zero n). apply total_lt with k; assumption.
Qed.

(** Sums of terms in order are equal only if the terms are. *)
Lemma total_le_eq (n : nat) (f g : nat -> R) :
  (forall j, (j < n)%nat -> f j <= g j) -> total n f = total n g -> forall j, (j < n)%nat -> f j = g j.
Proof.
  intros below same j small.
  destruct (Rle_lt_or_eq_dec (f j) (g j) (below j small)) as [strict|equal]; [|exact equal].
  pose proof (total_lt n f g j below small strict). lra.
Qed.

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

(** One term of a sum of numbers that are not negative is at most the sum. *)
Lemma total_term (n : nat) (f : nat -> R) (k : nat) :
  (forall j, (j < n)%nat -> 0 <= f j) -> (k < n)%nat -> f k <= total n f.
Proof.
  intros above bound.
  assert (total n (fun j => if Nat.eqb j k then f j else 0) = f k) as one.
  { rewrite (total_single n _ k bound), Nat.eqb_refl; [reflexivity|].
    intros j _ apart. apply Nat.eqb_neq in apart. rewrite apart. reflexivity. }
  rewrite <- one. apply total_le. intros j small. destruct (Nat.eqb j k); [lra|apply above, small].
Qed.

(** The first term apart. *)
Lemma total_first (n : nat) (f : nat -> R) : total (S n) f = f 0%nat + total n (fun k => f (S k)).
Proof. induction n as [|n IH]; [simpl; ring|]. cbn [total] in *. rewrite IH. ring. Qed.

(** * Maxima *)

(** The largest f i of those i below n that are [chosen]; 0 where none of these is above 0. *)
Fixpoint largest (n : nat) (chosen : nat -> bool) (f : nat -> R) : R :=
  match n with
  | O => 0
  | S m => if chosen m then Rmax (largest m chosen f) (f m) else largest m chosen f
  end.

(** A maximum is at most a bound that is not negative if each of its numbers is. *)
Lemma largest_le (n : nat) (chosen : nat -> bool) (f : nat -> R) (bound : R) :
  0 <= bound -> (forall i, (i < n)%nat -> chosen i = true -> f i <= bound) -> largest n chosen f <= bound.
Proof.
  intros sign. induction n as [|n IH]; intros below; simpl; [exact sign|].
  assert (largest n chosen f <= bound) as inner by (apply IH; intros i small; apply below; lia).
  destruct (chosen n) eqn:here; [|exact inner].
  apply Rmax_lub; [exact inner|]. apply below; [lia|exact here].
Qed.

(** Each chosen number is at most the maximum. *)
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
