(** Fast convergence to fairness, section IV-A: Variable AI's Algorithms 1 and 2 over any sequence of events.

    All is in rational numbers and needs no axioms. *)

From Coq Require Import QArith Qminmax Lqa List.
Import ListNotations.

Open Scope Q_scope.

(** * The machine *)

Record settings : Set := Settings {
  ai_div : Q;  (** AI_DIV: congestion that makes a token *)
  token_thresh : Q;  (** Token_Thresh, in the unit of congestion *)
  bank_cap : Q;  (** Bank_Cap [tokens] *)
  ai_cap : Q;  (** AI_Cap [tokens] *)
  dampener_constant : Q;  (** Dampener_Constant *)
  base_ai : Q;  (** base_AI: the additive increase without tokens, as a rate *)
  excess : bool  (** tokens from what exceeds Token_Thresh (the text), or from all of it (Algorithm 1, line 3) *)
}.

(** AI_Bank and dampener; and what the algorithms do not count: tokens made, spent, and lost to Bank_Cap. *)
Record sender : Set := Sender { bank : Q; dampener : Q; made : Q; spent : Q; lost : Q }.

Inductive event : Set :=
  | Round_trip (congestion : Q) (none : bool)  (** an RTT is over; none: No Congestion, the scheme's word for it *)
  | Increase (adjustment : bool).  (** an additive increase is asked for, at a Rate Adjustment or not *)

Section Machine.

Variable of : settings.

(** Tokens that an RTT's congestion makes. *)
Definition tokens_made (congestion : Q) : Q :=
  (if excess of then congestion - token_thresh of else congestion) / ai_div of.

(** Algorithm 1; the comments are its lines. *)
Definition round_trip (congestion : Q) (none : bool) (now : sender) : sender :=
  if Qlt_le_dec (token_thresh of) congestion then  (* 2, 5 *)
    let full := tokens_made congestion + bank now in
    let kept := Qmin full (bank_cap of) in  (* 3 *)
    Sender kept (dampener now + congestion / token_thresh of)  (* 6 *)
      (made now + tokens_made congestion) (spent now) (lost now + (full - kept))
  else if Qeq_dec (bank now) 0 then  (* 7 *)
    if none then Sender (bank now) 0 (made now) (spent now) (lost now)  (* 8, 9 *)
    else if Qlt_le_dec congestion (token_thresh of) then  (* 10 *)
      Sender (bank now) (Qmax (dampener now - 1) 0) (made now) (spent now) (lost now)  (* 11 *)
    else now
  else now.

(** Algorithm 2, line 2: the tokens that an increase uses. *)
Definition tokens_used (now : sender) : Q := Qmin (ai_cap of) (bank now).

(** Algorithm 2, lines 3 to 5. *)
Definition adjust (adjustment : bool) (now : sender) : sender :=
  if adjustment then
    Sender (Qmax (bank now - tokens_used now) 0) (dampener now) (made now) (spent now + tokens_used now) (lost now)
  else now.

(** Algorithm 2, lines 6 to 8: the additive increase. *)
Definition additive_increase (now : sender) : Q :=
  Qmax (tokens_used now / (dampener now / dampener_constant of + 1)) 1 * base_ai of.

Definition step (happens : event) (now : sender) : sender :=
  match happens with
  | Round_trip congestion none => round_trip congestion none now
  | Increase adjustment => adjust adjustment now
  end.

Fixpoint run (events : list event) (now : sender) : sender :=
  match events with
  | [] => now
  | first :: later => run later (step first now)
  end.

(** A sender that begins with some tokens and a dampener. *)
Definition start (tokens damp : Q) : sender := Sender tokens damp 0 0 0.

Hypotheses (div_positive : 0 < ai_div of) (thresh_positive : 0 < token_thresh of).
Hypotheses (bank_cap_positive : 0 < bank_cap of) (ai_cap_positive : 0 < ai_cap of).
Hypotheses (constant_positive : 0 < dampener_constant of) (base_positive : 0 < base_ai of).

(** * One event *)

Lemma quotient_positive (a b : Q) : 0 <= a -> 0 < b -> 0 <= a / b.
Proof. intros some positive. apply Qle_shift_div_l; [exact positive | lra]. Qed.

Lemma tokens_made_positive (congestion : Q) : token_thresh of < congestion -> 0 <= tokens_made congestion.
Proof.
  intros above. unfold tokens_made. apply quotient_positive; [| exact div_positive].
  destruct (excess of); lra.
Qed.

(** Congestion adds more than 1 to the dampener. *)
Lemma congestion_over_threshold (congestion : Q) : token_thresh of < congestion -> 1 < congestion / token_thresh of.
Proof. intros above. apply Qlt_shift_div_l; [exact thresh_positive | lra]. Qed.

Lemma tokens_used_bounds (now : sender) :
  0 <= bank now -> 0 <= tokens_used now /\ tokens_used now <= bank now /\ tokens_used now <= ai_cap of.
Proof.
  intros some. unfold tokens_used.
  destruct (Q.min_spec (ai_cap of) (bank now)) as [[less least] | [less least]]; lra.
Qed.

(** What holds at all times, [initial] being the tokens at the start. *)
Definition sound (initial : Q) (now : sender) : Prop :=
  0 <= bank now /\ bank now <= bank_cap of /\ 0 <= dampener now /\ 0 <= lost now /\ 0 <= spent now /\
  initial + made now == spent now + bank now + lost now.

Lemma sound_start (tokens damp : Q) :
  0 <= tokens -> tokens <= bank_cap of -> 0 <= damp -> sound tokens (start tokens damp).
Proof. intros some most damped. unfold sound. simpl. repeat split; lra. Qed.

Lemma sound_step (initial : Q) (happens : event) (now : sender) : sound initial now -> sound initial (step happens now).
Proof.
  intros [some [most [damped [gone [used balance]]]]]. destruct happens as [congestion none | adjustment]; simpl.
  - unfold round_trip. destruct (Qlt_le_dec (token_thresh of) congestion) as [above | below].
    + assert (more := tokens_made_positive congestion above).
      assert (high := congestion_over_threshold congestion above).
      unfold sound. simpl.
      destruct (Q.min_spec (tokens_made congestion + bank now) (bank_cap of)) as [[less least] | [less least]];
        repeat split; lra.
    + destruct (Qeq_dec (bank now) 0) as [empty | rest]; [| repeat split; assumption].
      destruct none; [unfold sound; simpl; repeat split; lra |].
      destruct (Qlt_le_dec congestion (token_thresh of)) as [mild | same]; [| repeat split; assumption].
      unfold sound. simpl. assert (high := Q.le_max_r (dampener now - 1) 0). repeat split; lra.
  - destruct adjustment; [| repeat split; assumption].
    destruct (tokens_used_bounds now some) as [none [within _]]. unfold sound. simpl.
    destruct (Q.max_spec (bank now - tokens_used now) 0) as [[less largest] | [less largest]]; repeat split; lra.
Qed.

Lemma sound_run (initial : Q) (events : list event) (now : sender) :
  sound initial now -> sound initial (run events now).
Proof.
  revert now. induction events as [| first later each]; intros now good; [exact good |].
  simpl. apply each. now apply sound_step.
Qed.

Lemma run_app (before after : list event) (now : sender) : run (before ++ after) now = run after (run before now).
Proof. revert now. induction before as [| first later same]; intros now; [reflexivity | apply same]. Qed.

Lemma increase_never_below_base (now : sender) : base_ai of <= additive_increase now.
Proof.
  unfold additive_increase.
  assert (high := Q.le_max_r (tokens_used now / (dampener now / dampener_constant of + 1)) 1).
  set (factor := Qmax _ 1) in *. nra.
Qed.

(** * The bank *)

Section Bank.

Variables (tokens damp : Q) (events : list event).
Hypotheses (some_tokens : 0 <= tokens) (within_cap : tokens <= bank_cap of) (some_damp : 0 <= damp).

Let good : sound tokens (run events (start tokens damp)).
Proof. now apply sound_run, sound_start. Qed.

(** Section IV-A: the AI_Bank cannot exceed Bank_Cap. (At most AI_Cap tokens are spent at a time:
    [spent_at_once_at_most_cap].)
    Claim: vai-bank. *)
Theorem bank_at_most_cap : bank (run events (start tokens damp)) <= bank_cap of.
Proof. apply good. Qed.

(** Algorithm 2, line 4: the AI_Bank is never negative. *)
Theorem bank_never_negative : 0 <= bank (run events (start tokens damp)).
Proof. apply good. Qed.

(** Section IV-A: at most AI_Cap tokens are spent at a time. *)
Theorem spent_at_once_at_most_cap (adjustment : bool) :
  spent (run (events ++ [Increase adjustment]) (start tokens damp)) - spent (run events (start tokens damp))
  <= ai_cap of.
Proof.
  rewrite run_app. simpl. destruct adjustment; simpl; [| lra].
  assert (within := tokens_used_bounds (run events (start tokens damp)) bank_never_negative). lra.
Qed.

(** Section IV-A: no more tokens are spent than there were at the start and have been made. *)
Theorem spent_at_most_made :
  spent (run events (start tokens damp)) <= tokens + made (run events (start tokens damp)).
Proof. destruct good as [some [_ [_ [gone [_ balance]]]]]. lra. Qed.

(** Algorithms 1 and 2: every token is spent, in the bank, or lost to Bank_Cap. *)
Theorem tokens_balance :
  tokens + made (run events (start tokens damp)) ==
  spent (run events (start tokens damp)) + bank (run events (start tokens damp)) +
    lost (run events (start tokens damp)).
Proof. apply good. Qed.

(** Section IV-A: the dampener is never negative. *)
Theorem dampener_never_negative : 0 <= dampener (run events (start tokens damp)).
Proof. apply good. Qed.

(** Algorithm 2, line 7: the additive increase is at least base_AI. *)
Theorem increase_at_least_base : base_ai of <= additive_increase (run events (start tokens damp)).
Proof. apply increase_never_below_base. Qed.

End Bank.

Lemma increase_within (now : sender) (least : Q) :
  0 <= bank now -> 0 <= least -> least <= dampener now ->
  additive_increase now <= Qmax (ai_cap of / (least / dampener_constant of + 1)) 1 * base_ai of.
Proof.
  intros some few damped. unfold additive_increase.
  destruct (tokens_used_bounds now some) as [none [_ within]].
  assert (low : 0 <= least / dampener_constant of) by now apply quotient_positive.
  assert (ordered : least / dampener_constant of <= dampener now / dampener_constant of).
  { apply Qmult_le_compat_r; [exact damped |]. now apply Qlt_le_weak, Qinv_lt_0_compat. }
  set (low_divisor := least / dampener_constant of) in *. set (divisor := dampener now / dampener_constant of) in *.
  assert (fewer : tokens_used now / (divisor + 1) <= ai_cap of / (low_divisor + 1)).
  { apply Qle_shift_div_l; [lra |].
    setoid_replace (tokens_used now / (divisor + 1) * (low_divisor + 1))
      with (tokens_used now * (low_divisor + 1) / (divisor + 1)) by (field; lra).
    apply Qle_shift_div_r; [lra | nra]. }
  apply Qmult_le_compat_r; [| lra].
  apply Q.max_le_compat_r. exact fewer.
Qed.

Lemma increase_at_most_of (now : sender) :
  0 <= bank now -> 0 <= dampener now -> additive_increase now <= Qmax (ai_cap of) 1 * base_ai of.
Proof.
  intros some damped. assert (within := increase_within now 0 some ltac:(lra) damped).
  apply Qle_trans with (1 := within). apply Qmult_le_compat_r; [| lra]. apply Q.max_le_compat_r.
  setoid_replace (ai_cap of / (0 / dampener_constant of + 1)) with (ai_cap of) by (field; lra). lra.
Qed.

(** Algorithm 2, lines 2 and 8: the additive increase is at most AI_Cap base_AI. *)
Theorem increase_at_most_cap (tokens damp : Q) (events : list event) :
  0 <= tokens -> tokens <= bank_cap of -> 0 <= damp -> 1 <= ai_cap of ->
  additive_increase (run events (start tokens damp)) <= ai_cap of * base_ai of.
Proof.
  intros some within damped whole.
  assert (good := sound_run tokens events _ (sound_start tokens damp some within damped)).
  apply Qle_trans with (1 := increase_at_most_of _ ltac:(apply good) ltac:(apply good)).
  destruct (Q.max_spec (ai_cap of) 1) as [[less largest] | [less largest]]; rewrite largest; [exfalso |]; lra.
Qed.

(** Algorithm 2, lines 1 and 2. *)
Definition used_after_line_1 (first : Q) (now : sender) : Q :=
  let tokens := first in
  let tokens := Qmin (ai_cap of) (bank now) in  (* 2 *)
  tokens.

(** Algorithm 2, line 1, tokens = 1, has no effect, whatever it sets: line 2 sets tokens again without reading it.
    Claim: vai-dead-store. *)
Theorem line_1_has_no_effect (first : Q) (now : sender) : used_after_line_1 first now = tokens_used now.
Proof. reflexivity. Qed.

(** * When Bank_Cap binds *)

(** Bank_Cap binds at an event: it keeps some of the tokens that the event makes out of the bank. *)
Definition binds (happens : event) (now : sender) : Prop :=
  match happens with
  | Round_trip congestion _ => token_thresh of < congestion /\ bank_cap of < tokens_made congestion + bank now
  | Increase _ => False
  end.

Fixpoint never_binds (events : list event) (now : sender) : Prop :=
  match events with
  | [] => True
  | first :: later => ~ binds first now /\ never_binds later (step first now)
  end.

Lemma lost_in_step (happens : event) (now : sender) :
  lost now <= lost (step happens now) /\ (lost (step happens now) == lost now <-> ~ binds happens now).
Proof.
  destruct happens as [congestion none | adjustment]; simpl.
  - unfold round_trip. destruct (Qlt_le_dec (token_thresh of) congestion) as [above | below]; simpl.
    + destruct (Q.min_spec (tokens_made congestion + bank now) (bank_cap of)) as [[less least] | [less least]].
      * split; [lra |]. split; [intros _ [_ over]; lra | intros _; lra].
      * split; [lra |]. split; [intros same [_ over]; lra |].
        intros fits. destruct (Qlt_le_dec (bank_cap of) (tokens_made congestion + bank now)) as [over | under];
          [exfalso; now apply fits | lra].
    + assert (kept : forall other, lost other = lost now ->
        lost now <= lost other /\
        (lost other == lost now <->
         ~ (token_thresh of < congestion /\ bank_cap of < tokens_made congestion + bank now))).
      { intros other same. rewrite same. split; [lra |].
        split; [intros _ [above _]; lra | reflexivity]. }
      destruct (Qeq_dec (bank now) 0); [| now apply kept].
      destruct none; [now apply kept |].
      destruct (Qlt_le_dec congestion (token_thresh of)); now apply kept.
  - destruct adjustment; simpl; (split; [lra | split; [intros _ [] | reflexivity]]).
Qed.

Lemma lost_in_run (events : list event) (now : sender) :
  lost now <= lost (run events now) /\ (lost (run events now) == lost now <-> never_binds events now).
Proof.
  revert now. induction events as [| first later each]; intros now; simpl.
  - split; [lra | split; [trivial | reflexivity]].
  - destruct (lost_in_step first now) as [more fits], (each (step first now)) as [more_later fits_later].
    split; [lra | split].
    + intros same. split; [apply fits | apply fits_later]; lra.
    + intros [fits_first fits_rest]. apply fits in fits_first. apply fits_later in fits_rest. lra.
Qed.

(** Section IV-A: the tokens at the start and those made are all spent or in the bank if and only if Bank_Cap never
    binds. *)
Theorem balance_is_exact_iff (tokens damp : Q) (events : list event) :
  0 <= tokens -> tokens <= bank_cap of -> 0 <= damp ->
  tokens + made (run events (start tokens damp)) ==
    spent (run events (start tokens damp)) + bank (run events (start tokens damp))
  <-> never_binds events (start tokens damp).
Proof.
  intros some within damped. assert (balance := tokens_balance tokens damp events some within damped).
  destruct (lost_in_run events (start tokens damp)) as [_ fits]. simpl in fits. rewrite <- fits.
  split; intros same; lra.
Qed.

(** * The dampener *)

(** Algorithm 1, line 6: congestion above Token_Thresh adds more than 1 to the dampener. *)
Theorem dampener_rises_by_more_than_one (congestion : Q) (none : bool) (now : sender) :
  token_thresh of < congestion -> dampener now + 1 < dampener (round_trip congestion none now).
Proof.
  intros above. assert (high := congestion_over_threshold congestion above). unfold round_trip.
  destruct (Qlt_le_dec (token_thresh of) congestion); simpl; lra.
Qed.

(** Section IV-A: the dampener falls by more than 1 only with an empty bank and no congestion over the RTT (line 9). By
    ones it falls to 0 in mild congestion too ([mild_congestion_lowers_by_ones]).
    Claim: vai-reset. *)
Theorem dampener_resets_only_if (happens : event) (now : sender) :
  dampener (step happens now) < dampener now - 1 ->
  bank now == 0 /\ exists congestion, happens = Round_trip congestion true /\ congestion <= token_thresh of.
Proof.
  destruct happens as [congestion none | adjustment]; simpl.
  - unfold round_trip. destruct (Qlt_le_dec (token_thresh of) congestion) as [above | below]; simpl; intros falls.
    + assert (high := congestion_over_threshold congestion above). lra.
    + destruct (Qeq_dec (bank now) 0) as [empty | rest]; [| lra].
      destruct none; [split; [exact empty | now exists congestion] |]. simpl in falls.
      destruct (Qlt_le_dec congestion (token_thresh of)); [| lra].
      simpl in falls. assert (high := Q.le_max_l (dampener now - 1) 0). lra.
  - destruct adjustment; simpl; lra.
Qed.

(** Section IV-A: tokens that are not spent keep the dampener (and the bank), whatever happens below Token_Thresh. *)
Theorem unspent_tokens_keep_dampener (events : list event) (now : sender) :
  0 < bank now ->
  (forall happens, In happens events ->
     match happens with
     | Round_trip congestion _ => congestion <= token_thresh of
     | Increase adjustment => adjustment = false
     end) ->
  run events now = now.
Proof.
  intros some. induction events as [| first later each]; intros quiet; [reflexivity |]. simpl.
  assert (same : step first now = now).
  { assert (calm := quiet first (or_introl eq_refl)).
    destruct first as [congestion none | adjustment]; simpl; [| now rewrite calm].
    unfold round_trip. destruct (Qlt_le_dec (token_thresh of) congestion); [lra |].
    destruct (Qeq_dec (bank now) 0); [lra | reflexivity]. }
  rewrite same. apply each. intros happens inside. apply quiet. now right.
Qed.

(** Algorithm 1, lines 5 and 10: congestion of just Token_Thresh changes nothing.
    Claim: vai-at-threshold. *)
Theorem nothing_happens_at_threshold (congestion : Q) (now : sender) :
  congestion == token_thresh of -> round_trip congestion false now = now.
Proof.
  intros same. unfold round_trip. destruct (Qlt_le_dec (token_thresh of) congestion); [lra |].
  destruct (Qeq_dec (bank now) 0); [| reflexivity].
  destruct (Qlt_le_dec congestion (token_thresh of)); [lra | reflexivity].
Qed.

(** Number of RTTs, as a rational. *)
Definition count (n : nat) : Q := inject_Z (Z.of_nat n).

Lemma count_next (n : nat) : count (S n) == count n + 1.
Proof. unfold count. rewrite Nat2Z.inj_succ, <- Z.add_1_r, inject_Z_plus. reflexivity. Qed.

Lemma count_positive (n : nat) : 0 <= count n.
Proof. unfold count. change 0 with (inject_Z 0). rewrite <- Zle_Qle. apply Zle_0_nat. Qed.

(** Algorithm 1, line 11: milder congestion takes the dampener down by ones, with an empty bank. *)
Theorem mild_congestion_lowers_by_ones (congestion : Q) (n : nat) (now : sender) :
  bank now == 0 -> 0 <= dampener now -> congestion < token_thresh of ->
  dampener (run (repeat (Round_trip congestion false) n) now) == Qmax (dampener now - count n) 0.
Proof.
  intros empty damped mild. revert now empty damped. induction n as [| n each]; intros now empty damped.
  - simpl. change (count 0) with 0. destruct (Q.max_spec (dampener now - 0) 0) as [[less most] | [less most]]; lra.
  - simpl. unfold round_trip at 1. destruct (Qlt_le_dec (token_thresh of) congestion); [lra |].
    destruct (Qeq_dec (bank now) 0); [| contradiction].
    destruct (Qlt_le_dec congestion (token_thresh of)); [| lra].
    assert (low := Q.le_max_r (dampener now - 1) 0).
    rewrite each by (simpl; lra || assumption). simpl. assert (next := count_next n). assert (some := count_positive n).
    destruct (Q.max_spec (dampener now - 1) 0) as [[less most] | [less most]];
    destruct (Q.max_spec (dampener now - count (S n)) 0) as [[less_all most_all] | [less_all most_all]];
    destruct (Q.max_spec (Qmax (dampener now - 1) 0 - count n) 0) as [[less_now most_now] | [less_now most_now]]; lra.
Qed.

(** Algorithm 2: n adjustments spend n AI_Cap, or all. *)
Theorem bank_after_adjustments (n : nat) (now : sender) :
  0 <= bank now -> bank (run (repeat (Increase true) n) now) == Qmax (bank now - count n * ai_cap of) 0.
Proof.
  revert now. induction n as [| n each]; intros now some.
  - simpl. change (count 0) with 0.
    destruct (Q.max_spec (bank now - 0 * ai_cap of) 0) as [[less most] | [less most]]; lra.
  - simpl. rewrite each by (simpl; apply Q.le_max_r). simpl. unfold tokens_used.
    assert (next := count_next n). assert (more := count_positive n).
    assert (0 <= count n * ai_cap of) by (apply Qmult_le_0_compat; lra).
    assert (sum : count (S n) * ai_cap of == count n * ai_cap of + ai_cap of) by (rewrite next; ring).
    set (spent_later := count n * ai_cap of) in *. set (spent_all := count (S n) * ai_cap of) in *.
    destruct (Q.min_spec (ai_cap of) (bank now)) as [[less least] | [less least]];
    destruct (Q.max_spec (bank now - Qmin (ai_cap of) (bank now)) 0) as [[less_now most_now] | [less_now most_now]];
    destruct (Q.max_spec (bank now - spent_all) 0) as [[less_all most_all] | [less_all most_all]];
    destruct (Q.max_spec (Qmax (bank now - Qmin (ai_cap of) (bank now)) 0 - spent_later) 0)
      as [[less_later most_later] | [less_later most_later]]; lra.
Qed.

End Machine.
