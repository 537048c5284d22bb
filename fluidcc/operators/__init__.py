"""Readers of files that users already have: a SONiC switch's configuration and an NVIDIA NIC's settings.

Nothing here imports JAX at import time, so that the command line can refuse a bad file at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.surface import lazily

if TYPE_CHECKING:
    from fluidcc.operators.commands import Commands as Commands
    from fluidcc.operators.nvidia import MappedSetting as MappedSetting
    from fluidcc.operators.nvidia import NicSettings as NicSettings
    from fluidcc.operators.nvidia import dcqcn_of as dcqcn_of
    from fluidcc.operators.nvidia import read_nic as read_nic
    from fluidcc.operators.sonic import SwitchPort as SwitchPort
    from fluidcc.operators.sonic import read_sonic as read_sonic

__getattr__, __dir__, __all__ = lazily(globals())
