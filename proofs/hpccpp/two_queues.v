(** HPCC++ MultiQ (IETF slides): two classes of HPCC++ flows that share one link, each with a queue and a U of its own.

    In a round trip a class offers its window, or what still waits if that is more. The link serves both in proportion
    to their weights, and what one leaves of its share goes to the other. What is not served waits. *)

From Coq Require Import Reals Lra Lia Psatz.
From fluidcc.hpccpp Require Import multiq.

Open Scope R_scope.

(** Two classes: rate (window over round trip) and backlog (over the round trip) of each. *)
Record link := Link { rate1 : R; waiting1 : R; rate2 : R; waiting2 : R }.

(** Service of a class that is guaranteed w B and offers [own] while the other offers [other]. *)
Definition service (B w own other : R) : R := Rmin own (Rmax (w * B) (B - other)).

(** Rate after U is known. *)
Definition react (B w eta a rate served waits : R) : R := rate * eta / utilisation B w served waits + a.

(** One round trip; class 1 has weight w and total increase a1, class 2 has 1 - w and a2. *)
Definition share (B w eta a1 a2 : R) (x : link) : link :=
  let offered1 := waiting1 x + Rmax (rate1 x - waiting1 x) 0 in
  let offered2 := waiting2 x + Rmax (rate2 x - waiting2 x) 0 in
  let served1 := service B w offered1 offered2 in
  let served2 := service B (1 - w) offered2 offered1 in
  {| rate1 := react B w eta a1 (rate1 x) served1 (offered1 - served1);
     waiting1 := offered1 - served1;
     rate2 := react B (1 - w) eta a2 (rate2 x) served2 (offered2 - served2);
     waiting2 := offered2 - served2 |}.

(** The link after n round trips. *)
Fixpoint after (B w eta a1 a2 : R) (start : link) (n : nat) : link :=
  match n with
  | O => start
  | S before => share B w eta a1 a2 (after B w eta a1 a2 start before)
  end.

(** A state that can be: rates above 0, no negative backlog. *)
Definition possible (x : link) : Prop := 0 < rate1 x /\ 0 <= waiting1 x /\ 0 < rate2 x /\ 0 <= waiting2 x.

(** The same link with the classes' names exchanged. *)
Definition mirrored (x : link) : link := Link (rate2 x) (waiting2 x) (rate1 x) (waiting1 x).

Lemma share_mirrored (B w eta a1 a2 : R) (x : link) :
  share B (1 - w) eta a2 a1 (mirrored x) = mirrored (share B w eta a1 a2 x).
Proof.
  unfold share, mirrored. simpl. replace (1 - (1 - w)) with w by ring. reflexivity.
Qed.

Section Link.

Variables B w eta a1 a2 : R.
Hypothesis ok1 : sensible B w eta a1.
Hypothesis ok2 : sensible B (1 - w) eta a2.

(** The link serves all that is offered, or all it can. *)
Theorem link_is_work_conserving (o1 o2 : R) :
  0 < o1 -> 0 < o2 -> service B w o1 o2 + service B (1 - w) o2 o1 = Rmin (o1 + o2) B.
Proof.
  intros some1 some2. destruct ok1 as [line share1 target _]. unfold service, Rmin, Rmax.
  destruct (Rle_dec (w * B) (B - o2)), (Rle_dec ((1 - w) * B) (B - o1));
    repeat match goal with |- context [Rle_dec ?x ?y] => destruct (Rle_dec x y) end; nra.
Qed.

(** A class with little to send is served all of it, whatever the other offers. *)
Theorem guarantee_is_kept (own other : R) : own <= w * B -> service B w own other = own.
Proof.
  intros little. unfold service. apply Rmin_left. apply Rle_trans with (1 := little), Rmax_l.
Qed.

Lemma react_within (rate served waits : R) :
  0 < rate -> served <= w * B -> served + waits = rate -> react B w eta a1 rate served waits = eta * (w * B) + a1.
Proof.
  intros positive_rate within total. assert (guarantee := guarantee_positive B w eta a1 ok1).
  unfold react, utilisation. destruct (Rle_dec served (w * B)) as [_ | absurd]; [| lra].
  rewrite total. field. destruct ok1. repeat split; lra.
Qed.

(** * Lock-in *)

(** MultiQ: a class without a backlog that sends no more than its guarantee stays locked in at eta w B + a, if its total
    increase is at most (1 - eta) w B, whatever rate and backlog the other class begins with. *)
Theorem class_locks_in (start : link) (n : nat) :
  0 < rate1 start <= w * B -> waiting1 start = 0 -> a1 <= (1 - eta) * (w * B) ->
  rate1 (after B w eta a1 a2 start (S n)) = eta * (w * B) + a1.
Proof.
  intros low none small. assert (guarantee := guarantee_positive B w eta a1 ok1).
  assert (one : forall x, 0 < rate1 x <= w * B -> waiting1 x = 0 ->
    rate1 (share B w eta a1 a2 x) = eta * (w * B) + a1 /\ waiting1 (share B w eta a1 a2 x) = 0).
  { intros x inside empty. unfold share. cbv zeta. cbn [rate1 waiting1]. rewrite empty.
    rewrite (Rmax_left (rate1 x - 0) 0) by lra.
    replace (0 + (rate1 x - 0)) with (rate1 x) by ring.
    rewrite guarantee_is_kept by lra. split; [| ring].
    apply react_within; lra. }
  enough (both : rate1 (after B w eta a1 a2 start (S n)) = eta * (w * B) + a1
    /\ waiting1 (after B w eta a1 a2 start (S n)) = 0) by apply both.
  induction n as [| n [hypothesis empty]].
  - apply one; assumption.
  - change (after B w eta a1 a2 start (S (S n))) with (share B w eta a1 a2 (after B w eta a1 a2 start (S n))).
    apply one; [| exact empty]. rewrite hypothesis. destruct ok1 as [line inside target increase]. nra.
Qed.

(** MultiQ: beside another class too, a class without a backlog that sends no more than its guarantee stays there if and
    only if its total increase is at most (1 - eta) w B. *)
Theorem class_locks_in_iff (start : link) :
  0 < rate1 start <= w * B -> waiting1 start = 0 ->
  ((forall n, rate1 (after B w eta a1 a2 start n) <= w * B) <-> a1 <= (1 - eta) * (w * B)).
Proof.
  intros low none. split.
  - intros stays. specialize (stays 1%nat). revert stays. simpl after. unfold share. cbv zeta. cbn [rate1].
    rewrite none, (Rmax_left (rate1 start - 0) 0) by lra.
    replace (0 + (rate1 start - 0)) with (rate1 start) by ring.
    rewrite guarantee_is_kept by lra. rewrite react_within by lra. lra.
  - intros small [| n]; [exact (proj2 low) |]. rewrite class_locks_in by assumption. lra.
Qed.

(** * At rest *)

Lemma service_positive (own other : R) : 0 < own -> 0 < service B w own other.
Proof.
  intros some. assert (guarantee := guarantee_positive B w eta a1 ok1). unfold service.
  apply Rmin_glb_lt; [exact some |]. apply Rlt_le_trans with (1 := guarantee), Rmax_l.
Qed.

(** What a class does in a round trip in which it offers its whole window is [multiq.step], served at most at what the
    other leaves. *)
Lemma react_is_step (own other : R) :
  react B w eta a1 own (service B w own other) (own - service B w own other)
  = step B w eta a1 (Rmax (w * B) (B - other)) own.
Proof.
  unfold react, step, service. set (A := Rmax (w * B) (B - other)). do 3 f_equal.
  unfold Rmin, Rmax. destruct (Rle_dec own A), (Rle_dec (own - A) 0); lra.
Qed.

(** A class at rest offers its window: its backlog is what is not served of it. *)
Lemma offers_its_window (own waits other : R) :
  0 < own -> 0 <= waits ->
  waits + Rmax (own - waits) 0 - service B w (waits + Rmax (own - waits) 0) other = waits ->
  waits + Rmax (own - waits) 0 = own.
Proof.
  intros some nonnegative rests. destruct (Rle_lt_dec own waits) as [little | much].
  - exfalso. rewrite Rmax_right in rests by lra.
    assert (served := service_positive (waits + 0) other). lra.
  - rewrite Rmax_left by lra. ring.
Qed.

End Link.

Section Rest.

Variables B w eta a1 a2 : R.
Hypothesis ok1 : sensible B w eta a1.
Hypothesis ok2 : sensible B (1 - w) eta a2.

(** The backlogs of a link at rest follow from its rates. *)
Theorem backlog_at_rest (x : link) :
  possible x -> share B w eta a1 a2 x = x ->
  (waiting1 x, waiting2 x)
  = (rate1 x - service B w (rate1 x) (rate2 x), rate2 x - service B (1 - w) (rate2 x) (rate1 x)).
Proof.
  intros [some1 [backlog1 [some2 backlog2]]] rests. destruct x as [r1 q1 r2 q2]. simpl in *.
  unfold share in rests. cbn in rests. injection rests as _ first _ second.
  assert (offers1 := offers_its_window B w eta a1 ok1 r1 q1 _ some1 backlog1 first).
  assert (offers2 := offers_its_window B (1 - w) eta a2 ok2 r2 q2 _ some2 backlog2 second).
  rewrite offers1, offers2 in first, second. congruence.
Qed.

(** Each class rests as if alone with what the other leaves. *)
Lemma rests_iff (x : link) :
  possible x ->
  (share B w eta a1 a2 x = x
   <-> (waiting1 x = rate1 x - service B w (rate1 x) (rate2 x)
        /\ waiting2 x = rate2 x - service B (1 - w) (rate2 x) (rate1 x))
       /\ step B w eta a1 (Rmax (w * B) (B - rate2 x)) (rate1 x) = rate1 x
       /\ step B (1 - w) eta a2 (Rmax ((1 - w) * B) (B - rate1 x)) (rate2 x) = rate2 x).
Proof.
  intros can. split.
  - intros rests. assert (backlog := backlog_at_rest x can rests). injection backlog as first second.
    split; [split; assumption |].
    destruct can as [some1 [backlog1 [some2 backlog2]]]. destruct x as [r1 q1 r2 q2]. simpl in *.
    assert (served1 := service_positive B w eta a1 ok1 r1 r2 some1).
    assert (served2 := service_positive B (1 - w) eta a2 ok2 r2 r1 some2).
    unfold share in rests. cbn in rests. injection rests as own1 _ own2 _.
    rewrite !(Rmax_left (_ - _) 0) in own1, own2 by lra.
    replace (q1 + (r1 - q1)) with r1 in own1, own2 by ring.
    replace (q2 + (r2 - q2)) with r2 in own1, own2 by ring.
    rewrite react_is_step in own1, own2. split; assumption.
  - intros [[first second] [own1 own2]].
    destruct can as [some1 [backlog1 [some2 backlog2]]]. destruct x as [r1 q1 r2 q2]. simpl in *.
    assert (served1 := service_positive B w eta a1 ok1 r1 r2 some1).
    assert (served2 := service_positive B (1 - w) eta a2 ok2 r2 r1 some2).
    unfold share. cbn. rewrite !(Rmax_left (_ - _) 0) by lra.
    replace (q1 + (r1 - q1)) with r1 by ring.
    replace (q2 + (r2 - q2)) with r2 by ring.
    rewrite !react_is_step, own1, own2, <- first, <- second. reflexivity.
Qed.

(** A class that could get more than its guarantee, A, rests above it: without a backlog or with one. *)
Definition rests_above (w a A r : R) : Prop :=
  (r = (eta * B + 2 * a) / (2 - eta) /\ w * B < r <= A) \/ (r = eta * A + a /\ (1 - eta) * A < a).

Lemma rests_above_guarantee (v a A r : R) : v * B < A -> rests_above v a A r -> v * B < r.
Proof. intros more [[_ [above _]] | [same large]]; lra. Qed.

(** One class of weight v beside another that sends [other]. *)
Lemma class_rests_iff (v a other r : R) :
  sensible B v eta a -> 0 < r ->
  (step B v eta a (Rmax (v * B) (B - other)) r = r
   <-> (other < B - v * B /\ r = eta * (v * B) + a /\ eta * (v * B) + a <= v * B)
       \/ (other < B - v * B /\ v * B < r /\ rests_above v a (B - other) r)
       \/ (B - v * B <= other /\ r = eta * (v * B) + a)).
Proof.
  intros ok some. destruct (Rlt_le_dec other (B - v * B)) as [less | more].
  - rewrite Rmax_right by lra. rewrite (fixed_points B v eta a ok (B - other) r some) by lra.
    fold (rests_above v a (B - other) r). split.
    + intros [[same small] | above].
      * left. repeat split; lra.
      * right. left. split; [exact less |]. split; [| exact above].
        apply (rests_above_guarantee v a (B - other) r); [lra | exact above].
    + intros [[_ [same small]] | [[_ [_ above]] | [absurd _]]].
      * left. lra.
      * right. exact above.
      * lra.
  - rewrite Rmax_left by lra. rewrite (settles_at_its_guarantee B v eta a ok (v * B) r some (Rle_refl _)). split.
    + intros same. right. right. split; [exact more | symmetry; exact same].
    + intros [[absurd _] | [[absurd _] | [_ same]]]; lra.
Qed.

Local Notation low1 := (eta * (w * B) + a1).
Local Notation low2 := (eta * ((1 - w) * B) + a2).

(** MultiQ: all fixed points of two classes that share a link. Either both get no more than their guarantee (at rest at
    eta w B + a, both below it or both above it), or one is locked in and the other takes what is left. *)
Theorem fixed_points_of_two_queues (x : link) :
  possible x ->
  waiting1 x = rate1 x - service B w (rate1 x) (rate2 x) ->
  waiting2 x = rate2 x - service B (1 - w) (rate2 x) (rate1 x) ->
  (share B w eta a1 a2 x = x
   <-> (rate1 x = low1 /\ rate2 x = low2
        /\ ((low1 <= w * B /\ low2 <= (1 - w) * B) \/ (w * B <= low1 /\ (1 - w) * B <= low2)))
       \/ (rate2 x = low2 /\ low2 < (1 - w) * B /\ rests_above w a1 (B - low2) (rate1 x))
       \/ (rate1 x = low1 /\ low1 < w * B /\ rests_above (1 - w) a2 (B - low1) (rate2 x))).
Proof.
  intros can first second. rewrite (rests_iff x can).
  destruct can as [some1 [_ [some2 _]]].
  rewrite (class_rests_iff w a1 (rate2 x) (rate1 x) ok1 some1).
  rewrite (class_rests_iff (1 - w) a2 (rate1 x) (rate2 x) ok2 some2).
  set (r1 := rate1 x) in *. set (r2 := rate2 x) in *.
  assert (rest1 : B - w * B = (1 - w) * B) by ring. assert (rest2 : B - (1 - w) * B = w * B) by ring.
  rewrite rest1, rest2. set (g1 := w * B) in *. set (g2 := (1 - w) * B) in *.
  assert (over1 : rests_above w a1 (B - low2) r1 -> low2 < g2 -> g1 < r1).
  { intros above less. apply (rests_above_guarantee w a1 (B - low2) r1); [fold g1; lra | exact above]. }
  assert (over2 : rests_above (1 - w) a2 (B - low1) r2 -> low1 < g1 -> g2 < r2).
  { intros above less. apply (rests_above_guarantee (1 - w) a2 (B - low1) r2); [fold g2; lra | exact above]. }
  split.
  - clear over1 over2.
    intros [_ [[[less2 [same1 small1]] | [[less2 [high1 above1]] | [more2 same1]]]
               [[less1 [same2 small2]] | [[less1 [high2 above2]] | [more1 same2]]]]];
      try (exfalso; lra).
    + left. repeat split; [lra | lra | left; lra].
    + left. repeat split; [lra | lra | left; lra].
    + right. left. rewrite <- same2. repeat split; [lra | exact above1].
    + left. repeat split; [lra | lra | left; lra].
    + right. right. rewrite <- same1. repeat split; [lra | exact above2].
    + left. repeat split; [lra | lra | right; lra].
  - intros cases. split; [split; assumption |].
    destruct cases as [[same1 [same2 cases]] | [[same2 [less2 above1]] | [same1 [less1 above2]]]].
    + clear over1 over2. destruct cases as [[small1 small2] | [large1 large2]].
      * split.
        -- destruct (Rlt_le_dec r2 g2) as [less | more]; [left | right; right]; repeat split; lra.
        -- destruct (Rlt_le_dec r1 g1) as [less | more]; [left | right; right]; repeat split; lra.
      * split; right; right; split; lra.
    + assert (high1 := over1 above1 less2). clear over1 over2. split.
      * right. left. rewrite same2. repeat split; [lra | lra | exact above1].
      * right. right. split; lra.
    + assert (high2 := over2 above2 less1). clear over1 over2. split.
      * right. right. split; lra.
      * right. left. rewrite same1. repeat split; [lra | lra | exact above2].
Qed.

(** MultiQ: at rest a class that is served less than its guarantee has a total increase below (1 - eta) w B. *)
Theorem served_less_only_with_a_small_increase (x : link) :
  possible x -> share B w eta a1 a2 x = x -> service B w (rate1 x) (rate2 x) < w * B -> a1 < (1 - eta) * (w * B).
Proof.
  intros can rests less. assert (own := proj1 (proj2 (proj1 (rests_iff x can) rests))).
  destruct can as [some1 _].
  assert (within : rate1 x < w * B).
  { destruct (Rlt_le_dec (rate1 x) (w * B)) as [good | bad]; [exact good |]. exfalso.
    assert (most : w * B <= service B w (rate1 x) (rate2 x)); [| lra].
    unfold service. apply Rmin_glb; [exact bad | apply Rmax_l]. }
  rewrite step_within_guarantee in own; [lra | exact ok1 | exact some1 |].
  apply Rle_trans with (rate1 x); [apply Rmin_l | lra].
Qed.

(** MultiQ: with increases of at least (1 - eta) w B for both classes, each is served its guarantee at rest. *)
Theorem large_increases_are_fair (x : link) :
  possible x -> share B w eta a1 a2 x = x ->
  (1 - eta) * (w * B) <= a1 -> (1 - eta) * ((1 - w) * B) <= a2 ->
  service B w (rate1 x) (rate2 x) = w * B.
Proof.
  intros can rests large1 large2.
  assert (backlog := backlog_at_rest x can rests). injection backlog as first second.
  apply (fixed_points_of_two_queues x can first second) in rests.
  destruct rests as [[same1 [same2 _]] | [[_ [less2 _]] | [_ [less1 _]]]]; [| lra | lra].
  unfold service. rewrite same1, same2.
  rewrite (Rmax_left (w * B)) by lra. apply Rmin_right. lra.
Qed.

End Rest.

Ltac by_sizes := unfold service, Rmin, Rmax;
  repeat match goal with
    |- context [Rle_dec ?x ?y] =>
      lazymatch constr:(x + y) with context [Rle_dec _ _] => fail | _ => destruct (Rle_dec x y); try lra end
    end.

(** Two classes of equal weight at eta = 0.95, with increases of 0.03 and 0.01 of the line: the second is locked in at
    0.485 of the line, and the first is served 0.515, with a backlog. *)
Example one_is_locked_in :
  let x := Link (2077 / 4000) (17 / 4000) (97 / 200) 0 in
  share 1 (1 / 2) (19 / 20) (3 / 100) (1 / 100) x = x.
Proof.
  intros x. apply (fixed_points_of_two_queues 1 (1 / 2) (19 / 20) (3 / 100) (1 / 100));
    try (constructor; lra); unfold possible, x; simpl.
  - lra.
  - by_sizes.
  - by_sizes.
  - right. left. split; [lra |]. split; [lra |]. right. lra.
Qed.

(** The same with 0.01 of the line each: both are locked in at 0.485 of the line. *)
Example both_are_locked_in :
  let x := Link (97 / 200) 0 (97 / 200) 0 in
  share 1 (1 / 2) (19 / 20) (1 / 100) (1 / 100) x = x.
Proof.
  intros x. apply (fixed_points_of_two_queues 1 (1 / 2) (19 / 20) (1 / 100) (1 / 100));
    try (constructor; lra); unfold possible, x; simpl.
  - lra.
  - by_sizes.
  - by_sizes.
  - left. split; [lra |]. split; [lra |]. left. lra.
Qed.

(** With 0.03 of the line each both are at rest at 0.505 of it, with a backlog, and served a half:
    [large_increases_are_fair] has an instance. *)
Example both_get_their_guarantee :
  let x := Link (101 / 200) (1 / 200) (101 / 200) (1 / 200) in
  share 1 (1 / 2) (19 / 20) (3 / 100) (3 / 100) x = x.
Proof.
  intros x. apply (fixed_points_of_two_queues 1 (1 / 2) (19 / 20) (3 / 100) (3 / 100));
    try (constructor; lra); unfold possible, x; simpl.
  - lra.
  - by_sizes.
  - by_sizes.
  - left. split; [lra |]. split; [lra |]. right. lra.
Qed.
