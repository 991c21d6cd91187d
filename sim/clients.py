"""What the clients of a simulated cluster do: changes, fenced reads, and an operator's work."""

from typing import TYPE_CHECKING

from reachnode.model.agents import Instance
from reachnode.model.membership import Unknown
from reachnode.registry.commands import Register, ReplaceMember
from reachnode.registry.outcomes import Applied, Refused
from sim.judge import Change, FencedRead
from sim.member import SimMember

if TYPE_CHECKING:
    from sim.world import World

KEYS = ("a1", "a2", "a3")
CLIENT_DEADLINE_SECONDS = 3.0
READ_SHARE = 0.25


class Clients:
    """The clients of one run; they ask whichever member lives."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._draw = world.draw
        self._request = 0
        self.quiet_until = 0.0
        """Until when nobody asks for anything at random."""

    def begin(self, until: float) -> None:
        """Ask random members for something, until a time in true seconds."""
        self._world.timeline.after(0, self._next, until)

    def _next(self, until: float) -> None:
        """Ask a random live member for something, and plan the next time."""
        world, draw = self._world, self._draw
        if world.timeline.now > until:
            return
        live = [one for one in world.members.values() if one.is_alive]
        if live and world.timeline.now >= self.quiet_until:
            member = draw.choice(live)
            if draw.random() < READ_SHARE:
                self.read(member, draw.choice(KEYS))
            else:
                self.change(member, draw.choice(KEYS))
        wait = draw.expovariate(1 / world.circumstances.change_every_seconds)
        world.timeline.after(wait, self._next, until)

    def change(self, member: SimMember, key: str) -> Change:
        """Ask a member to register an agent anew."""
        world = self._world
        self._request += 1
        change = Change(
            request_id=f"q{self._request}",
            client=self._request,
            key=key,
            value=f"v{self._request}",
            invoked_at=world.timeline.now,
        )
        world.judge.changes[change.request_id] = change
        instance = Instance(agent_id=key, agent=key, name=change.value)
        core, sources = member.core, member.sources
        assert core is not None

        def resolve(fate: Applied | Refused | Unknown) -> None:
            world.trace("fate", member.id, change.request_id, type(fate).__name__)
            world.judge.told(change, fate, world.timeline.now)

        member.enter(
            lambda: core.propose(
                Register(instance=instance),
                request_id=change.request_id,
                deadline=sources.now() + CLIENT_DEADLINE_SECONDS,
                resolve=resolve,
            )
        )
        return change

    def read(self, member: SimMember, key: str) -> None:
        """Read a key behind a fence."""
        world = self._world
        core, sources = member.core, member.sources
        assert core is not None
        invoked_at = world.timeline.now
        self._request += 1
        client = self._request

        def resolve(fate: Applied | Refused | Unknown) -> None:
            if not isinstance(fate, Applied) or core.running is None:
                return
            world.rare["fenced_reads"] += 1
            record = core.running.machine.state.agents.get(key)
            world.judge.reads.append(
                FencedRead(
                    client=client,
                    key=key,
                    invoked_at=invoked_at,
                    returned_at=world.timeline.now,
                    index=core.running.machine.index,
                    value=record.instance.name if record is not None else None,
                )
            )

        deadline = sources.now() + CLIENT_DEADLINE_SECONDS
        member.enter(lambda: core.fence(deadline=deadline, resolve=resolve))

    def replace_disk(self, member: str) -> None:
        """Admit a wiped disk, asking whichever member allows it."""
        for one in self._world.members.values():
            core = one.core
            if one.id == member or core is None or core.running is None:
                continue
            incarnation = core.standing.replaceable(member)
            if isinstance(incarnation, Refused):
                if incarnation.code == "cluster_changing":
                    self._world.rare["replacement_had_to_wait"] += 1
                continue
            if core.running.machine.state.members[member].incarnation == incarnation:
                continue
            command = ReplaceMember(
                member_id=member, incarnation=incarnation, follows=core.standing.newest_admission()
            )
            self._propose_unwatched(one, command)
            return

    def _propose_unwatched(self, member: SimMember, command: ReplaceMember) -> None:
        """Propose what is asked again until it shows, whatever becomes of one attempt."""
        core = member.core
        assert core is not None
        self._request += 1
        request_id = f"r{self._request}"
        deadline = member.sources.now() + CLIENT_DEADLINE_SECONDS
        member.enter(
            lambda: core.propose(
                command, request_id=request_id, deadline=deadline, resolve=lambda _: None
            )
        )
