"""Single bits turned over in a directory at rest."""

import random
from collections.abc import Mapping
from itertools import pairwise

import pytest

from reachnode.peers.raft.loading import load
from reachnode.peers.raft.records import Damaged
from reachnode.peers.raft.storage import IDENTITY, JOURNAL, MARK, VOTE
from sim import bit_flips
from sim.bit_flips import Flip, draw_flips, flip_fault, regions, without_mark
from sim.crash_points import CountedFiles, Script
from sim.disk import FakeFiles
from sim.ledger import Ledger


def at_rest(number: int) -> Mapping[str, bytes]:
    """Return a directory at the end of a script."""
    files = CountedFiles()
    Script(seed=0, number=number).first_life(files, Ledger())
    return files.copy()


def with_snapshot() -> Mapping[str, bytes]:
    """Return a directory that has a snapshot and entries behind it."""
    images = [at_rest(number) for number in range(20)]
    return next(one for one in images if len(one) > 4 and len(one[JOURNAL]) > 500)


def test_every_bit_of_a_directory_is_guarded() -> None:
    """Flipped, it is refused by name and place, or it was harmless."""
    image = with_snapshot()
    for region in regions(image):
        for offset in {region.start, region.end - 1, (region.start + region.end) // 2}:
            for has_mark in (True, False):
                if has_mark or region.name != MARK:
                    flip = Flip(region=region, offset=offset, bit=offset % 8, has_mark=has_mark)
                    assert flip_fault(image, flip) is None


def test_the_regions_are_all_of_it() -> None:
    """Every byte of every file that is read is in exactly one of them."""
    image = with_snapshot()
    assert {IDENTITY, VOTE, MARK, JOURNAL} < {region.name for region in regions(image)}
    for name in {region.name for region in regions(image)}:
        parts = sorted((one.start, one.end) for one in regions(image) if one.name == name)
        assert parts[0][0] == 0
        assert parts[-1][1] == len(image[name])
        assert all(a[1] == b[0] for a, b in pairwise(parts))


def test_flips_are_drawn_from_everywhere() -> None:
    """A small file gets as many as a large one; only the mark is never flipped when it is lost."""
    image = with_snapshot()
    flips = draw_flips(image, random.Random(1), 500)
    assert {flip.region for flip in flips} == set(regions(image))
    assert {flip.has_mark for flip in flips} == {True, False}
    assert all(flip.region.start <= flip.offset < flip.region.end for flip in flips)
    assert MARK not in without_mark(image)


@pytest.mark.parametrize("name", [IDENTITY, JOURNAL, MARK])
def test_what_goes_unnoticed_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flip that is believed, refused under a wrong name, or refused though harmless."""
    image = with_snapshot()
    whole = FakeFiles()
    whole.restore(image)
    believed = load(whole)
    region = next(one for one in regions(image) if one.name == name)
    flip = Flip(region=region, offset=region.start, bit=0, has_mark=True)

    def blame_another(_files: FakeFiles) -> object:
        raise Damaged("another", 0, "it is damaged")

    monkeypatch.setattr(bit_flips, "load", lambda _files: believed)
    if name != MARK:
        assert "is believed" in str(flip_fault(image, flip))
    monkeypatch.setattr(bit_flips, "load", blame_another)
    assert "refused" in str(flip_fault(image, flip))
