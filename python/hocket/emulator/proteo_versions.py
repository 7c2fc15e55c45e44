"""The versions of Proteo's configuration files: their keys, and what their numbers stand for (docs/proteo-files.md).

The authors renamed keys and numbered stages and strategies anew as Proteo grew, and no file says which version it has.
A version maps each of its keys to a role. Readers ask for roles, so only this table knows the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

# Kinds of stages by number, in the words of our own descriptions.
KINDS_ALLTOALL = ("compute", "memory", "sendrecv", "broadcast", "alltoall", "reduce")
KINDS_SEVEN = ("compute", "memory", "sendrecv", "broadcast", "allgatherv", "reduce", "allreduce")
KINDS_PAPER = (*KINDS_SEVEN, "isend-irecv", "wait")
KINDS_NINE = (
    "compute",
    "memory",
    "sendrecv",
    "isend-irecv",
    "wait",
    "broadcast",
    "allgatherv",
    "reduce",
    "allreduce",
)
KINDS_ELEVEN = (*KINDS_NINE, "write", "read")

SPAWNS = ("baseline", "merge")
REDISTRIBUTIONS = ("collective", "p2p", "rma-lock", "rma-lockall")

# Spawn strategies: a product of primes, one for each strategy; later a list of indices.
SPAWN_PRODUCTS: Mapping[int, frozenset[str]] = {
    1: frozenset(),
    2: frozenset({"async"}),
    3: frozenset({"single"}),
    6: frozenset({"async", "single"}),
}
SPAWN_INDICES = ("", "async", "single", "intercomm", "multiple", "parallel")
# Redistribution strategies. Proteo without a strategy still moves constant data with non-blocking functions.
REDISTRIBUTION_PRODUCTS = {1: "wait-sources", 2: "thread", 3: "wait-targets"}
REDISTRIBUTION_INDICES = {0: "wait-sources", 1: "thread", 2: "wait-sources", 3: "wait-targets"}
REDISTRIBUTION_PAPER = {1: "blocking", 2: "wait-sources", 3: "wait-targets", 5: "thread"}
# One number for both, before there were redistribution methods.
ASYNCHRONOUS = (
    ("collective", "wait-sources"),
    ("collective", "wait-targets"),
    ("p2p", "wait-sources"),
    ("collective", "thread"),
)
# One number for spawn method and strategy, before that.
SPAWN_TYPES = (("baseline", frozenset()), ("baseline", {"async"}), ("merge", frozenset()), ("merge", {"async"}))
PLACEMENTS = {"compact": "compact", "spread": "spread", "cpu": "compact", "node": "spread"}


def roles(**keys: str) -> Mapping[str, str]:
    """Return key to role, from `role="Key"`."""
    return MappingProxyType({key: role for role, key in keys.items()})


@dataclass(frozen=True)
class Version:
    """A version. `general`, `phase`, `stage`, and `group` map keys to roles; roles in `optional` may be missing."""

    name: str
    known_by: str
    general: Mapping[str, str]
    group: Mapping[str, str]
    stage: Mapping[str, str] = field(default_factory=dict)
    phase: Mapping[str, str] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    syntaxes: tuple[str, ...] = ("ini",)
    kinds: tuple[str, ...] = ()
    placements: tuple[str, ...] = ("compact", "spread")
    spawn_strategies: str = "products"  # or indices
    redistribution_strategies: Mapping[int, str] = field(default_factory=lambda: REDISTRIBUTION_PRODUCTS)
    redistributions: int = len(REDISTRIBUTIONS)  # how many numbers there are
    identifiers: bool = False  # a wait names its non-blocking stage by a number
    compute_ends_by: str = "operations"
    factor_scales_messages: bool = True  # FactorS scales the time of a message, unless Stage_Time_Capped forbids it
    granularity_is_message: bool = False  # a message or an access that lasts a time has Granularity bytes
    usual_granularity: int | None = None  # None: each file has it
    divides_messages: bool = False  # a point-to-point stage sends 1 / Procs of its bytes

    @property
    def phased(self) -> bool:
        return bool(self.phase)

    def keys_of(self, kind: str) -> Mapping[str, str]:
        return {"general": self.general, "group": self.group, "stage": self.stage, "phase": self.phase}[kind]


_OLD_GROUP = roles(iterations="iters", processes="procs", factor="factor", placement="physical_dist")
_GROUP = roles(iterations="Iters", processes="Procs", factor="FactorS", placement="Dist")
_SPAWN = roles(spawn="Spawn_Method", spawn_strategy="Spawn_Strategy")
_REDISTRIBUTION = roles(redistribution="Redistribution_Method", redistribution_strategy="Redistribution_Strategy")
_OLD_STAGE = roles(kind="PT", bytes="bytes", time="t_stage")
_STAGE = roles(kind="Stage_Type", bytes="Stage_Bytes", time="Stage_Time")
_CAPPED = roles(capped="Stage_Time_Capped")
_IDENTIFIER = roles(identifier="Stage_Identifier")
_BYTES = roles(variable="SDR", constant="ADR")
_TOTALS = roles(resizes="Total_Resizes", stages="Total_Stages", granularity="Granularity")
_RIGID = roles(rigid="Rigid")
_CAPTURE = roles(capture="Capture_Method")

MATRIX = Version(
    "matrix",
    "matrix_tam and time, no comm_tam, no stages",
    roles(resizes="resizes", granularity="matrix_tam", time="time", asynchronous="AIB") | _BYTES,
    _OLD_GROUP,
    optional=frozenset({"asynchronous"}),
    placements=("node", "cpu"),
    compute_ends_by="time",
)
BROADCAST = Version(
    "broadcast",
    "comm_tam",
    roles(
        resizes="resizes",
        granularity="matrix_tam",
        bytes="comm_tam",
        time="time",
        asynchronous="AIB",
        spawn_type="CST",
        spawn_single="CSS",
    )
    | _BYTES,
    _OLD_GROUP,
    optional=frozenset({"asynchronous", "spawn_type", "spawn_single"}),
    placements=("node", "cpu"),
)
STAGES = Version(
    "stages",
    "iter_stages; 4 is Allgatherv",
    roles(
        resizes="resizes",
        stages="iter_stages",
        granularity="matrix_tam",
        asynchronous="AIB",
        spawn_type="CST",
        spawn_single="CSS",
    )
    | _BYTES,
    _OLD_GROUP,
    _OLD_STAGE,
    placements=("node", "cpu"),
    kinds=KINDS_SEVEN,
    divides_messages=True,
)
STAGES_ALLTOALL = replace(
    STAGES,
    name="stages-alltoall",
    known_by="iter_stages; 4 is Alltoall",
    kinds=KINDS_ALLTOALL,
    divides_messages=False,
)
SHORT = Version(
    "short",
    "R and S, AT, SM, SS",
    roles(resizes="R", stages="S", granularity="Granularity", asynchronous="AT", spawn="SM", spawn_strategy="SS")
    | _BYTES,
    _GROUP,
    _OLD_STAGE,
    kinds=KINDS_SEVEN,
)
GENERAL_METHODS = Version(
    "general-methods",
    "Asynch_Redistribution_Type and Spawn_Method in [general]; Stage_bytes, Stage_time",
    _TOTALS | _BYTES | roles(asynchronous="Asynch_Redistribution_Type") | _SPAWN,
    _GROUP,
    roles(kind="Stage_Type", bytes="Stage_bytes", time="Stage_time"),
    kinds=KINDS_SEVEN,
)
ASYNCH_TYPE = Version(
    "asynch-type",
    "Asynch_Redistribution_Type in [resizeN]",
    _TOTALS | _BYTES | _RIGID,
    _GROUP | roles(asynchronous="Asynch_Redistribution_Type") | _SPAWN,
    _STAGE | _CAPPED,
    optional=frozenset({"rigid", "capped"}),
    kinds=KINDS_SEVEN,
    granularity_is_message=True,
)
PRODUCTS = Version(
    "products",
    "Redistribution_Method in [resizeN]; 3 is Bcast; strategies are products of 2 and 3",
    _TOTALS | _BYTES | _RIGID | _CAPTURE,
    _GROUP | _REDISTRIBUTION | _SPAWN,
    _STAGE | _CAPPED,
    optional=frozenset({"rigid", "capped", "capture"}),
    kinds=KINDS_SEVEN,
    redistributions=len(REDISTRIBUTIONS) + 1,  # 4 was, for some time, non-blocking with a barrier
    granularity_is_message=True,
)
PRODUCTS_ISEND = replace(
    PRODUCTS,
    name="products-isend",
    known_by="Stage_Identifier; 3 is Isend and Irecv; strategies are products of 2 and 3",
    stage=_STAGE | _CAPPED | _IDENTIFIER,
    optional=PRODUCTS.optional | {"identifier"},
    kinds=KINDS_NINE,
    redistributions=len(REDISTRIBUTIONS),
    identifiers=True,
)
INDICES = replace(
    PRODUCTS_ISEND,
    name="indices",
    known_by="Stage_Identifier; 3 is Isend and Irecv; strategies are lists of indices, and 0 is none",
    spawn_strategies="indices",
    redistribution_strategies=REDISTRIBUTION_INDICES,
)
_PHASES = roles(resizes="Total_Resizes", phases="Total_Phases") | _BYTES | _RIGID | _CAPTURE
PHASES = replace(
    INDICES,
    name="phases",
    known_by="Total_Phases, no Datasize",
    general=_PHASES,
    phase=roles(iterations="Total_Iters", stages="Total_Stages"),
    stage=_STAGE | _CAPPED | _IDENTIFIER | roles(granularity="Granularity"),
    optional=INDICES.optional | {"granularity"},
)
DATA_SIZE = replace(
    PHASES,
    name="data-size",
    known_by="Datasize; all JSON files",
    general=_PHASES | roles(element="Datasize"),
    stage=PHASES.stage | roles(involved="Stage_Involved_Procs"),
    optional=PHASES.optional | {"involved"},
    syntaxes=("ini", "json"),
    kinds=KINDS_ELEVEN,
    usual_granularity=600,
)
PAPER = Version(
    "paper",
    "Total_Reconfigurations: the names of the paper, section 4.4",
    roles(
        resizes="Total_Reconfigurations",
        stages="Total_Stages",
        granularity="Granularity",
        data="Total_Data_Redistribution",
        percent="Asynch_Percentage_Redistribution",
    ),
    _GROUP | _REDISTRIBUTION | _SPAWN,
    _STAGE,
    optional=frozenset({"bytes", "time"}),
    kinds=KINDS_PAPER,
    redistribution_strategies=REDISTRIBUTION_PAPER,
    redistributions=2,
    factor_scales_messages=False,
    granularity_is_message=True,
)
# The tuple has each version, the oldest first.
VERSIONS = (
    MATRIX,
    BROADCAST,
    STAGES_ALLTOALL,
    STAGES,
    SHORT,
    GENERAL_METHODS,
    ASYNCH_TYPE,
    PRODUCTS,
    PRODUCTS_ISEND,
    INDICES,
    PHASES,
    DATA_SIZE,
    PAPER,
)
BY_NAME = {one.name: one for one in VERSIONS}
