"""One log, made of a seed and replayed: prints the digest that every process must print.

Run as `python -m tests.registry.replayed COUNT SEED`.
"""

import random
import sys

from reachnode.model.agents import Instance, Metadata
from reachnode.model.capabilities import Capability
from reachnode.model.settings import ProbeRules, RegistryRules, Settings
from reachnode.registry.apply import apply_batch
from reachnode.registry.codec import digest_of, dump, encode_batch, encode_envelope, encode_outcome
from reachnode.registry.commands import (
    Advance,
    AnnouncedState,
    Command,
    Deregister,
    Envelope,
    Forget,
    Mark,
    MarkDown,
    MarkUp,
    PutSettings,
    RaiseLevel,
    Register,
    ReplaceMember,
    SetAgentState,
)
from reachnode.registry.state import genesis

STATES: tuple[AnnouncedState, ...] = ("updating", "healthy", "disabled")
BATCH_MAX = 8


def instance(dice: random.Random) -> Instance:
    """Return an instance of a small crowd."""
    names = dice.sample(range(20), dice.randint(0, 4))
    return Instance(
        agent_id=f"a{dice.randint(0, 200)}",
        agent=f"g{dice.randint(0, 9)}",
        capabilities=tuple(
            Capability(name=f"cap.{name}", protocol="rest", endpoint="http://10.0.0.7")
            for name in names
        ),
        metadata=Metadata(weight=dice.random(), tags=(("gpu", ""),)),
    )


def marks(dice: random.Random) -> tuple[Mark, ...]:
    """Return a few incarnations, some of which exist."""
    return tuple(
        Mark(agent_id=f"a{dice.randint(0, 200)}", incarnation=dice.randint(1, 400))
        for _ in range(dice.randint(0, 300))
    )


def command(dice: random.Random) -> Command:
    """Return any command, registrations most often."""
    made: list[Command] = [
        Register(instance=instance(dice), replaces=dice.choice([None, None, 0])),
        Register(instance=instance(dice)),
        Deregister(agent_id=f"a{dice.randint(0, 200)}"),
        SetAgentState(agent_id=f"a{dice.randint(0, 200)}", state=dice.choice(STATES)),
        MarkDown(marks=marks(dice)),
        MarkUp(marks=marks(dice)),
        Forget(marks=marks(dice)),
        PutSettings(
            document=Settings(
                probes=ProbeRules(failures=dice.randint(1, 5)),
                registry=RegistryRules(
                    capability_names=dice.choice(["shared", "exclusive"]),
                    forget_after_ms=dice.choice([1, 5_000]),
                ),
            )
        ),
        Advance(by_ms=dice.randint(0, 2_001)),
        ReplaceMember(member_id=f"n{dice.randint(1, 4)}", incarnation=f"d{dice.randint(0, 30)}"),
        RaiseLevel(level=dice.randint(0, 1)),
    ]
    return dice.choice(made)


def replay(count: int, seed: int) -> str:
    """Return the digest of the state and all outcomes after so many entries of the log."""
    dice = random.Random(seed)
    state = genesis("c1", {"n1": "d0", "n2": "d0", "n3": "d0"}, requests_max=64)
    said: list[bytes] = []
    for index in range(1, count + 1):
        batch = encode_batch(
            [
                encode_envelope(
                    Envelope(
                        request_id=f"r{dice.randint(0, 10 * count)}",
                        since_index=max(0, index - dice.randint(1, 20)),
                        command=command(dice),
                    )
                )
                for _ in range(dice.randint(0, BATCH_MAX))
            ]
        )
        state, outcomes = apply_batch(state, index, batch)
        said.extend(map(encode_outcome, outcomes))
    return digest_of([*dump(state), *said])


if __name__ == "__main__":
    sys.stdout.write(replay(int(sys.argv[1]), int(sys.argv[2])))
