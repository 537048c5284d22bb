(** HPCC (SIGCOMM 2019), Appendix A.1: the number of packets in the queue of N sources of equal period D and independent
    uniform phases, N*D/D/1, and the paper's numbers of it.

    Its distribution is taken from Roberts and Virtamo (1991), who derive it from the ballot theorem: [exceeds] is a
    premise here, and what follows from it is proved. That no more than N packets are in the system, however the phases
    are, is proved in queueing.v. *)

From Coq Require Import Reals Lra Lia Arith ZArith List Bool.
From fluidcc.shared Require Import sums.

Local Open Scope R_scope.

(** * Tail and mean *)

(** P(L > k), of the probabilities p 0, ..., p N that 0, ..., N packets are in the system. *)
Definition tail (sources : nat) (p : nat -> R) (k : nat) : R :=
  total (S sources) (fun j => if Nat.ltb k j then p j else 0).

(** Mean number in the system, the packet in service counted. *)
Definition mean_in_system (sources : nat) (p : nat -> R) : R := total (S sources) (fun j => INR j * p j).

(** Mean number that wait, the packet in service not counted. *)
Definition mean_waiting (sources : nat) (p : nat -> R) : R := total (S sources) (fun j => INR (j - 1) * p j).

(** A count as a sum of ones. *)
Lemma count_below (n j : nat) : (j <= n)%nat -> total n (fun k => if Nat.ltb k j then 1 else 0) = INR j.
Proof.
  intros small. induction n as [|n IH] in j, small |- *.
  - replace j with 0%nat by lia. reflexivity.
  - cbn [total]. destruct (Nat.eq_dec j (S n)) as [top|inner].
    + subst j. rewrite (total_ext n _ (fun k => if Nat.ltb k n then 1 else 0)).
      * rewrite IH by lia. rewrite S_INR. destruct (Nat.ltb_spec n (S n)) as [_|no]; [reflexivity|lia].
      * intros k below. destruct (Nat.ltb_spec k (S n)) as [_|no]; [|lia].
        destruct (Nat.ltb_spec k n) as [_|no]; [reflexivity|lia].
    + rewrite IH by lia. destruct (Nat.ltb_spec n j) as [no|_]; [lia|lra].
Qed.

(** The mean number in the system is the sum of the tail. *)
Theorem mean_is_sum_of_tail (sources : nat) (p : nat -> R) :
  mean_in_system sources p = total sources (tail sources p).
Proof.
  unfold tail. rewrite total_swap. apply total_ext. intros j small.
  rewrite (total_ext sources _ (fun k => p j * (if Nat.ltb k j then 1 else 0))).
  - rewrite total_scale, count_below by lia. ring.
  - intros k _. destruct (Nat.ltb k j); ring.
Qed.

(** The mean number that wait is less by P(L > 0), the probability that one is in service. *)
Theorem mean_waiting_is_less_by_service (sources : nat) (p : nat -> R) :
  mean_waiting sources p = mean_in_system sources p - tail sources p 0.
Proof.
  unfold mean_waiting, mean_in_system, tail. rewrite <- total_minus. apply total_ext. intros j _.
  destruct j as [|j]; [simpl; ring|]. replace (S j - 1)%nat with j by lia. rewrite S_INR. simpl. ring.
Qed.

(** The mean number that wait is the sum of the tail from 1 on. *)
Theorem mean_waiting_is_sum_of_tail (sources : nat) (p : nat -> R) :
  mean_waiting (S sources) p = total sources (fun k => tail (S sources) p (S k)).
Proof. rewrite mean_waiting_is_less_by_service, mean_is_sum_of_tail, total_first. ring. Qed.

(** No more than N packets: the tail ends at N. *)
Theorem tail_ends (sources k : nat) (p : nat -> R) : (sources <= k)%nat -> tail sources p k = 0.
Proof.
  intros many. rewrite <- (total_zero (S sources)). apply total_ext. intros j small.
  destruct (Nat.ltb_spec k j) as [no|_]; [lia|reflexivity].
Qed.

(** * The formula *)

(** P(L > k) = sum over n > k of C(N, n) ((n - k)/D)^n (1 - (n - k)/D)^(N - n) (D - N + k)/(D - n + k), for D > N, or
    D = N and k > 0. *)
Definition exceeds (sources : nat) (period : R) (k : nat) : R :=
  total (S sources) (fun n =>
    if Nat.ltb k n then
      C sources n * ((INR n - INR k) / period) ^ n * (1 - (INR n - INR k) / period) ^ (sources - n) *
        ((period - INR sources + INR k) / (period - INR n + INR k))
    else 0).

Lemma choose_none (n : nat) : C n 0 = 1.
Proof. unfold C. rewrite Nat.sub_0_r. simpl (INR (fact 0)). field. apply INR_fact_neq_0. Qed.

Lemma choose_all (n : nat) : C n n = 1.
Proof. unfold C. rewrite Nat.sub_diag. simpl (INR (fact 0)). field. apply INR_fact_neq_0. Qed.

(** The formula agrees with the bound: P(L > N) = 0. *)
Theorem formula_ends (sources k : nat) (period : R) : (sources <= k)%nat -> exceeds sources period k = 0.
Proof.
  intros many. rewrite <- (total_zero (S sources)). apply total_ext. intros j small.
  destruct (Nat.ltb_spec k j) as [no|_]; [lia|reflexivity].
Qed.

(** N packets are in the system with probability (1/D)^N: each source sent within the last service time. *)
Theorem formula_of_all (sources : nat) (period : R) :
  1 < period -> exceeds (S sources) period sources = (1 / period) ^ S sources.
Proof.
  intros long. unfold exceeds. rewrite (total_single _ _ (S sources)).
  - destruct (Nat.ltb_spec sources (S sources)) as [_|no]; [|lia].
    rewrite choose_all, Nat.sub_diag, S_INR.
    replace (INR sources + 1 - INR sources) with 1 by ring.
    replace (period - (INR sources + 1) + INR sources) with (period - 1) by ring.
    simpl. field. lra.
  - lia.
  - intros j small other. destruct (Nat.ltb_spec sources j) as [no|_]; [lia|reflexivity].
Qed.

(** The premise of what follows, that the tail is the formula's, can be met: by these probabilities of k >= 1 packets.
    That they are those of the queue is Roberts and Virtamo's theorem, not one here. *)
Example formula_is_a_tail (sources : nat) (period : R) (k : nat) :
  tail sources (fun j => exceeds sources period (j - 1) - exceeds sources period j) k = exceeds sources period k.
Proof.
  destruct (Nat.le_gt_cases sources k) as [beyond|inside].
  - rewrite tail_ends, formula_ends by exact beyond. reflexivity.
  - unfold tail. set (P := exceeds sources period).
    assert (forall n, (k < n)%nat ->
      total n (fun j => if Nat.ltb k j then P (j - 1)%nat - P j else 0) = P k - P (n - 1)%nat)
      as telescope.
    { intros n more. induction n as [|n IH]; [lia|]. simpl total. destruct (Nat.eq_dec n k) as [same|apart].
      - subst n. assert (total k (fun j => if Nat.ltb k j then P (j - 1)%nat - P j else 0) = 0) as none.
        { transitivity (total k (fun _ => 0)); [apply total_ext; intros j small|apply total_zero].
          destruct (Nat.ltb_spec k j) as [absurd|_]; [lia|reflexivity]. }
        rewrite none. destruct (Nat.ltb_spec k k) as [absurd|_]; [lia|]. replace (S k - 1)%nat with k by lia. lra.
      - rewrite IH by lia. destruct (Nat.ltb_spec k n) as [_|absurd]; [|lia].
        replace (S n - 1)%nat with n by lia. lra. }
    rewrite telescope by lia. replace (S sources - 1)%nat with sources by lia.
    unfold P at 2. rewrite formula_ends by lia. lra.
Qed.

(** * Exact numbers *)

(** ** In whole numbers: a period p/q *)

Local Open Scope Z_scope.

Fixpoint total_z (n : nat) (f : nat -> Z) : Z :=
  match n with
  | O => 0
  | S m => total_z m f + f m
  end.

(** Pascal's triangle, row by row. *)
Fixpoint beside (left : Z) (row : list Z) : list Z :=
  match row with
  | nil => left :: nil
  | x :: rest => (left + x) :: beside x rest
  end.

Fixpoint pascal_row (n : nat) : list Z :=
  match n with
  | O => 1 :: nil
  | S m => beside 0 (pascal_row m)
  end.

(** p^N times a term of [exceeds], with p/q for D. *)
Definition numerator (row : list Z) (sources : nat) (p q : Z) (k n : nat) : Z :=
  if Nat.ltb k n then
    let work := q * Z.of_nat (n - k) in
    nth n row 0 * work ^ Z.of_nat n *
      (if Nat.eqb n sources then 1
       else (p - work) ^ Z.of_nat (sources - n - 1) * (p - q * Z.of_nat (sources - k)))
  else 0.

(** p^N times [exceeds]. *)
Definition exceeds_numerator (row : list Z) (sources : nat) (p q : Z) (k : nat) : Z :=
  total_z (S sources) (numerator row sources p q k).

Local Open Scope R_scope.

Lemma total_of_z (n : nat) (f : nat -> Z) : IZR (total_z n f) = total n (fun j => IZR (f j)).
Proof. induction n as [|n IH]; [reflexivity|]. simpl. rewrite plus_IZR, IH. reflexivity. Qed.

Lemma beside_nth (row : list Z) (left : Z) (n : nat) :
  nth n (beside left row) 0%Z = (nth n (left :: row) 0 + nth n row 0)%Z.
Proof.
  induction row as [|x row IH] in left, n |- *.
  - destruct n as [|[|n]]; simpl; lia.
  - destruct n as [|n]; simpl; [reflexivity|]. rewrite IH. simpl. lia.
Qed.

Lemma pascal_row_outside (m n : nat) : (m < n)%nat -> nth n (pascal_row m) 0%Z = 0%Z.
Proof.
  induction m as [|m IH] in n |- *; intros beyond.
  - destruct n as [|[|n]]; [lia|reflexivity|reflexivity].
  - simpl. rewrite beside_nth. destruct n as [|n]; [lia|]. simpl. rewrite !IH by lia. reflexivity.
Qed.

Lemma pascal_row_is_choose (m n : nat) : (n <= m)%nat -> IZR (nth n (pascal_row m) 0%Z) = C m n.
Proof.
  induction m as [|m IH] in n |- *; intros small.
  - replace n with 0%nat by lia. rewrite choose_none. reflexivity.
  - simpl pascal_row. rewrite beside_nth. destruct n as [|n].
    + simpl nth at 1. rewrite plus_IZR, IH by lia. rewrite !choose_none. ring.
    + simpl nth at 1. rewrite plus_IZR. rewrite IH by lia. destruct (Nat.eq_dec n m) as [top|inner].
      * subst n. rewrite pascal_row_outside by lia. rewrite !choose_all. ring.
      * rewrite IH by lia. apply pascal. lia.
Qed.

(** The formula as a quotient of whole numbers. *)
Lemma exceeds_exactly (sources k : nat) (p q : Z) :
  (0 < q)%Z -> (0 < p)%Z -> (q * Z.of_nat (sources - k) < p)%Z ->
  exceeds sources (IZR p / IZR q) k =
    IZR (exceeds_numerator (pascal_row sources) sources p q k) / IZR p ^ sources.
Proof.
  intros q_sign p_sign long. unfold exceeds, exceeds_numerator, Rdiv.
  rewrite (Rmult_comm (IZR (total_z _ _))), total_of_z, <- total_scale.
  apply total_ext. intros n small. unfold numerator.
  destruct (Nat.ltb_spec k n) as [some|none]; [|ring].
  apply IZR_lt in q_sign. apply IZR_lt in p_sign. apply IZR_lt in long.
  rewrite mult_IZR, <- INR_IZR_INZ, minus_INR in long by lia.
  assert (INR n <= INR sources) as few by (apply le_INR; lia).
  assert (INR k < INR n) as more by (apply lt_INR; lia).
  assert (IZR q * (INR n - INR k) <= IZR q * (INR sources - INR k)) as less by (apply Rmult_le_compat_l; lra).
  set (P := IZR p) in *. set (Q := IZR q) in *.
  rewrite !mult_IZR, pascal_row_is_choose by lia.
  rewrite <- (pow_IZR (q * Z.of_nat (n - k)) n), mult_IZR, <- INR_IZR_INZ, minus_INR by lia. fold Q.
  set (m := INR n - INR k) in *.
  replace (m * / (P * / Q)) with (Q * m * / P) by (field; lra).
  replace (1 - Q * m * / P) with ((P - Q * m) * / P) by (field; lra).
  rewrite !Rpow_mult_distr.
  replace (P ^ sources) with (P ^ n * P ^ (sources - n)) by (rewrite <- pow_add; f_equal; lia).
  assert (P ^ n <> 0) as first by (apply pow_nonzero; lra).
  assert (P ^ (sources - n) <> 0) as second by (apply pow_nonzero; lra).
  rewrite !(pow_inv P).
  replace ((P * / Q - INR sources + INR k) * / (P * / Q - INR n + INR k))
    with ((P - Q * (INR sources - INR k)) / (P - Q * m)).
  2: { unfold m. field. repeat split; unfold m in less; lra. }
  destruct (Nat.eqb_spec n sources) as [last|inner].
  - subst n. rewrite Nat.sub_diag. simpl pow. fold m. field. repeat split; lra.
  - rewrite mult_IZR, <- pow_IZR, !minus_IZR, !mult_IZR, <- !INR_IZR_INZ, !minus_INR by lia.
    fold P Q m.
    replace (sources - n)%nat with (S (sources - n - 1)) at 1 by lia. simpl pow.
    field. repeat split; lra.
Qed.

Lemma quotient_near (n : nat) (s p u v e : Z) :
  (0 < p)%Z -> (0 < v)%Z ->
  (((u - e) * p ^ Z.of_nat n <? s * v)%Z && (s * v <? (u + e) * p ^ Z.of_nat n)%Z)%bool = true ->
  Rabs (IZR s / IZR p ^ n - IZR u / IZR v) < IZR e / IZR v.
Proof.
  intros p_sign v_sign checked. apply andb_prop in checked. destruct checked as [low high].
  apply Z.ltb_lt in low. apply Z.ltb_lt in high.
  apply IZR_lt in low. apply IZR_lt in high. apply IZR_lt in p_sign. apply IZR_lt in v_sign.
  rewrite !mult_IZR, <- pow_IZR in low, high. rewrite minus_IZR in low. rewrite plus_IZR in high.
  assert (0 < IZR p ^ n) as power by (apply pow_lt, p_sign).
  assert (IZR s = IZR s / IZR p ^ n * IZR p ^ n) as whole by (field; lra).
  set (x := IZR s / IZR p ^ n) in *. rewrite whole in low, high.
  apply Rabs_def1.
  - apply Rmult_lt_reg_r with (IZR v); [exact v_sign|].
    replace ((x - IZR u / IZR v) * IZR v) with (x * IZR v - IZR u) by (field; lra).
    replace (IZR e / IZR v * IZR v) with (IZR e) by (field; lra).
    assert (x * IZR v < IZR u + IZR e); [|lra].
    apply Rmult_lt_reg_r with (IZR p ^ n); [exact power|]. lra.
  - apply Rmult_lt_reg_r with (IZR v); [exact v_sign|].
    replace ((x - IZR u / IZR v) * IZR v) with (x * IZR v - IZR u) by (field; lra).
    replace (- (IZR e / IZR v) * IZR v) with (- IZR e) by (field; lra).
    assert (IZR u - IZR e < x * IZR v); [|lra].
    apply Rmult_lt_reg_r with (IZR p ^ n); [exact power|]. lra.
Qed.

Lemma quotient_equal (n : nat) (s p u v : Z) :
  (0 < p)%Z -> (0 < v)%Z -> (s * v =? u * p ^ Z.of_nat n)%Z = true -> IZR s / IZR p ^ n = IZR u / IZR v.
Proof.
  intros p_sign v_sign checked. apply Z.eqb_eq in checked. apply (f_equal IZR) in checked.
  apply IZR_lt in p_sign. apply IZR_lt in v_sign. rewrite !mult_IZR, <- pow_IZR in checked.
  assert (0 < IZR p ^ n) as power by (apply pow_lt, p_sign).
  apply Rmult_eq_reg_r with (IZR p ^ n * IZR v); [|apply Rmult_integral_contrapositive; split; lra].
  replace (IZR s / IZR p ^ n * (IZR p ^ n * IZR v)) with (IZR s * IZR v) by (field; lra).
  replace (IZR u / IZR v * (IZR p ^ n * IZR v)) with (IZR u * IZR p ^ n) by (field; lra). exact checked.
Qed.

(** The sum of the tail from 1 on, as a quotient of whole numbers. *)
Lemma sum_exactly (sources : nat) (p q : Z) :
  (0 < q)%Z -> (0 < p)%Z -> (q * Z.of_nat sources < p)%Z ->
  total sources (fun k => exceeds (S sources) (IZR p / IZR q) (S k)) =
    IZR (total_z sources (fun k => exceeds_numerator (pascal_row (S sources)) (S sources) p q (S k))) /
      IZR p ^ S sources.
Proof.
  intros q_sign p_sign long. unfold Rdiv at 2. rewrite (Rmult_comm (IZR (total_z _ _))), total_of_z, <- total_scale.
  apply total_ext. intros k small. rewrite exceeds_exactly; [unfold Rdiv; ring|exact q_sign|exact p_sign|].
  apply Z.le_lt_trans with (2 := long). apply Z.mul_le_mono_nonneg_l; lia.
Qed.

(** ** The paper's numbers: 50 sources *)

Lemma period_at_95_percent : 50 / (95/100) = IZR 1000 / IZR 19.
Proof. lra. Qed.

(** A.1: "if the load is 95% of capacity and there are 50 sources then the mean number of packets in the queues is about
    3": 2.751 wait, by Roberts and Virtamo's formula, which is a premise.
    Claim: hpcc-a1-mean. *)
Theorem mean_waiting_at_95_percent (p : nat -> R) :
  (forall k, tail 50 p k = exceeds 50 (50 / (95/100)) k) -> Rabs (mean_waiting 50 p - 275095/100000) < 1/100000.
Proof.
  intros formula. rewrite (mean_waiting_is_sum_of_tail 49).
  rewrite (total_ext 49 _ (fun k => exceeds 50 (IZR 1000 / IZR 19) (S k))).
  - rewrite (sum_exactly 49) by lia. apply quotient_near; [lia|lia|]. vm_compute. reflexivity.
  - intros k _. rewrite formula, period_at_95_percent. reflexivity.
Qed.

(** The server is busy for 95 % of the time: the formula gives P(L > 0) = 0.95 exactly. *)
Theorem busy_at_95_percent : exceeds 50 (50 / (95/100)) 0 = 95/100.
Proof.
  rewrite period_at_95_percent, exceeds_exactly by lia.
  apply quotient_equal; [lia|lia|]. vm_compute. reflexivity.
Qed.

(** At 95 % load from 50 sources the mean with the packet in service is 3.701, which is not about 3. *)
Theorem mean_in_system_at_95_percent (p : nat -> R) :
  (forall k, tail 50 p k = exceeds 50 (50 / (95/100)) k) -> Rabs (mean_in_system 50 p - 370095/100000) < 1/100000.
Proof.
  intros formula. pose proof (mean_waiting_at_95_percent p formula) as near.
  rewrite mean_waiting_is_less_by_service, formula, busy_at_95_percent in near.
  replace (mean_in_system 50 p - 370095/100000) with (mean_in_system 50 p - 95/100 - 275095/100000) by lra.
  exact near.
Qed.

(** A.1: "the probability there are more than 20 packets in the queue is about 10^-9": 1.53 * 10^-9, by Roberts and
    Virtamo's formula, that more than 20 wait, which is more than 21 in the system.
    Claim: hpcc-a1-tail. *)
Theorem more_than_20_wait_at_95_percent : Rabs (exceeds 50 (50 / (95/100)) 21 - 15297/10^13) < 1/10^13.
Proof.
  rewrite period_at_95_percent, exceeds_exactly by lia. rewrite (pow_IZR 10 13).
  apply quotient_near; [reflexivity|reflexivity|]. vm_compute. reflexivity.
Qed.

(** At 95 % load from 50 sources more than 20 packets are in the system, with the one in service, with probability 9.72
    * 10^-9, which is nearer to 10^-8. *)
Theorem more_than_20_in_system_at_95_percent : Rabs (exceeds 50 (50 / (95/100)) 20 - 97226/10^13) < 1/10^13.
Proof.
  rewrite period_at_95_percent, exceeds_exactly by lia. rewrite (pow_IZR 10 13).
  apply quotient_near; [reflexivity|reflexivity|]. vm_compute. reflexivity.
Qed.

(** A.1: at full load the mean number that wait is 3.772, by Roberts and Virtamo's formula: "less than 5 with 50
    sources". *)
Theorem mean_waiting_at_full_load (p : nat -> R) :
  (forall k, (0 < k)%nat -> tail 50 p k = exceeds 50 50 k) -> Rabs (mean_waiting 50 p - 377156/100000) < 1/100000.
Proof.
  intros formula. rewrite (mean_waiting_is_sum_of_tail 49).
  rewrite (total_ext 49 _ (fun k => exceeds 50 (IZR 50 / IZR 1) (S k))).
  - rewrite (sum_exactly 49) by lia. apply quotient_near; [lia|lia|]. vm_compute. reflexivity.
  - intros k _. rewrite formula by lia. f_equal. lra.
Qed.

Lemma cosine_between (x : R) : 0 <= x <= 2 -> 1 - x^2 / 2 <= cos x <= 1 - x^2 / 2 + x^4 / 24.
Proof.
  intros range. pose proof (pre_cos_bound x 0 ltac:(lra) ltac:(lra)) as between.
  unfold cos_approx, cos_term in between. simpl in between |- *. lra.
Qed.

Lemma pi_between : 28/10 < PI <= 35/10.
Proof.
  pose proof PI_RGT_0 as sign. split.
  - apply Rnot_le_lt. intros small.
    pose proof (cosine_between (PI / 2) ltac:(lra)) as between. rewrite cos_PI2 in between.
    assert ((PI / 2) * (PI / 2) <= 14/10 * (14/10)) by (apply Rmult_le_compat; lra). simpl in between. lra.
  - apply Rnot_lt_le. intros large.
    pose proof (cos_gt_0 (175/100) ltac:(lra) ltac:(lra)) as positive.
    pose proof (cosine_between (175/100) ltac:(lra)) as between. simpl in between. lra.
Qed.

Lemma square_root_between : 418/100 < sqrt (PI * 50 / 8) < 468/100.
Proof.
  pose proof pi_between as between.
  rewrite <- (sqrt_square (418/100)), <- (sqrt_square (468/100)) by lra.
  split; apply sqrt_lt_1_alt; lra.
Qed.

(** A.1: "the mean number of packets in the queue is only about (pi N/8)^0.5": by Roberts and Virtamo's formula, of
    which the premise is, it is so within 10 % for 50 sources if the packet in service counts as a half.
    Claim: hpcc-a1-full-load. *)
Theorem square_root_at_full_load (p : nat -> R) :
  (forall k, (0 < k)%nat -> tail 50 p k = exceeds 50 50 k) ->
  Rabs ((mean_waiting 50 p + 1/2) / sqrt (PI * 50 / 8) - 1) < 1/10.
Proof.
  intros formula. pose proof (mean_waiting_at_full_load p formula) as near.
  apply Rabs_def2 in near. destruct near as [high low]. pose proof square_root_between as between.
  set (root := sqrt (PI * 50 / 8)) in *. set (mean := mean_waiting 50 p) in *.
  apply Rabs_def1; apply Rmult_lt_reg_r with root; try lra;
    replace (((mean + 1 / 2) / root - 1) * root) with (mean + 1/2 - root) by (field; lra); lra.
Qed.

(** A.1: "and thus less than 5 with 50 sources". *)
Theorem square_root_below_five : sqrt (PI * 50 / 8) < 5.
Proof. pose proof square_root_between. lra. Qed.
