(** ACC (NSDI 2024), section 4.6, Proposition 2: shares tend to 1/N from any start, with one rate increment for all;
    and where they go with increments of their own.

    Rates are over the capacity C, queues over C T; the model is in halts.v. *)

From Coq Require Import Reals Lra Lia Arith Psatz.
From Coquelicot Require Import Coquelicot.
From fluidcc.shared Require Import limits sums.
From fluidcc.acc Require Import halts.

Open Scope R_scope.

Section Flows.

Variables (r : R) (N : nat).
Hypotheses (r_positive : 0 < r) (r_at_most_one : r <= 1) (two_flows : (2 <= N)%nat).

Let N_at_least_two : 2 <= INR N.
Proof. change 2 with (INR 2). now apply le_INR. Qed.

(** What holds at the beginning of each period: rates are positive, a flow halts only if there is a queue, and then the
    recorded rates sum to C. *)
Definition sound (now : state) : Prop :=
  0 < total N (rate now) /\
  if halted now then total N (rate now) = 1 /\ 0 < queue now else queue now = 0.

Lemma sound_start (S : nat -> R) : 0 < total N S -> sound (State S 0 false).
Proof. intros some. now split. Qed.

Lemma sound_after_period (now : state) : sound now -> sound (period r N now).
Proof.
  intros [some rest]. destruct (Rlt_dec 0 (queue_after N now)) as [left | empty].
  - rewrite period_congested by exact left.
    assert (whole : total N (share N now) = 1) by (apply shares_sum_to_one; lra).
    split; simpl; rewrite whole; lra.
  - rewrite period_uncongested by lra. split; simpl.
    + rewrite total_raised. destruct (Req_dec r 1); nra.
    + apply Rle_antisym; [lra | apply Rmax_l].
Qed.

Lemma sound_always (now : state) (n : nat) : sound now -> sound (run r N n now).
Proof. intros first. induction n as [| n before]; [exact first |]. simpl. now apply sound_after_period. Qed.

(** A period with a queue at its end keeps the shares. *)
Lemma shares_kept (now : state) (i : nat) :
  sound now -> 0 < queue_after N now -> share N (period r N now) i = share N now i.
Proof.
  intros [some _] left. rewrite period_congested by exact left. unfold share at 1. simpl.
  rewrite shares_sum_to_one by lra. field.
Qed.

Lemma rates_at_most_capacity (now : state) :
  sound now -> queue_after N now <= 0 -> total N (rate now) <= 1.
Proof.
  intros [some rest] empty. destruct now as [S q stops]. simpl in *. destruct stops.
  - lra.
  - rewrite queue_after_sending in empty. assert (right := Rmax_r 0 (q + total N S - 1)). lra.
Qed.

(** A rise brings each share nearer to 1/N, by the factor of a cycle or more. *)
Lemma shares_after_rise (now : state) (i : nat) :
  sound now -> queue_after N now <= 0 ->
  Rabs (share N (period r N now) i - 1 / INR N) <= contraction r N * Rabs (share N now i - 1 / INR N).
Proof.
  intros good empty. assert (most := rates_at_most_capacity now good empty). destruct good as [some _].
  rewrite period_uncongested by exact empty. unfold share. simpl. rewrite total_raised. unfold raised.
  set (sum := total N (rate now)) in *. set (S := rate now i).
  assert (0 <= (1 - r) * sum) by (apply Rmult_le_pos; lra).
  assert (0 < r * INR N) by (apply Rmult_lt_0_compat; lra).
  replace (((1 - r) * S + r) / ((1 - r) * sum + r * INR N) - 1 / INR N)
    with ((1 - r) * sum / ((1 - r) * sum + r * INR N) * (S / sum - 1 / INR N)) by (field; lra).
  rewrite Rabs_mult, Rabs_pos_eq by (apply Rdiv_le_0_compat; lra).
  apply Rmult_le_compat_r; [apply Rabs_pos |]. unfold contraction.
  assert (0 <= (1 - r) * (1 - sum)) by (apply Rmult_le_pos; lra).
  apply (Rmult_le_reg_r ((1 - r) * sum + r * INR N)); [lra |].
  apply (Rmult_le_reg_r (1 - r + r * INR N)); [lra |].
  replace ((1 - r) * sum / ((1 - r) * sum + r * INR N) * ((1 - r) * sum + r * INR N) * (1 - r + r * INR N))
    with ((1 - r) * sum * (1 - r + r * INR N)) by (field; lra).
  replace ((1 - r) / (1 - r + r * INR N) * ((1 - r) * sum + r * INR N) * (1 - r + r * INR N))
    with ((1 - r) * ((1 - r) * sum + r * INR N)) by (field; lra).
  nra.
Qed.

Lemma distance_never_grows_in_a_period (now : state) (i : nat) :
  sound now -> Rabs (share N (period r N now) i - 1 / INR N) <= Rabs (share N now i - 1 / INR N).
Proof.
  intros good. destruct (Rlt_dec 0 (queue_after N now)) as [left | empty].
  - rewrite shares_kept by assumption. apply Rle_refl.
  - assert (small := contraction_below_one r N r_positive r_at_most_one two_flows).
    assert (nearer := shares_after_rise now i good ltac:(lra)).
    assert (apart := Rabs_pos (share N now i - 1 / INR N)). nra.
Qed.

Lemma distance_never_grows (now : state) (i m n : nat) :
  sound now ->
  Rabs (share N (run r N (m + n) now) i - 1 / INR N) <= Rabs (share N (run r N n now) i - 1 / INR N).
Proof.
  intros good. induction m as [| m before]; [apply Rle_refl |]. simpl.
  apply Rle_trans with (2 := before). now apply distance_never_grows_in_a_period, sound_always.
Qed.

(** A queue of at most K is drained within K periods, and then the rates rise. *)
Lemma rise_after_halt (K : nat) (now : state) (i : nat) :
  sound now -> halted now = true -> queue now <= INR K ->
  exists n, Rabs (share N (run r N n now) i - 1 / INR N) <= contraction r N * Rabs (share N now i - 1 / INR N).
Proof.
  revert now. induction K as [| K less]; intros now good stops bound.
  - destruct good as [_ rest]. rewrite stops in rest. simpl in bound. lra.
  - destruct (Rlt_dec 0 (queue_after N now)) as [left | empty].
    + assert (drained : queue_after N now = queue now - 1).
      { destruct now as [S q other]. simpl in stops. subst other. rewrite queue_after_halt in *.
        simpl queue. unfold Rmax in *. destruct (Rle_dec 0 (q - 1)); lra. }
      assert (next := shares_kept now i good left).
      destruct (less (period r N now)) as [n nearer].
      * now apply sound_after_period.
      * now rewrite period_congested.
      * rewrite period_congested by exact left. simpl queue. rewrite drained. rewrite S_INR in bound. lra.
      * exists (n + 1)%nat. rewrite (run_plus r N n 1). simpl (run r N 1 now). now rewrite next in nearer.
    + exists 1%nat. apply shares_after_rise; [exact good | lra].
Qed.

Lemma next_rise (now : state) (i : nat) :
  sound now ->
  exists n, Rabs (share N (run r N n now) i - 1 / INR N) <= contraction r N * Rabs (share N now i - 1 / INR N).
Proof.
  intros good. destruct (Rlt_dec 0 (queue_after N now)) as [left | empty].
  - destruct (whole_number_beyond (queue_after N now)) as [K bound].
    destruct (rise_after_halt K (period r N now) i) as [n nearer].
    + now apply sound_after_period.
    + now rewrite period_congested.
    + rewrite period_congested by exact left. simpl. lra.
    + exists (n + 1)%nat. rewrite (run_plus r N n 1). simpl (run r N 1 now).
      now rewrite (shares_kept now i good left) in nearer.
  - exists 1%nat. apply shares_after_rise; [exact good | lra].
Qed.

Lemma many_rises (now : state) (i k : nat) :
  sound now ->
  exists n, Rabs (share N (run r N n now) i - 1 / INR N) <= contraction r N ^ k * Rabs (share N now i - 1 / INR N).
Proof.
  intros good. assert (small := contraction_below_one r N r_positive r_at_most_one two_flows).
  induction k as [| k [n before]].
  - exists 0%nat. simpl. lra.
  - destruct (next_rise (run r N n now) i (sound_always now n good)) as [m nearer].
    exists (m + n)%nat. rewrite run_plus. simpl pow. nra.
Qed.

(** Section 4.6, Proposition 2: a flow's share of the recorded rates never moves away from 1/N. *)
Theorem shares_never_less_fair (S : nat -> R) (i m n : nat) :
  0 < total N S -> (m <= n)%nat ->
  Rabs (share N (run r N n (State S 0 false)) i - 1 / INR N) <=
  Rabs (share N (run r N m (State S 0 false)) i - 1 / INR N).
Proof.
  intros some later. replace n with (n - m + m)%nat by lia.
  now apply distance_never_grows, sound_start.
Qed.

(** Section 4.6, Proposition 2: a flow's share of the recorded rates tends to 1/N, whatever the rates at the start are:
    below C in sum or above it, equal or not. Only shares have a limit: rates are raised in every cycle, and flows that
    halt send nothing. One rate increment for all flows, and line rates of C.
    Claim: acc-a-prop-2. *)
Theorem shares_tend_to_fair_share_from_any_start (S : nat -> R) (i : nat) :
  0 < total N S -> is_lim_seq (fun n => share N (run r N n (State S 0 false)) i) (1 / INR N).
Proof.
  intros some. assert (good := sound_start S some).
  assert (small := contraction_below_one r N r_positive r_at_most_one two_flows).
  set (start := State S 0 false) in *.
  apply is_lim_seq_spec. intros [eps eps_positive]. simpl.
  assert (fades : is_lim_seq (fun k => contraction r N ^ k * Rabs (share N start i - 1 / INR N)) 0).
  { replace (Finite 0) with (Rbar_mult 0 (Rabs (share N start i - 1 / INR N))) by (simpl; f_equal; ring).
    apply is_lim_seq_scal_r, is_lim_seq_geom. rewrite Rabs_pos_eq; lra. }
  apply is_lim_seq_spec in fades. destruct (fades (mkposreal eps eps_positive)) as [k near].
  specialize (near k (le_n k)). simpl in near. rewrite Rminus_0_r in near.
  destruct (many_rises start i k good) as [n first].
  exists n. intros m later. replace m with (m - n + n)%nat by lia.
  apply Rle_lt_trans with (1 := distance_never_grows start i (m - n) n good).
  apply Rle_lt_trans with (1 := first). apply Rle_lt_trans with (2 := near). apply Rle_abs.
Qed.

(** Appendix A, case (2): rates that sum to C or less come to exceed it. *)
Theorem rates_come_to_exceed_capacity (S : nat -> R) :
  0 < total N S -> exists k, 1 < total N (rate (run r N k (State S 0 false))).
Proof.
  intros some.
  assert (step : 0 < r * (INR N - 1)) by (apply Rmult_lt_0_compat; lra).
  assert (climb : forall k, (exists n, 1 < total N (rate (run r N n (State S 0 false)))) \/
    exists high, run r N k (State S 0 false) = State high 0 false /\ INR k * (r * (INR N - 1)) < total N high).
  { induction k as [| k [found | [high [same above]]]].
    - right. exists S. simpl. split; [reflexivity | lra].
    - now left.
    - destruct (Rlt_dec 1 (total N high)) as [over | under].
      + left. exists k. now rewrite same.
      + right. exists (raised r high). simpl run. rewrite same.
        assert (empty : queue_after N (State high 0 false) = 0) by (rewrite queue_after_sending, Rmax_left; lra).
        rewrite period_uncongested by lra. rewrite empty. split; [reflexivity |].
        rewrite total_raised, S_INR.
        assert (0 <= r * (1 - total N high)) by (apply Rmult_le_pos; lra). lra. }
  destruct (whole_number_beyond (1 / (r * (INR N - 1)))) as [k many].
  destruct (climb k) as [found | [high [same above]]]; [exact found |].
  exists k. rewrite same. simpl. apply Rlt_trans with (2 := above).
  apply (Rmult_lt_compat_r (r * (INR N - 1))) in many; [| exact step].
  unfold Rdiv in many. rewrite Rmult_assoc, Rinv_l in many; lra.
Qed.

(** * Increments and line rates that differ *)

(** Section 4.6, Proposition 2, with NICs of line rates L_i, sum L, and RI in proportion: the map of a cycle, each rate
    raised by line 19 of Algorithm 1 with its own line rate, brings the shares nearer to L_i / L, and not to 1/N. *)
Theorem shares_tend_to_line_rates (phi L_i L : R) :
  0 < L ->
  ((1 - r) * phi + r * L_i) / (1 - r + r * L) - L_i / L = (1 - r) / (1 - r + r * L) * (phi - L_i / L).
Proof.
  intros some. assert (0 < r * L) by now apply Rmult_lt_0_compat. field. lra.
Qed.

End Flows.

(** Section 4.6, Proposition 2, with a rate increment r_i of each flow's own: the map of a cycle, (9) with r_i for r,
    keeps a share of 1/N only if the flow's increment is the mean of all. *)
Theorem equal_shares_stay_iff (N : nat) (r : nat -> R) (i : nat) :
  (2 <= N)%nat -> 0 <= total N r ->
  (1 / INR N + r i * (1 - 1 / INR N)) / total N (fun j => 1 / INR N + r j * (1 - 1 / INR N)) = 1 / INR N
  <-> r i = total N r / INR N.
Proof.
  intros two_flows some. assert (many : 2 <= INR N) by (change 2 with (INR 2); now apply le_INR).
  assert (sum : total N (fun j => 1 / INR N + r j * (1 - 1 / INR N)) = 1 + total N r * (1 - 1 / INR N)).
  { rewrite total_plus, total_const, (Rmult_comm (total N r)), <- total_scale.
    f_equal; [field; lra | apply total_ext; intros; ring]. }
  rewrite sum.
  assert (part : 0 < 1 - 1 / INR N).
  { apply (Rmult_lt_reg_r (INR N)); [lra |]. replace ((1 - 1 / INR N) * INR N) with (INR N - 1) by (field; lra). lra. }
  assert (0 <= total N r * (1 - 1 / INR N)) by (apply Rmult_le_pos; lra).
  set (whole := 1 + total N r * (1 - 1 / INR N)) in *.
  split; intros equal.
  - apply (f_equal (fun v => v * whole)) in equal.
    replace ((1 / INR N + r i * (1 - 1 / INR N)) / whole * whole) with (1 / INR N + r i * (1 - 1 / INR N)) in equal
      by (field; unfold whole; lra).
    assert (same : r i * (1 - 1 / INR N) = total N r / INR N * (1 - 1 / INR N)).
    { replace (total N r / INR N * (1 - 1 / INR N)) with (1 / INR N * whole - 1 / INR N)
        by (unfold whole; field; lra). lra. }
    apply Rmult_eq_reg_r in same; lra.
  - apply (Rmult_eq_reg_r whole); [| unfold whole; lra].
    replace ((1 / INR N + r i * (1 - 1 / INR N)) / whole * whole) with (1 / INR N + r i * (1 - 1 / INR N))
      by (field; unfold whole; lra).
    rewrite equal. unfold whole. field. lra.
Qed.

(** Section 4.6, Proposition 2, with two flows of increments r1 and r2: the shares that this map keeps are in proportion
    to the square roots of the increments. That it tends to them is not proved here. *)
Theorem shares_of_two_increments (r1 r2 phi : R) :
  0 < r1 -> 0 < r2 -> 0 < phi < 1 ->
  (phi + r1 * (1 - phi)) / (1 + r1 * (1 - phi) + r2 * phi) = phi <-> phi ^ 2 * r2 = (1 - phi) ^ 2 * r1.
Proof.
  intros first second [low high].
  assert (0 < r1 * (1 - phi)) by (apply Rmult_lt_0_compat; lra).
  assert (0 < r2 * phi) by now apply Rmult_lt_0_compat.
  set (sum := 1 + r1 * (1 - phi) + r2 * phi). assert (0 < sum) by (unfold sum; lra).
  split; intros same.
  - apply (f_equal (fun v => v * sum)) in same.
    replace ((phi + r1 * (1 - phi)) / sum * sum) with (phi + r1 * (1 - phi)) in same by (field; lra).
    unfold sum in same. lra.
  - apply (Rmult_eq_reg_r sum); [| lra].
    replace ((phi + r1 * (1 - phi)) / sum * sum) with (phi + r1 * (1 - phi)) by (field; lra).
    unfold sum. lra.
Qed.

(** Section 4.6, Proposition 2: of two flows, one that rises by RI_Low = C/250 and one by RI_High = C/25, the former
    keeps 0.24 of the link. *)
Theorem shares_of_low_and_high_increment (phi : R) :
  0 < phi < 1 ->
  (phi + 1 / 250 * (1 - phi)) / (1 + 1 / 250 * (1 - phi) + 1 / 25 * phi) = phi -> 24 / 100 < phi < 241 / 1000.
Proof.
  intros inside stays. apply shares_of_two_increments in stays; try lra. split; apply Rnot_le_lt; intros other; nra.
Qed.
