(** HPCC (SIGCOMM 2019), Appendix A.1: the formula of N*D/D/1 says that the server is busy for the part N/D of the time,
    which is the load; so the mean number that wait is less by the load than the mean number in the system. *)

From Coq Require Import Reals Lra Lia Arith ZArith List.
From fluidcc.shared Require Import sums.
From fluidcc.hpcc Require Import queue_length.

Local Open Scope R_scope.

(** Binomial coefficients, 0 outside Pascal's triangle. *)
Definition choose (m n : nat) : R := IZR (nth n (pascal_row m) 0%Z).

Lemma choose_is_C (m n : nat) : (n <= m)%nat -> choose m n = C m n.
Proof. apply pascal_row_is_choose. Qed.

Lemma choose_outside (m n : nat) : (m < n)%nat -> choose m n = 0.
Proof. intros beyond. unfold choose. rewrite pascal_row_outside by exact beyond. reflexivity. Qed.

Lemma choose_first (m : nat) : choose m 0 = 1.
Proof. rewrite choose_is_C by lia. apply choose_none. Qed.

Lemma choose_next (m n : nat) : choose (S m) (S n) = choose m n + choose m (S n).
Proof. unfold choose. simpl pascal_row. rewrite beside_nth, plus_IZR. reflexivity. Qed.

(** * Differences *)

(** The m-th difference of f at n. *)
Fixpoint difference (m : nat) (f : nat -> R) : R :=
  match m with
  | O => f 0%nat
  | S k => difference k (fun n => f n - f (S n))
  end.

Lemma difference_ext (m : nat) (f g : nat -> R) : (forall n, f n = g n) -> difference m f = difference m g.
Proof.
  induction m as [|m IH] in f, g |- *; intros same; simpl; [apply same|].
  apply IH. intros n. rewrite !same. reflexivity.
Qed.

Lemma difference_zero (m : nat) : difference m (fun _ => 0) = 0.
Proof.
  induction m as [|m IH]; [reflexivity|]. simpl. rewrite (difference_ext m _ (fun _ => 0)); [exact IH|].
  intros n. ring.
Qed.

Lemma difference_scale (m : nat) (c : R) (f : nat -> R) : difference m (fun n => c * f n) = c * difference m f.
Proof.
  induction m as [|m IH] in f |- *; simpl; [reflexivity|].
  rewrite <- IH. apply difference_ext. intros n. ring.
Qed.

Lemma difference_plus (m : nat) (f g : nat -> R) :
  difference m (fun n => f n + g n) = difference m f + difference m g.
Proof.
  induction m as [|m IH] in f, g |- *; simpl; [reflexivity|].
  rewrite <- IH. apply difference_ext. intros n. ring.
Qed.

Lemma difference_total (m k : nat) (f : nat -> nat -> R) :
  difference m (fun n => total k (fun i => f i n)) = total k (fun i => difference m (f i)).
Proof.
  induction k as [|k IH]; simpl; [apply difference_zero|]. rewrite difference_plus, IH. reflexivity.
Qed.

(** The difference as an alternating sum. *)
Lemma difference_is_sum (m : nat) (f : nat -> R) :
  difference m f = total (S m) (fun n => choose m n * (-1) ^ n * f n).
Proof.
  induction m as [|m IH] in f |- *.
  - simpl. rewrite choose_first. ring.
  - simpl difference. rewrite IH.
    rewrite (total_first (S m) (fun n => choose (S m) n * (-1) ^ n * f n)).
    rewrite (total_ext (S m) (fun k => choose (S m) (S k) * (-1) ^ S k * f (S k))
      (fun k => choose m (S k) * (-1) ^ S k * f (S k) - choose m k * (-1) ^ k * f (S k)))
      by (intros k _; rewrite choose_next; simpl; ring).
    rewrite (total_ext (S m) _ (fun k => choose m k * (-1) ^ k * f k - choose m k * (-1) ^ k * f (S k)))
      by (intros k _; ring).
    rewrite !total_minus.
    assert (total (S (S m)) (fun n => choose m n * (-1) ^ n * f n) =
      total (S m) (fun n => choose m n * (-1) ^ n * f n)) as longer.
    { change (total (S (S m)) (fun n => choose m n * (-1) ^ n * f n))
        with (total (S m) (fun n => choose m n * (-1) ^ n * f n) + choose m (S m) * (-1) ^ S m * f (S m)).
      rewrite choose_outside by lia. ring. }
    rewrite (total_first (S m)) in longer. rewrite <- longer, !choose_first. ring.
Qed.

Lemma sum_is_total (f : nat -> R) (n : nat) : sum_f_R0 f n = total (S n) f.
Proof. induction n as [|n IH]; [simpl; ring|]. simpl sum_f_R0. rewrite IH. reflexivity. Qed.

(** The m-th difference of a power below m is 0. *)
Lemma difference_of_power (m j : nat) (y : R) : (j < m)%nat -> difference m (fun n => (y - INR n) ^ j) = 0.
Proof.
  induction m as [|m IH] in j, y |- *; intros low; [lia|].
  cbn [difference]. rewrite (difference_ext m _ (fun n => total j (fun i => C j i * (y - 1 - INR n) ^ i))).
  - rewrite (difference_total m j (fun i n => C j i * (y - 1 - INR n) ^ i)).
    rewrite <- (total_zero j). apply total_ext. intros i small.
    rewrite difference_scale, IH by lia. ring.
  - intros n. replace (y - INR n) with ((y - 1 - INR n) + 1) by ring.
    rewrite binomial, sum_is_total. rewrite S_INR.
    replace (y - (INR n + 1)) with (y - 1 - INR n) by ring.
    cbn [total]. rewrite choose_all, Nat.sub_diag. simpl pow at 2.
    rewrite (total_ext j _ (fun i => C j i * (y - 1 - INR n) ^ i)) by (intros i _; rewrite pow1; ring). ring.
Qed.

(** * Abel's identity *)

(** (D - n)^(N - n - 1) (D - N), and 1 for n = N. *)
Definition weight (sources : nat) (period : R) (n : nat) : R :=
  if Nat.eqb n sources then 1 else (period - INR n) ^ (sources - n - 1) * (period - INR sources).

Lemma choose_twice (m n k : nat) :
  (k <= n)%nat -> (n <= m)%nat -> C m n * C n k = C m k * C (m - k) (n - k).
Proof.
  intros low high. unfold C. replace (m - k - (n - k))%nat with (m - n)%nat by lia.
  field. repeat split; apply INR_fact_neq_0.
Qed.

(** The terms with the k-th power of D are 0 together. *)
Lemma abel_inner (sources k : nat) (period : R) :
  (k < sources)%nat ->
  total (S (sources - k)) (fun m => C (sources - k) m * (-1) ^ m * (period - INR (k + m)) ^ m *
    weight sources period (k + m)) = 0.
Proof.
  intros below. set (rest := (sources - k)%nat).
  rewrite (total_ext (S rest) _ (fun m => (period - INR sources) *
    (choose rest m * (-1) ^ m * (period - INR k - INR m) ^ (rest - 1)))).
  - rewrite total_scale, <- (difference_is_sum rest (fun m => (period - INR k - INR m) ^ (rest - 1))).
    rewrite difference_of_power by lia. ring.
  - intros m small. rewrite choose_is_C by lia. unfold weight.
    replace (period - INR (k + m)) with (period - INR k - INR m) by (rewrite plus_INR; ring).
    set (y := period - INR k - INR m).
    destruct (Nat.eqb_spec (k + m) sources) as [last|inner].
    + replace (period - INR sources) with y by (unfold y; rewrite <- last, plus_INR; ring).
      replace (y ^ m) with (y * y ^ (rest - 1)).
      * ring.
      * replace m with (S (rest - 1)) by lia. reflexivity.
    + replace (y ^ (rest - 1)) with (y ^ m * y ^ (sources - (k + m) - 1)).
      * ring.
      * rewrite <- pow_add. f_equal. lia.
Qed.

Lemma total_shift (n k : nat) (f : nat -> R) :
  total (k + n) (fun j => if Nat.leb k j then f (j - k)%nat else 0) = total n f.
Proof.
  induction n as [|n IH].
  - rewrite Nat.add_0_r. transitivity (total k (fun _ => 0)); [|apply total_zero].
    apply total_ext. intros j small.
    destruct (Nat.leb_spec k j) as [no|_]; [lia|reflexivity].
  - rewrite Nat.add_succ_r. cbn [total]. rewrite IH.
    destruct (Nat.leb_spec k (k + n)) as [_|no]; [|lia]. replace (k + n - k)%nat with n by lia. reflexivity.
Qed.

Lemma total_until (n m : nat) (f : nat -> R) :
  (m < n)%nat -> total n (fun k => if Nat.leb k m then f k else 0) = total (S m) f.
Proof.
  induction n as [|n IH]; intros below; [lia|]. destruct (Nat.eq_dec m n) as [top|inner].
  - subst m. apply total_ext. intros k small. destruct (Nat.leb_spec k n) as [_|no]; [reflexivity|lia].
  - cbn [total] in *. rewrite IH by lia. destruct (Nat.leb_spec n m) as [no|_]; [lia|ring].
Qed.

(** The binomial theorem for n = D - (D - n). *)
Lemma expanded (n : nat) (period : R) :
  INR n ^ n = total (S n) (fun k => C n k * period ^ k * ((-1) ^ (n - k) * (period - INR n) ^ (n - k))).
Proof.
  rewrite <- sum_is_total. replace (INR n) with (period + -1 * (period - INR n)) at 1 by ring.
  rewrite binomial. apply sum_eq. intros k _. rewrite Rpow_mult_distr. ring.
Qed.

(** Abel: sum over n of C(N, n) n^n (D - n)^(N - n - 1) (D - N) = D^N. *)
Lemma abel (sources : nat) (period : R) :
  total (S sources) (fun n => C sources n * INR n ^ n * weight sources period n) = period ^ sources.
Proof.
  set (term := fun n k => C sources n * C n k * period ^ k * (-1) ^ (n - k) * (period - INR n) ^ (n - k) *
    weight sources period n).
  rewrite (total_ext (S sources) _ (fun n => total (S sources) (fun k => if Nat.leb k n then term n k else 0))).
  - rewrite total_swap.
    rewrite (total_ext (S sources) _ (fun k => period ^ k * C sources k *
      total (S (sources - k)) (fun m => C (sources - k) m * (-1) ^ m * (period - INR (k + m)) ^ m *
        weight sources period (k + m)))).
    + rewrite (total_single (S sources) _ sources).
      * rewrite choose_all, Nat.sub_diag. simpl total. rewrite choose_all. unfold weight.
        rewrite Nat.add_0_r, Nat.eqb_refl. simpl. ring.
      * lia.
      * intros k small other. rewrite abel_inner by lia. ring.
    + intros k small. rewrite <- total_scale, <- (total_shift (S (sources - k)) k).
      replace (k + S (sources - k))%nat with (S sources) by lia.
      apply total_ext. intros n below. destruct (Nat.leb_spec k n) as [low|high]; [|reflexivity].
      replace (k + (n - k))%nat with n by lia. unfold term.
      rewrite choose_twice by lia. ring.
  - intros n small. rewrite total_until by exact small. rewrite (expanded n period).
    replace (C sources n * total (S n) (fun k => C n k * period ^ k * ((-1) ^ (n - k) * (period - INR n) ^ (n - k))) *
      weight sources period n) with (C sources n * weight sources period n *
        total (S n) (fun k => C n k * period ^ k * ((-1) ^ (n - k) * (period - INR n) ^ (n - k)))) by ring.
    rewrite <- total_scale. apply total_ext. intros k _. unfold term. ring.
Qed.

(** * The server *)

(** A.1: the formula says that the server is busy with probability N/D, the load. *)
Theorem busy_probability (sources : nat) (period : R) :
  INR sources < period -> exceeds sources period 0 = INR sources / period.
Proof.
  intros long. pose proof (pos_INR sources) as count.
  destruct sources as [|rest]; [unfold exceeds; simpl; field; lra|].
  set (sources := S rest) in *.
  assert (0 < period ^ sources) as power by (apply pow_lt; lra).
  pose proof (abel sources period) as whole.
  assert (exceeds sources period 0 = / period ^ sources *
    (period ^ sources - period ^ (sources - 1) * (period - INR sources))) as value.
  { rewrite <- whole at 2. rewrite (total_first sources).
    replace (C sources 0 * INR 0 ^ 0 * weight sources period 0)
      with (period ^ (sources - 1) * (period - INR sources)).
    - replace (period ^ (sources - 1) * (period - INR sources) +
        total sources (fun k => C sources (S k) * INR (S k) ^ S k * weight sources period (S k)) -
        period ^ (sources - 1) * (period - INR sources))
        with (total sources (fun k => C sources (S k) * INR (S k) ^ S k * weight sources period (S k))) by ring.
      unfold exceeds. rewrite (total_first sources). rewrite <- total_scale.
      change (Nat.ltb 0 0) with false. cbn iota. rewrite Rplus_0_l.
      apply total_ext. intros k small. change (Nat.ltb 0 (S k)) with true. cbn iota.
      set (n := S k). replace (INR n - INR 0) with (INR n) by (simpl (INR 0); ring).
      replace (period - INR sources + INR 0) with (period - INR sources) by (simpl (INR 0); ring).
      replace (period - INR n + INR 0) with (period - INR n) by (simpl (INR 0); ring).
      assert (INR n <= INR sources) as few by (apply le_INR; unfold n, sources in *; lia).
      replace (1 - INR n / period) with ((period - INR n) / period) by (field; lra).
      unfold Rdiv. rewrite !Rpow_mult_distr, !pow_inv.
      replace (period ^ sources) with (period ^ n * period ^ (sources - n))
        by (rewrite <- pow_add; f_equal; unfold n, sources in *; lia).
      assert (period ^ n <> 0) as first by (apply pow_nonzero; lra).
      assert (period ^ (sources - n) <> 0) as second by (apply pow_nonzero; lra).
      unfold weight. destruct (Nat.eqb_spec n sources) as [last|inner].
      + rewrite last, Nat.sub_diag, !pow_O. field. repeat split; lra.
      + replace (sources - n)%nat with (S (sources - n - 1)) at 1 by (unfold n, sources in *; lia).
        rewrite <- tech_pow_Rmult. field.
        assert (INR n < INR sources) as fewer by (apply lt_INR; unfold n, sources in *; lia).
        repeat split; try lra; assumption.
    - rewrite choose_none. unfold weight. change (Nat.eqb 0 sources) with false. cbn iota.
      rewrite Nat.sub_0_r. simpl (INR 0). rewrite pow_O, Rminus_0_r. ring. }
  rewrite value. replace (period ^ sources) with (period * period ^ (sources - 1)).
  - assert (period ^ (sources - 1) <> 0) as other by (apply pow_nonzero; lra). field. split; [lra|exact other].
  - unfold sources. replace (S rest - 1)%nat with rest by lia. reflexivity.
Qed.

(** A.1: so the mean number that wait is the mean number in the system less the load. *)
Theorem mean_waiting_is_less_by_load (sources : nat) (period : R) (p : nat -> R) :
  INR sources < period -> (forall k, tail sources p k = exceeds sources period k) ->
  mean_waiting sources p = mean_in_system sources p - INR sources / period.
Proof.
  intros long formula. rewrite mean_waiting_is_less_by_service, formula, busy_probability by exact long. reflexivity.
Qed.
