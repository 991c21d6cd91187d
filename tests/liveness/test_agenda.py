"""What falls due when."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from reachnode.liveness.agenda import SLACK, Agenda

names = st.sampled_from("abcde")
times = st.integers(0, 20).map(float)


class AgendaAgainstADict(RuleBasedStateMachine):
    """The agenda does what a plain table of times does, only faster."""

    def __init__(self) -> None:
        super().__init__()
        self.agenda = Agenda()
        self.table: dict[str, float] = {}

    @rule(name=names, at=times)
    def put(self, name: str, at: float) -> None:
        self.agenda.put(name, at)
        self.table[name] = at

    @rule(name=names)
    def drop(self, name: str) -> None:
        self.agenda.drop(name)
        self.table.pop(name, None)

    @rule(now=times)
    def pop(self, now: float) -> None:
        due = {name for name, at in self.table.items() if at <= now}
        popped = self.agenda.pop(now)
        assert (popped in due) if due else popped is None
        if popped is not None:
            del self.table[popped]

    @invariant()
    def the_same_names(self) -> None:
        assert len(self.agenda) == len(self.table)
        assert all((name in self.agenda) == (name in self.table) for name in "abcde")


TestAgenda = AgendaAgainstADict.TestCase
TestAgenda.settings = settings(max_examples=40, deadline=None)


def drained(agenda: Agenda, now: float) -> list[str]:
    """Return all names that are due, in the order they come."""
    found = []
    while (name := agenda.pop(now)) is not None:
        found.append(name)
    return found


@given(st.dictionaries(names, times))
def test_the_earliest_comes_first(table: dict[str, float]) -> None:
    """Names come up by time, and by name where times are equal."""
    agenda = Agenda()
    for name, at in table.items():
        agenda.put(name, at)
    assert drained(agenda, 20.0) == sorted(table, key=lambda name: (table[name], name))


def test_putting_off_costs_no_entry() -> None:
    """A name that is put off again and again stands in the heap once."""
    agenda = Agenda()
    for at in range(1_000):
        agenda.put("a", float(at))
    assert len(agenda._heap) == 1
    assert agenda.pop(998.0) is None
    assert agenda.pop(999.0) == "a"


def test_putting_forward_is_bounded() -> None:
    """A name that is put ever earlier doesn't fill the heap."""
    agenda = Agenda()
    for at in range(10_000, 0, -1):
        agenda.put("a", float(at))
        assert len(agenda._heap) <= 2 + SLACK
    assert drained(agenda, 10_000.0) == ["a"]
