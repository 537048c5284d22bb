(** ACC (NSDI 2024), section 4.2: the time for which Algorithm 1 halts a flow, against the time that the queue takes to
    drain.

    Rates are over the capacity C, bytes over C T, times in periods T. N flows send S_k in T_{i-1} and in T_i, more than
    C in sum, from an empty queue; the model of the link is in halts.v. *)

From Coq Require Import Reals Lra Lia.
From fluidcc.shared Require Import sums.
From fluidcc.acc Require Import halts.

Open Scope R_scope.

Section Flows.

Variables (N : nat) (S : nat -> R).

(** R of line 3: the rate of flow k's ACKs, its share of C. *)
Definition ack_rate (k : nat) : R := S k / total N S.

(** t_Halt of line 29: of what was sent in T_{i-1}, Delta S, an ACK rate's worth is acknowledged in T_i, Delta A. *)
Definition halt_time (k : nat) : R := (S k - ack_rate k) / ack_rate k.

(** r of line 7, of what was sent in T_i, Delta S; R_s is the sending rate that line 7 reads. *)
Definition excess (k : nat) (R_s : R) : R := S k - S k * ack_rate k / R_s.

(** t_extend of line 8. *)
Definition extension (k : nat) (R_s : R) : R := excess k R_s / ack_rate k.

Hypothesis congested : 1 < total N S.

(** Section 4.2: flow k's packets of T_{i-1}, at the rate R_k, drain in just the time in which the queue that all flows'
    make drains, at C.
    Claim: acc-42-halt-time. *)
Theorem halt_drains_first_period (k : nat) : 0 < S k -> halt_time k = total N S - 1.
Proof. intros sends. unfold halt_time, ack_rate. field. lra. Qed.

(** Section 4.2: this is the queue, over C T, after T_{i-1}. *)
Theorem queue_after_first_period : queue_after N (State S 0 false) = total N S - 1.
Proof. rewrite queue_after_sending, Rmax_right; lra. Qed.

(** Section 4.2, (2): T_i, in which the flows still send, makes it twice that. *)
Theorem queue_after_second_period :
  queue_after N (State S (queue_after N (State S 0 false)) false) = 2 * (total N S - 1).
Proof. rewrite queue_after_first_period, queue_after_sending, Rmax_right; lra. Qed.

(** Section 4.2: a halt with one extension, line 7 reading the rate R_s of before line 4, takes just as long as the
    queue of both periods takes to drain, for each flow: none resumes before the queue is empty, and none after. The
    extension, a period after the halt began, must come before the halt is over: rates sum to 2 C or more.
    Claim: acc-42-drains. *)
Theorem halt_and_extension_drain_both_periods (k : nat) :
  0 < S k -> halt_time k + extension k (S k) = 2 * (total N S - 1).
Proof. intros sends. unfold halt_time, extension, excess, ack_rate. field. lra. Qed.

(** Line 7 with the rate R_s of before line 4: r is what flow k sent in T_i beyond the pipe, R T.
    Claim: acc-42-line-7. *)
Theorem excess_is_what_was_sent_beyond (k : nat) : 0 < S k -> excess k (S k) = S k - ack_rate k.
Proof. intros sends. unfold excess, ack_rate. field. lra. Qed.

(** Algorithm 1 as printed, if line 4 has set R_s to R: line 7 finds no excess. *)
Theorem no_extension_after_line_4 (k : nat) : 0 < S k -> extension k (ack_rate k) = 0.
Proof. intros sends. unfold extension, excess, ack_rate. field. lra. Qed.

(** So the flow resumes with the queue of a period left, half of that of both. *)
Theorem half_is_left_after_line_4 (k : nat) :
  0 < S k -> 2 * (total N S - 1) - (halt_time k + extension k (ack_rate k)) = total N S - 1.
Proof. intros sends. rewrite no_extension_after_line_4, halt_drains_first_period by exact sends. lra. Qed.

(** Algorithm 1 as printed, if lines 7 to 10 run n times in a halt: the flow halts for n - 1 times the queue of a period
    longer than the queue takes to drain. How often a period ends in a halt is not part of it: from line rate, n = 6
    in the check by numbers.
    Claim: acc-42-extends. *)
Theorem repeated_extensions_idle (k n : nat) :
  0 < S k ->
  halt_time k + INR n * extension k (S k) - 2 * (total N S - 1) = (INR n - 1) * (total N S - 1).
Proof. intros sends. unfold halt_time, extension, excess, ack_rate. field. lra. Qed.

End Flows.

(** Section 4.2: four flows from line rate, as in the check by numbers: 6 periods. *)
Example four_flows_from_line_rate : halt_time 4 (fun _ => 1) 0 + extension 4 (fun _ => 1) 0 1 = 6.
Proof. unfold halt_time, extension, excess, ack_rate. simpl. field. Qed.
