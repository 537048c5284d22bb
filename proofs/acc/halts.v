(** ACC (NSDI 2024), section 4.6 and appendix A: N flows on one bottleneck that rise, halt and resume by periods.

    Rates are over the capacity C, queues over C T, times in periods T. r = RI/C is one rate increment for all flows.
    The model is the appendix's but for two repairs: a queue ends at 0, where the printed (3) and (7) go on below it,
    and no flow sends before it is empty, where (3) prints R_i = phi_i C. *)

From Coq Require Import Reals Lra Lia Arith Psatz FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From fluidcc.shared Require Import sums.

Open Scope R_scope.

(** * The model *)

(** State at the beginning of a period. *)
Record state : Set := State {
  rate : nat -> R;  (** S_i, the recorded rate of flow i, over C *)
  queue : R;  (** Q, over C T *)
  halted : bool  (** the flows send nothing in this period *)
}.

(** R_i, which flow i sends in the period. *)
Definition sent (at_start : state) (i : nat) : R := if halted at_start then 0 else rate at_start i.

(** phi_i = S_i / sum S. *)
Definition share (N : nat) (at_start : state) (i : nat) : R := rate at_start i / total N (rate at_start).

(** Q at the end of the period: what is sent above C adds to it, what is sent below C drains it, to 0 at the least. *)
Definition queue_after (N : nat) (at_start : state) : R :=
  Rmax 0 (queue at_start + total N (sent at_start) - 1).

(** A rate raised by RI (C - S)/C, as in (4) and (8): Algorithm 1, line 19, with a line rate of C. *)
Definition raised (r : R) (S : nat -> R) (i : nat) : R := (1 - r) * S i + r.

(** One period: with a queue at its end the flows record their shares of the ACKs, (2) and (6), and halt; without one
    they raise their rates, (4) and (8), and send. *)
Definition period (r : R) (N : nat) (at_start : state) : state :=
  if Rlt_dec 0 (queue_after N at_start)
  then State (share N at_start) (queue_after N at_start) true
  else State (raised r (rate at_start)) (queue_after N at_start) false.

Fixpoint run (r : R) (N n : nat) (at_start : state) : state :=
  match n with
  | O => at_start
  | S k => period r N (run r N k at_start)
  end.

(** State in which flows that have recorded the shares phi resume, (4). *)
Definition resumed (r : R) (phi : nat -> R) : state := State (raised r phi) 0 false.

(** M = ceil(rN - r + 1), the periods of a cycle. *)
Definition cycle (r : R) (N : nat) : nat := Z.to_nat (1 - up (- (r * INR N - r + 1))).

(** (1 - r)/(1 - r + rN), by which a cycle brings the shares nearer to 1/N. *)
Definition contraction (r : R) (N : nat) : R := (1 - r) / (1 - r + r * INR N).

Lemma total_raised (n : nat) (f : nat -> R) (r : R) : total n (raised r f) = (1 - r) * total n f + r * INR n.
Proof. unfold raised. rewrite total_plus, total_scale, total_const. ring. Qed.

(** * One period *)

Section Flows.

Variables (r : R) (N : nat).
Hypotheses (r_positive : 0 < r) (r_at_most_one : r <= 1) (two_flows : (2 <= N)%nat).

Let N_at_least_two : 2 <= INR N.
Proof. change 2 with (INR 2). now apply le_INR. Qed.

Let divisor_positive : 0 < 1 - r + r * INR N.
Proof. nra. Qed.

Lemma period_congested (at_start : state) :
  0 < queue_after N at_start ->
  period r N at_start = State (share N at_start) (queue_after N at_start) true.
Proof. intros some. unfold period. destruct (Rlt_dec 0 (queue_after N at_start)); [reflexivity | contradiction]. Qed.

Lemma period_uncongested (at_start : state) :
  queue_after N at_start <= 0 ->
  period r N at_start = State (raised r (rate at_start)) (queue_after N at_start) false.
Proof. intros none. unfold period. destruct (Rlt_dec 0 (queue_after N at_start)); [lra | reflexivity]. Qed.

Lemma shares_sum_to_one (at_start : state) : total N (rate at_start) <> 0 -> total N (share N at_start) = 1.
Proof.
  intros some. unfold share.
  rewrite (total_ext N _ (fun i => / total N (rate at_start) * rate at_start i)) by (intros; apply Rmult_comm).
  rewrite total_scale. now apply Rinv_l.
Qed.

Lemma queue_after_sending (S : nat -> R) (q : R) : queue_after N (State S q false) = Rmax 0 (q + total N S - 1).
Proof. unfold queue_after. simpl. do 3 f_equal. Qed.

Lemma queue_after_halt (S : nat -> R) (q : R) : queue_after N (State S q true) = Rmax 0 (q - 1).
Proof.
  unfold queue_after, sent. simpl. rewrite total_zero. f_equal. ring.
Qed.

(** Appendix A, Proposition 1, (2): flows whose rates exceed C have recorded rates that sum to C a period later. They do
    not send at these: first nothing ([flows_halt]), then more than C ([raised_rates_exceed_capacity]).
    Claim: acc-a-prop-1. *)
Theorem recorded_rates_sum_to_capacity (S : nat -> R) :
  1 < total N S -> total N (rate (period r N (State S 0 false))) = 1.
Proof.
  intros more. rewrite period_congested.
  - apply shares_sum_to_one. simpl. lra.
  - rewrite queue_after_sending, Rmax_right; lra.
Qed.

(** Appendix A, (2): what was sent above C stands in the queue then. *)
Theorem queue_of_first_period (S : nat -> R) :
  1 < total N S -> queue (period r N (State S 0 false)) = total N S - 1.
Proof.
  intros more. rewrite period_congested; simpl; rewrite queue_after_sending, Rmax_right; lra.
Qed.

(** Appendix A, (3) as printed: flows that send R_i = phi_i C, whose sum is C, leave the queue as it is. *)
Theorem queue_stands_at_recorded_rates (S : nat -> R) (q : R) :
  0 <= q -> total N S = 1 -> queue_after N (State S q false) = q.
Proof. intros some whole. rewrite queue_after_sending, whole, Rmax_right; lra. Qed.

(** Appendix A, after (5): the raised rates sum to (1 + rN - r) C. *)
Theorem sum_of_raised_rates (phi : nat -> R) :
  total N phi = 1 -> total N (rate (resumed r phi)) = 1 + r * INR N - r.
Proof. intros whole. simpl. rewrite total_raised, whole. ring. Qed.

(** Appendix A, after (5): the raised rates exceed C. *)
Theorem raised_rates_exceed_capacity (phi : nat -> R) :
  total N phi = 1 -> 1 < total N (rate (resumed r phi)).
Proof. intros whole. rewrite (sum_of_raised_rates phi whole). nra. Qed.

(** * A cycle *)

Lemma cycle_bounds : r * INR N - r + 1 <= INR (cycle r N) < r * INR N - r + 2.
Proof.
  unfold cycle. destruct (archimed (- (r * INR N - r + 1))) as [above near].
  assert (more : 0 < r * INR N - r) by nra.
  assert (whole : (0 <= 1 - up (- (r * INR N - r + 1)))%Z).
  { apply le_IZR. rewrite minus_IZR. lra. }
  rewrite (INR_IZR_INZ (Z.to_nat _)), Z2Nat.id, minus_IZR by exact whole. lra.
Qed.

(** Appendix A: a cycle has M >= 2 periods, so at least one of them is halted. *)
Theorem cycle_has_a_halt : (2 <= cycle r N)%nat.
Proof.
  assert (bounds := cycle_bounds). apply INR_le.
  destruct (le_lt_dec 2 (cycle r N)) as [enough | few]; [now apply le_INR |].
  assert (INR (cycle r N) <= 1) by (change 1 with (INR 1); apply le_INR; lia). nra.
Qed.

Lemma halted_periods (phi : nat -> R) (m : nat) :
  total N phi = 1 -> (S m < cycle r N)%nat ->
  run r N (S m) (resumed r phi) = State (share N (resumed r phi)) (r * INR N - r - INR m) true /\
  0 < r * INR N - r - INR m.
Proof.
  intros whole. assert (bounds := cycle_bounds). assert (total_now := sum_of_raised_rates phi whole).
  induction m as [| m before]; intros inside.
  - assert (first : queue_after N (resumed r phi) = r * INR N - r).
    { unfold resumed. rewrite queue_after_sending. simpl in total_now. rewrite total_now, Rmax_right; nra. }
    simpl run. rewrite period_congested; rewrite first; [| nra]. simpl.
    split; [f_equal; ring | nra].
  - destruct (before ltac:(lia)) as [same left].
    assert (later : INR m + 1 < r * INR N - r).
    { assert (INR (S (S m)) + 1 <= INR (cycle r N)) by (rewrite <- S_INR; apply le_INR; lia).
      rewrite !S_INR in *. lra. }
    change (run r N (S (S m)) (resumed r phi)) with (period r N (run r N (S m) (resumed r phi))).
    rewrite same, S_INR.
    rewrite period_congested; rewrite queue_after_halt, Rmax_right; try lra.
    split; [| lra]. f_equal; [| ring].
    apply functional_extensionality. intros i. unfold share at 1. simpl.
    rewrite (shares_sum_to_one (resumed r phi)) by (rewrite total_now; nra). field.
Qed.

(** Appendix A, (6) and (7): in periods 1 to M - 1 of a cycle the flows send nothing. *)
Theorem flows_halt (phi : nat -> R) (m i : nat) :
  total N phi = 1 -> (1 <= m < cycle r N)%nat -> sent (run r N m (resumed r phi)) i = 0.
Proof.
  intros whole inside. destruct m as [| m]; [lia |].
  destruct (halted_periods phi m whole ltac:(lia)) as [same _]. now rewrite same.
Qed.

(** Appendix A, (6) and (7): the queue in these periods. *)
Theorem queue_of_halted_period (phi : nat -> R) (m : nat) :
  total N phi = 1 -> (1 <= m < cycle r N)%nat ->
  queue (run r N m (resumed r phi)) = r * INR N - r - INR m + 1.
Proof.
  intros whole inside. destruct m as [| m]; [lia |].
  destruct (halted_periods phi m whole ltac:(lia)) as [same _]. rewrite same, S_INR. simpl. ring.
Qed.

(** Appendix A, (7): the queue is not empty as long as the flows halt. *)
Theorem queue_positive_while_halted (phi : nat -> R) (m : nat) :
  total N phi = 1 -> (1 <= m < cycle r N)%nat -> 0 < queue (run r N m (resumed r phi)).
Proof.
  intros whole inside. destruct m as [| m]; [lia |].
  destruct (halted_periods phi m whole ltac:(lia)) as [same left]. now rewrite same.
Qed.

(** Appendix A, (6) and (7): in these periods the flows keep the rates that they have recorded. *)
Theorem rates_of_halted_period (phi : nat -> R) (m i : nat) :
  total N phi = 1 -> (1 <= m < cycle r N)%nat ->
  rate (run r N m (resumed r phi)) i = ((1 - r) * phi i + r) / (1 - r + r * INR N).
Proof.
  intros whole inside. destruct m as [| m]; [lia |].
  destruct (halted_periods phi m whole ltac:(lia)) as [same _]. rewrite same. simpl.
  unfold share. rewrite (sum_of_raised_rates phi whole). simpl. unfold raised. f_equal. ring.
Qed.

Lemma next_cycle (phi : nat -> R) :
  total N phi = 1 -> run r N (cycle r N) (resumed r phi) = resumed r (share N (resumed r phi)).
Proof.
  intros whole. assert (bounds := cycle_bounds). assert (enough := cycle_has_a_halt).
  destruct (cycle r N) as [| [| m]] eqn:periods; try lia.
  destruct (halted_periods phi m whole ltac:(lia)) as [same left].
  change (run r N (S (S m)) (resumed r phi)) with (period r N (run r N (S m) (resumed r phi))).
  rewrite !S_INR in bounds. rewrite same. unfold resumed at 2.
  rewrite period_uncongested; rewrite queue_after_halt, Rmax_left; lra || reflexivity.
Qed.

(** Appendix A, (8): after M periods the queue is empty. *)
Theorem queue_empty_after_cycle (phi : nat -> R) :
  total N phi = 1 -> queue (run r N (cycle r N) (resumed r phi)) = 0.
Proof. intros whole. now rewrite next_cycle. Qed.

(** Appendix A, (8): after M periods the flows resume, with raised rates. *)
Theorem flows_resume (phi : nat -> R) (i : nat) :
  total N phi = 1 ->
  sent (run r N (cycle r N) (resumed r phi)) i =
  (1 - r) * (((1 - r) * phi i + r) / (1 - r + r * INR N)) + r.
Proof.
  intros whole. rewrite next_cycle by exact whole. unfold sent, resumed at 1, raised at 1. simpl.
  unfold share. rewrite (sum_of_raised_rates phi whole). simpl. unfold raised.
  replace (1 + r * INR N - r) with (1 - r + r * INR N) by ring. reflexivity.
Qed.

(** Appendix A, (7) as printed: the queue that it has at the end of a cycle is at most 0. *)
Theorem printed_queue_at_most_zero : r * INR N - r - INR (cycle r N) + 1 <= 0.
Proof. assert (bounds := cycle_bounds). lra. Qed.

(** Appendix A, against (7) as printed: the queue that it has at the end of a cycle, and that (8) has as 0, is 0 only if
    r(N - 1) is a whole number, and then so. Of the model's queue, which ends at 0, (8) is true:
    [queue_empty_after_cycle].
    Claim: acc-a-queue. *)
Theorem printed_queue_empty_iff :
  r * INR N - r - INR (cycle r N) + 1 = 0 <-> exists n : nat, r * INR N - r = INR n.
Proof.
  assert (bounds := cycle_bounds). split.
  - intros empty. exists (cycle r N - 1)%nat. rewrite minus_INR by (assert (some := cycle_has_a_halt); lia).
    simpl. lra.
  - intros [n same]. rewrite same in *.
    enough (cycle r N = S n) as periods by (rewrite periods, S_INR; ring).
    assert (n + 1 <= cycle r N < n + 2)%nat; [| lia].
    split; [apply INR_le | apply INR_lt]; rewrite plus_INR; simpl INR; lra.
Qed.

(** Section 6.3: the flows send 1 + r(N - 1), over C T, in a cycle of M periods. *)
Theorem sent_in_a_cycle (phi : nat -> R) :
  total N phi = 1 ->
  sum_f_R0 (fun m => total N (sent (run r N m (resumed r phi)))) (cycle r N - 1) = 1 + r * (INR N - 1).
Proof.
  intros whole.
  assert (upto : forall m, (m < cycle r N)%nat ->
    sum_f_R0 (fun n => total N (sent (run r N n (resumed r phi)))) m = 1 + r * (INR N - 1)).
  { induction m as [| m before]; intros inside.
    - simpl sum_f_R0. rewrite (total_ext N _ (rate (resumed r phi))) by reflexivity.
      rewrite (sum_of_raised_rates phi whole). ring.
    - rewrite tech5, before by lia.
      rewrite (total_ext N _ (fun _ => 0)) by (intros i _; now apply flows_halt; [| lia]).
      rewrite total_zero. ring. }
  apply upto. assert (some := cycle_has_a_halt). lia.
Qed.

(** Section 6.3, with the appendix's cycle: more than half of the link is used. *)
Theorem cycle_fills_half : 1 / 2 < (1 + r * (INR N - 1)) / INR (cycle r N).
Proof.
  assert (bounds := cycle_bounds). assert (more : 0 < r * (INR N - 1)) by (apply Rmult_lt_0_compat; lra).
  apply (Rmult_lt_reg_r (INR (cycle r N))); [lra |].
  unfold Rdiv at 2. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

(** Section 6.3, with the appendix's cycle, which halts for whole periods: all of the link is used if and only if r(N -
    1) is a whole number. This is the reading under which the claim fails; that it holds with Algorithm 1's halts, of
    just the time that the queue takes, is not proved here.
    Claim: acc-63-utilisation. *)
Theorem cycle_fills_link_iff :
  (1 + r * (INR N - 1)) / INR (cycle r N) = 1 <-> exists n : nat, r * INR N - r = INR n.
Proof.
  rewrite <- printed_queue_empty_iff. assert (bounds := cycle_bounds).
  assert (more : 0 < INR (cycle r N)) by nra.
  split.
  - intros full. apply (Rmult_eq_compat_r (INR (cycle r N))) in full.
    unfold Rdiv in full. rewrite Rmult_assoc, Rinv_l in full by lra. lra.
  - intros empty. replace (1 + r * (INR N - 1)) with (INR (cycle r N)) by lra. field. lra.
Qed.

(** * Shares *)

Lemma share_when_resumed (phi : nat -> R) (i : nat) :
  total N phi = 1 -> share N (resumed r phi) i = ((1 - r) * phi i + r) / (1 - r + r * INR N).
Proof.
  intros whole. unfold share. rewrite (sum_of_raised_rates phi whole). simpl. unfold raised. f_equal. ring.
Qed.

Lemma run_plus (m n : nat) (at_start : state) : run r N (m + n) at_start = run r N m (run r N n at_start).
Proof. induction m as [| m same]; [reflexivity |]. simpl. now rewrite same. Qed.

Lemma resumed_shares_whole (phi : nat -> R) : total N phi = 1 -> total N (share N (resumed r phi)) = 1.
Proof. intros whole. apply shares_sum_to_one. rewrite (sum_of_raised_rates phi whole). nra. Qed.

Lemma cycles (phi : nat -> R) (k : nat) :
  total N phi = 1 ->
  exists psi, total N psi = 1 /\ run r N (k * cycle r N) (resumed r phi) = resumed r psi /\
    run r N (S k * cycle r N) (resumed r phi) = resumed r (share N (resumed r psi)).
Proof.
  intros whole. induction k as [| k before].
  - exists phi. simpl. rewrite Nat.add_0_r. repeat split; auto. now apply next_cycle.
  - destruct before as [psi [psi_whole [_ same]]].
    exists (share N (resumed r psi)). split; [now apply resumed_shares_whole | split; [exact same |]].
    replace (S (S k) * cycle r N)%nat with (cycle r N + S k * cycle r N)%nat by (simpl; lia).
    rewrite run_plus, same. apply next_cycle. now apply resumed_shares_whole.
Qed.

(** Appendix A, (5) and (9): a cycle takes a share phi to ((1 - r) phi + r)/(1 - r + rN).
    Claim: acc-a-shares. *)
Theorem share_after_cycle (phi : nat -> R) (k i : nat) :
  total N phi = 1 ->
  share N (run r N (S k * cycle r N) (resumed r phi)) i =
  ((1 - r) * share N (run r N (k * cycle r N) (resumed r phi)) i + r) / (1 - r + r * INR N).
Proof.
  intros whole. destruct (cycles phi k whole) as [psi [psi_whole [now_ next]]].
  rewrite next, now_. apply share_when_resumed. now apply resumed_shares_whole.
Qed.

(** Appendix A, (10): the closed form of the shares after k cycles, phi being those before the first rise.
    Claim: acc-a-closed. *)
Theorem closed_form (phi : nat -> R) (k i : nat) :
  total N phi = 1 ->
  share N (run r N (k * cycle r N) (resumed r phi)) i =
  contraction r N ^ (k + 1) * phi i +
  sum_f_R0 (fun j => contraction r N ^ j * (r / (1 - r + r * INR N))) k.
Proof.
  intros whole. induction k as [| k before].
  - simpl. rewrite share_when_resumed by exact whole. unfold contraction. field. lra.
  - rewrite share_after_cycle, before by exact whole.
    set (add := r / (1 - r + r * INR N)).
    assert (next : forall n, sum_f_R0 (fun j => contraction r N ^ j * add) (S n) =
                             contraction r N * sum_f_R0 (fun j => contraction r N ^ j * add) n + add).
    { induction n as [| n same]; [simpl; ring |].
      rewrite tech5, same at 1. rewrite tech5. simpl pow. ring. }
    rewrite next. replace (S k + 1)%nat with (S (k + 1)) by lia. rewrite <- tech_pow_Rmult.
    set (sum := sum_f_R0 _ k). set (power := contraction r N ^ (k + 1)). unfold add, contraction. field. lra.
Qed.

(** Appendix A, (11): the distance from 1/N shrinks by (1 - r)/(1 - r + rN) in each cycle. *)
Theorem distance_from_fair_share (phi : nat -> R) (k i : nat) :
  total N phi = 1 ->
  share N (run r N (k * cycle r N) (resumed r phi)) i - 1 / INR N =
  contraction r N ^ (k + 1) * (phi i - 1 / INR N).
Proof.
  intros whole. induction k as [| k before].
  - simpl. rewrite share_when_resumed by exact whole. unfold contraction. field. lra.
  - rewrite share_after_cycle by exact whole.
    set (now_ := share N (run r N (k * cycle r N) (resumed r phi)) i) in *.
    replace (S k + 1)%nat with (S (k + 1)) by lia. rewrite <- tech_pow_Rmult, Rmult_assoc, <- before.
    unfold contraction. field. lra.
Qed.

(** Appendix A, before (11): the factor of a cycle is below 1. *)
Theorem contraction_below_one : 0 <= contraction r N < 1.
Proof.
  unfold contraction. split; [apply Rdiv_le_0_compat; lra |].
  apply (Rmult_lt_reg_r (1 - r + r * INR N)); [exact divisor_positive |].
  unfold Rdiv. rewrite Rmult_assoc, Rinv_l; nra.
Qed.

(** Appendix A, (11): the shares tend to 1/N.
    Claim: acc-a-fair. *)
Theorem shares_tend_to_fair_share (phi : nat -> R) (i : nat) :
  total N phi = 1 ->
  is_lim_seq (fun k => share N (run r N (k * cycle r N) (resumed r phi)) i) (1 / INR N).
Proof.
  intros whole. assert (small := contraction_below_one).
  apply is_lim_seq_ext with (fun k => 1 / INR N + contraction r N ^ (k + 1) * (phi i - 1 / INR N)).
  { intros k. assert (apart := distance_from_fair_share phi k i whole). lra. }
  replace (Finite (1 / INR N)) with (Rbar_plus (1 / INR N) (Rbar_mult 0 (phi i - 1 / INR N)))
    by (simpl; f_equal; ring).
  apply is_lim_seq_plus'; [apply is_lim_seq_const |].
  apply (is_lim_seq_scal_r _ (phi i - 1 / INR N) 0).
  apply (is_lim_seq_incr_n (fun k => contraction r N ^ k) 1), is_lim_seq_geom.
  rewrite Rabs_pos_eq; lra.
Qed.

End Flows.
