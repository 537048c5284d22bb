"""HPCC's appendix A: recursions on a network of links and paths that know no scheme, packets or queues.

One module per section: `pareto` (A.2), `additive` and `registers` (A.3), `windows` (A.4); `networks` makes incidence
matrices, `optimal` solves the optimisation problems that the recursions are said to solve, by other means.
"""
