(** HPCC (SIGCOMM 2019), Appendix A.1: a queue fed by periodic sources, the model sum D_i/D/1.

    Time is counted in service times of a packet: the server serves one packet in one unit of time, first come, first
    served. Source i sends its packets at phase_i, phase_i + D_i, phase_i + 2 D_i, ..., with any phase. The queue is
    empty before the first of them. Simultaneous packets stand in any order.

    The packets of all sources are numbered 0, 1, 2, ... in the order in which they arrive; [source m] says whose
    packet m is. All times follow from this. The premise [earliest_first] says that packet m is the earliest of those
    that are still to come; [order_exists] shows that there is such an order for all periods and phases. *)

From Coq Require Import Reals Lra Lia Arith.
From fluidcc.shared Require Import limits sums.

Local Open Scope R_scope.

(** * The queue *)

(** Number of packets of source i among packets 0, ..., m - 1. *)
Fixpoint sent (source : nat -> nat) (i m : nat) : nat :=
  match m with
  | O => 0
  | S k => sent source i k + (if Nat.eqb (source k) i then 1 else 0)
  end.

Section Queue.

(** N: number of sources. *)
Variable sources : nat.

(** D_i [service times]: period of source i. *)
Variable period : nat -> R.

(** When source i sends its first packet [service times]. *)
Variable phase : nat -> R.

(** Whose packet m is. *)
Variable source : nat -> nat.

(** When packet m arrives: it is the k-th of its source (counted from 0), sent at phase + k D. *)
Definition arrival (m : nat) : R := phase (source m) + INR (sent source (source m) m) * period (source m).

(** When the server starts packet m and when it is done with it, one unit later (Lindley): it starts when the packet
    has arrived and the packet before it is done. *)
Fixpoint departure (m : nat) : R :=
  match m with
  | O => arrival 0 + 1
  | S k => Rmax (arrival (S k)) (departure k) + 1
  end.

Definition start (m : nat) : R := departure m - 1.

(** Time that packet m waits for its service. *)
Definition wait (m : nat) : R := start m - arrival m.

(** Number of those of packets 0, ..., m - 1 that have arrived by time t and for which [until] is later. *)
Fixpoint present (until : nat -> R) (t : R) (m : nat) : nat :=
  match m with
  | O => 0
  | S k => present until t k + (if Rle_dec (arrival k) t then if Rlt_dec t (until k) then 1 else 0 else 0)
  end.

(** Number of those of packets 0, ..., m - 1 that have arrived by time t and have not left. *)
Definition in_system : R -> nat -> nat := present departure.

(** Number of those of packets 0, ..., m - 1 that have arrived by time t and whose service has not begun. *)
Definition waiting : R -> nat -> nat := present start.

(** The sum of 1/D_i: packets that arrive per service time. *)
Definition load : R := total sources (fun i => / period i).

Hypothesis periods_positive : forall i, (i < sources)%nat -> 0 < period i.
Hypothesis source_known : forall m, (source m < sources)%nat.
Hypothesis earliest_first :
  forall i m, (i < sources)%nat -> arrival m <= phase i + INR (sent source i m) * period i.

Lemma in_order (m : nat) : arrival m <= arrival (S m).
Proof.
  pose proof (source_known (S m)) as known. pose proof (periods_positive _ known) as positive.
  apply Rle_trans with (1 := earliest_first (source (S m)) m known).
  unfold arrival. apply Rplus_le_compat_l, Rmult_le_compat_r; [lra|].
  apply le_INR. simpl. lia.
Qed.

Lemma arrivals_in_order (l m : nat) : (l <= m)%nat -> arrival l <= arrival m.
Proof.
  intros before. induction before as [|m before IH]; [lra|].
  apply Rle_trans with (1 := IH). apply in_order.
Qed.

(** ** Packets that a source sends in a stretch of time *)

Lemma sent_grows (i l m : nat) : (l <= m)%nat -> (sent source i l <= sent source i m)%nat.
Proof.
  intros before. induction before as [|m before IH]; [lia|]. simpl. lia.
Qed.

(** The first packet of source i from packet l on. *)
Lemma first_from (i l m : nat) :
  (l <= m)%nat -> (sent source i l < sent source i m)%nat ->
  exists n, (l <= n)%nat /\ (n < m)%nat /\ source n = i /\ sent source i n = sent source i l.
Proof.
  intros before. induction before as [|m before IH]; intros more; [lia|].
  destruct (Nat.eq_dec (sent source i m) (sent source i l)) as [none|some].
  - exists m. simpl in more. destruct (Nat.eqb_spec (source m) i) as [its|other]; [|lia].
    repeat split; [lia|lia|exact its|exact none].
  - pose proof (sent_grows i l m before) as grows.
    destruct IH as (n & from & below & its & count); [lia|].
    exists n. repeat split; [lia|lia|exact its|exact count].
Qed.

(** The last packet of source i before packet m. *)
Lemma last_before (i l m : nat) :
  (l <= m)%nat -> (sent source i l < sent source i m)%nat ->
  exists n, (l <= n)%nat /\ (n < m)%nat /\ source n = i /\ S (sent source i n) = sent source i m.
Proof.
  intros before. induction before as [|m before IH]; intros more; [lia|].
  simpl in more |- *. destruct (Nat.eqb_spec (source m) i) as [its|other].
  - exists m. repeat split; [lia|lia|exact its|lia].
  - destruct IH as (n & from & below & its & count); [lia|].
    exists n. repeat split; [lia|lia|exact its|lia].
Qed.

(** In a stretch of time t a source sends at most 1 + t/D packets. *)
Lemma packets_of_a_source (i l m : nat) :
  (i < sources)%nat -> (l <= m)%nat ->
  INR (sent source i (S m)) - INR (sent source i l) <= 1 + (arrival m - arrival l) * / period i.
Proof.
  intros known before.
  pose proof (periods_positive i known) as positive.
  pose proof (arrivals_in_order l m before) as stretch.
  assert (0 <= (arrival m - arrival l) * / period i) as right_side.
  { apply Rmult_le_pos; [lra|]. apply Rlt_le, Rinv_0_lt_compat, positive. }
  destruct (Nat.lt_ge_cases (sent source i l) (sent source i (S m))) as [some|none].
  - destruct (first_from i l (S m)) as (first & from_l & first_below & first_its & first_count); [lia|exact some|].
    destruct (last_before i l (S m)) as (last & last_from & last_below & last_its & last_count); [lia|exact some|].
    assert (arrival l <= arrival first) as after by (apply arrivals_in_order; lia).
    assert (arrival last <= arrival m) as until by (apply arrivals_in_order; lia).
    unfold arrival in after at 2. unfold arrival in until at 1.
    rewrite first_its, first_count in after. rewrite last_its in until.
    rewrite <- last_count, S_INR.
    assert ((INR (sent source i last) - INR (sent source i l)) * period i <= arrival m - arrival l) as span by lra.
    apply Rmult_le_compat_r with (r := / period i) in span; [|apply Rlt_le, Rinv_0_lt_compat, positive].
    rewrite Rmult_assoc, Rinv_r in span by lra. lra.
  - apply le_INR in none. lra.
Qed.

(** Each packet is one source's. *)
Lemma packets_of_all (m : nat) : total sources (fun i => INR (sent source i m)) = INR m.
Proof.
  induction m as [|m IH].
  - apply total_zero.
  - rewrite S_INR, <- IH.
    rewrite (total_ext sources _ (fun i => INR (sent source i m) + (if Nat.eqb (source m) i then 1 else 0))).
    + rewrite total_plus. f_equal.
      rewrite (total_single _ _ (source m)).
      * rewrite Nat.eqb_refl. reflexivity.
      * apply source_known.
      * intros j _ other. destruct (Nat.eqb_spec (source m) j) as [same|_]; [congruence|reflexivity].
    + intros i _. simpl. rewrite plus_INR. destruct (Nat.eqb (source m) i); reflexivity.
Qed.

(** Packets l, ..., m are at most N and the load times the stretch of time in which they arrive. *)
Lemma packets_between (l m : nat) :
  (l <= m)%nat -> INR (S m) - INR l <= INR sources + (arrival m - arrival l) * load.
Proof.
  intros before. rewrite <- (packets_of_all (S m)), <- (packets_of_all l), <- total_minus.
  unfold load. rewrite <- total_scale, <- (Rmult_1_r (INR sources)), <- total_const, <- total_plus.
  apply total_le. intros i known. apply packets_of_a_source; assumption.
Qed.

(** ** Reich's formula *)

(** Packet m leaves at the earliest when it and those from any packet l on are served one after another. *)
Lemma departure_at_least (l m : nat) : (l <= m)%nat -> arrival l + (INR (S m) - INR l) <= departure m.
Proof.
  intros before. induction before as [|m before IH].
  - rewrite S_INR. destruct l as [|l]; simpl departure; [lra|].
    pose proof (Rmax_l (arrival (S l)) (departure l)). lra.
  - rewrite S_INR. simpl departure. pose proof (Rmax_r (arrival (S m)) (departure m)). lra.
Qed.

(** And it leaves exactly then for one of them, the first of its busy period. *)
Lemma departure_attained (m : nat) : exists l, (l <= m)%nat /\ departure m = arrival l + (INR (S m) - INR l).
Proof.
  induction m as [|m IH].
  - exists 0%nat. split; [lia|]. simpl. lra.
  - simpl departure. unfold Rmax. destruct (Rle_dec (arrival (S m)) (departure m)) as [busy|idle].
    + destruct IH as (l & before & same). exists l. split; [lia|]. rewrite same, (S_INR (S m)). lra.
    + exists (S m). split; [lia|]. rewrite (S_INR (S m)). lra.
Qed.

(** Reich's formula: the work in hand when packet m has arrived is the largest, over the packets l up to m, of the
    packets l, ..., m less the time since l arrived. *)
Theorem reich_formula (m : nat) (work : R) :
  departure m - arrival m <= work <->
  (forall l, (l <= m)%nat -> (INR (S m) - INR l) - (arrival m - arrival l) <= work).
Proof.
  split.
  - intros most l before. pose proof (departure_at_least l m before). lra.
  - intros each. destruct (departure_attained m) as (l & before & same). pose proof (each l before). lra.
Qed.

(** The packets counted by [present] lie between an oldest and a latest one. *)
Lemma present_span (until : nat -> R) (t : R) (m : nat) :
  present until t m = 0%nat \/
  exists old new, (old <= new < m)%nat /\ arrival new <= t < until old /\ (present until t m <= S new - old)%nat.
Proof.
  induction m as [|m IH]; [left; reflexivity|]. cbn [present].
  destruct (Rle_dec (arrival m) t) as [here|]; [destruct (Rlt_dec t (until m)) as [stays|]|].
  - right. destruct IH as [none|(old & new & order & (came & not_left) & count)].
    + exists m, m. rewrite none. repeat split; lia || assumption.
    + exists old, m. repeat split; lia || assumption.
  - rewrite Nat.add_0_r. destruct IH as [none|(old & new & order & between & count)]; [left; exact none|].
    right. exists old, new. repeat split; lia || apply between.
  - rewrite Nat.add_0_r. destruct IH as [none|(old & new & order & between & count)]; [left; exact none|].
    right. exists old, new. repeat split; lia || apply between.
Qed.

(** ** Load beyond 1 *)

(** Sources send at least so many packets before packet m. *)
Lemma packets_at_least (m : nat) :
  arrival m * load - total sources (fun i => phase i * / period i) <= INR m.
Proof.
  rewrite <- (packets_of_all m). unfold load. rewrite <- total_scale, <- total_minus.
  apply total_le. intros i known.
  pose proof (periods_positive i known) as positive.
  pose proof (earliest_first i m known) as earliest.
  assert (0 < / period i) as inverse by (apply Rinv_0_lt_compat, positive).
  apply Rmult_le_compat_r with (r := / period i) in earliest; [|lra].
  rewrite Rmult_plus_distr_r, Rmult_assoc, Rinv_r in earliest by lra. lra.
Qed.

(** A.1, beyond: at a load above 1 the work in hand when packet m has arrived grows in proportion to m. *)
Theorem overload_grows (m : nat) :
  1 < load ->
  (1 - 1 / load) * INR m + 1 + arrival 0 - total sources (fun i => phase i * / period i) / load
    <= departure m - arrival m.
Proof.
  intros over. pose proof (departure_at_least 0 m ltac:(lia)) as late. rewrite S_INR in late. simpl (INR 0) in late.
  pose proof (packets_at_least m) as many.
  assert (arrival m <= (INR m + total sources (fun i => phase i * / period i)) / load) as early.
  { apply Rmult_le_reg_r with load; [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  unfold Rdiv in *. lra.
Qed.

(** ** Bounds at a load of at most 1 *)

Hypothesis load_at_most_one : load <= 1.

Lemma packets_between_bound (l m : nat) :
  (l <= m)%nat -> INR (S m) - INR l <= INR sources + (arrival m - arrival l).
Proof.
  intros before. apply Rle_trans with (1 := packets_between l m before).
  pose proof (arrivals_in_order l m before) as stretch.
  assert ((arrival m - arrival l) * load <= (arrival m - arrival l) * 1) by (apply Rmult_le_compat_l; lra).
  lra.
Qed.

(** A.1: up to full load no packet of N periodic sources waits longer than N - 1 service times, whatever the periods and
    phases. *)
Theorem wait_at_most_other_sources (m : nat) : wait m <= INR sources - 1.
Proof.
  unfold wait, start. destruct (departure_attained m) as (l & before & same).
  pose proof (packets_between_bound l m before). lra.
Qed.

(** A.1: up to full load ("the queue remains stable even at 100% load") the work in hand, the time that the server takes
    to empty the queue if no more packets come, is at most N service times at any time t: here since the last packet m
    that has arrived. *)
Theorem work_at_most_sources (m : nat) (t : R) : arrival m <= t -> departure m - t <= INR sources.
Proof.
  intros came. pose proof (wait_at_most_other_sources m) as bound. unfold wait, start in bound. lra.
Qed.

(** A.1: up to full load at most N packets are in the system at any time, the one in service counted; m packets have
    been looked at, any number. *)
Theorem queue_at_most_sources (t : R) (m : nat) : (in_system t m <= sources)%nat.
Proof.
  destruct (present_span departure t m) as [none|(old & new & order & (came & not_left) & count)];
    fold in_system in *; [lia|].
  apply Nat.le_trans with (1 := count). apply INR_le.
  destruct (departure_attained old) as (l & before & same).
  pose proof (packets_between_bound l new ltac:(lia)) as bound.
  assert (INR (S new) < INR (sources + S old)) as strict by (rewrite plus_INR; lra).
  apply INR_lt in strict. apply le_INR. lia.
Qed.

(** A.1: up to full load at most N - 1 packets wait at any time, the one in service not counted. *)
Theorem waiting_at_most_other_sources (t : R) (m : nat) : (waiting t m <= sources - 1)%nat.
Proof.
  destruct (present_span start t m) as [none|(old & new & order & (came & not_left) & count)];
    fold waiting in *; [lia|].
  apply Nat.le_trans with (1 := count).
  destruct (departure_attained old) as (l & before & same). unfold start in not_left.
  pose proof (packets_between_bound l new ltac:(lia)) as bound.
  rewrite S_INR in same.
  assert (INR (S new) < INR (sources + old)) as strict by (rewrite plus_INR; lra).
  apply INR_lt in strict. lia.
Qed.

End Queue.

Section Answers.

Variables (sources : nat) (period phase : nat -> R) (source : nat -> nat).

Hypothesis periods_positive : forall i, (i < sources)%nat -> 0 < period i.
Hypothesis source_known : forall m, (source m < sources)%nat.
Hypothesis earliest_first :
  forall i m, (i < sources)%nat -> arrival period phase source m <= phase i + INR (sent source i m) * period i.

(** A.1: the waiting times of periodic sources have a bound if and only if the load is at most 1: the queue remains
    stable at 100 % load, and at no higher one. *)
Theorem stable_iff_load_at_most_one :
  (exists bound, forall m, wait period phase source m <= bound) <-> load sources period <= 1.
Proof.
  split.
  - intros [bound most]. apply Rnot_lt_le. intros over.
    pose proof (overload_grows sources period phase source periods_positive source_known earliest_first) as grows.
    set (rest := 1 + arrival period phase source 0 -
      total sources (fun i => phase i * / period i) / load sources period).
    assert (0 < 1 - 1 / load sources period) as slope.
    { apply Rlt_Rminus. apply Rmult_lt_reg_r with (load sources period); [lra|].
      unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
    destruct (whole_number_beyond ((bound + 1 - rest) / (1 - 1 / load sources period))) as [m beyond].
    apply Rmult_lt_compat_l with (r := 1 - 1 / load sources period) in beyond; [|exact slope].
    replace ((1 - 1 / load sources period) * ((bound + 1 - rest) / (1 - 1 / load sources period)))
      with (bound + 1 - rest) in beyond by (field; lra).
    pose proof (most m) as below. unfold wait, start in below. pose proof (grows m over). unfold rest in *. lra.
  - intros most. exists (INR sources - 1). intros m.
    apply wait_at_most_other_sources; assumption.
Qed.

(** A.1: "if more than a small number of packets are queued then it is almost certainly because the load on the resource
    exceeds its capacity": if more than N are, counting the one in service, it is so for certain. *)
Theorem more_than_sources_means_overload (t : R) (m : nat) :
  (sources < in_system period phase source t m)%nat -> 1 < load sources period.
Proof.
  intros many. apply Rnot_le_lt. intros most.
  pose proof (queue_at_most_sources sources period phase source periods_positive source_known earliest_first most t m).
  lia.
Qed.

End Answers.

(** * An order of the packets *)

(** The i below n at which f is least. *)
Fixpoint least (n : nat) (f : nat -> R) : nat :=
  match n with
  | O => 0
  | S k => if Rle_dec (f (least k f)) (f k) then least k f else k
  end.

Lemma least_below (n : nat) (f : nat -> R) : (0 < n)%nat -> (least n f < n)%nat.
Proof.
  induction n as [|n IH]; intros some; [lia|].
  simpl. destruct (Rle_dec (f (least n f)) (f n)) as [earlier|last]; [|lia].
  destruct n as [|n]; [simpl; lia|]. specialize (IH ltac:(lia)). lia.
Qed.

Lemma least_is_least (n : nat) (f : nat -> R) (i : nat) : (i < n)%nat -> f (least n f) <= f i.
Proof.
  induction n as [|n IH]; intros below; [lia|].
  simpl. destruct (Rle_dec (f (least n f)) (f n)) as [earlier|last].
  - destruct (Nat.eq_dec i n) as [same|other]; [subst i; exact earlier|]. apply IH. lia.
  - destruct (Nat.eq_dec i n) as [same|other]; [subst i; lra|]. specialize (IH ltac:(lia)). lra.
Qed.

Section Order.

Variables (sources : nat) (period phase : nat -> R).

Hypothesis some : (0 < sources)%nat.

(** How many packets of each source are among the first m, if always the earliest comes next. *)
Fixpoint merged (m : nat) : nat -> nat :=
  match m with
  | O => fun _ => 0%nat
  | S k =>
    let next := least sources (fun i => phase i + INR (merged k i) * period i) in
    fun i => (merged k i + (if Nat.eqb next i then 1 else 0))%nat
  end.

Definition earliest (m : nat) : nat := least sources (fun i => phase i + INR (merged m i) * period i).

Lemma sent_is_merged (i m : nat) : sent earliest i m = merged m i.
Proof. induction m as [|m IH]; simpl; [reflexivity|]. rewrite IH. reflexivity. Qed.

Lemma earliest_known (m : nat) : (earliest m < sources)%nat.
Proof. apply least_below, some. Qed.

Lemma earliest_is_first (i m : nat) :
  (i < sources)%nat -> arrival period phase earliest m <= phase i + INR (sent earliest i m) * period i.
Proof.
  intros known. unfold arrival. rewrite !sent_is_merged.
  apply (least_is_least sources (fun k => phase k + INR (merged m k) * period k) i known).
Qed.

(** The premises on the order hold for some order, for all periods and phases. *)
Theorem order_exists :
  exists source, (forall m, (source m < sources)%nat) /\
    (forall i m, (i < sources)%nat ->
      arrival period phase source m <= phase i + INR (sent source i m) * period i).
Proof. exists earliest. split; [exact earliest_known|exact earliest_is_first]. Qed.

(** ** The bounds are the best ones *)

Hypothesis periods_positive : forall i, (i < sources)%nat -> 0 < period i.
Hypothesis together : forall i, (i < sources)%nat -> phase i = 0.

Lemma first_packets_together (m : nat) : (m < sources)%nat -> arrival period phase earliest m = 0.
Proof.
  intros few. apply Rle_antisym.
  - destruct (Rle_or_lt (arrival period phase earliest m) 0) as [done|late]; [exact done|exfalso].
    assert (total sources (fun _ => 1) <= total sources (fun i => INR (sent earliest i m))) as many.
    { apply total_le. intros i known. pose proof (earliest_is_first i m known) as first.
      rewrite together in first by exact known.
      destruct (sent earliest i m) as [|k] eqn:count; [simpl in first; lra|].
      rewrite S_INR. pose proof (pos_INR k). lra. }
    rewrite (packets_of_all sources earliest earliest_known), total_const in many.
    apply lt_INR in few. lra.
  - unfold arrival. rewrite together by apply earliest_known.
    pose proof (periods_positive _ (earliest_known m)).
    pose proof (pos_INR (sent earliest (earliest m) m)).
    assert (0 <= INR (sent earliest (earliest m) m) * period (earliest m)) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma first_departures (m : nat) : (m < sources)%nat -> departure period phase earliest m = INR (S m).
Proof.
  induction m as [|m IH]; intros few.
  - simpl. rewrite first_packets_together by exact few. lra.
  - rewrite (S_INR (S m)), <- (IH ltac:(lia)). simpl. rewrite first_packets_together by exact few.
    f_equal. apply Rmax_right. rewrite IH by lia. apply pos_INR.
Qed.

Lemma in_system_at_start (m : nat) : (m <= sources)%nat -> in_system period phase earliest 0 m = m.
Proof.
  unfold in_system. induction m as [|m IH]; intros few; [reflexivity|].
  cbn [present]. rewrite IH by lia. rewrite first_packets_together, first_departures by lia.
  pose proof (pos_INR m) as sign. rewrite S_INR.
  destruct (Rle_dec 0 0) as [_|no]; [|lra]. destruct (Rlt_dec 0 (INR m + 1)) as [_|no]; [lia|lra].
Qed.

Lemma waiting_at_start (m : nat) : (m <= sources)%nat -> waiting period phase earliest 0 m = (m - 1)%nat.
Proof.
  unfold waiting. induction m as [|m IH]; intros few; [reflexivity|].
  cbn [present]. rewrite IH by lia. unfold start. rewrite first_packets_together, first_departures by lia.
  rewrite S_INR. destruct (Rle_dec 0 0) as [_|no]; [|lra].
  destruct m as [|m].
  - simpl. destruct (Rlt_dec 0 (0 + 1 - 1)) as [no|_]; [lra|reflexivity].
  - pose proof (pos_INR m) as sign. rewrite S_INR.
    destruct (Rlt_dec 0 (INR m + 1 + 1 - 1)) as [_|no]; [lia|lra].
Qed.

(** If all sources begin together, at time 0, the bound N is reached, and N - 1 wait: whatever the periods are, so at
    any load. *)
Theorem bound_is_attained :
  exists source, (forall m, (source m < sources)%nat) /\
    (forall i m, (i < sources)%nat ->
      arrival period phase source m <= phase i + INR (sent source i m) * period i) /\
    in_system period phase source 0 sources = sources /\ waiting period phase source 0 sources = (sources - 1)%nat.
Proof.
  exists earliest. split; [exact earliest_known|]. split; [exact earliest_is_first|].
  split; [apply in_system_at_start|apply waiting_at_start]; lia.
Qed.

End Order.
