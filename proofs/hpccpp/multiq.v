(** HPCC++ MultiQ (IETF slides): the rate of one class, once per round trip, R' = R eta/U + a with MultiQ's U.

    The class is guaranteed w B of a link of rate B, and is served at A at most: what the other classes leave. What it
    sends beyond A in a round trip waits, and its window drains it in the next. [a] is the sum of its flows' additive
    increases. Rates have one unit; data are rates times the round trip T. *)

From Coq Require Import Reals Lra Lia Psatz.
From fluidcc.shared Require Import limits.

Open Scope R_scope.

(** * The map *)

(** The slides' U. [sent] is txRate_j, [waits] is qlen_j/T, [w * B] is wB_j. *)
Definition utilisation (B w sent waits : R) : R :=
  if Rle_dec sent (w * B) then (sent + waits) / (w * B)
  else if Rlt_dec 0 waits then waits / sent + 1
  else sent / ((sent + B) / 2).

(** One round trip of a class that sends at R and is served at A at most. *)
Definition step (B w eta a A r : R) : R :=
  r * eta / utilisation B w (Rmin r A) (Rmax (r - A) 0) + a.

(** Rate after n round trips; [A n] is what the other classes leave in round trip n. *)
Fixpoint rate (B w eta a : R) (A : nat -> R) (start : R) (n : nat) : R :=
  match n with
  | O => start
  | S before => step B w eta a (A before) (rate B w eta a A start before)
  end.

(** Settings that make sense: a share of the line, a target below 1, no negative increase. *)
Record sensible (B w eta a : R) : Prop := {
  line_positive : 0 < B;
  share_inside : 0 < w < 1;
  target_inside : 0 < eta < 1;
  increase_not_negative : 0 <= a
}.

Section Class.

Variables B w eta a : R.
Hypothesis ok : sensible B w eta a.

Lemma guarantee_positive : 0 < w * B.
Proof. destruct ok. apply Rmult_lt_0_compat; lra. Qed.

Lemma guarantee_below_line : w * B < B.
Proof. destruct ok. nra. Qed.

(** * U and its branches *)

(** MultiQ, first and second branch: with a backlog they agree where txRate is the guaranteed rate.
    Claim: hpccpp-multiq-branches. *)
Theorem branches_agree_with_backlog (waits : R) : (w * B + waits) / (w * B) = waits / (w * B) + 1.
Proof. assert (guarantee := guarantee_positive). field. destruct ok. split; lra. Qed.

(** MultiQ, first branch: without a backlog U is 1 where txRate is the guaranteed rate. *)
Theorem utilisation_at_the_guarantee : utilisation B w (w * B) 0 = 1.
Proof.
  assert (guarantee := guarantee_positive). unfold utilisation.
  destruct (Rle_dec (w * B) (w * B)) as [_ | absurd]; [| lra]. field. destruct ok. split; lra.
Qed.

(** MultiQ, third branch: above it and without a backlog U is 2 txRate/(txRate + B). Just above the guaranteed rate this
    is near 2 w/(w + 1), which is less than 1: U jumps down. *)
Theorem utilisation_jumps_without_backlog (sent : R) :
  w * B < sent -> utilisation B w sent 0 = 2 * sent / (sent + B).
Proof.
  intros above. assert (guarantee := guarantee_positive). unfold utilisation.
  destruct (Rle_dec sent (w * B)) as [absurd | _]; [lra |].
  destruct (Rlt_dec 0 0) as [absurd | _]; [lra |]. field. destruct ok. lra.
Qed.

(** * One step *)

(** What is sent and what waits is the rate. *)
Lemma served_and_waiting (r A : R) : Rmin r A + Rmax (r - A) 0 = r.
Proof. unfold Rmin, Rmax. destruct (Rle_dec r A), (Rle_dec (r - A) 0); lra. Qed.

Lemma step_within_guarantee (A r : R) : 0 < r -> Rmin r A <= w * B -> step B w eta a A r = eta * (w * B) + a.
Proof.
  intros positive_rate within. assert (guarantee := guarantee_positive). unfold step, utilisation.
  destruct (Rle_dec (Rmin r A) (w * B)) as [_ | absurd]; [| lra].
  rewrite served_and_waiting. field. destruct ok. repeat split; lra.
Qed.

Lemma step_backlogged (A r : R) : w * B < A -> A < r -> step B w eta a A r = eta * A + a.
Proof.
  intros above more. assert (guarantee := guarantee_positive). unfold step, utilisation.
  rewrite Rmin_right, Rmax_left by lra.
  destruct (Rle_dec A (w * B)) as [absurd | _]; [lra |].
  destruct (Rlt_dec 0 (r - A)) as [_ | absurd]; [| lra]. field. split; lra.
Qed.

Lemma step_halfway (A r : R) : w * B < r -> r <= A -> step B w eta a A r = eta * (r + B) / 2 + a.
Proof.
  intros above less. assert (guarantee := guarantee_positive). unfold step, utilisation.
  rewrite Rmin_left, Rmax_right by lra.
  destruct (Rle_dec r (w * B)) as [absurd | _]; [lra |].
  destruct (Rlt_dec 0 0) as [absurd | _]; [lra |]. field. destruct ok. split; lra.
Qed.

(** * Fixed points *)

(** MultiQ: a class that gets no more than its guarantee settles within one round trip. *)
Theorem settles_at_its_guarantee (A r : R) : 0 < r -> A <= w * B -> step B w eta a A r = eta * (w * B) + a.
Proof.
  intros positive_rate little. apply step_within_guarantee; [exact positive_rate |].
  apply Rle_trans with (2 := little), Rmin_r.
Qed.

(** MultiQ: so beside backlogged classes, which leave it w B, a class with a total increase of at least (1 - eta) w B is
    served just its guarantee from the next round trip on, from any start. (With less, all it sends, eta w B + a.)
    Claim: hpccpp-multiq-fair. *)
Theorem served_its_guarantee_beside_backlogs (r : R) :
  0 < r -> (1 - eta) * (w * B) <= a -> Rmin (step B w eta a (w * B) r) (w * B) = w * B.
Proof.
  intros positive_rate enough. rewrite settles_at_its_guarantee by (assumption || lra). apply Rmin_right. lra.
Qed.

(** Where the third branch rests. *)
Definition halfway_rest : R := (eta * B + 2 * a) / (2 - eta).

Lemma halfway_rest_is_fixed : eta * (halfway_rest + B) / 2 + a = halfway_rest.
Proof. unfold halfway_rest. destruct ok. field. lra. Qed.

Lemma halfway_rest_only (r : R) : eta * (r + B) / 2 + a = r -> r = halfway_rest.
Proof.
  intros fixed. unfold halfway_rest. destruct ok. apply Rmult_eq_reg_r with (2 - eta); [| lra].
  replace ((eta * B + 2 * a) / (2 - eta) * (2 - eta)) with (eta * B + 2 * a) by (field; lra). lra.
Qed.

(** MultiQ: all fixed points of a class that could get more than its guarantee. It is locked in below it, or settles
    without a backlog, or with one. *)
Theorem fixed_points (A r : R) :
  0 < r -> w * B < A ->
  (step B w eta a A r = r
   <-> (r = eta * (w * B) + a /\ a <= (1 - eta) * (w * B))
       \/ (r = (eta * B + 2 * a) / (2 - eta) /\ w * B < r <= A)
       \/ (r = eta * A + a /\ (1 - eta) * A < a)).
Proof.
  intros positive_rate more. fold halfway_rest. split.
  - intros fixed. destruct (Rle_lt_dec r (w * B)) as [within | above].
    + left. rewrite step_within_guarantee in fixed;
        [lra | exact positive_rate | apply Rle_trans with r; [apply Rmin_l | exact within]].
    + right. destruct (Rle_lt_dec r A) as [less | backlogged].
      * left. rewrite step_halfway in fixed by assumption. split; [apply halfway_rest_only, fixed | lra].
      * right. rewrite step_backlogged in fixed by assumption. lra.
  - intros [[same small] | [[same between] | [same large]]].
    + rewrite step_within_guarantee; [symmetry; exact same | exact positive_rate |].
      apply Rle_trans with r; [apply Rmin_l | lra].
    + rewrite step_halfway by lra. rewrite same. exact halfway_rest_is_fixed.
    + rewrite step_backlogged; lra.
Qed.

(** MultiQ without an increase: a class alone that is not locked in rests at eta B/(2 - eta), short of its target
    eta B. *)
Theorem rest_without_increase (r : R) :
  a = 0 -> w * B < r -> step B w eta a B r = r -> r = eta / (2 - eta) * B.
Proof.
  intros none above fixed. assert (guarantee := guarantee_positive).
  apply fixed_points in fixed; [| lra | apply guarantee_below_line].
  destruct ok as [line share target _]. rewrite none in fixed.
  destruct fixed as [[same _] | [[same _] | [_ large]]].
  - nra.
  - rewrite same. field. lra.
  - nra.
Qed.

(** * Lock-in *)

(** MultiQ: with a total increase of at most (1 - eta) w B a class that once sends no more than its guarantee stays
    there, whatever the other classes leave it: its rate is eta w B + a from the next round trip on. *)
Theorem locks_in (A : nat -> R) (start : R) (n : nat) :
  0 < start <= w * B -> a <= (1 - eta) * (w * B) -> rate B w eta a A start (S n) = eta * (w * B) + a.
Proof.
  intros low small. assert (guarantee := guarantee_positive). destruct ok as [line share target increase].
  assert (stays : forall m, 0 < rate B w eta a A start m <= w * B -> rate B w eta a A start (S m) = eta * (w * B) + a).
  { intros m inside. simpl. apply step_within_guarantee; [lra |].
    apply Rle_trans with (2 := proj2 inside), Rmin_l. }
  induction n as [| n hypothesis].
  - apply stays. exact low.
  - apply stays. rewrite hypothesis. nra.
Qed.

(** MultiQ: with a larger increase a class to which more than its guarantee is left sends more than it from the next
    round trip on, wherever it starts. *)
Theorem escapes (A : nat -> R) (start : R) (n : nat) :
  0 < start -> (1 - eta) * (w * B) < a -> (forall m, w * B < A m) -> w * B < rate B w eta a A start (S n).
Proof.
  intros positive_start large more. assert (guarantee := guarantee_positive).
  assert (line_above := guarantee_below_line). destruct ok as [line share target increase].
  assert (one : forall m, 0 < rate B w eta a A start m -> w * B < rate B w eta a A start (S m)).
  { intros m positive_rate. simpl. set (r := rate B w eta a A start m) in *.
    destruct (Rle_lt_dec r (w * B)) as [within | above].
    - rewrite step_within_guarantee; [lra | exact positive_rate | apply Rle_trans with (2 := within), Rmin_l].
    - destruct (Rle_lt_dec r (A m)) as [less | backlogged].
      + rewrite step_halfway by assumption. nra.
      + rewrite step_backlogged; [| apply more | exact backlogged]. specialize (more m). nra. }
  induction n as [| n hypothesis].
  - apply one. exact positive_start.
  - apply one. lra.
Qed.

(** MultiQ: the condition. A class alone that sends no more than its guarantee stays there if and only if its total
    increase is at most (1 - eta) w B. With more it comes near its limit: [finds_a_limit].
    Claim: hpccpp-multiq-search. *)
Theorem locks_in_iff (start : R) :
  0 < start <= w * B ->
  ((forall n, rate B w eta a (fun _ => B) start n <= w * B) <-> a <= (1 - eta) * (w * B)).
Proof.
  intros low. split.
  - intros stays. destruct (Rle_lt_dec a ((1 - eta) * (w * B))) as [small | large]; [exact small |].
    assert (above := escapes (fun _ => B) start 0 (proj1 low) large (fun _ => guarantee_below_line)).
    specialize (stays 1%nat). lra.
  - intros small n. destruct n as [| n]; [exact (proj2 low) |].
    rewrite locks_in by assumption. lra.
Qed.

(** * The limit *)

Lemma above_converges (start : R) (n : nat) :
  w * B < start <= B -> w * B <= halfway_rest <= B ->
  w * B < rate B w eta a (fun _ => B) start n <= B
  /\ Rabs (rate B w eta a (fun _ => B) start n - halfway_rest) <= (eta / 2) ^ n * B.
Proof.
  intros inside limit. assert (guarantee := guarantee_positive). destruct ok as [line share target increase].
  induction n as [| n [hypothesis near]].
  - simpl. split; [exact inside |]. rewrite Rmult_1_l. apply Rabs_le. lra.
  - set (r := rate B w eta a (fun _ => B) start n) in *.
    assert (next : rate B w eta a (fun _ => B) start (S n) = eta * (r + B) / 2 + a).
    { simpl. fold r. apply step_halfway; lra. }
    assert (moved : rate B w eta a (fun _ => B) start (S n) - halfway_rest = eta / 2 * (r - halfway_rest)).
    { rewrite next. rewrite <- halfway_rest_is_fixed at 1. field. }
    split.
    + assert (between : rate B w eta a (fun _ => B) start (S n) = (1 - eta / 2) * halfway_rest + eta / 2 * r) by lra.
      rewrite between. nra.
    + rewrite moved, Rabs_mult, Rabs_pos_eq by lra. simpl. rewrite Rmult_assoc. apply Rmult_le_compat_l; lra.
Qed.

Lemma first_step_alone (start : R) :
  0 < start -> a <= (1 - eta) * B -> step B w eta a B start <= B.
Proof.
  intros positive_start small. assert (line_above := guarantee_below_line).
  assert (guarantee := guarantee_positive). destruct ok as [line share target increase].
  destruct (Rle_lt_dec start (w * B)) as [within | above].
  - rewrite step_within_guarantee; [nra | exact positive_start | apply Rle_trans with (2 := within), Rmin_l].
  - destruct (Rle_lt_dec start B) as [less | backlogged].
    + rewrite step_halfway by assumption. nra.
    + rewrite step_backlogged by assumption. nra.
Qed.

Lemma rate_after_first (A : R) (start : R) (n : nat) :
  rate B w eta a (fun _ => A) start (S n) = rate B w eta a (fun _ => A) (step B w eta a A start) n.
Proof.
  induction n as [| n hypothesis]; [reflexivity |].
  change (rate B w eta a (fun _ => A) start (S (S n)))
    with (step B w eta a A (rate B w eta a (fun _ => A) start (S n))).
  rewrite hypothesis. reflexivity.
Qed.

Lemma limit_at_most_line : a <= (1 - eta) * B -> halfway_rest <= B.
Proof.
  intros small. destruct ok as [line share target increase]. unfold halfway_rest.
  apply Rmult_le_reg_r with (2 - eta); [lra |].
  replace ((eta * B + 2 * a) / (2 - eta) * (2 - eta)) with (eta * B + 2 * a) by (field; lra). nra.
Qed.

Lemma limit_above_guarantee : (w * (2 - eta) - eta) * B <= 2 * a -> w * B <= halfway_rest.
Proof.
  intros enough. destruct ok as [line share target increase]. unfold halfway_rest.
  apply Rmult_le_reg_r with (2 - eta); [lra |].
  replace ((eta * B + 2 * a) / (2 - eta) * (2 - eta)) with (eta * B + 2 * a) by (field; lra). nra.
Qed.

(** MultiQ: with a total increase above (1 - eta) w B, and up to (1 - eta) B, a class alone converges to (eta B + 2
    a)/(2 - eta) from any start, by eta/2 in a round trip. The slides say that it finds the limit, which for a class
    alone is eta B. *)
Theorem finds_a_limit (start : R) (n : nat) :
  0 < start -> (1 - eta) * (w * B) < a <= (1 - eta) * B ->
  Rabs (rate B w eta a (fun _ => B) start (S n) - (eta * B + 2 * a) / (2 - eta)) <= (eta / 2) ^ n * B.
Proof.
  intros positive_start between. fold halfway_rest.
  assert (above := escapes (fun _ => B) start 0 positive_start (proj1 between) (fun _ => guarantee_below_line)).
  rewrite rate_after_first. apply above_converges.
  - split; [exact above |]. apply first_step_alone; lra.
  - split; [apply limit_above_guarantee | apply limit_at_most_line; lra].
    destruct ok as [line share target increase]. nra.
Qed.

(** MultiQ: a start above the guarantee ends there too, if the limit without an increase, eta B/(2 - eta), is at least
    the guarantee. So with a small increase it depends on the start alone whether a class is locked in. *)
Theorem starts_above_are_not_locked_in (start : R) (n : nat) :
  w * B < start -> a <= (1 - eta) * B -> w <= eta / (2 - eta) ->
  Rabs (rate B w eta a (fun _ => B) start (S n) - (eta * B + 2 * a) / (2 - eta)) <= (eta / 2) ^ n * B.
Proof.
  intros high small light. fold halfway_rest. assert (guarantee := guarantee_positive).
  assert (line_above := guarantee_below_line).
  assert (light' : w * (2 - eta) <= eta).
  { destruct ok as [line share target increase]. apply Rmult_le_compat_r with (r := 2 - eta) in light; [| lra].
    replace (eta / (2 - eta) * (2 - eta)) with eta in light by (field; lra). exact light. }
  rewrite rate_after_first. apply above_converges.
  - split; [| apply first_step_alone; lra].
    destruct ok as [line share target increase].
    destruct (Rle_lt_dec start B) as [less | backlogged].
    + rewrite step_halfway by assumption. nra.
    + rewrite step_backlogged by assumption. nra.
  - split; [apply limit_above_guarantee | apply limit_at_most_line; exact small].
    destruct ok as [line share target increase]. nra.
Qed.

(** With a total increase above (1 - eta) B a class alone comes to rest with a backlog, at eta B + a, from any start. *)
Theorem large_increase_keeps_a_backlog (start : R) :
  0 < start -> (1 - eta) * B < a ->
  exists first, forall n, (first <= n)%nat -> rate B w eta a (fun _ => B) start n = eta * B + a.
Proof.
  intros positive_start large. assert (line_above := guarantee_below_line). assert (guarantee := guarantee_positive).
  assert (enough : (1 - eta) * (w * B) < a) by (destruct ok as [line share target increase]; nra).
  set (gain := a - (1 - eta) * B). assert (positive_gain : 0 < gain) by (unfold gain; lra).
  assert (above : forall n, w * B < rate B w eta a (fun _ => B) start (S n)).
  { intros n. apply escapes; [exact positive_start | exact enough | intros _; exact line_above]. }
  assert (rests : forall n, B < rate B w eta a (fun _ => B) start n ->
    rate B w eta a (fun _ => B) start (S n) = eta * B + a).
  { intros n over. simpl. apply step_backlogged; assumption. }
  assert (climbs : forall n, (exists m, (m <= S n)%nat /\ B < rate B w eta a (fun _ => B) start m)
    \/ INR n * gain <= rate B w eta a (fun _ => B) start (S n)).
  { induction n as [| n [[m [earlier over]] | hypothesis]].
    - right. simpl INR. rewrite Rmult_0_l. specialize (above 0%nat). lra.
    - left. exists m. split; [lia | exact over].
    - destruct (Rle_lt_dec (rate B w eta a (fun _ => B) start (S n)) B) as [less | over].
      + right. specialize (above n). rewrite S_INR.
        change (rate B w eta a (fun _ => B) start (S (S n)))
          with (step B w eta a B (rate B w eta a (fun _ => B) start (S n))).
        rewrite step_halfway by assumption.
        destruct ok as [line share target increase]. unfold gain in *. nra.
      + left. exists (S n). split; [lia | exact over]. }
  assert (over : exists m, B < rate B w eta a (fun _ => B) start m).
  { assert (positive_line := line_positive _ _ _ _ ok).
    destruct (whole_number_beyond (B / gain)) as [n many].
    destruct (climbs n) as [[m [_ over]] | high]; [exists m; exact over |].
    exists (S n). apply Rlt_le_trans with (2 := high).
    apply Rmult_lt_compat_r with (r := gain) in many; [| exact positive_gain].
    replace (B / gain * gain) with B in many by (field; lra). exact many. }
  destruct over as [m over]. exists (S m).
  intros n later. induction later as [| n later hypothesis]; [apply rests, over |].
  apply rests. rewrite hypothesis. destruct ok as [line share target increase]. lra.
Qed.

(** * Between the guarantee and the line *)

(** MultiQ without an increase: a class that is left more than w B/eta, and less than eta B/(2 - eta), has no
    equilibrium above its guarantee: from there its rate changes in every round trip. (Below, it is locked in.) The
    slides say that it can be served at any rate.
    Claim: hpccpp-multiq-between. *)
Theorem no_equilibrium_between (A start : R) (n : nat) :
  a = 0 -> w * B < start -> w * B / eta < A < eta * B / (2 - eta) ->
  rate B w eta a (fun _ => A) start (S n) <> rate B w eta a (fun _ => A) start n.
Proof.
  intros none high between. assert (guarantee := guarantee_positive).
  assert (low : w * B < eta * A).
  { destruct ok as [line share target increase].
    assert (scaled : eta * (w * B / eta) < eta * A) by (apply Rmult_lt_compat_l; lra).
    replace (eta * (w * B / eta)) with (w * B) in scaled by (field; lra). exact scaled. }
  assert (top : A * (2 - eta) < eta * B).
  { destruct ok as [line share target increase].
    assert (scaled : A * (2 - eta) < eta * B / (2 - eta) * (2 - eta)) by (apply Rmult_lt_compat_r; lra).
    replace (eta * B / (2 - eta) * (2 - eta)) with (eta * B) in scaled by (field; lra). exact scaled. }
  assert (positive_A : w * B < A) by (destruct ok as [line share target increase]; nra).
  assert (stays : forall m, w * B < rate B w eta a (fun _ => A) start m).
  { induction m as [| m hypothesis]; [exact high |]. simpl.
    destruct (Rle_lt_dec (rate B w eta a (fun _ => A) start m) A) as [less | backlogged].
    - rewrite step_halfway by assumption. destruct ok as [line share target increase]. nra.
    - rewrite step_backlogged by assumption. lra. }
  specialize (stays n). simpl. set (r := rate B w eta a (fun _ => A) start n) in *.
  intros fixed. apply fixed_points in fixed; [| lra | exact positive_A].
  destruct ok as [line share target increase]. rewrite none in fixed.
  destruct fixed as [[same _] | [[same [_ less]] | [_ absurd]]].
  - nra.
  - assert (product : r * (2 - eta) = eta * B) by (rewrite same; field; lra). nra.
  - nra.
Qed.

(** MultiQ without an increase: an example of what happens instead, a cycle of two round trips. *)
Theorem cycle_of_two (A : R) :
  a = 0 -> w * B < eta * A -> A < eta * (eta * A + B) / 2 ->
  step B w eta a A (step B w eta a A (eta * A)) = eta * A.
Proof.
  intros none low high. assert (guarantee := guarantee_positive).
  assert (within : eta * A <= A /\ w * B < A) by (destruct ok as [line share target increase]; nra).
  rewrite (step_halfway A (eta * A)) by lra. rewrite step_backlogged by lra. lra.
Qed.

End Class.

(** The premises of [no_equilibrium_between] and [cycle_of_two] hold together, at w = 1/2, eta = 0.95 and A = 0.6 B, and
    the two rates of the cycle differ. *)
Example between_is_not_empty :
  sensible 1 (1 / 2) (19 / 20) 0
  /\ 1 / 2 * 1 / (19 / 20) < 6 / 10 < 19 / 20 * 1 / (2 - 19 / 20)
  /\ 6 / 10 < 19 / 20 * (19 / 20 * (6 / 10) + 1) / 2.
Proof. split; [constructor; lra | lra]. Qed.

(** The condition at eta = 0.95 and w = 1/3: 1/60 of the line for all flows of the class, which is 1/3 Gb/s each at
    100 Gb/s and with five flows. With just that it is locked in still: the increase has to be more. *)
Example least_increase (start : R) (n : nat) :
  0 < start <= 1 / 3 * 100 -> rate 100 (1 / 3) (19 / 20) (5 * (1 / 3)) (fun _ => 100) start (S n) = 1 / 3 * 100.
Proof.
  intros low. rewrite locks_in; [lra | constructor; lra | exact low | lra].
Qed.

(** * Counting what no class uses *)

(** Our rule, which is not in the slides: U over the guarantee or, if that is more, over the present rate and what no
    class uses. *)
Definition spare_step (B w eta a A r : R) : R :=
  r * eta / ((Rmin r A + Rmax (r - A) 0) / Rmax (w * B) (Rmin r A + (A - Rmin r A))) + a.

(** With our rule, which counts what no class uses, a class aims at eta of what it can get, and a more, from any start,
    with any increase. *)
Theorem spare_rule_finds_the_limit (B w eta a A r : R) :
  0 < r -> 0 < A -> spare_step B w eta a A r = eta * Rmax (w * B) A + a.
Proof.
  intros positive_rate positive_A. unfold spare_step.
  rewrite served_and_waiting. replace (Rmin r A + (A - Rmin r A)) with A by ring.
  assert (positive_share : 0 < Rmax (w * B) A) by (apply Rlt_le_trans with (1 := positive_A), Rmax_r).
  field. lra.
Qed.
