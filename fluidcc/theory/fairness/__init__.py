"""Snyder and Lebeck's fairness models: a decrease per round trip against one per s ACKs ("sampling").

No scheme, packets or network here. `closed` has the model of section IV-B and its solution, `lead` for how long
sampling is ahead by the paper's difference metric, `rates` both over time with that metric and with ratios, `queue` the
same two rules as sources of one queue, with delays.
"""
