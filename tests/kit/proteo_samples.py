"""A small file of each version of Proteo's configuration: names and numbers are Proteo's, the programs are ours."""

from __future__ import annotations

OLD_GROUPS = """
[resize0]
iters=6
procs=1
factor=1
physical_dist=cpu
[resize1]
iters=4
procs=2
factor=0.6
physical_dist=node
"""
GENERAL_GROUPS = """
[resize0]
Iters=6
Procs=1
FactorS=1
Dist=compact
[resize1]
Iters=4
Procs=2
FactorS=0.6
Dist=spread
"""


def groups(methods: str, first: str) -> str:
    """Return two groups. `methods`: keys of the second; `first`: of the first, whose methods mean nothing."""
    parts = GENERAL_GROUPS.split("[resize1]")
    return f"{parts[0]}{first}\n[resize1]{parts[1]}{methods}\n"


def stage(label: str, kind: int, bytes_: int, time: float, *more: str) -> str:
    return "\n".join((f"[{label}]", f"Stage_Type={kind}", f"Stage_Bytes={bytes_}", *more, f"Stage_Time={time}", ""))


ASYNCH = "Asynch_Redistribution_Type={}\nSpawn_Method={}\nSpawn_Strategy={}"
METHODS = "Redistribution_Method={}\nRedistribution_Strategy={}\nSpawn_Method={}\nSpawn_Strategy={}"
TOTALS = "[general]\nTotal_Resizes=1\nTotal_Stages={}\nGranularity=500\nSDR=1000\nADR=3000.0\n"
COMPUTES = stage("stage0", 0, 0, 0.2)

JSON = """{
  "general": {"Total_Resizes": 1, "Total_Phases": 2, "SDR": 250.0, "ADR": 750.0, "Datasize": 4,
              "Rigid": 1, "Capture_Method": 2},
  "phases": [
    {"Total_Iters": 7, "Total_Stages": 2, "stages": [
      {"Stage_Type": 0, "Stage_Bytes": 0, "Stage_Time": 0.2, "Granularity": 500},
      {"Stage_Type": 9, "Stage_Bytes": 512, "Stage_Time": 0, "Stage_Involved_Procs": 0}]},
    {"Total_Iters": 3, "Total_Stages": 1, "stages": [
      {"Stage_Type": 10, "Stage_Bytes": 64, "Stage_Time": 0, "Stage_Involved_Procs": 1}]}
  ],
  "groups": [
    {"Iters": 6, "Procs": 1, "FactorS": 1, "Dist": "compact", "Redistribution_Method": 0,
     "Redistribution_Strategy": [0], "Spawn_Method": 0, "Spawn_Strategy": [0]},
    {"Iters": 99, "Procs": 2, "FactorS": 0.6, "Dist": "spread", "Redistribution_Method": 1,
     "Redistribution_Strategy": [3], "Spawn_Method": 1, "Spawn_Strategy": [1, 2]}
  ]
}
"""

SAMPLES = {
    "matrix": "[general]\nresizes=1\nmatrix_tam=500 ; rows\nSDR=1000\nADR=3000\nAIB=1\ntime=0.2\n" + OLD_GROUPS,
    "broadcast": "[general]\nresizes=1\nmatrix_tam=500\ncomm_tam=64\nSDR=1000\nADR=3000\nAIB=2\nCST=3\nCSS=1\n"
    "time=0.2\n" + OLD_GROUPS,
    "stages-alltoall": "[general]\nresizes=1\niter_stages=2\nmatrix_tam=500\nSDR=1000\nADR=3000\nAIB=3\nCST=1\nCSS=0\n"
    "[stage0]\nPT=1\nbytes=0\nt_stage=0.2\n[stage1]\nPT=4\nbytes=64\nt_stage=0\n" + OLD_GROUPS,
    "stages": "[general]\nresizes=1\niter_stages=3\nmatrix_tam=500\nSDR=1000\nADR=3000\nAIB=0\nCST=2\nCSS=1\n"
    "[stage0]\nPT=1\nbytes=0\nt_stage=0.2\n[stage1]\nPT=6\nbytes=64\nt_stage=0\n[stage2]\nPT=2\nbytes=65\nt_stage=0\n"
    + OLD_GROUPS,
    "short": "[general]\nR=1\nS=2\nGranularity=500\nSDR=1000\nADR=3000\nAT=0\nSM=1\nSS=3\n"
    "[stage0]\nPT=0\nbytes=0\nt_stage=0.2\n[stage1]\nPT=5\nbytes=64\nt_stage=0\n" + GENERAL_GROUPS,
    "general-methods": TOTALS.format(2)
    + "Asynch_Redistribution_Type=1\nSpawn_Method=0\nSpawn_Strategy=2\n"
    + (COMPUTES + stage("stage1", 3, 64, 0)).replace("_Bytes", "_bytes").replace("_Time", "_time")
    + GENERAL_GROUPS,
    "asynch-type": TOTALS.format(2)
    + COMPUTES
    + stage("stage1", 4, 0, 0.01, "Stage_Time_Capped=1")
    + groups(ASYNCH.format(3, 1, 6), ASYNCH.format(0, 0, 1)),
    "products": TOTALS.format(3)
    + "Rigid=1\n"
    + COMPUTES
    + stage("stage1", 3, 64, 0)
    + stage("stage2", 4, 0, 0.01)
    + groups(METHODS.format(1, 2, 0, 3), METHODS.format(0, 1, 0, 1)),
    "products-isend": TOTALS.format(3)
    + "Capture_Method=0\n"
    + COMPUTES
    + stage("stage1", 3, 64, 0, "Stage_Identifier=1")
    + stage("stage2", 4, 0, 0, "Stage_Identifier=1")
    + groups(METHODS.format(0, 3, 1, 6), METHODS.format(0, 1, 0, 1)),
    "indices": TOTALS.format(2)
    + "Rigid=0\nCapture_Method=1\n"
    + COMPUTES
    + stage("stage1", 8, 64, 0)
    + groups(METHODS.format(3, 0, 1, "1,2"), METHODS.format(0, 1, 0, 1)),
    "phases": "[general]\nTotal_Resizes=1\nTotal_Phases=2\nSDR=1000\nADR=3000\nRigid=0\nCapture_Method=0\n"
    "[phase0]\nTotal_Iters=7\nTotal_Stages=1\n"
    + stage("phase0.stage0", 0, 0, 0.2, "Granularity=500")
    + "[phase1]\nTotal_Iters=3\nTotal_Stages=1\n"
    + stage("phase1.stage0", 7, 64, 0)
    + groups(METHODS.format(0, 2, 1, "0"), METHODS.format(0, 0, 0, 0)),
    "data-size": JSON,
    "paper": "[general]\nTotal_Reconfigurations=1\nTotal_Stages=4\nGranularity=500\nTotal_Data_Redistribution=4000\n"
    "Asynch_Percentage_Redistribution=75\n[stage0]\nStage_Type=0\nStage_Time=0.2\n[stage1]\nStage_Type=7\nStage_Bytes=64\n"
    "[stage2]\nStage_Type=3\nStage_Time=0.01\n[stage3]\nStage_Type=8\n"
    + groups(METHODS.format(0, 5, 1, 6), METHODS.format(0, 1, 0, 1)),
}
