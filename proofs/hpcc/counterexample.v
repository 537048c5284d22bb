(** HPCC (SIGCOMM 2019), Appendix A.2: networks for which Lemma (iii) and a step of its proof are false, in numbers. *)

From Coq Require Import Reals Lra Lia Arith.
From fluidcc.shared Require Import sums.
From fluidcc.hpcc Require Import network pareto saturation.

Local Open Scope R_scope.

(** * Two links and two flows *)

(** Flow 0 crosses link 0, of capacity 3; flow 1 crosses it too, and link 1, of capacity 1. *)
Section TwoLinks.

Definition two_links_crossed (i j : nat) : bool := orb (Nat.eqb i 0) (Nat.eqb j 1).

Definition two_capacities (i : nat) : R := if Nat.eqb i 0 then 3 else 1.

Lemma two_capacities_positive (i : nat) : (i < 2)%nat -> 0 < two_capacities i.
Proof. intros _. unfold two_capacities. destruct (Nat.eqb i 0); lra. Qed.

Lemma two_links_under_each (j : nat) : (j < 2)%nat -> exists i, (i < 2)%nat /\ two_links_crossed i j = true.
Proof. intros _. exists 0%nat. split; [lia|reflexivity]. Qed.

Instance two_links : Network := {
  links := 2;
  paths := 2;
  crosses := two_links_crossed;
  capacity := two_capacities;
  capacity_positive := two_capacities_positive;
  path_has_link := two_links_under_each
}.

Lemma ones_positive : all_positive (fun _ => 1).
Proof. intros j _. lra. Qed.

(** Both flows start at rate 1. *)
Instance two_starts : Start two_links := { start := fun _ => 1; start_positive := ones_positive }.

Lemma two_loads (n : nat) : load n 0 = rate n 0 + rate n 1 /\ load n 1 = rate n 1.
Proof. unfold load, link_load, share, two_links. simpl. split; lra. Qed.

Lemma growing_step (n : nat) : rate (S n) 0 = rate n 0 / Rmax 0 ((rate n 0 + rate n 1) / 3).
Proof.
  rewrite rate_step. unfold highest, path_use. simpl largest. unfold link_use.
  fold (load n 0). rewrite (proj1 (two_loads n)). reflexivity.
Qed.

Lemma frozen_step (n : nat) : rate (S n) 1 = rate n 1 / Rmax (Rmax 0 ((rate n 0 + rate n 1) / 3)) (rate n 1 / 1).
Proof.
  rewrite rate_step. unfold highest, path_use. simpl largest. unfold link_use.
  fold (load n 0). fold (load n 1). rewrite (proj1 (two_loads n)), (proj2 (two_loads n)). reflexivity.
Qed.

Lemma both_rates (n : nat) : rate n 0 = 2 * 3 ^ n / (3 ^ n + 1) /\ rate n 1 = 1.
Proof.
  induction n as [|n (growing & frozen)]; [split; simpl; lra|].
  assert (0 < 3 ^ n) as power by (apply pow_lt; lra).
  assert (0 < rate n 0) as positive by (apply (rates_positive n); simpl; lia).
  assert (rate n 0 < 2) as below.
  { rewrite growing. apply Rmult_lt_reg_r with (3 ^ n + 1); [lra|].
    replace (2 * 3 ^ n / (3 ^ n + 1) * (3 ^ n + 1)) with (2 * 3 ^ n) by (field; lra). lra. }
  rewrite growing_step, frozen_step, frozen.
  rewrite (Rmax_right 0) by lra. rewrite Rmax_right by lra. split; [|lra].
  rewrite growing, <- tech_pow_Rmult. field. repeat split; lra.
Qed.

(** A.2, against Lemma (iii): the rate of flow 0 after n steps. *)
Theorem growing_rate (n : nat) : rate n 0 = 2 * 3 ^ n / (3 ^ n + 1).
Proof. apply both_rates. Qed.

(** A.2: flow 1, which crosses the saturated link, has rate 1 at every step. *)
Theorem frozen_rate (n : nat) : rate n 1 = 1.
Proof. apply both_rates. Qed.

(** After as many steps as there are links, 2, Lemma (iii) has rates constant; flow 0's still grows. *)
Theorem rate_after_two_steps : rate 2 0 = 9 / 5.
Proof. rewrite growing_rate. simpl pow. field. Qed.

(** One step later flow 0's rate is another. *)
Theorem rate_after_three_steps : rate 3 0 = 27 / 14.
Proof. rewrite growing_rate. simpl pow. field. Qed.

(** Flow 0's rate grows at each step: no number of steps is enough. *)
Theorem growing_rate_never_constant (n : nat) : rate n 0 < rate (S n) 0.
Proof.
  rewrite !growing_rate, <- tech_pow_Rmult. assert (0 < 3 ^ n) as power by (apply pow_lt; lra).
  apply Rmult_lt_reg_r with ((3 ^ n + 1) * (3 * 3 ^ n + 1)); [apply Rmult_lt_0_compat; lra|].
  replace (2 * 3 ^ n / (3 ^ n + 1) * ((3 ^ n + 1) * (3 * 3 ^ n + 1))) with (2 * 3 ^ n * (3 * 3 ^ n + 1))
    by (field; lra).
  replace (2 * (3 * 3 ^ n) / (3 * 3 ^ n + 1) * ((3 ^ n + 1) * (3 * 3 ^ n + 1)))
    with (2 * 3 ^ n * (3 * 3 ^ n + 3)) by (field; lra).
  apply Rmult_lt_compat_l; lra.
Qed.

(** Flow 0's rate tends to what flow 1 leaves of link 0: 3 - 1. *)
Theorem limit_of_growing_rate : limit 0 = 2.
Proof.
  assert (link_load limit 0 = limit 0%nat + limit 1%nat) as sum.
  { unfold link_load, share. simpl. lra. }
  assert (limit 1%nat = 1) as frozen.
  { rewrite (rates_through_saturated_link_are_final 1 1 1); [apply frozen_rate|lia|simpl; lia|simpl; lia|reflexivity|].
    rewrite (proj2 (two_loads 1)), frozen_rate. reflexivity. }
  destruct (every_path_ends_saturated 0) as (i & link & on & full); [simpl; lia|].
  destruct i as [|i]; [|discriminate on].
  rewrite sum, frozen in full. simpl in full. unfold two_capacities in full. simpl in full. lra.
Qed.

(** Flow 0's rate is below its limit at every step. *)
Theorem growing_rate_below_limit (n : nat) : rate n 0 < limit 0.
Proof.
  apply Rlt_le_trans with (1 := growing_rate_never_constant n).
  apply rate_at_most_limit; [lia|simpl; lia].
Qed.

(** A.2, proof: "at each subsequent step at least one more resource becomes bottlenecked" is false: link 0 never is,
    since flow 1 is frozen at link 1 from the start. *)
Theorem shared_link_never_saturates (n : nat) : load n 0 < capacity 0.
Proof.
  destruct n as [|n]; [rewrite (proj1 (two_loads 0)); simpl; unfold two_capacities; simpl; lra|].
  apply (link_with_frozen_path_never_saturates 1 (S n) 0 1 1);
    try (simpl; lia); try reflexivity.
  - rewrite (proj2 (two_loads 1)), frozen_rate. reflexivity.
  - rewrite (proj1 (two_loads 1)), growing_rate, frozen_rate. simpl. unfold two_capacities. simpl. lra.
Qed.

(** A.2, against Lemma (iii): the rates are Pareto optimal after no number of steps. *)
Theorem never_pareto_optimal (n : nat) : ~ pareto_optimal (rate n).
Proof.
  intros optimal. pose proof (proj1 optimal) as fits.
  destruct (proj1 (optimal_iff_every_path_saturated (rate n) fits) optimal 0%nat) as (i & link & on & full).
  { simpl. lia. }
  destruct i as [|i]; [|discriminate on].
  pose proof (shared_link_never_saturates n) as room. unfold load in room. lra.
Qed.

(** The premises of [last_free_path_closed_form] hold here: flow 0 alone is free on link 0. *)
Example two_links_last_free_path (n : nat) :
  (1 <= n)%nat ->
  / rate n 0 - / (capacity 0 - (load 1 0 - rate 1 0)) =
  ((load 1 0 - rate 1 0) / capacity 0) ^ (n - 1) * (/ rate 1 0 - / (capacity 0 - (load 1 0 - rate 1 0))).
Proof.
  intros later. apply last_free_path_closed_form; [exact later|simpl; lia|simpl; lia|reflexivity| |].
  - intros k m _ path _ apart. simpl in path. assert (k = 1)%nat by lia. subst k. rewrite !frozen_rate. reflexivity.
  - intros m _. unfold highest, path_use. simpl largest. apply Rmax_right.
    apply (link_use_nonneg (rate m)); [apply all_positive_nonneg, rates_positive|simpl; lia].
Qed.

End TwoLinks.

(** A.2: Lemma (iii) as printed, "R(n) = R for n = I, I+1, ...", is false.
    Claim: hpcc-a2-finite. *)
Theorem printed_lemma_iii_is_false :
  ~ (forall (net : Network) (initial : Start net) (n j : nat),
       (links <= n)%nat -> (j < paths)%nat -> rate n j = rate links j).
Proof.
  intros printed.
  pose proof (printed two_links two_starts 3%nat 0%nat) as same.
  assert (@rate two_links two_starts 3 0 = @rate two_links two_starts 2 0) as equal by (apply same; simpl; lia).
  rewrite rate_after_two_steps, rate_after_three_steps in equal. lra.
Qed.

(** * One link and two starts *)

Section OneLink.

(** One link, of capacity 3, and two paths. *)
Instance one_link : Network.
Proof.
  refine {| links := 1; paths := 2; crosses := fun _ _ => true; capacity := fun _ => 3 |}.
  - intros i _. lra.
  - intros j _. exists 0%nat. split; [lia|reflexivity].
Defined.

(** Rates 1 and 1, or 1 and 2, at the start. *)
Definition equal_start : Start one_link := {| start := fun _ => 1; start_positive := fun j _ => Rlt_0_1 |}.

Definition unequal_start : Start one_link.
Proof.
  refine {| start := fun j => if Nat.eqb j 0 then 1 else 2 |}.
  intros j _. destruct (Nat.eqb j 0); lra.
Defined.

Lemma one_link_limit {initial : Start one_link} (j : nat) :
  (j < 2)%nat -> limit j = start j * 3 / (start 0 + start 1).
Proof.
  intros path.
  assert (0 < start 0) as first by (apply start_positive; simpl; lia).
  assert (0 < start 1) as second by (apply start_positive; simpl; lia).
  rewrite (rates_through_saturated_link_are_final 1 0 j);
    [|lia|simpl; lia|exact path|reflexivity|].
  - rewrite rate_step. unfold highest, path_use. simpl largest.
    unfold link_use, link_load, share. simpl. rewrite Rmax_right; [field; lra|].
    apply Rmult_le_pos; lra.
  - apply single_link_full_after_one_step; [reflexivity|lia|].
    exists 0%nat. split; [simpl; lia|reflexivity].
Qed.

(** A.2: the Pareto optimal allocation that the rates tend to depends on R(0): from 1 and 1, path 0 gets half of the
    link. *)
Theorem limit_from_equal_start : @limit one_link equal_start 0 = 3 / 2.
Proof. rewrite one_link_limit by lia. simpl. field. Qed.

(** A.2: from 1 and 2, path 0 gets a third of the link. *)
Theorem limit_from_unequal_start : @limit one_link unequal_start 0 = 1.
Proof. rewrite one_link_limit by lia. simpl. field. Qed.

Lemma three_positive : 0 < 3.
Proof. lra. Qed.

(** Rates 3 and 3, which overload the link. *)
Definition overloaded_start : Start one_link := {| start := fun _ => 3; start_positive := fun j _ => three_positive |}.

(** Lemma (i) does not hold at n = 0: the start need not be feasible. *)
Example first_load_above_capacity : @capacity one_link 0 < @load one_link overloaded_start 0 0.
Proof. unfold load, link_load, share. simpl. lra. Qed.

(** Lemma (ii) does not hold at n = 0: the first step may lower a rate. *)
Example first_step_lowers_a_rate : @rate one_link overloaded_start 1 0 < @rate one_link overloaded_start 0 0.
Proof.
  rewrite rate_step. unfold highest, path_use, link_use, link_load, share. simpl. rewrite Rmax_right by lra. lra.
Qed.

End OneLink.
