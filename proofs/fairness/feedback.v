(** Fast convergence to fairness, section IV-A: what lasting congestion does to Variable AI's increase, and when the
    loop of increases that make congestion that makes tokens comes to an end.

    The machine, Algorithms 1 and 2, is in tokens.v; all is in rational numbers and needs no axioms. *)

From Coq Require Import QArith Qminmax Lqa List Lia.
From fluidcc.fairness Require Import tokens.
Import ListNotations.

Open Scope Q_scope.

Arguments count n : simpl never.

Section Machine.

Variable of : settings.
Hypotheses (div_positive : 0 < ai_div of) (thresh_positive : 0 < token_thresh of).
Hypotheses (bank_cap_positive : 0 < bank_cap of) (ai_cap_positive : 0 < ai_cap of).
Hypotheses (constant_positive : 0 < dampener_constant of) (base_positive : 0 < base_ai of).

(** * RTTs of congestion in a row *)

(** In these events each RTT's congestion is above Token_Thresh. *)
Definition all_congested (events : list event) : Prop :=
  forall happens, In happens events ->
  match happens with Round_trip congestion _ => token_thresh of < congestion | Increase _ => True end.

Fixpoint round_trips (events : list event) : nat :=
  match events with
  | [] => 0
  | Round_trip _ _ :: later => S (round_trips later)
  | Increase _ :: later => round_trips later
  end.

Lemma dampener_counts (events : list event) (now : sender) :
  all_congested events -> dampener now + count (round_trips events) <= dampener (run of events now).
Proof.
  revert now. induction events as [| first later each]; intros now congested.
  - simpl. change (count 0) with 0. lra.
  - assert (rest : all_congested later) by (intros happens inside; apply congested; now right).
    assert (here := congested first (or_introl eq_refl)).
    assert (most := each (step of first now) rest).
    destruct first as [congestion none | adjustment]; simpl in *.
    + assert (rises := dampener_rises_by_more_than_one of thresh_positive congestion none now here).
      assert (next := count_next (round_trips later)). lra.
    + destruct adjustment; simpl in *; lra.
Qed.

(** Section IV-A, "dampener increases quickly": after n RTTs of congestion above Token_Thresh in a row the increase is
    at most AI_Cap base_AI/(1 + n/Dampener_Constant), or base_AI, whatever came before them. That a lower increase
    creates less congestion is not part of it.
    Claim: vai-dampener. *)
Theorem increase_after_congested_row (tokens damp : Q) (before recent : list event) :
  0 <= tokens -> tokens <= bank_cap of -> 0 <= damp -> all_congested recent ->
  additive_increase of (run of (before ++ recent) (start tokens damp)) <=
  Qmax (ai_cap of / (count (round_trips recent) / dampener_constant of + 1)) 1 * base_ai of.
Proof.
  intros some within damped congested. rewrite run_app.
  set (now := run of before (start tokens damp)).
  assert (good : sound of tokens now) by now apply sound_run, sound_start.
  assert (later : sound of tokens (run of recent now)) by now apply sound_run.
  apply increase_within; try assumption.
  - apply later.
  - apply count_positive.
  - assert (most := dampener_counts recent now congested). destruct good as [_ [_ [least _]]]. lra.
Qed.

(** * The same congestion in each RTT *)

(** n RTTs of one congestion, an adjustment after each. *)
Fixpoint lasting (congestion : Q) (n : nat) : list event :=
  match n with
  | O => []
  | S k => Round_trip congestion false :: Increase true :: lasting congestion k
  end.

Lemma dampener_of_lasting (congestion : Q) (n : nat) (now : sender) :
  token_thresh of < congestion ->
  dampener (run of (lasting congestion n) now) == dampener now + count n * (congestion / token_thresh of).
Proof.
  intros above. revert now. induction n as [| n each]; intros now.
  - simpl. change (count 0) with 0. lra.
  - simpl. rewrite each. simpl. unfold round_trip. destruct (Qlt_le_dec (token_thresh of) congestion); [| lra].
    simpl. rewrite count_next. ring.
Qed.

(** Section IV-A, "dampener increases quickly": the increase after n + 1 RTTs of the same congestion, from a dampener of
    0, if each makes AI_Cap tokens or more. *)
Theorem increase_under_lasting_congestion (tokens congestion : Q) (n : nat) :
  0 <= tokens -> tokens <= bank_cap of -> ai_cap of <= bank_cap of -> token_thresh of < congestion ->
  ai_cap of <= tokens_made of congestion ->
  additive_increase of (run of (lasting congestion n ++ [Round_trip congestion false]) (start tokens 0)) ==
  Qmax (ai_cap of / ((count n + 1) * (congestion / token_thresh of) / dampener_constant of + 1)) 1 * base_ai of.
Proof.
  intros some within caps above many. rewrite run_app.
  set (now := run of (lasting congestion n) (start tokens 0)).
  assert (good : sound of tokens now) by (apply sound_run, sound_start; try assumption; lra).
  assert (damped : dampener now == count n * (congestion / token_thresh of)).
  { unfold now. rewrite dampener_of_lasting by exact above. simpl. lra. }
  destruct good as [left _]. simpl. unfold round_trip, additive_increase.
  destruct (Qlt_le_dec (token_thresh of) congestion); [| lra]. unfold tokens_used. simpl.
  assert (all : Qmin (ai_cap of) (Qmin (tokens_made of congestion + bank now) (bank_cap of)) == ai_cap of).
  { apply Q.min_l. apply Q.min_glb; lra. }
  rewrite all, damped.
  setoid_replace (count n * (congestion / token_thresh of) + congestion / token_thresh of)
    with ((count n + 1) * (congestion / token_thresh of)) by ring.
  reflexivity.
Qed.

(** Section V-A: with the same tokens, a flow with a larger dampener has no higher increase. *)
Theorem larger_dampener_no_higher_increase (longer newer : sender) :
  0 <= bank longer -> bank longer == bank newer -> 0 <= dampener newer -> dampener newer <= dampener longer ->
  additive_increase of longer <= additive_increase of newer.
Proof.
  intros some same damped ordered. unfold additive_increase.
  assert (equal : tokens_used of longer == tokens_used of newer) by (unfold tokens_used; now rewrite same).
  destruct (tokens_used_bounds of ai_cap_positive longer some) as [none _].
  apply Qmult_le_compat_r; [| lra]. apply Q.max_le_compat_r. rewrite <- equal.
  assert (low : 0 <= dampener newer / dampener_constant of) by now apply quotient_positive.
  assert (high : dampener newer / dampener_constant of <= dampener longer / dampener_constant of).
  { apply Qmult_le_compat_r; [exact ordered |]. now apply Qlt_le_weak, Qinv_lt_0_compat. }
  set (few := dampener newer / dampener_constant of) in *. set (many := dampener longer / dampener_constant of) in *.
  apply Qle_shift_div_l; [lra |].
  setoid_replace (tokens_used of longer / (many + 1) * (few + 1))
    with (tokens_used of longer * (few + 1) / (many + 1)) by (field; lra).
  apply Qle_shift_div_r; [lra | nra].
Qed.

(** Section V-A: and a new flow, whose dampener is smaller than that of one that was congested for long, has a higher
    increase, with the same tokens, as long as these raise its increase above base_AI.
    Claim: vai-new-joiner. *)
Theorem smaller_dampener_higher_increase (longer newer : sender) :
  0 <= bank longer -> bank longer == bank newer -> 0 <= dampener newer -> dampener newer < dampener longer ->
  base_ai of < additive_increase of newer -> additive_increase of longer < additive_increase of newer.
Proof.
  intros some same damped ordered raised. unfold additive_increase in *.
  assert (equal : tokens_used of longer == tokens_used of newer) by (unfold tokens_used; now rewrite same).
  rewrite equal. set (used := tokens_used of newer) in *.
  assert (low : 0 <= dampener newer / dampener_constant of) by now apply quotient_positive.
  assert (high : dampener newer / dampener_constant of < dampener longer / dampener_constant of).
  { apply Qmult_lt_compat_r; [now apply Qinv_lt_0_compat | exact ordered]. }
  set (few := dampener newer / dampener_constant of) in *. set (many := dampener longer / dampener_constant of) in *.
  assert (above : 1 < used / (few + 1)).
  { destruct (Qlt_le_dec 1 (used / (few + 1))) as [good | bad]; [exact good |].
    rewrite (Q.max_r _ _ bad) in raised. lra. }
  assert (tokens : few + 1 < used).
  { destruct (Qlt_le_dec (few + 1) used) as [good | bad]; [exact good |].
    assert (absurd : used / (few + 1) <= 1) by (apply Qle_shift_div_r; lra). lra. }
  apply Qmult_lt_compat_r; [exact base_positive |]. apply Q.max_lub_lt; [| now apply Q.max_lt_iff; left].
  apply Q.max_lt_iff. left. apply Qlt_shift_div_l; [lra |].
  setoid_replace (used / (many + 1) * (few + 1)) with (used * (few + 1) / (many + 1)) by (field; lra).
  apply Qlt_shift_div_r; [lra | nra].
Qed.

(** * The loop *)

Section Loop.

(** Congestion of the RTT after an increase, as the flow's network answers it; and No Congestion, the scheme's word. *)
Variables (answer : Q -> Q) (none : Q -> bool).
Hypothesis answer_never_falls : forall less more, less <= more -> answer less <= answer more.

(** An RTT: Algorithm 1 on the congestion measured, Algorithm 2, and the congestion that the increase makes. *)
Definition turn (now : sender * Q) : sender * Q :=
  let after := round_trip of (snd now) (none (snd now)) (fst now) in
  (adjust of true after, answer (additive_increase of after)).

Fixpoint turns (n : nat) (now : sender * Q) : sender * Q :=
  match n with
  | O => now
  | S k => turn (turns k now)
  end.

Lemma turns_plus (m n : nat) (now : sender * Q) : turns (m + n) now = turns m (turns n now).
Proof. induction m as [| m same]; [reflexivity |]. simpl. now rewrite same. Qed.

Lemma sound_event (initial : Q) (happens : event) (now : sender) :
  sound of initial now -> sound of initial (step of happens now).
Proof. intros good. now apply sound_step. Qed.

Lemma sound_turn (initial : Q) (now : sender * Q) :
  sound of initial (fst now) -> sound of initial (fst (turn now)).
Proof.
  intros good. unfold turn. simpl fst.
  apply (sound_event initial (Increase true)).
  now apply (sound_event initial (Round_trip (snd now) (none (snd now)))).
Qed.

(** The loop is over: no tokens, and no congestion that makes any. *)
Definition over (now : sender * Q) : Prop := bank (fst now) == 0 /\ snd now <= token_thresh of.

Lemma increase_without_tokens (now : sender) : bank now == 0 -> additive_increase of now == base_ai of.
Proof.
  intros empty. unfold additive_increase.
  assert (no_tokens : tokens_used of now == 0).
  { unfold tokens_used. rewrite empty. apply Q.min_r. lra. }
  rewrite no_tokens.
  setoid_replace (0 / (dampener now / dampener_constant of + 1)) with 0 by (unfold Qdiv; ring).
  rewrite Q.max_r by lra. ring.
Qed.

Lemma answer_to_base (increase : Q) : increase == base_ai of -> answer increase <= answer (base_ai of).
Proof. intros same. apply answer_never_falls. lra. Qed.

Lemma quiet_round_trip (congestion : Q) (flag : bool) (now : sender) :
  congestion <= token_thresh of -> bank (round_trip of congestion flag now) = bank now.
Proof.
  intros below. unfold round_trip. destruct (Qlt_le_dec (token_thresh of) congestion); [lra |].
  destruct (Qeq_dec (bank now) 0); [| reflexivity]. destruct flag; [reflexivity |].
  now destruct (Qlt_le_dec congestion (token_thresh of)).
Qed.

Lemma over_stays (now : sender * Q) : answer (base_ai of) <= token_thresh of -> over now -> over (turn now).
Proof.
  intros small [empty below]. unfold over, turn. simpl.
  set (after := round_trip of (snd now) (none (snd now)) (fst now)).
  assert (still : bank after == 0) by (unfold after; now rewrite quiet_round_trip).
  split.
  - unfold tokens_used. apply Q.max_r.
    destruct (Q.min_spec (ai_cap of) (bank after)) as [[order least] | [order least]]; lra.
  - apply Qle_trans with (2 := small). apply answer_to_base. now apply increase_without_tokens.
Qed.

(** With a dampener of Dampener_Constant AI_Cap the increase is base_AI. *)
Lemma increase_of_large_dampener (now : sender) :
  0 <= bank now -> dampener_constant of * ai_cap of <= dampener now -> additive_increase of now == base_ai of.
Proof.
  intros some large. unfold additive_increase.
  destruct (tokens_used_bounds of ai_cap_positive now some) as [_ [_ most]].
  assert (divisor : ai_cap of <= dampener now / dampener_constant of).
  { apply Qle_shift_div_l; [exact constant_positive | lra]. }
  rewrite Q.max_r; [ring |]. apply Qle_shift_div_r; lra.
Qed.

(** A turn without congestion, with tokens, changes the bank alone. *)
Lemma quiet_turn (now : sender * Q) :
  snd now <= token_thresh of -> ~ bank (fst now) == 0 ->
  turn now = (adjust of true (fst now), answer (additive_increase of (fst now))).
Proof.
  intros below rest. unfold turn, round_trip. destruct (Qlt_le_dec (token_thresh of) (snd now)); [lra |].
  destruct (Qeq_dec (bank (fst now)) 0); [contradiction | reflexivity].
Qed.

Lemma bank_falls_by_cap (K : nat) (now : sender) :
  bank now <= count (S K) * ai_cap of -> bank (adjust of true now) <= count K * ai_cap of.
Proof.
  intros bound. simpl. unfold tokens_used. rewrite count_next in bound.
  assert (0 <= count K * ai_cap of) by (apply Qmult_le_0_compat; [apply count_positive | lra]).
  apply Q.max_lub; [| assumption].
  destruct (Q.min_spec (ai_cap of) (bank now)) as [[order least] | [order least]]; lra.
Qed.

(** The loop ends, or congestion comes before the dampener has changed: that of [now], or of a later increase. *)
Lemma over_or_congested (K : nat) (initial : Q) (now : sender * Q) :
  sound of initial (fst now) -> bank (fst now) <= count K * ai_cap of ->
  exists n, over (turns n now) \/
    sound of initial (fst (turns n now)) /\ dampener (fst (turns n now)) = dampener (fst now) /\
    token_thresh of < snd (turns n now) /\
    (snd (turns n now) = snd now \/
     exists before, 0 <= bank before /\ dampener before = dampener (fst now) /\
       snd (turns n now) = answer (additive_increase of before)).
Proof.
  revert now. induction K as [| K less]; intros now good bound; assert (some := proj1 good);
    (destruct (Qlt_le_dec (token_thresh of) (snd now)) as [above | below]; [exists 0%nat; right; auto |]).
  - exists 0%nat. left. change (count 0) with 0 in bound. split; simpl; [lra | exact below].
  - destruct (Qeq_dec (bank (fst now)) 0) as [empty | rest]; [exists 0%nat; now left |].
    assert (next := sound_turn initial now good). assert (quiet := quiet_turn now below rest). rewrite quiet in next.
    destruct (less (adjust of true (fst now), answer (additive_increase of (fst now))) next) as [n ends].
    + now apply bank_falls_by_cap.
    + exists (n + 1)%nat. rewrite turns_plus. change (turns 1 now) with (turn now). rewrite quiet.
      destruct ends as [ends | [sound_then [same [above [here | later]]]]]; [now left | |]; right; eauto 8.
Qed.

Lemma over_with_large_dampener (K : nat) (initial : Q) (now : sender * Q) :
  answer (base_ai of) <= token_thresh of -> sound of initial (fst now) ->
  dampener_constant of * ai_cap of <= dampener (fst now) -> snd now <= token_thresh of ->
  bank (fst now) <= count K * ai_cap of -> exists n, over (turns n now).
Proof.
  intros small good large below bound.
  destruct (over_or_congested K initial now good bound) as [n [ends | [_ [_ [above [here | later]]]]]].
  - now exists n.
  - rewrite here in above. lra.
  - destruct later as [before [some [same from]]]. rewrite from in above. rewrite <- same in large.
    assert (less := answer_to_base _ (increase_of_large_dampener before some large)). lra.
Qed.

Lemma natural_above (x : Q) : exists J, x <= count J.
Proof.
  destruct (Qarchimedean x) as [p above]. exists (Pos.to_nat p).
  unfold count. rewrite positive_nat_Z. now apply Qlt_le_weak.
Qed.

Lemma bank_cap_in_steps : exists K, bank_cap of <= count K * ai_cap of.
Proof.
  destruct (natural_above (bank_cap of / ai_cap of)) as [K above]. exists K.
  assert (same : bank_cap of == bank_cap of / ai_cap of * ai_cap of) by (field; lra).
  rewrite same. apply Qmult_le_compat_r; [exact above | lra].
Qed.

Lemma over_by_dampener (J : nat) (initial : Q) (now : sender * Q) :
  answer (base_ai of) <= token_thresh of -> sound of initial (fst now) ->
  dampener_constant of * ai_cap of <= dampener (fst now) + count J -> exists n, over (turns n now).
Proof.
  intros small. destruct bank_cap_in_steps as [most cap_steps].
  assert (rising : forall at_turn : sender * Q, token_thresh of < snd at_turn ->
            dampener (fst at_turn) + 1 <= dampener (fst (turn at_turn))).
  { intros at_turn above. unfold turn. simpl.
    assert (more := dampener_rises_by_more_than_one of thresh_positive (snd at_turn) (none (snd at_turn))
      (fst at_turn) above). lra. }
  assert (bound : forall at_turn : sender * Q, sound of initial (fst at_turn) ->
            bank (fst at_turn) <= count most * ai_cap of).
  { intros at_turn [_ [within _]]. lra. }
  revert now. induction J as [| J less]; intros now good near.
  - change (count 0) with 0 in near.
    destruct (Qlt_le_dec (token_thresh of) (snd now)) as [above | below].
    + assert (more := rising now above). assert (after := sound_turn initial now good).
      destruct (over_with_large_dampener most initial (turn now)) as [n ends]; try assumption.
      * lra.
      * unfold turn. simpl. apply Qle_trans with (2 := small). apply answer_to_base.
        apply increase_of_large_dampener.
        -- now apply (sound_event initial (Round_trip (snd now) (none (snd now)))).
        -- unfold turn in more. simpl in more. lra.
      * now apply bound.
      * exists (n + 1)%nat. now rewrite turns_plus.
    + apply (over_with_large_dampener most initial); try assumption; [lra | now apply bound].
  - destruct (over_or_congested most initial now good (bound now good)) as [n [ends | [sound_then [same [above _]]]]].
    + now exists n.
    + destruct (less (turn (turns n now))) as [m ends].
      * now apply sound_turn.
      * assert (more := rising (turns n now) above). rewrite same in more. rewrite count_next in near. lra.
      * exists (m + S n)%nat. now rewrite turns_plus.
Qed.

Section Begun.

(** A sender with some tokens and a dampener, in whose first RTT some congestion is measured. *)
Variables tokens damp congestion : Q.
Hypotheses (some_tokens : 0 <= tokens) (within_cap : tokens <= bank_cap of) (some_damp : 0 <= damp).

Let good (n : nat) : sound of tokens (fst (turns n (start tokens damp, congestion))).
Proof. induction n as [| n before]; [now apply sound_start |]. simpl turns. now apply sound_turn. Qed.

Lemma over_from_some_turn :
  answer (base_ai of) <= token_thresh of ->
  exists n, forall m, (n <= m)%nat -> over (turns m (start tokens damp, congestion)).
Proof.
  intros small. destruct (natural_above (dampener_constant of * ai_cap of)) as [J enough].
  destruct (over_by_dampener J tokens (start tokens damp, congestion) small (good 0)) as [n ends].
  { simpl. lra. }
  exists n. intros m later. replace m with (m - n + n)%nat by lia. rewrite turns_plus.
  induction (m - n)%nat as [| k before]; [exact ends |]. simpl. now apply over_stays.
Qed.

(** Section IV-A, "no feedback can occur": if the congestion that base_AI alone makes is at most Token_Thresh, the loop
    ends: from some RTT on no tokens are in the bank. *)
Theorem feedback_ends :
  answer (base_ai of) <= token_thresh of ->
  exists n, forall m, (n <= m)%nat -> bank (fst (turns m (start tokens damp, congestion))) == 0.
Proof.
  intros small. destruct (over_from_some_turn small) as [n ends]. exists n. intros m later. now apply ends.
Qed.

(** Section IV-A: and from some RTT on a sender whose tokens are spent has base_AI as its increase. Of the increase
    that it used while it spent them this says nothing: see [feedback_ends_iff]. *)
Theorem feedback_ends_at_base_ai :
  answer (base_ai of) <= token_thresh of ->
  exists n, forall m, (n <= m)%nat ->
    additive_increase of (fst (turns m (start tokens damp, congestion))) == base_ai of.
Proof.
  intros small. destruct (over_from_some_turn small) as [n ends]. exists n. intros m later.
  apply increase_without_tokens. now apply ends.
Qed.

(** Section IV-A: if base_AI alone makes more congestion than Token_Thresh, every RTT after the first makes tokens. *)
Theorem feedback_never_ends (m : nat) :
  token_thresh of < answer (base_ai of) -> token_thresh of < snd (turns (S m) (start tokens damp, congestion)).
Proof.
  intros large. apply Qlt_le_trans with (1 := large). simpl.
  apply answer_never_falls, increase_never_below_base, base_positive.
Qed.

(** Section IV-A: the loop comes to an end if and only if base_AI alone makes no tokens. *)
Theorem feedback_ends_iff :
  (exists n, forall m, (n <= m)%nat -> snd (turns m (start tokens damp, congestion)) <= token_thresh of)
  <-> answer (base_ai of) <= token_thresh of.
Proof.
  split.
  - intros [n ends]. apply Qnot_lt_le. intros large.
    assert (more := feedback_never_ends n large). specialize (ends (S n) ltac:(lia)). lra.
  - intros small. destruct (over_from_some_turn small) as [n ends]. exists n. intros m later. now apply ends.
Qed.

End Begun.

End Loop.

(** * HPCC's queue *)

(** The queue of N equal flows of HPCC at the equilibrium of its appendix A.3, that of their own increases a:
    (N a - (1 - eta) C) T; spare is (1 - eta) C. *)
Definition hpcc_queue (flows spare trip increase : Q) : Q := Qmax ((flows * increase - spare) * trip) 0.

(** Section IV-A, with HPCC, for N equal flows whose increase in an RTT makes the queue of the next one, A.3's: the loop
    ends, in that no RTT makes tokens from some RTT on, if and only if (N base_AI - (1 - eta) C) T is at most
    Token_Thresh.
    Claim: vai-no-feedback. *)
Theorem hpcc_feedback_ends_iff (flows spare trip : Q) (none : Q -> bool) (congestion : Q) :
  0 <= flows -> 0 <= trip ->
  (exists n, forall m, (n <= m)%nat ->
     snd (turns (hpcc_queue flows spare trip) none m (start 0 0, congestion)) <= token_thresh of)
  <-> (flows * base_ai of - spare) * trip <= token_thresh of.
Proof.
  intros some forward.
  assert (never_falls : forall less more, less <= more ->
            hpcc_queue flows spare trip less <= hpcc_queue flows spare trip more).
  { intros less more ordered. unfold hpcc_queue. apply Q.max_le_compat_r, Qmult_le_compat_r; [| exact forward].
    assert (flows * less <= flows * more) by (rewrite !(Qmult_comm flows); now apply Qmult_le_compat_r). lra. }
  rewrite (feedback_ends_iff (hpcc_queue flows spare trip) none never_falls 0 0 congestion) by lra.
  unfold hpcc_queue.
  destruct (Q.max_spec ((flows * base_ai of - spare) * trip) 0) as [[less largest] | [less largest]];
    split; intros below; lra.
Qed.

End Machine.

(** Section VI-A's settings of HPCC, congestion in KB of queue, rates in Mb/s. *)
Definition hpcc_settings : settings := Settings 1 50 1000 100 8 50 false.

(** Section IV-A with VI-A's settings, 100 Gb/s, eta = 0.95 and T = 13 us: the loop ends with 700 flows. *)
Example feedback_of_700_flows (none : Q -> bool) (congestion : Q) :
  exists n, forall m, (n <= m)%nat ->
  snd (turns hpcc_settings (hpcc_queue 700 5000 (13 # 8000)) none m (start 0 0, congestion)) <= 50.
Proof. apply (hpcc_feedback_ends_iff hpcc_settings); simpl; lra. Qed.

(** Section IV-A with the same settings: the loop does not end with 1000 flows. *)
Example feedback_of_1000_flows (none : Q -> bool) (congestion : Q) :
  ~ exists n, forall m, (n <= m)%nat ->
  snd (turns hpcc_settings (hpcc_queue 1000 5000 (13 # 8000)) none m (start 0 0, congestion)) <= 50.
Proof.
  intros ends.
  assert (small := proj1 (hpcc_feedback_ends_iff hpcc_settings ltac:(reflexivity) ltac:(reflexivity) ltac:(reflexivity)
    ltac:(reflexivity) ltac:(reflexivity) ltac:(reflexivity) 1000 5000 (13 # 8000) none congestion
    ltac:(discriminate) ltac:(discriminate)) ends).
  now apply small.
Qed.
