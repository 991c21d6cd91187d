"""The commands of the log: what may be asked of the replicated state.

A command's tag is its name on disk and on the wire, for ever, and ends with its version. A
command whose meaning changes gets a new version beside the old one. A new one is proposed only
once the cluster's level says that every member knows it.

What a command says is decided before it is proposed: ids, times and incarnations come from
whoever proposes. Its words were checked then too (`reachnode.model`).
"""

from typing import Literal

from reachnode.model.agents import Instance
from reachnode.model.nouns import Noun
from reachnode.model.settings import Settings

LEVEL_MAX = 1
"""The highest cluster level this program knows."""
ADVANCE_MS_MAX = 2_000
MARKS_MAX = 1_000
"""How many instances one command may speak of."""

AnnouncedState = Literal["updating", "healthy", "disabled"]


class Register(Noun, frozen=True, kw_only=True, tag="register.1"):
    """Add an instance, or replace what it said before, with a new incarnation."""

    instance: Instance
    replaces: int | None = None
    """The incarnation the proposer saw, 0 for none; None replaces whatever stands.

    It guards the time between looking at the old instance and replacing it. An instance
    that is gone by then is no hindrance.
    """


class Deregister(Noun, frozen=True, kw_only=True, tag="deregister.1"):
    """Remove an instance."""

    agent_id: str
    incarnation: int | None = None
    """Only this incarnation, so that a late farewell doesn't remove a successor."""


class SetAgentState(Noun, frozen=True, kw_only=True, tag="agent-state.1"):
    """Announce that an instance is updating, disabled, or back (`healthy`)."""

    agent_id: str
    state: AnnouncedState
    incarnation: int | None = None
    """Only this incarnation; None whichever it is."""


class PutSettings(Noun, frozen=True, kw_only=True, tag="settings.1"):
    """Swap the shared settings, whole."""

    document: Settings
    revision: int | None = None
    """The revision it is meant to follow; None follows whatever stands."""


class Advance(Noun, frozen=True, kw_only=True, tag="advance.1"):
    """Move cluster time on by 1 to 2,000 ms."""

    by_ms: int


class Mark(Noun, frozen=True, kw_only=True):
    """One incarnation of an instance; another one is not meant."""

    agent_id: str
    incarnation: int


class MarkDown(Noun, frozen=True, kw_only=True, tag="down.1"):
    """Take instances out that two nodes can't reach and nobody hears."""

    marks: tuple[Mark, ...]


class MarkUp(Noun, frozen=True, kw_only=True, tag="up.1"):
    """Take instances in again that were down and answer."""

    marks: tuple[Mark, ...]


class Forget(Noun, frozen=True, kw_only=True, tag="forget.1"):
    """Remove instances that have been down for as long as the settings say."""

    marks: tuple[Mark, ...]


class ReplaceMember(Noun, frozen=True, kw_only=True, tag="replace-member.1"):
    """Admit a new incarnation of a member, whose former one never counts again."""

    member_id: str
    incarnation: str
    follows: int | None = None
    """The newest admission its proposer saw; None follows whatever stands.

    Two disks replaced at once may be a majority. Whether the last one is durable everywhere
    was looked at before proposing, so nothing may come in between.
    """


class RaiseLevel(Noun, frozen=True, kw_only=True, tag="raise-level.1"):
    """Let effects of a higher level begin, one level at a time."""

    level: int


Command = (
    Register
    | Deregister
    | SetAgentState
    | MarkDown
    | MarkUp
    | Forget
    | PutSettings
    | Advance
    | ReplaceMember
    | RaiseLevel
)


class Envelope(Noun, frozen=True, kw_only=True):
    """A command with the name under which it may be repeated."""

    request_id: str
    """Chosen once by whoever asks, 1 to 128 bytes; a repeat carries the same."""
    since_index: int
    """The applied index its first sender saw when it chose the id."""
    command: Command
