"""What commands do to the cluster itself: its settings, members, time and level."""

from msgspec.structs import replace

from reachnode.model.members import RETIRED_MAX
from reachnode.model.settings import SettingsRevision
from reachnode.registry.commands import (
    ADVANCE_MS_MAX,
    Advance,
    PutSettings,
    RaiseLevel,
    ReplaceMember,
)
from reachnode.registry.outcomes import Applied, Outcome, Refused
from reachnode.registry.state import HISTORY_MAX, State


def put_settings(state: State, index: int, command: PutSettings) -> tuple[State, Outcome]:
    """Apply a document of settings; one equal to what holds makes no new revision.

    Names become exclusive only while each capability is offered by one agent, so that from
    then on every name has one owner.
    """
    revision = state.settings_revision
    if command.revision is not None and command.revision != revision:
        why = f"the settings are at revision {revision}, not {command.revision}"
        return state, Refused("revision_conflict", why, {"revision": revision})
    if command.document == state.settings:
        return state, Applied(index, {"revision": revision})
    if command.document.registry.capability_names == "exclusive":
        shared = _shared_name(state)
        if shared:
            return state, shared
    put = SettingsRevision(revision=revision + 1, index=index, settings=command.document)
    history = (*state.settings_history, put)[-HISTORY_MAX:]
    return replace(state, settings_history=history), Applied(index, {"revision": revision + 1})


def advance(state: State, index: int, command: Advance) -> tuple[State, Outcome]:
    """Apply a step of cluster time."""
    if not 1 <= command.by_ms <= ADVANCE_MS_MAX:
        why = f"a step of {command.by_ms} ms isn't from 1 to {ADVANCE_MS_MAX}"
        return state, Refused("invalid_request", why)
    time_ms = state.time_ms + command.by_ms
    return replace(state, time_ms=time_ms), Applied(index, {"time_ms": time_ms})


def replace_member(state: State, index: int, command: ReplaceMember) -> tuple[State, Outcome]:
    """Apply the admission of a member's new disk; admitting it again changes nothing."""
    old = state.members.get(command.member_id)
    if old is None:
        return state, Refused("unknown_member", f"{command.member_id} isn't a member")
    if command.incarnation == old.incarnation:
        return state, Applied(index, {"admitted_index": old.admitted_index})
    newest = max(member.admitted_index for member in state.members.values())
    if command.follows is not None and command.follows != newest:
        return state, Refused("cluster_changing", "another disk was replaced meanwhile: try again")
    if command.incarnation in old.retired:
        why = f"this disk of {command.member_id} was replaced before: start it empty"
        return state, Refused("superseded", why, {"incarnation": old.incarnation})
    member = replace(
        old,
        incarnation=command.incarnation,
        admitted_index=index,
        retired=(*old.retired, old.incarnation)[-RETIRED_MAX:],
    )
    members = state.members.set(command.member_id, member)
    return replace(state, members=members), Applied(index, {"admitted_index": index})


def raise_level(state: State, index: int, command: RaiseLevel) -> tuple[State, Outcome]:
    """Apply the next level; the one that holds changes nothing, and there is no way back."""
    if command.level == state.level:
        return state, Applied(index, {"level": state.level})
    if command.level != state.level + 1:
        why = f"the level is {state.level}: it rises by one, and never falls"
        return state, Refused("invalid_request", why, {"level": state.level})
    return replace(state, level=command.level), Applied(index, {"level": command.level})


def _shared_name(state: State) -> Refused | None:
    for name in sorted(state.capabilities):
        agents = sorted(set(state.capabilities[name].values()))
        if len(agents) > 1:
            why = f"{name} is offered by {agents[0]} and {agents[1]}: one must give it up first"
            return Refused("capability_taken", why, {"capability": name, "agents": agents[:2]})
    return None
