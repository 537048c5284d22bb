"""Training traffic: collectives as transfers that wait for each other, jobs side by side on one fabric.

`fluidcc.collective` runs them under schemes side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.surface import lazily

if TYPE_CHECKING:
    from fluidcc.workloads.collectives.chakra import read_chakra as read_chakra
    from fluidcc.workloads.collectives.goal import read_goal as read_goal
    from fluidcc.workloads.collectives.jobs import Job as Job
    from fluidcc.workloads.collectives.jobs import Replay as Replay
    from fluidcc.workloads.collectives.jobs_file import read_jobs as read_jobs
    from fluidcc.workloads.collectives.mapping import placed as placed
    from fluidcc.workloads.collectives.run import CollectiveRun as CollectiveRun
    from fluidcc.workloads.collectives.schedule import Schedule as Schedule
    from fluidcc.workloads.collectives.simai import read_simai as read_simai
    from fluidcc.workloads.collectives.study import CollectiveStudy as CollectiveStudy

__getattr__, __dir__, __all__ = lazily(globals())
