"""Who can do what: answered from memory, on any node."""

from reachnode.model.discovery import Vantage
from reachnode.routing.discover import discover
from reachnode.routing.match import REACH_PREFIX
from reachnode.serve.answers import Answer, document
from reachnode.serve.front import Front
from reachnode.serve.inquiry import Inquiry
from reachnode.serve.operations import BODIES, READS, operation
from reachnode.serve.reads import READ_QUERY, fresh_state
from reachnode.serve.shapes import FoundShown, QuestionShown
from reachnode.wire.discovery import read_question, write_found


@operation(
    takes=QuestionShown, gives={200: FoundShown}, refuses=(*BODIES, *READS), query=READ_QUERY
)
async def find_candidates(front: Front, inquiry: Inquiry) -> Answer:
    """Answer who can be called, the best first, or why nobody can."""
    question = read_question(inquiry.document())
    state = await fresh_state(front, inquiry)
    if question.capability.removeprefix(REACH_PREFIX) not in state.capabilities:
        await front.names.refresh(front.replica, front.sights.changes)
        state = front.replica.state
    # No await from here on: the state is the one at the applied index.
    found = discover(
        state,
        question,
        liveness_of=front.sights.of,
        here=Vantage(node_id=front.about.node_id),
        close_names=front.names.close_to,
    )
    index, now = front.replica.applied_index, front.sources.now()
    return document(write_found(found, index=index, now=now))
