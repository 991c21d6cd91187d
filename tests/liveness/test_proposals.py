"""What a node is about to propose."""

from reachnode.liveness.proposals import Proposals
from reachnode.registry.commands import MARKS_MAX, Mark, MarkDown, MarkUp


def always(agent_id: str, incarnation: int) -> bool:
    return True


def never(agent_id: str, incarnation: int) -> bool:
    return False


def test_marks_are_proposed_together() -> None:
    """All that came up since is one batch of each kind, sorted, each instance once."""
    proposals = Proposals()
    for agent_id, incarnation in (("b1", 1), ("a1", 1), ("a1", 2)):
        proposals.down(agent_id, incarnation)
    proposals.up("c1", 4)
    assert proposals.take(is_down=always, is_up=always) == (
        MarkDown(marks=(Mark(agent_id="a1", incarnation=2), Mark(agent_id="b1", incarnation=1))),
        MarkUp(marks=(Mark(agent_id="c1", incarnation=4),)),
    )
    assert proposals.take(is_down=always, is_up=always) == ()


def test_what_no_longer_fits_is_not_proposed() -> None:
    """An instance that has come back meanwhile, or was removed, is left alone, and for good."""
    proposals = Proposals()
    proposals.down("a1", 1)
    proposals.up("b1", 1)
    assert proposals.take(is_down=never, is_up=never) == ()
    assert proposals.take(is_down=always, is_up=always) == ()
    proposals.down("a1", 1)
    proposals.up("b1", 1)
    proposals.forget("a1")
    proposals.forget("b1")
    assert proposals.take(is_down=always, is_up=always) == ()


def test_a_batch_has_a_size() -> None:
    """No command speaks of more than the cluster takes."""
    proposals = Proposals()
    for at in range(MARKS_MAX + 1):
        proposals.down(f"a{at:05}", 1)
    (command,) = proposals.take(is_down=always, is_up=always)
    assert isinstance(command, MarkDown)
    assert len(command.marks) == MARKS_MAX
