"""Who the voters are."""

import pytest

from reachnode.peers.raft.membership import Membership


def test_ids_are_read_off_the_peers() -> None:
    """The ids are what stands before the first equals sign; the others come sorted."""
    membership = Membership(me="n2", peers=("n1=a:1", "n3=[::1]:3", "n2=b:2"))
    assert membership.members == {"n1", "n2", "n3"}
    assert membership.others == ("n1", "n3")


def test_a_node_is_one_of_its_voters() -> None:
    """A membership without this node is a mistake of ours."""
    with pytest.raises(AssertionError):
        Membership(me="n9", peers=("n1=a:1",))
