(** DCQCN (SIGCOMM 2015) with the settings of its Table 14, at 40 Gb/s: how many flows have a fixed point.

    Exact arithmetic of fractions; no floating point. With z = (1 - Pmax)^(25000 B/(packet N)), all powers in the two
    sides of the equation for p at Pmax, but those of the byte counter, are whole powers of z. *)

From Coq Require Import Reals Lra Lia Psatz.
From fluidcc.shared Require Import power.
From fluidcc.dcqcn Require Import hazard fixed_point ramp cube_root.

Open Scope R_scope.

(** 40 Gb/s; CNPs 50 us apart; alpha and timer every 55 us; 10 MB; F = 5; 40 Mb/s; g = 1/256. *)
Definition table14 (packet : R) : settings :=
  Settings (5000000000 / packet) (50 / 1000000) (55 / 1000000) (55 / 1000000) (10000000 / packet) 5
    (5000000 / packet) (1 / 256).

Definition kmin : R := 5000. (* bytes *)
Definition kmax : R := 200000. (* bytes *)
Definition pmax : R := 1 / 100.

(** [n] flows, packets of [packet] bytes: (5) to (9) have a fixed point. *)
Definition has_fixed_point (packet : R) (n : nat) : Prop :=
  exists q alpha R_T R_C, fixed_point kmin kmax pmax (table14 packet) (INR n) q alpha R_T R_C.

Lemma table14_positive (packet : R) : 0 < packet -> positive (table14 packet).
Proof.
  intros positive_packet. constructor; simpl; try lra; apply Rdiv_lt_0_compat; lra.
Qed.

Lemma table14_ramp : is_ramp kmin kmax pmax.
Proof. unfold is_ramp, kmin, kmax, pmax. lra. Qed.

(** d at Pmax, as a function of z. *)
Definition d_of (z : R) : R := 1 / 100 * (z ^ 11 / (1 - z ^ 11)).

Lemma d_of_rises (x y : R) : 0 < x <= y -> y < 1 -> d_of x <= d_of y.
Proof.
  intros [positive_x order] below. unfold d_of.
  assert (powers : x ^ 11 <= y ^ 11) by (apply pow_incr; lra).
  assert (positive_power : 0 < x ^ 11) by (apply pow_lt; lra).
  assert (below_one : y ^ 11 < 1) by (apply pow_below_one; [lra | lia]).
  apply Rmult_le_compat_l; [lra |]. unfold Rdiv.
  apply Rmult_le_compat; [lra | left; apply Rinv_0_lt_compat; lra | exact powers |].
  apply Rinv_le_contravar; lra.
Qed.

Lemma d_of_positive (z : R) : 0 < z < 1 -> 0 < d_of z.
Proof.
  intros inside. unfold d_of.
  assert (positive_power : 0 < z ^ 11) by (apply pow_lt; lra).
  assert (below_one : z ^ 11 < 1) by (apply pow_below_one; [lra | lia]).
  apply Rmult_lt_0_compat; [lra | apply Rdiv_lt_0_compat; lra].
Qed.

(** * Both sides at Pmax *)

Section Flows.

Variables (packet N : R).
Hypothesis positive_packet : 0 < packet.
Hypothesis some_flows : 0 < N.

Local Notation rate := (line_rate (table14 packet) / N).

(** z; all powers at Pmax are of it. *)
Definition unit_power : R := power (99 / 100) (25000 / (packet * N)).

Local Notation z := unit_power.

Lemma unit_power_inside : 0 < z < 1.
Proof.
  split; [apply power_positive |]. apply power_below_one; [lra |].
  apply Rdiv_lt_0_compat; [lra | apply Rmult_lt_0_compat; assumption].
Qed.

Lemma pmax_inside : 0 < pmax < 1.
Proof. unfold pmax. lra. Qed.

Lemma whole_power (k : nat) (n : R) : n = INR k * (25000 / (packet * N)) -> power (1 - pmax) n = z ^ k.
Proof.
  intros same. unfold unit_power. rewrite power_pow, <- same. f_equal. unfold pmax. field.
Qed.

Lemma a_at_pmax : a (table14 packet) pmax rate = 1 - z ^ 10.
Proof. unfold a. f_equal. apply whole_power. simpl. field. lra. Qed.

Lemma marked_at_pmax : marked (table14 packet) pmax rate = 1 - z ^ 11.
Proof. unfold marked. f_equal. apply whole_power. simpl. field. lra. Qed.

Lemma d_at_pmax : d (table14 packet) pmax rate = d_of z.
Proof.
  unfold d, d_of. set (n := timer (table14 packet) * rate).
  assert (eleventh : power (1 - pmax) n = z ^ 11) by (apply whole_power; unfold n; simpl; field; lra).
  assert (inverse := power_opposite (1 - pmax) n). rewrite eleventh in inverse.
  assert (inside := unit_power_inside).
  assert (below_one : z ^ 11 < 1) by (apply pow_below_one; [lra | lia]).
  assert (positive_power : 0 < z ^ 11) by (apply pow_lt; lra).
  replace (power (1 - pmax) (- n)) with (1 / z ^ 11).
  - unfold pmax. field. lra.
  - apply Rmult_eq_reg_r with (z ^ 11); [| lra]. rewrite inverse. field. lra.
Qed.

Lemma e_at_pmax : e (table14 packet) pmax rate = z ^ 55 * d_of z.
Proof. unfold e. rewrite d_at_pmax. f_equal. apply whole_power. simpl. field. lra. Qed.

Lemma b_at_pmax_below : b (table14 packet) pmax < packet / 10000000.
Proof.
  rewrite b_by_hazard by exact pmax_inside.
  replace (packet / 10000000) with (/ (10000000 / packet)) by (field; lra).
  apply event_below_rate; [apply Rdiv_lt_0_compat; lra | apply hazard_positive, pmax_inside].
Qed.

Lemma c_at_pmax_below : c (table14 packet) pmax < packet / 10000000.
Proof.
  unfold c. assert (below := b_at_pmax_below).
  assert (positive_b := b_positive (table14 packet) (table14_positive packet positive_packet) pmax pmax_inside).
  assert (counter : 0 < stages (table14 packet) * byte_counter (table14 packet)).
  { simpl. apply Rmult_lt_0_compat; [lra | apply Rdiv_lt_0_compat; lra]. }
  assert (weight : power (1 - pmax) (stages (table14 packet) * byte_counter (table14 packet)) < 1).
  { apply power_below_one; [unfold pmax; lra | exact counter]. }
  assert (positive_weight := power_positive (1 - pmax) (stages (table14 packet) * byte_counter (table14 packet))).
  nra.
Qed.

(** tau^2 R_AI R. *)
Lemma strength_at_pmax : strength (table14 packet) rate = 62500000 / (packet ^ 2 * N).
Proof. unfold strength. simpl. field. lra. Qed.

(** Enough for a fixed point with marks below Pmax: a bound on z that is a fraction. *)
Lemma cuts_are_enough (bound : R) :
  z <= bound -> bound < 1 ->
  62500000 / (packet ^ 2 * N) * (packet / 10000000 + d_of bound) * (packet / 10000000 + bound ^ 55 * d_of bound)
    <= (1 - bound ^ 11) * (1 - bound ^ 10) ^ 2 ->
  raises (table14 packet) pmax rate < cuts (table14 packet) pmax rate.
Proof.
  intros at_most below check. assert (inside := unit_power_inside).
  unfold raises, cuts. fold (strength (table14 packet) rate).
  rewrite strength_at_pmax, e_at_pmax, d_at_pmax, a_at_pmax, marked_at_pmax.
  assert (positive_strength : 0 < 62500000 / (packet ^ 2 * N)).
  { apply Rdiv_lt_0_compat; [lra | apply Rmult_lt_0_compat; [apply pow_lt |]; assumption]. }
  assert (all_positive := table14_positive packet positive_packet).
  assert (positive_b := b_positive (table14 packet) all_positive pmax pmax_inside).
  assert (positive_c := c_positive (table14 packet) all_positive pmax pmax_inside).
  assert (below_b := b_at_pmax_below). assert (below_c := c_at_pmax_below).
  assert (positive_d := d_of_positive z inside).
  assert (more_d : d_of z <= d_of bound) by (apply d_of_rises; lra).
  assert (weight : 0 < z ^ 55 <= bound ^ 55) by (split; [apply pow_lt | apply pow_incr]; lra).
  assert (more_e : z ^ 55 * d_of z <= bound ^ 55 * d_of bound) by (apply Rmult_le_compat; lra).
  assert (positive_e : 0 < z ^ 55 * d_of z) by (apply Rmult_lt_0_compat; lra).
  apply Rlt_le_trans with ((1 - bound ^ 11) * (1 - bound ^ 10) ^ 2).
  - apply Rlt_le_trans with (2 := check).
    apply Rmult_gt_0_lt_compat; [lra | | | lra].
    + apply Rmult_lt_0_compat; lra.
    + apply Rmult_lt_compat_l; lra.
  - assert (powers_11 : z ^ 11 <= bound ^ 11) by (apply pow_incr; lra).
    assert (powers_10 : z ^ 10 <= bound ^ 10) by (apply pow_incr; lra).
    assert (below_11 : bound ^ 11 < 1) by (apply pow_below_one; [lra | lia]).
    assert (below_10 : bound ^ 10 < 1) by (apply pow_below_one; [lra | lia]).
    apply Rmult_le_compat; [lra | apply pow_le; lra | lra | apply pow_incr; lra].
Qed.

(** Enough for none: a bound on z, and one on N (1 - z^10). *)
Lemma raises_are_more (bound most : R) :
  0 < bound <= z -> N * (1 - z ^ 10) <= most ->
  most * (1 - bound ^ 11) ^ 3 * (1 - bound ^ 10) < 6250 / packet ^ 2 * bound ^ 77 ->
  cuts (table14 packet) pmax rate < raises (table14 packet) pmax rate.
Proof.
  intros [positive_bound at_least] few check. assert (inside := unit_power_inside).
  unfold raises, cuts. fold (strength (table14 packet) rate).
  rewrite strength_at_pmax, e_at_pmax, d_at_pmax, a_at_pmax, marked_at_pmax.
  assert (all_positive := table14_positive packet positive_packet).
  assert (positive_b := b_positive (table14 packet) all_positive pmax pmax_inside).
  assert (positive_c := c_positive (table14 packet) all_positive pmax pmax_inside).
  assert (square : 0 < packet ^ 2) by (apply pow_lt; assumption).
  assert (positive_strength : 0 < 62500000 / (packet ^ 2 * N)).
  { apply Rdiv_lt_0_compat; [lra | apply Rmult_lt_0_compat; assumption]. }
  assert (positive_d := d_of_positive z inside).
  assert (positive_weight : 0 < z ^ 55) by (apply pow_lt; lra).
  apply Rlt_trans with (62500000 / (packet ^ 2 * N) * d_of z * (z ^ 55 * d_of z)).
  - assert (below_11 : z ^ 11 < 1) by (apply pow_below_one; [lra | lia]).
    assert (below_10 : z ^ 10 < 1) by (apply pow_below_one; [lra | lia]).
    assert (more_11 : bound ^ 11 <= z ^ 11) by (apply pow_incr; lra).
    assert (more_10 : bound ^ 10 <= z ^ 10) by (apply pow_incr; lra).
    assert (more_77 : bound ^ 77 <= z ^ 77) by (apply pow_incr; lra).
    assert (positive_few : 0 < N * (1 - z ^ 10)) by (apply Rmult_lt_0_compat; lra).
    assert (scaled : N * (1 - z ^ 10) * (1 - z ^ 11) ^ 3 * (1 - z ^ 10) < 6250 / packet ^ 2 * z ^ 77).
    { apply Rle_lt_trans with (most * (1 - bound ^ 11) ^ 3 * (1 - bound ^ 10)).
      - apply Rmult_le_compat; [| lra | | lra].
        + apply Rmult_le_pos; [lra | apply pow_le; lra].
        + apply Rmult_le_compat; [lra | apply pow_le; lra | exact few | apply pow_incr; lra].
      - apply Rlt_le_trans with (1 := check). apply Rmult_le_compat_l; [| exact more_77].
        left. apply Rdiv_lt_0_compat; lra. }
    unfold d_of.
    replace (62500000 / (packet ^ 2 * N) * (1 / 100 * (z ^ 11 / (1 - z ^ 11)))
        * (z ^ 55 * (1 / 100 * (z ^ 11 / (1 - z ^ 11)))))
      with (6250 / packet ^ 2 * z ^ 77 * / (N * (1 - z ^ 11) ^ 2)) by (field; lra).
    apply Rmult_lt_reg_r with (N * (1 - z ^ 11) ^ 2);
      [apply Rmult_lt_0_compat; [assumption | apply pow_lt; lra] |].
    replace (6250 / packet ^ 2 * z ^ 77 * / (N * (1 - z ^ 11) ^ 2) * (N * (1 - z ^ 11) ^ 2))
      with (6250 / packet ^ 2 * z ^ 77) by (field; lra).
    apply Rle_lt_trans with (2 := scaled). right. ring.
  - assert (positive_e : 0 < z ^ 55 * d_of z) by (apply Rmult_lt_0_compat; lra).
    apply Rmult_gt_0_lt_compat; [lra | | | lra].
    + apply Rmult_lt_0_compat; lra.
    + apply Rmult_lt_compat_l; lra.
Qed.

(** z from above and below by whole powers: z^m = 0.99^j. *)
Lemma unit_power_whole (m j : nat) : INR m * (25000 / (packet * N)) = INR j -> z ^ m = (99 / 100) ^ j.
Proof. intros same. unfold unit_power. rewrite power_pow, same, power_nat by lra. reflexivity. Qed.

Lemma unit_power_at_most (m j : nat) (bound : R) :
  INR m * (25000 / (packet * N)) = INR j -> (0 < m)%nat -> 0 <= bound -> (99 / 100) ^ j <= bound ^ m -> z <= bound.
Proof.
  intros same some nonnegative powers. rewrite <- (unit_power_whole m j same) in powers.
  destruct (Rle_lt_dec z bound) as [good | bad]; [exact good |].
  assert (absurd := pow_less bound z m (conj nonnegative bad) some). lra.
Qed.

Lemma unit_power_at_least (m j : nat) (bound : R) :
  INR m * (25000 / (packet * N)) = INR j -> (0 < m)%nat -> bound ^ m <= (99 / 100) ^ j -> bound <= z.
Proof.
  intros same some powers. rewrite <- (unit_power_whole m j same) in powers.
  destruct (Rle_lt_dec bound z) as [good | bad]; [exact good |].
  assert (inside := unit_power_inside).
  assert (absurd : z ^ m < bound ^ m) by (apply pow_less; [lra | exact some]). lra.
Qed.

(** However many flows: N (1 - z^10) is below 250000 B/packet times the hazard at Pmax, which is below 1/99. *)
Lemma scaled_cuts_below : N * (1 - z ^ 10) <= 250000 / (99 * packet).
Proof.
  rewrite <- (whole_power 10 (250000 / (packet * N))) by (simpl; field; lra).
  rewrite power_by_hazard.
  assert (positive_hazard := hazard_positive pmax pmax_inside).
  assert (marks := unmarked pmax pmax_inside).
  assert (inverse := exp_opposite (hazard pmax)). rewrite marks in inverse.
  assert (line := exp_at_least_line (hazard pmax)).
  assert (below : hazard pmax <= 1 / 99) by (unfold pmax in *; nra).
  assert (share : 0 < 250000 / (packet * N)).
  { apply Rdiv_lt_0_compat; [lra | apply Rmult_lt_0_compat; assumption]. }
  assert (saturates := saturation_below_line (250000 / (packet * N) * hazard pmax)
    (Rmult_lt_0_compat _ _ share positive_hazard)).
  apply Rle_trans with (N * (250000 / (packet * N) * hazard pmax)); [apply Rmult_le_compat_l; lra |].
  replace (N * (250000 / (packet * N) * hazard pmax)) with (250000 / packet * hazard pmax) by (field; lra).
  replace (250000 / (99 * packet)) with (250000 / packet * (1 / 99)) by (field; lra).
  apply Rmult_le_compat_l; [| exact below]. left. apply Rdiv_lt_0_compat; lra.
Qed.

End Flows.

(** More flows have a larger z. *)
Lemma unit_power_rises (packet N M : R) :
  0 < packet -> 0 < N <= M -> unit_power packet N <= unit_power packet M.
Proof.
  intros positive_packet [some order]. unfold unit_power, power.
  assert (negative : log (99 / 100) < 0) by (apply log_negative; lra).
  assert (positive_product : 0 < packet * N) by (apply Rmult_lt_0_compat; assumption).
  assert (less : 25000 / (packet * M) <= 25000 / (packet * N)).
  { apply Rmult_le_compat_l; [lra |]. apply Rinv_le_contravar; [exact positive_product |].
    apply Rmult_le_compat_l; lra. }
  apply exp_rises_weakly. nra.
Qed.

Lemma has_fixed_point_iff (packet : R) (n : nat) :
  0 < packet -> (1 <= n)%nat ->
  (has_fixed_point packet n
   <-> raises (table14 packet) pmax (line_rate (table14 packet) / INR n)
       <= cuts (table14 packet) pmax (line_rate (table14 packet) / INR n)).
Proof.
  intros positive_packet some. unfold has_fixed_point.
  apply fixed_point_exists_by_sign; [exact table14_ramp | apply table14_positive, positive_packet | | unfold pmax; lra].
  apply (lt_INR 0). lia.
Qed.

(** At Pmax marks cut more than increases raise: so less marking than Pmax is enough. *)
Definition cuts_win (packet : R) (n : nat) : Prop :=
  raises (table14 packet) pmax (line_rate (table14 packet) / INR n)
    < cuts (table14 packet) pmax (line_rate (table14 packet) / INR n).

Lemma marks_below_pmax (packet p alpha R_T R_C : R) (n : nat) :
  0 < packet -> (1 <= n)%nat -> at_rest (table14 packet) (INR n) p alpha R_T R_C -> cuts_win packet n -> p < pmax.
Proof.
  intros positive_packet some rest less. unfold cuts_win in less.
  assert (all_positive := table14_positive packet positive_packet).
  assert (some_flows : 0 < INR n) by (apply (lt_INR 0); lia).
  rewrite <- (rate_at_rest_is_fair_share _ _ some_flows _ _ _ _ rest) in less.
  assert (same := cuts_are_raises _ _ all_positive some_flows _ _ _ _ rest).
  assert (iff := marking_is_above_iff _ _ all_positive some_flows _ _ _ _ pmax rest pmax_inside).
  destruct (Rtotal_order p pmax) as [below | [equal | above]]; [exact below | |].
  - rewrite equal in same. lra.
  - apply iff in above. lra.
Qed.

Lemma has_one (packet : R) (n m j : nat) (bound : R) :
  0 < packet -> (1 <= n)%nat -> (0 < m)%nat -> 0 <= bound < 1 ->
  INR m * (25000 / (packet * INR n)) = INR j -> (99 / 100) ^ j <= bound ^ m ->
  62500000 / (packet ^ 2 * INR n) * (packet / 10000000 + d_of bound) * (packet / 10000000 + bound ^ 55 * d_of bound)
    <= (1 - bound ^ 11) * (1 - bound ^ 10) ^ 2 ->
  cuts_win packet n.
Proof.
  intros positive_packet some powers inside same power_check check.
  assert (some_flows : 0 < INR n) by (apply (lt_INR 0); lia).
  apply (cuts_are_enough packet (INR n) positive_packet some_flows bound); [| lra | exact check].
  apply (unit_power_at_most packet (INR n) m j); [exact same | exact powers | lra | exact power_check].
Qed.

(** [reference] flows have a z above the bound, and so have more. *)
Lemma has_none (packet : R) (n reference m j : nat) (bound most : R) :
  0 < packet -> (1 <= reference <= n)%nat -> (0 < m)%nat -> 0 < bound ->
  INR m * (25000 / (packet * INR reference)) = INR j -> bound ^ m <= (99 / 100) ^ j ->
  INR n * (1 - unit_power packet (INR n) ^ 10) <= most ->
  most * (1 - bound ^ 11) ^ 3 * (1 - bound ^ 10) < 6250 / packet ^ 2 * bound ^ 77 ->
  ~ has_fixed_point packet n.
Proof.
  intros positive_packet order powers positive_bound same power_check few check.
  assert (some_reference : 0 < INR reference) by (apply (lt_INR 0); lia).
  assert (order' : INR reference <= INR n) by (apply le_INR; lia).
  rewrite has_fixed_point_iff by (assumption || lia).
  assert (above : bound <= unit_power packet (INR n)).
  { apply Rle_trans with (unit_power packet (INR reference)).
    - apply (unit_power_at_least packet (INR reference)) with (m := m) (j := j); assumption.
    - apply unit_power_rises; [exact positive_packet | lra]. }
  apply Rlt_not_le, (raises_are_more packet (INR n)) with (bound := bound) (most := most);
    [exact positive_packet | lra | lra | exact few | exact check].
Qed.

(** * How many flows *)

Ltac by_fractions := unfold d_of; rewrite ?INR_IZR_INZ; simpl Z.of_nat; first [lia | lra].

Lemma few_flows_of_1000_bytes (n : nat) : (1 <= n)%nat -> (n <= 14)%nat -> cuts_win 1000 n.
Proof.
  intros some few.
  assert (cases : (n = 1 \/ n = 2 \/ n = 3 \/ n = 4 \/ n = 5 \/ n = 6 \/ n = 7 \/ n = 8 \/ n = 9 \/ n = 10
    \/ n = 11 \/ n = 12 \/ n = 13 \/ n = 14)%nat) by lia.
  repeat destruct cases as [cases | cases]; subst n.
  - apply (has_one 1000 1 1 25 (778 / 1000)); by_fractions.
  - apply (has_one 1000 2 2 25 (882 / 1000)); by_fractions.
  - apply (has_one 1000 3 3 25 (920 / 1000)); by_fractions.
  - apply (has_one 1000 4 4 25 (940 / 1000)); by_fractions.
  - apply (has_one 1000 5 5 25 (951 / 1000)); by_fractions.
  - apply (has_one 1000 6 6 25 (959 / 1000)); by_fractions.
  - apply (has_one 1000 7 7 25 (965 / 1000)); by_fractions.
  - apply (has_one 1000 8 8 25 (970 / 1000)); by_fractions.
  - apply (has_one 1000 9 9 25 (973 / 1000)); by_fractions.
  - apply (has_one 1000 10 10 25 (976 / 1000)); by_fractions.
  - apply (has_one 1000 11 11 25 (978 / 1000)); by_fractions.
  - apply (has_one 1000 12 12 25 (980 / 1000)); by_fractions.
  - apply (has_one 1000 13 13 25 (981 / 1000)); by_fractions.
  - apply (has_one 1000 14 14 25 (983 / 1000)); by_fractions.
Qed.

Lemma few_flows_of_1500_bytes (n : nat) : (1 <= n)%nat -> (n <= 10)%nat -> cuts_win 1500 n.
Proof.
  intros some few.
  assert (cases : (n = 1 \/ n = 2 \/ n = 3 \/ n = 4 \/ n = 5 \/ n = 6 \/ n = 7 \/ n = 8 \/ n = 9 \/ n = 10)%nat) by lia.
  repeat destruct cases as [cases | cases]; subst n.
  - apply (has_one 1500 1 3 50 (846 / 1000)); by_fractions.
  - apply (has_one 1500 2 6 50 (920 / 1000)); by_fractions.
  - apply (has_one 1500 3 9 50 (946 / 1000)); by_fractions.
  - apply (has_one 1500 4 12 50 (959 / 1000)); by_fractions.
  - apply (has_one 1500 5 15 50 (968 / 1000)); by_fractions.
  - apply (has_one 1500 6 18 50 (973 / 1000)); by_fractions.
  - apply (has_one 1500 7 21 50 (977 / 1000)); by_fractions.
  - apply (has_one 1500 8 24 50 (980 / 1000)); by_fractions.
  - apply (has_one 1500 9 27 50 (982 / 1000)); by_fractions.
  - apply (has_one 1500 10 30 50 (984 / 1000)); by_fractions.
Qed.

Lemma many_flows_of_1000_bytes (n : nat) : (15 <= n)%nat -> ~ has_fixed_point 1000 n.
Proof.
  intros many. destruct (Nat.eq_dec n 15) as [just | more].
  - subst n.
    apply (has_none 1000 15 15 15 25 (49169 / 50000) (15 * (1 - (49169 / 50000) ^ 10))); try by_fractions.
    assert (above : 49169 / 50000 <= unit_power 1000 (INR 15)).
    { apply (unit_power_at_least 1000 (INR 15)) with (m := 15%nat) (j := 25%nat); by_fractions. }
    assert (powers : (49169 / 50000) ^ 10 <= unit_power 1000 (INR 15) ^ 10) by (apply pow_incr; lra).
    replace (INR 15) with 15 in * by by_fractions. lra.
  - apply (has_none 1000 n 16 16 25 (2461 / 2500) (250000 / (99 * 1000))); try by_fractions.
    apply scaled_cuts_below; [lra | apply (lt_INR 0); lia].
Qed.

Lemma many_flows_of_1500_bytes (n : nat) : (11 <= n)%nat -> ~ has_fixed_point 1500 n.
Proof.
  intros many. destruct (Nat.eq_dec n 11) as [just | more].
  - subst n.
    apply (has_none 1500 11 11 33 50 (1231 / 1250) (11 * (1 - (1231 / 1250) ^ 10))); try by_fractions.
    assert (above : 1231 / 1250 <= unit_power 1500 (INR 11)).
    { apply (unit_power_at_least 1500 (INR 11)) with (m := 33%nat) (j := 50%nat); by_fractions. }
    assert (powers : (1231 / 1250) ^ 10 <= unit_power 1500 (INR 11) ^ 10) by (apply pow_incr; lra).
    replace (INR 11) with 11 in * by by_fractions. lra.
  - apply (has_none 1500 n 12 36 50 (9861 / 10000) (250000 / (99 * 1500))); try by_fractions.
    apply scaled_cuts_below; [lra | apply (lt_INR 0); lia].
Qed.

(** Section 5.1 with Table 14 and packets of 1000 B: n flows of equal rates have a fixed point, with a queue that marks
    as they need, if and only if n <= 14. *)
Theorem up_to_14_flows (n : nat) : (1 <= n)%nat -> (has_fixed_point 1000 n <-> (n <= 14)%nat).
Proof.
  intros some. split.
  - intros has. destruct (Compare_dec.le_lt_dec n 14) as [good | bad]; [exact good |].
    exfalso. exact (many_flows_of_1000_bytes n bad has).
  - intros few. apply has_fixed_point_iff; [lra | exact some |].
    apply Rlt_le, (few_flows_of_1000_bytes n some few).
Qed.

(** Section 5.1 with Table 14 and packets of 1500 B, those of section 3.3: if and only if n <= 10. *)
Theorem up_to_10_flows_of_full_packets (n : nat) : (1 <= n)%nat -> (has_fixed_point 1500 n <-> (n <= 10)%nat).
Proof.
  intros some. split.
  - intros has. destruct (Compare_dec.le_lt_dec n 10) as [good | bad]; [exact good |].
    exfalso. exact (many_flows_of_1500_bytes n bad has).
  - intros few. apply has_fixed_point_iff; [lra | exact some |].
    apply Rlt_le, (few_flows_of_1500_bytes n some few).
Qed.

(** With Table 14 and packets of 1000 B p at rest is at most 1 % with up to 14 flows, and with no more. *)
Theorem marking_up_to_one_percent (n : nat) (p alpha R_T R_C : R) :
  (1 <= n)%nat -> at_rest (table14 1000) (INR n) p alpha R_T R_C -> (p <= 1 / 100 <-> (n <= 14)%nat).
Proof.
  intros some rest. rewrite <- (up_to_14_flows n some). symmetry.
  apply (fixed_point_exists_iff kmin kmax pmax table14_ramp (table14 1000) (INR n)) with (3 := rest);
    [apply table14_positive; lra | apply (lt_INR 0); lia].
Qed.

(** With packets of 1500 B p at rest is at most 1 % with up to 10 flows, and with no more. *)
Theorem marking_up_to_one_percent_of_full_packets (n : nat) (p alpha R_T R_C : R) :
  (1 <= n)%nat -> at_rest (table14 1500) (INR n) p alpha R_T R_C -> (p <= 1 / 100 <-> (n <= 10)%nat).
Proof.
  intros some rest. rewrite <- (up_to_10_flows_of_full_packets n some). symmetry.
  apply (fixed_point_exists_iff kmin kmax pmax table14_ramp (table14 1500) (INR n)) with (3 := rest);
    [apply table14_positive; lra | apply (lt_INR 0); lia].
Qed.

(** Section 5.1 says that p is less than 1 %: with Table 14 and packets of 1000 B, at rest, with up to 14 flows, and
    with no more.
    Claim: dcqcn-51-marking. *)
Theorem marking_below_one_percent (n : nat) (p alpha R_T R_C : R) :
  (1 <= n)%nat -> at_rest (table14 1000) (INR n) p alpha R_T R_C -> (p < 1 / 100 <-> (n <= 14)%nat).
Proof.
  intros some rest. split.
  - intros below. apply (marking_up_to_one_percent n p alpha R_T R_C some rest). lra.
  - intros few. apply (marks_below_pmax 1000 p alpha R_T R_C n); [lra | exact some | exact rest |].
    exact (few_flows_of_1000_bytes n some few).
Qed.

(** With Table 14 the target at rest is below the line rate from two flows on. *)
Theorem target_is_below_the_line (packet p alpha R_T R_C : R) (n : nat) :
  0 < packet -> (2 <= n)%nat -> at_rest (table14 packet) (INR n) p alpha R_T R_C -> R_T < 5000000000 / packet.
Proof.
  intros positive_packet several rest.
  apply (several_flows_aim_below_the_line (table14 packet) (INR n)) with (4 := rest).
  - apply table14_positive, positive_packet.
  - apply (le_INR 2). exact several.
  - simpl. apply Rmult_le_reg_r with packet; [exact positive_packet |].
    replace (2 * (5000000 / packet) * packet) with 10000000 by (field; lra).
    replace (5000000000 / packet * packet) with 5000000000 by (field; lra). lra.
Qed.

(** With Table 14 the cube root of ECN or Delay (CoNEXT 2016) is above p for any number of flows. *)
Theorem cube_root_is_above_with_table14 (packet p alpha R_T R_C p0 : R) (n : nat) :
  0 < packet -> (1 <= n)%nat -> at_rest (table14 packet) (INR n) p alpha R_T R_C -> 0 < p0 ->
  let s := table14 packet in
  p0 ^ 3 = increase s * INR n ^ 2 / (alpha_interval s * line_rate s ^ 2)
    * (1 / byte_counter s + INR n / (timer s * line_rate s)) ^ 2 ->
  p < p0.
Proof.
  intros positive_packet some rest positive_root s cube.
  assert (some_flows : 1 <= INR n) by (apply (le_INR 1); exact some).
  apply (cube_root_is_above s (INR n)) with (3 := rest); try assumption; [| lra | simpl; lra |].
  - apply table14_positive, positive_packet.
  - simpl. apply Rmult_le_reg_r with (packet * INR n); [apply Rmult_lt_0_compat; lra |].
    replace ((55 / 1000000 + 2 * (50 / 1000000)) * (5000000000 / packet / INR n) * (packet * INR n)) with 775000
      by (field; lra).
    replace (5 * (10000000 / packet) * (packet * INR n)) with (50000000 * INR n) by (field; lra). lra.
Qed.
