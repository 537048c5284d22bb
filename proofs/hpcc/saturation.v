(** HPCC (SIGCOMM 2019), Appendix A.2: which links the recursion (5)-(6) saturates, when, and which it never does. *)

From Coq Require Import Reals Lra Lia Arith.
From fluidcc.hpcc Require Import network pareto.

Local Open Scope R_scope.

Section Saturation.

Context {net : Network} {initial : Start net}.

(** ** Which links a step fills *)

Lemma used_utilisation (n i : nat) : (i < links)%nat -> used i -> 0 < utilisation n i.
Proof. intros link (j & path & on). apply link_use_positive with j; [apply rates_positive| | |]; assumption. Qed.

(** A path's share of a link's load after the step, times the link's utilisation before it, is its share before, if the
    link is the most loaded of the path. *)
Lemma share_kept (n i j : nat) :
  (j < paths)%nat -> (crosses i j = true -> utilisation n i = highest n j) ->
  utilisation n i * share (rate (S n)) i j = share (rate n) i j.
Proof.
  intros path busiest. unfold share. destruct (crosses i j); [|lra].
  rewrite rate_step, busiest by reflexivity. pose proof (highest_positive n j path). field. lra.
Qed.

(** A link is full after a step if, before it, it was the most loaded link of each of its paths. *)
Lemma saturates_if_busiest (n i : nat) :
  (i < links)%nat -> used i ->
  (forall j, (j < paths)%nat -> crosses i j = true -> utilisation n i = highest n j) -> load (S n) i = capacity i.
Proof.
  intros link some busiest. pose proof (used_utilisation n i link some) as positive.
  apply Rmult_eq_reg_l with (utilisation n i); [|lra].
  transitivity (load n i); [|symmetry; apply link_use_times_capacity, link].
  unfold load, link_load. rewrite <- total_scale. apply total_ext.
  intros j path. apply share_kept; [exact path|]. apply busiest, path.
Qed.

Lemma busiest_if_saturated (n i j : nat) :
  (i < links)%nat -> (j < paths)%nat -> crosses i j = true ->
  load (S n) i = capacity i -> utilisation n i = highest n j.
Proof.
  intros link path on full.
  assert (utilisation n i * load (S n) i = load n i) as same.
  { rewrite full. apply link_use_times_capacity, link. }
  unfold load, link_load in same. rewrite <- total_scale in same.
  assert (utilisation n i * share (rate (S n)) i j = share (rate n) i j) as term.
  { apply (total_le_eq paths (fun k => utilisation n i * share (rate (S n)) i k) (share (rate n) i)).
    - intros k small. apply share_step; assumption.
    - exact same.
    - exact path. }
  rewrite !share_on, rate_step in term by exact on.
  pose proof (highest_positive n j path) as most. pose proof (rates_positive n j path) as sign.
  apply Rmult_eq_reg_r with (rate n j / highest n j).
  - rewrite term. field. lra.
  - assert (0 < rate n j / highest n j) by (apply Rdiv_lt_0_compat; assumption). lra.
Qed.

(** A.2: a step saturates a link that is in use if and only if, before it, no link of any of its paths was more loaded.
    This holds from the start on, n = 0. *)
Theorem saturates_iff_busiest_on_its_paths (n i : nat) :
  (i < links)%nat -> used i ->
  load (S n) i = capacity i <->
  (forall j, (j < paths)%nat -> crosses i j = true -> utilisation n i = highest n j).
Proof.
  intros link some. split; [|apply saturates_if_busiest; assumption].
  intros full j path on. apply busiest_if_saturated; assumption.
Qed.

(** A.2, proof: the most loaded link of the network is saturated by the next step. *)
Theorem busiest_link_saturates (n k : nat) :
  (k < links)%nat -> used k -> (forall i, (i < links)%nat -> utilisation n i <= utilisation n k) ->
  load (S n) k = capacity k.
Proof.
  intros link some busiest. apply saturates_if_busiest; [exact link|exact some|].
  intros j path on. apply Rle_antisym.
  - apply link_use_at_most_path_use; assumption.
  - apply path_use_le; [apply Rlt_le, used_utilisation; assumption|].
    intros i other _. apply busiest, other.
Qed.

(** A.2 and 3.2: a single bottleneck is at its target load after one step, and stays there. *)
Theorem single_link_full_after_one_step (n : nat) :
  links = 1%nat -> (1 <= n)%nat -> used 0 -> load n 0 = capacity 0.
Proof.
  intros one later some. destruct n as [|n]; [lia|].
  apply busiest_link_saturates; [lia|exact some|].
  intros i link. assert (i = 0)%nat by lia. subst i. lra.
Qed.

(** ** What is saturated stays so *)

(** A path with a saturated link has m_j = 1: it is frozen. *)
Lemma saturated_link_freezes (n i j : nat) :
  (1 <= n)%nat -> (i < links)%nat -> crosses i j = true -> load n i = capacity i -> highest n j = 1.
Proof.
  intros later link on full. apply Rle_antisym; [apply highest_at_most_one, later|].
  rewrite <- (proj2 (link_use_one (rate n) i link) full). apply link_use_at_most_path_use; assumption.
Qed.

Lemma saturated_next (n i : nat) :
  (1 <= n)%nat -> (i < links)%nat -> load n i = capacity i -> load (S n) i = capacity i.
Proof.
  intros later link full. apply Rle_antisym; [apply load_at_most_capacity; [lia|exact link]|].
  rewrite <- full. apply loads_never_fall; [exact later|lia].
Qed.

(** A.2, proof: after the first step, a link that is saturated stays saturated. *)
Theorem saturated_link_stays_saturated (n p i : nat) :
  (1 <= n)%nat -> (n <= p)%nat -> (i < links)%nat -> load n i = capacity i -> load p i = capacity i.
Proof.
  intros later order link full. induction order as [|p order IH]; [exact full|].
  apply saturated_next; [lia|exact link|exact IH].
Qed.

(** A.2, proof: after the first step, the rates of paths through a saturated link no longer change. *)
Theorem rates_through_saturated_link_stay (n p i j : nat) :
  (1 <= n)%nat -> (n <= p)%nat -> (i < links)%nat -> (j < paths)%nat -> crosses i j = true ->
  load n i = capacity i -> rate p j = rate n j.
Proof.
  intros later order link path on full. induction order as [|p order IH]; [reflexivity|].
  rewrite rate_step, (saturated_link_freezes p i j); [lra|lia|exact link|exact on|].
  apply saturated_link_stays_saturated with n; assumption.
Qed.

(** A.2, proof: after the first step, the rates of paths through a saturated link are at their limits. *)
Theorem rates_through_saturated_link_are_final (n i j : nat) :
  (1 <= n)%nat -> (i < links)%nat -> (j < paths)%nat -> crosses i j = true -> load n i = capacity i ->
  limit j = rate n j.
Proof.
  intros later link path on full. apply Rle_antisym; [|apply rate_at_most_limit; assumption].
  apply (limit_le (fun p => rate (p + n) j)).
  - intros eps positive. destruct (rates_converge j path eps positive) as (N & near).
    exists N. intros p far. apply near. lia.
  - intros p _. rewrite (rates_through_saturated_link_stay n (p + n) i j); try assumption; [lra|lia].
Qed.

(** ** What never saturates *)

Lemma unsaturated_next (n i k j : nat) :
  (1 <= n)%nat -> (i < links)%nat -> (k < links)%nat -> (j < paths)%nat ->
  crosses k j = true -> crosses i j = true -> load n k = capacity k -> load n i < capacity i ->
  load (S n) i < capacity i.
Proof.
  intros later link frozen path through on full room.
  assert (load (S n) i <= capacity i) as most by (apply load_at_most_capacity; [lia|exact link]).
  destruct (Rle_lt_or_eq_dec _ _ most) as [below|reached]; [exact below|].
  pose proof (busiest_if_saturated n i j link path on reached) as busy.
  rewrite (saturated_link_freezes n k j later frozen through full) in busy.
  apply (link_use_one (rate n) i link) in busy. fold (load n i) in busy. lra.
Qed.

(** A.2, against Lemma (iii): after the first step, a link with room, one of whose paths crosses a saturated link k, is
    never saturated, however many steps are taken. *)
Theorem link_with_frozen_path_never_saturates (n p i k j : nat) :
  (1 <= n)%nat -> (n <= p)%nat -> (i < links)%nat -> (k < links)%nat -> (j < paths)%nat ->
  crosses k j = true -> crosses i j = true -> load n k = capacity k -> load n i < capacity i ->
  load p i < capacity i.
Proof.
  intros later order link frozen path through on full room.
  induction order as [|p order IH]; [exact room|].
  apply (unsaturated_next p i k j); try assumption; [lia|].
  apply saturated_link_stays_saturated with n; assumption.
Qed.

(** ** The last free path of a link *)

(** Until it saturates, such a link's load, if path j alone is free on it: F + R_j(n), where F is of frozen paths. *)
Lemma frozen_rest (n i j : nat) :
  (1 <= n)%nat -> (j < paths)%nat -> crosses i j = true ->
  (forall k, (k < paths)%nat -> crosses i k = true -> k <> j -> rate n k = rate 1 k) ->
  load n i - rate n j = load 1 i - rate 1 j.
Proof.
  intros later path on frozen.
  assert (link_load (fun k => rate n k - rate 1 k) i = rate n j - rate 1 j) as difference.
  { unfold link_load. rewrite (total_single paths _ j path).
    - rewrite share_on by exact on. reflexivity.
    - intros k small apart. unfold share. destruct (crosses i k) eqn:here; [|reflexivity].
      rewrite (frozen k small here apart). lra. }
  rewrite link_load_minus in difference. unfold load. lra.
Qed.

(** x(n+1) = x(n) C / (F + x(n)) gives 1/x(n) - 1/(C - F) = (F/C)^(n-1) (1/x(1) - 1/(C - F)). *)
Lemma lone_path_closed_form (x : nat -> R) (room held : R) (n : nat) :
  0 <= held < room -> (forall m, (1 <= m)%nat -> 0 < x m) ->
  (forall m, (1 <= m)%nat -> x (S m) = x m / ((held + x m) / room)) ->
  (1 <= n)%nat -> / x n - / (room - held) = (held / room) ^ (n - 1) * (/ x 1%nat - / (room - held)).
Proof.
  intros sizes positive step later. induction n as [|n IH]; [lia|clear later].
  destruct n as [|n]; [simpl pow; lra|].
  assert (1 <= S n)%nat as later by lia.
  replace (S (S n) - 1)%nat with (S (S n - 1)) by lia.
  rewrite <- tech_pow_Rmult, Rmult_assoc, <- (IH later), (step (S n) later).
  pose proof (positive (S n) later) as sign. field. repeat split; lra.
Qed.

(** A.2, corrected: where from the first step on path j alone is free on link i, its most loaded one, and the others
    hold F = Y_i(1) - R_j(1) of it, the rate tends to C_i - F by the factor F / C_i a step, exactly so in 1/R_j. *)
Theorem last_free_path_closed_form (n i j : nat) :
  (1 <= n)%nat -> (i < links)%nat -> (j < paths)%nat -> crosses i j = true ->
  (forall k m, (1 <= m)%nat -> (k < paths)%nat -> crosses i k = true -> k <> j -> rate m k = rate 1 k) ->
  (forall m, (1 <= m)%nat -> highest m j = utilisation m i) ->
  / rate n j - / (capacity i - (load 1 i - rate 1 j)) =
  ((load 1 i - rate 1 j) / capacity i) ^ (n - 1) * (/ rate 1 j - / (capacity i - (load 1 i - rate 1 j))).
Proof.
  intros later link path on frozen busiest.
  apply (lone_path_closed_form (fun m => rate m j)); [| | |exact later].
  - pose proof (rates_positive 1 j path) as sign.
    pose proof (load_at_most_capacity 1 i (le_n 1) link) as most.
    assert (rate 1 j <= load 1 i) as part.
    { apply rate_at_most_load; [apply all_positive_nonneg, rates_positive|exact path|exact on]. }
    lra.
  - intros m _. apply rates_positive, path.
  - intros m beyond. rewrite rate_step, (busiest m beyond). unfold utilisation, link_use. fold (load m i).
    pose proof (frozen_rest m i j beyond path on (fun k => frozen k m beyond)) as rest.
    replace (load m i) with (load 1 i - rate 1 j + rate m j) by lra. reflexivity.
Qed.

(** ** What the start decides *)

(** A.2: the limit depends on the start, for the ratio of the rates of two paths with the same links never changes. *)
Theorem rates_on_the_same_links_keep_their_ratio (n a b : nat) :
  (a < paths)%nat -> (b < paths)%nat -> (forall i, (i < links)%nat -> crosses i a = crosses i b) ->
  rate n a * start b = rate n b * start a.
Proof.
  intros first second same. induction n as [|n IH]; [simpl; lra|].
  assert (highest n b = highest n a) as equal.
  { apply Rle_antisym; apply path_use_le; try apply path_use_nonneg; intros i link on;
      apply link_use_at_most_path_use; try exact link; rewrite <- on; [|symmetry]; apply same, link. }
  rewrite !rate_step, equal. pose proof (highest_positive n a first) as most.
  apply Rmult_eq_reg_r with (highest n a); [|lra].
  replace (rate n a / highest n a * start b * highest n a) with (rate n a * start b) by (field; lra).
  rewrite IH. field. lra.
Qed.

End Saturation.
