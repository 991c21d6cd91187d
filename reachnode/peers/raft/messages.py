"""What nodes say to each other about consensus: nouns and their bytes.

msgpack arrays with a short tag, decoded strictly into frozen structs; fields added at the
end by a newer node are ignored by an older one. Only authenticated peers get as far as
this module. The engine's own dictionaries are made and read here, and nowhere else.
"""

from typing import Any, Literal

import msgspec

from reachnode.peers.raft.opening import COMMAND_BYTES_MAX, NO_OP, REGULAR, Entry


class BadMessage(Exception):
    """A peer sent something that is not a consensus message; its connection is broken."""


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False, tag_field="t"):
    """A message between members."""


class Greet(Message, frozen=True, tag="gr", kw_only=True):
    """The first message on a consensus connection: who has come, with which disk."""

    incarnation: str
    """The disk's own id: 32 hexadecimal digits, new whenever a directory starts empty."""
    cluster_id: str
    """Empty until the cluster is founded."""
    founders: dict[str, str]
    """Member to incarnation at founding; empty until founded."""
    peers: list[str]
    """Every voter the node was configured with, as ``id=host:port``, sorted."""
    term: int
    log_end: int
    """Index of the last entry this disk brings."""
    noted: int
    """Index of the newest replacement this disk has noted durably."""
    version: int = 1
    """The newest state format and commands this node understands."""
    view: str = ""
    """While founding, the id of the cluster that those it heard would found; else empty."""


class RequestVote(Message, frozen=True, tag="rv"):
    """A candidate asks for a vote."""

    term: int
    last_index: int
    last_term: int


class Vote(Message, frozen=True, tag="vo"):
    """A vote granted."""

    term: int


class Append(Message, frozen=True, tag="ap"):
    """Entries from a leader, or its heartbeat."""

    term: int
    commit_index: int
    previous_index: int
    previous_term: int
    entries: list[tuple[bytes, int, int]]


class Ack(Message, frozen=True, tag="ak"):
    """A follower's answer to entries, stamped with its term (B6)."""

    term: int
    next_index: int
    reset: bool
    success: bool


class Nack(Message, frozen=True, tag="na"):
    """The answer to a message of a past term, which the engine leaves unanswered (B24)."""

    term: int


class TakeOver(Message, frozen=True, tag="to"):
    """A leader asks a follower to campaign now."""

    term: int


class Poll(Message, frozen=True, tag="pv"):
    """Pre-vote: would you vote for me in this term?"""

    term: int
    last_index: int
    last_term: int
    round: int


class PollAnswer(Message, frozen=True, tag="pa"):
    """The answer to a poll, with the term of the member that gives it."""

    term: int
    round: int
    granted: bool


class Propose(Message, frozen=True, tag="pr"):
    """A change on its way to the leader; an empty envelope is a read fence."""

    number: int
    envelope: bytes


class Proposed(Message, frozen=True, tag="pd"):
    """What became of a proposal that was sent to the leader."""

    number: int
    fate: Literal["applied", "refused", "discarded", "lost", "elsewhere"]
    """applied: see outcome. refused: `outcome` says why, and it will never happen.
    discarded: another entry was applied in its place. lost: it was cut from this log, but
    may live on in another. elsewhere: this node doesn't lead."""
    index: int
    outcome: bytes


class SnapshotPiece(Message, frozen=True, tag="sp", kw_only=True):
    """A piece of the leader's snapshot file."""

    term: int
    index: int
    offset: int
    data: bytes
    is_last: bool


class SnapshotAck(Message, frozen=True, tag="sa"):
    """A follower has taken the snapshot's bytes up to `offset`; -1 asks to start over."""

    term: int
    index: int
    offset: int


AnyMessage = (
    Greet
    | RequestVote
    | Vote
    | Append
    | Ack
    | Nack
    | TakeOver
    | Poll
    | PollAnswer
    | Propose
    | Proposed
    | SnapshotPiece
    | SnapshotAck
)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AnyMessage)


def encode(message: AnyMessage) -> bytes:
    """Return the bytes of a message."""
    return _encoder.encode(message)


def decode(data: bytes) -> AnyMessage:
    """Return the message in `data`.

    Raises:
        BadMessage: Not a message, or its numbers and entries make no sense.
    """
    try:
        message: AnyMessage = _decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadMessage(str(error)) from error
    if isinstance(message, Append):
        check_entries(message)
    return message


def check_entries(message: Append) -> None:
    """Raise BadMessage unless the entries follow each other and are of a kind we know."""
    index, term = message.previous_index, message.previous_term
    for command, entry_index, entry_term in message.entries:
        if entry_index != index + 1 or not term <= entry_term <= message.term:
            raise BadMessage(f"entry {entry_index} of term {entry_term} follows {index} of {term}")
        if len(command) > COMMAND_BYTES_MAX:
            raise BadMessage(f"entry {entry_index} has {len(command)} bytes")
        if command[:1] not in ENTRY_KINDS:
            raise BadMessage(f"entry {entry_index} is of the unknown kind {command[:1].hex()}")
        index, term = entry_index, entry_term


CHECK_DIGEST = b"\x04"
"""First byte of an entry that says which digest the state had at an earlier index."""
ENTRY_KINDS = frozenset({REGULAR, NO_OP, CHECK_DIGEST})


def from_engine(message: dict[str, Any], term: int) -> AnyMessage:
    """Return the message the engine wants to send.

    Args:
        message: In the engine's form.
        term: The engine's current term, stamped on acknowledgements.
    """
    match message["type"]:
        case "append_entries":
            return Append(
                message["term"],
                message["commit_index"],
                message["prevLogIdx"],
                message["prevLogTerm"],
                message["entries"],
            )
        case "next_node_idx":
            return Ack(term, message["next_node_idx"], message["reset"], message["success"])
        case "request_vote":
            return RequestVote(message["term"], message["last_log_index"], message["last_log_term"])
        case "response_vote":
            return Vote(message["term"])
        case "timeout_now":
            return TakeOver(message["term"])
        case kind:
            raise AssertionError(f"the engine sent a {kind}")


def to_engine(message: Append | Ack | RequestVote | Vote | TakeOver) -> dict[str, Any]:
    """Return a message in the engine's own form."""
    match message:
        case Append():
            entries: list[Entry] = message.entries
            return {
                "type": "append_entries",
                "term": message.term,
                "commit_index": message.commit_index,
                "prevLogIdx": message.previous_index,
                "prevLogTerm": message.previous_term,
                "entries": entries,
            }
        case Ack():
            return {
                "type": "next_node_idx",
                "next_node_idx": message.next_index,
                "reset": message.reset,
                "success": message.success,
            }
        case RequestVote():
            return {
                "type": "request_vote",
                "term": message.term,
                "last_log_index": message.last_index,
                "last_log_term": message.last_term,
            }
        case Vote():
            return {"type": "response_vote", "term": message.term}
        case TakeOver():
            return {"type": "timeout_now", "term": message.term}
