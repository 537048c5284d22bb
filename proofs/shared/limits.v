(** Limits of sequences, and a whole number beyond any number. *)

From Coq Require Import Reals Lra Lia.

Local Open Scope R_scope.

Lemma whole_number_beyond (x : R) : exists n, x < INR n.
Proof.
  destruct (archimed x) as [above _]. exists (Z.to_nat (up x)). apply Rlt_le_trans with (1 := above).
  rewrite INR_IZR_INZ. apply IZR_le. lia.
Qed.

Lemma constant_converges (c : R) : Un_cv (fun _ => c) c.
Proof.
  intros eps positive. exists 0%nat. intros n _. unfold R_dist.
  rewrite Rminus_diag_eq, Rabs_R0 by reflexivity. exact positive.
Qed.

Lemma shifted_limit (f : nat -> R) (l : R) : Un_cv (fun n => f (S n)) l -> Un_cv f l.
Proof.
  intros close eps positive. destruct (close eps positive) as (N & near).
  exists (S N). intros n far. destruct n as [|n]; [lia|]. apply near. lia.
Qed.

Lemma later_limit (f : nat -> R) (l : R) : Un_cv f l -> Un_cv (fun n => f (S n)) l.
Proof.
  intros close eps positive. destruct (close eps positive) as (N & near). exists N. intros n far. apply near. lia.
Qed.

Lemma product_vanishes (f g : nat -> R) : Un_cv f 0 -> Un_cv g 0 -> Un_cv (fun n => f n * g n) 0.
Proof. intros first second. rewrite <- (Rmult_0_l 0). apply CV_mult; assumption. Qed.

Lemma combination_vanishes (f g : nat -> R) (u v : R) :
  Un_cv f 0 -> Un_cv g 0 -> Un_cv (fun n => u * f n + v * g n) 0.
Proof.
  intros first second. replace 0 with (u * 0 + v * 0) by ring.
  apply (CV_plus (fun n => u * f n)); apply (CV_mult (fun _ => _)); try assumption; apply constant_converges.
Qed.

(** A bound that all but the first terms of a sequence keep is one for the limit. *)
Lemma limit_le (f : nat -> R) (l bound : R) (first : nat) :
  Un_cv f l -> (forall n, (first <= n)%nat -> f n <= bound) -> l <= bound.
Proof.
  intros close below. apply Rnot_lt_le. intros above.
  destruct (close (l - bound)) as (N & near); [lra|].
  specialize (near (Nat.max first N) (Nat.le_max_r first N)). apply Rabs_def2 in near.
  specialize (below (Nat.max first N) (Nat.le_max_l first N)). lra.
Qed.

(** A sequence whose distance from l is at most geometric tends to l. *)
Lemma geometric_converges (x : nat -> R) (l most t : R) :
  0 <= t < 1 -> (forall n, Rabs (x n - l) <= most * t ^ n) -> Un_cv x l.
Proof.
  intros inside below e e_sign.
  assert (0 <= most) as sign.
  { apply Rle_trans with (1 := Rabs_pos (x 0%nat - l)). specialize (below 0%nat). simpl in below. lra. }
  destruct (pow_lt_1_zero t) with (y := e / (most + 1)) as [late small].
  - rewrite Rabs_pos_eq; lra.
  - apply Rdiv_lt_0_compat; lra.
  - exists late. intros n more. apply Rle_lt_trans with (1 := below n). specialize (small n more).
    assert (0 <= t ^ n) as power by (apply pow_le; lra). rewrite Rabs_pos_eq in small by exact power.
    apply Rle_lt_trans with ((most + 1) * t ^ n); [apply Rmult_le_compat_r; lra|].
    apply Rmult_lt_compat_l with (r := most + 1) in small; [|lra].
    replace ((most + 1) * (e / (most + 1))) with e in small by (field; lra). exact small.
Qed.
