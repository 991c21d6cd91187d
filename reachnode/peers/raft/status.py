"""The status nouns, under the name by which the consensus room knows them."""

from reachnode.model.membership import (
    Disk,
    MemberStatus,
    Phase,
    ReplicaStatus,
    Role,
    Unknown,
)

__all__ = ["Disk", "MemberStatus", "Phase", "ReplicaStatus", "Role", "Unknown"]
