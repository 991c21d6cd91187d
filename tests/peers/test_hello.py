"""What a hello says, whom it lets in, and what proves it."""

import dataclasses
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.peers.hello import (
    HELLO_BYTES,
    NAME_BYTES_MAX,
    PREFIX_BYTES,
    Exchange,
    Hello,
    HelloRefused,
    Lane,
    Refusal,
    Role,
    check_client,
    check_clusters,
    check_prefix,
    check_server,
    name_bytes,
    pack,
    unpack,
)

KEY, OTHER_KEY = b"k" * 32, b"o" * 32

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=16)
hellos = st.builds(
    Hello,
    role=st.sampled_from(Role),
    lane=st.sampled_from(Lane),
    node=names.filter(bool),
    cluster=names,
    boot=names,
    nonce=st.binary(min_size=32, max_size=32),
)


def hello(node: str = "n1", role: Role = Role.CLIENT, cluster: str = "") -> Hello:
    """Return a plain hello."""
    return Hello(
        role=role, lane=Lane.DATA, node=node, cluster=cluster, boot="b", nonce=bytes(range(32))
    )


def refusal(act: Callable[[], object]) -> Refusal:
    """Return why something is refused."""
    with pytest.raises(HelloRefused) as raised:
        act()
    return raised.value.refusal


@given(hellos)
def test_a_hello_reads_back(said: Hello) -> None:
    """Packing and unpacking are inverse, and the size is always the same."""
    data = pack(said)
    assert len(data) == HELLO_BYTES
    check_prefix(data[:PREFIX_BYTES])
    assert unpack(data, said.role) == said


@given(hellos, st.integers(0, HELLO_BYTES - 1), st.integers(1, 255))
def test_a_changed_hello_is_refused_or_says_exactly_its_bytes(
    said: Hello, place: int, change: int
) -> None:
    """No two byte strings are the same hello: nothing hides in it."""
    data = bytearray(pack(said))
    data[place] ^= change
    try:
        read = unpack(bytes(data), said.role)
    except HelloRefused:
        return
    assert pack(read) == bytes(data)


@given(st.binary(min_size=HELLO_BYTES, max_size=HELLO_BYTES))
def test_random_bytes_are_no_hello(data: bytes) -> None:
    """Noise of the right size is refused."""
    assert refusal(lambda: unpack(data, Role.CLIENT)) is Refusal.MALFORMED


@pytest.mark.parametrize(
    ("place", "byte", "why"),
    [
        (0, 0, Refusal.MALFORMED),
        (4, 2, Refusal.VERSION),
        (5, Role.SERVER, Refusal.MALFORMED),
        (5, 3, Refusal.MALFORMED),
        (6, 0, Refusal.MALFORMED),
        (7, 0, Refusal.MALFORMED),  # the id is shorter than its text
        (7, 65, Refusal.MALFORMED),
        (7, 255, Refusal.MALFORMED),
        (8, 0xFF, Refusal.MALFORMED),  # not UTF-8
        (9, 0, Refusal.MALFORMED),  # a NUL in the id
        (8 + 63, 1, Refusal.MALFORMED),  # something in the filling
    ],
)
def test_each_field_is_checked(place: int, byte: int, why: Refusal) -> None:
    """A field out of its range is refused, for the reason that tells most."""
    data = bytearray(pack(hello()))
    data[place] = byte
    assert refusal(lambda: unpack(bytes(data), Role.CLIENT)) is why


def test_a_hello_without_a_name_is_refused() -> None:
    """A node says who it is; only cluster and boot id may be empty."""
    data = pack(dataclasses.replace(hello(), node=""))
    assert refusal(lambda: unpack(data, Role.CLIENT)) is Refusal.MALFORMED


@pytest.mark.parametrize("name", ["x" * 65, "é" * 33, "a\0b", "\ud800"])
def test_names_that_do_not_fit_are_our_own_error(name: str) -> None:
    """An id that can't be sent is refused before anything is."""
    with pytest.raises(ValueError, match=r"64 bytes|surrogates"):
        name_bytes(name)
    assert len(name_bytes("é" * 32)) == NAME_BYTES_MAX


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ("n2", Refusal.OWN_ID),
        ("n9", Refusal.UNKNOWN_NODE),
        ("N1", Refusal.UNKNOWN_NODE),
        ("n3", Refusal.WRONG_DIRECTION),
    ],
)
def test_who_may_dial_in(node: str, why: Refusal) -> None:
    """Only configured peers of a smaller id come in; not we ourselves."""
    check_client(hello("n1"), me="n2", peers={"n1", "n3"})
    assert refusal(lambda: check_client(hello(node), me="n2", peers={"n1", "n3"})) is why


def test_the_server_must_be_the_one_we_dialed() -> None:
    """Another node, or an answer for another lane, is refused."""
    check_server(hello("n2"), peer="n2", lane=Lane.DATA)
    wrong_node = refusal(lambda: check_server(hello("n3"), peer="n2", lane=Lane.DATA))
    wrong_lane = refusal(lambda: check_server(hello("n2"), peer="n2", lane=Lane.CONSENSUS))
    assert (wrong_node, wrong_lane) == (Refusal.UNKNOWN_NODE, Refusal.MALFORMED)


def test_clusters_must_agree_once_both_have_one() -> None:
    """A node without a cluster fits anywhere; two clusters never meet."""
    for ours, theirs in [("", ""), ("a", ""), ("", "a"), ("a", "a")]:
        check_clusters(ours, hello(cluster=theirs))
    assert refusal(lambda: check_clusters("a", hello(cluster="b"))) is Refusal.OTHER_CLUSTER


EXCHANGE = Exchange(
    client_hello=pack(hello("n1")),
    server_hello=pack(hello("n2", Role.SERVER)),
    certificate=b"certificate",
)


def proof_fits(
    exchange: Exchange, proof: bytes, *, role: Role = Role.SERVER, keys: tuple[bytes, ...] = (KEY,)
) -> bool:
    """Say whether a proof is accepted."""
    try:
        exchange.check_proof(role, proof, keys, node="n2")
    except HelloRefused as refused:
        return refused.refusal is not Refusal.WRONG_PROOF
    return True


def test_a_proof_needs_one_of_the_keys() -> None:
    """Either of two secrets is accepted, in any place; another is not."""
    proof = EXCHANGE.prove(Role.SERVER, KEY)
    assert len(proof) == 32
    assert proof_fits(EXCHANGE, proof)
    assert proof_fits(EXCHANGE, proof, keys=(KEY, OTHER_KEY))
    assert proof_fits(EXCHANGE, proof, keys=(OTHER_KEY, KEY))
    assert not proof_fits(EXCHANGE, proof, keys=(OTHER_KEY,))
    assert not proof_fits(EXCHANGE, proof[:-1])
    assert not proof_fits(EXCHANGE, b"")


def test_a_proof_can_not_be_reflected() -> None:
    """What one side proved is no proof of the other side."""
    assert not proof_fits(EXCHANGE, EXCHANGE.prove(Role.CLIENT, KEY), role=Role.SERVER)
    assert not proof_fits(EXCHANGE, EXCHANGE.prove(Role.SERVER, KEY), role=Role.CLIENT)


def test_a_proof_is_bound_to_the_certificate() -> None:
    """Somebody in the middle shows another certificate, and can't pass the proof on."""
    elsewhere = dataclasses.replace(EXCHANGE, certificate=b"another")
    assert not proof_fits(elsewhere, EXCHANGE.prove(Role.SERVER, KEY))


@given(hellos, hellos, hellos, st.sampled_from(Role))
def test_a_proof_is_of_one_exchange(client: Hello, server: Hello, other: Hello, role: Role) -> None:
    """A proof fits no exchange in which any of the two hellos differs."""
    exchange = Exchange(client_hello=pack(client), server_hello=pack(server), certificate=b"c")
    proof = exchange.prove(role, KEY)
    changed = [
        dataclasses.replace(exchange, client_hello=pack(other)),
        dataclasses.replace(exchange, server_hello=pack(other)),
    ]
    for one in changed:
        assert one == exchange or not proof_fits(one, proof, role=role)
