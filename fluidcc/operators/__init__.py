"""Readers of files that users already have: a SONiC switch's configuration and an NVIDIA NIC's settings.

Nothing here imports JAX at import time, so that the command line can refuse a bad file at once.
"""

from fluidcc.operators.nvidia import MappedSetting, NicSettings, dcqcn_of, read_nic
from fluidcc.operators.sonic import SwitchPort, read_sonic

__all__ = ["MappedSetting", "NicSettings", "SwitchPort", "dcqcn_of", "read_nic", "read_sonic"]
