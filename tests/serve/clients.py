"""Clients that ask anything: every path with every word, right, wrong and absurd."""

from typing import Any

from hypothesis import strategies as st

from reachnode.serve.paths import ROUTES
from reachnode.serve.shapes import (
    CapabilityShown,
    HeartbeatShown,
    MemberAction,
    MetadataShown,
    QuestionShown,
    RegistrationShown,
    SettingsPut,
    StateWish,
)
from reachnode.wire.documents import fields_of

IDS = ["a", "b:1", "a%2Fb", "%C3%A9", "%ff", "%00", "..", "x" * 200]
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "get", "FROB!"]
WORDS = sorted(
    {
        word
        for shape in (
            CapabilityShown,
            HeartbeatShown,
            MemberAction,
            MetadataShown,
            QuestionShown,
            RegistrationShown,
            SettingsPut,
            StateWish,
        )
        for word in fields_of(shape)
    }
    | {"skills", "task_type", "reachability", "labels", "address", "failures", "interval_ms"}
)
"""Fields that some document may have, in all spellings."""
QUERY_WORDS = sorted({word for route in ROUTES for word in route.operation.query or ()})
LEAVES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**53, 2**63, 10**30, 0.5, -0.0, 1e300),
    *("", "a", "a1", "healthy", "updating", "replace", "tcp", "rest", "pull", "*", "9.9.9", ">=1"),
    *(
        "http://h/",
        "http://h:99999/",
        "http://[::1",
        "ftp://h",
        "http://\u00e9/",
        "//",
        "http://:1",
    ),
    *("\u0000", "\u202e", "e\u0301", "\U0001f600", "x" * 200, "{}", "1" * 400),
]

values = st.recursive(
    st.sampled_from(LEAVES),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inside, max_size=4)
    ),
    max_leaves=8,
)
capabilities = st.fixed_dictionaries(
    {"name": st.sampled_from(["c", "d", "c d", ""])},
    optional={
        "protocol": st.sampled_from(["pull", "rest", "grpc", "websocket", "x"]),
        "endpoint": st.sampled_from(LEAVES),
        "version": st.sampled_from(LEAVES),
        "dependencies": values,
        "input_schema": values,
        "cost": values,
    },
)
registrations = st.fixed_dictionaries(
    {"agent_id": st.sampled_from(["a", "b:1", "c", ""])},
    optional={word: values for word in fields_of(RegistrationShown) if word != "agent_id"}
    | {"capabilities": st.lists(capabilities, max_size=3) | values},
)
wishes = st.fixed_dictionaries(
    {"state": st.sampled_from(["healthy", "updating", "disabled"])},
    optional={"force": st.booleans() | values, "incarnation": st.integers(0, 3) | values},
)
settings = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(fields_of(SettingsPut), values)
) | st.fixed_dictionaries(
    {"probes": st.fixed_dictionaries({}, optional={"failures": st.integers(1, 9)})},
    optional={"revision": st.integers(0, 3)},
)
actions = st.fixed_dictionaries({"action": st.just("replace"), "id": st.sampled_from(["n1", "n9"])})
heartbeats = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(fields_of(HeartbeatShown), values)
) | st.fixed_dictionaries(
    {"agent_id": st.sampled_from(["a", "b:1", "c"])},
    optional={
        "state": st.sampled_from(["healthy", "updating", "disabled"]),
        "load": st.floats(allow_nan=False, allow_infinity=False),
        "counters": st.dictionaries(st.sampled_from(WORDS), st.integers(), max_size=3),
    },
)
questions_of_discovery = st.fixed_dictionaries(
    {"capability": st.sampled_from(["c", "d", "reach:c", "cc", "c d", ""])},
    optional={word: values for word in fields_of(QuestionShown) if word != "capability"},
)
KINDS: list[st.SearchStrategy[object]] = [
    st.none(),
    registrations,
    wishes,
    settings,
    actions,
    heartbeats,
    questions_of_discovery,
    st.dictionaries(st.sampled_from(WORDS), values, max_size=5),
    values,
    st.binary(max_size=40),
]


@st.composite
def bodies(draw: st.DrawFn) -> object:
    """Return what a request carries, or None."""
    return draw(st.one_of(KINDS))


@st.composite
def targets(draw: st.DrawFn) -> str:
    """Return a target: mostly a path of ours, with a query."""
    path = draw(st.sampled_from([route.path for route in ROUTES]))
    path = path.replace("{agent_id}", draw(st.sampled_from(IDS)))
    path += draw(st.sampled_from(["", "", "", "", "/", "/x", "%", "#"]))
    words = st.sampled_from([*QUERY_WORDS, "limits", ""])
    said = st.sampled_from(["", "0", "1", "-1", "9" * 30, "a", "stale", "consistent", "%ff", "%00"])
    query = draw(st.lists(st.tuples(words, said), max_size=3))
    return path + ("?" + "&".join(f"{word}={text}" for word, text in query) if query else "")


headers = st.fixed_dictionaries(
    {},
    optional={
        "Content_Type": st.sampled_from(["application/json", "text/plain", "", "é", "a/b; x"]),
        "Content_Encoding": st.sampled_from(["gzip", "identity", ""]),
        "Idempotency_Key": st.sampled_from(["k", "k2", '"k"', "", "é", "x" * 129, "a b"]),
        "If_Match": st.sampled_from(["*", "0", '"1"', 'W/"1"', "x", "9" * 30]),
        "Accept": st.sampled_from(["*/*", "text/html", "é"]),
        "Authorization": st.sampled_from(["Bearer x", "Basic", ""]),
        "Last_Event_ID": st.sampled_from(["r-1-2-3", "r-0-0-0", "l-n1-7", "é"]),
        "Expect": st.sampled_from(["100-continue", "x"]),
        "Range": st.just("bytes=0-1"),
        "Connection": st.sampled_from(["close", "upgrade", ""]),
    },
)
sound_registrations = st.fixed_dictionaries(
    {"agent_id": st.sampled_from(["a", "b:1"])},
    optional={
        "agent": st.sampled_from(["g", "意图"]),
        "replace": st.booleans(),
        "incarnation": st.integers(0, 4),
        "metadata": st.fixed_dictionaries({}, optional={"zone": st.just("z"), "tags": values}),
        "capabilities": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from(["c", "d"]), "protocol": st.just("pull")},
                optional={"input_schema": values, "cost": values, "idempotent": st.booleans()},
            ),
            max_size=2,
        ),
    },
)
sound_questions = st.fixed_dictionaries(
    {"capability": st.sampled_from(["c", "d", "reach:c", "cc"])},
    optional={
        "version": st.sampled_from(["*", "^1.0", ">=2"]),
        "tags": st.sampled_from([[], ["gpu"], {"gpu": ""}]),
        "routing_hint": st.sampled_from([{"zone": "z"}, {"prefer": {"zone": "z"}}]),
        "limit": st.integers(1, 3),
        "explain": st.booleans(),
    },
)
BODIES: dict[Any, st.SearchStrategy[object]] = {
    RegistrationShown: sound_registrations | registrations,
    StateWish: wishes,
    SettingsPut: settings,
    MemberAction: actions,
    HeartbeatShown: heartbeats,
    QuestionShown: sound_questions | questions_of_discovery,
}


@st.composite
def apt_questions(draw: st.DrawFn) -> tuple[str, str, object, dict[str, str]]:
    """Return a question that a path takes, or nearly."""
    route = draw(st.sampled_from(ROUTES))
    path = route.path.replace("{agent_id}", draw(st.sampled_from(["a", "b:1", "b%3A1"])))
    said = st.sampled_from(["0", "1", "2", "default", "stale", "consistent", "c", "pending", "a"])
    words = sorted(route.operation.query or ())
    query = draw(st.dictionaries(st.sampled_from(words), said, max_size=2)) if words else {}
    path += "?" + "&".join(f"{word}={text}" for word, text in query.items()) if query else ""
    takes = route.operation.takes
    body = draw(BODIES[takes]) if takes else None
    key = draw(st.sampled_from([{}, {}, {"Idempotency_Key": "k"}, {"If_Match": "1"}]))
    return route.method, path, body, key


questions: st.SearchStrategy[tuple[str, str, object, dict[str, str]]] = st.one_of(
    apt_questions(),
    apt_questions(),
    st.tuples(st.just("POST"), st.just("/register"), sound_registrations, st.just({})),
    st.tuples(st.sampled_from(METHODS), targets(), bodies(), headers),
)
