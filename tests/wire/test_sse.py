"""Server-sent events as bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.wire.sse import write_event, write_retry

words = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=20)
texts = st.text(st.characters(codec="utf-8") | st.sampled_from("\r\n\u2028\x0b\x85 :"), max_size=30)


def read(stream: bytes) -> list[tuple[str, str, str]]:
    """Return type, data and last id of each event, as WHATWG HTML 9.2.6 tells to read them."""
    text = stream.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    events, kind, lines, last_id = [], "", list[str](), ""
    for line in text.split("\n")[:-1]:
        if not line:
            if lines:
                events.append((kind or "message", "\n".join(lines), last_id))
            kind, lines = "", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                kind = value
            case "data":
                lines.append(value)
            case "id":
                last_id = value
    return events


def test_an_event_has_type_id_and_data() -> None:
    """In this order, each on its line, with an empty line after them."""
    assert write_event("change", "{}", event_id="r-1-2-0") == (
        b"event: change\nid: r-1-2-0\ndata: {}\n\n"
    )
    assert write_event("change", "") == b"event: change\ndata: \n\n"


def test_data_of_several_lines_is_several_lines() -> None:
    """Whichever ends they have; nothing else ends a line."""
    assert write_event("x", "a\nb\rc\r\nd\u2028e\x0bf") == (
        "event: x\ndata: a\ndata: b\ndata: c\ndata: d\u2028e\x0bf\n\n".encode()
    )


def test_half_a_character_breaks_nothing() -> None:
    """Half of a surrogate pair can't be written; the rest of the event can."""
    assert write_event("x", "a\ud800b") == b"event: x\ndata: a?b\n\n"


@pytest.mark.parametrize(("event", "event_id"), [("a\nb", ""), ("a", "1\r2"), ("a", "1\x002")])
def test_a_type_or_an_id_stays_on_its_line(event: str, event_id: str) -> None:
    """Else it could write events of its own."""
    with pytest.raises(AssertionError):
        write_event(event, "", event_id=event_id)


def test_a_retry_time_is_no_event() -> None:
    """Clients heed it and tell nobody."""
    stream = write_retry(1500) + write_event("x", "1")
    assert write_retry(1500) == b"retry: 1500\n\n"
    assert read(stream) == [("x", "1", "")]


@given(st.lists(st.tuples(words.filter(bool), texts, words)))
def test_what_is_written_is_read(events: list[tuple[str, str, str]]) -> None:
    """Any text comes through, its line ends as line feeds; an empty id leaves the last one."""
    stream = b"".join(write_event(kind, data, event_id=name) for kind, data, name in events)
    expected, last_id = [], ""
    for kind, data, name in events:
        last_id = name or last_id
        expected.append((kind, data.replace("\r\n", "\n").replace("\r", "\n"), last_id))
    assert read(stream) == expected
