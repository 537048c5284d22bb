"""No scheme, but mechanisms that schemes take: Variable AI and Sampling Frequency (Snyder and Lebeck).

So the folder has no ``parameters.py``. A scheme takes them by deriving its parameters from `mechanisms.VaiSf`, adding
`packet.COLUMNS` to its packet side's state and `fluid.Tokens` to its fluid side's, and calling their rules where it
increases and decreases.
"""
