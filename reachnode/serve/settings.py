"""The settings that the whole cluster shares: show them, put others in their place."""

from typing import Any

from reachnode.errors import InvalidRequest, RevisionConflict
from reachnode.model.agents import NUMBER_MAX
from reachnode.model.settings import Settings, settings_problems
from reachnode.registry.commands import PutSettings
from reachnode.serve.answers import Answer, document
from reachnode.serve.changes import change
from reachnode.serve.front import Front
from reachnode.serve.inquiry import Inquiry
from reachnode.serve.operations import BODIES, CHANGES, IDEMPOTENCY_KEY, IF_MATCH, READS, operation
from reachnode.serve.reads import READ_QUERY, fresh_state
from reachnode.serve.shapes import SettingsPut, SettingsShown
from reachnode.wire.documents import error_for, plain, refuse_strays, to_noun, without


@operation(gives={200: SettingsShown}, refuses=READS, query=READ_QUERY)
async def show_settings(front: Front, inquiry: Inquiry) -> Answer:
    """Answer the settings that hold, every default spelled out, and their revision."""
    state = await fresh_state(front, inquiry)
    content = {
        **plain(state.settings),
        "revision": state.settings_revision,
        "index": state.settings_index,
    }
    return document(content, headers={"ETag": f'"{state.settings_revision}"'})


@operation(
    takes=SettingsPut,
    gives={200: SettingsShown},
    refuses=(*BODIES, *CHANGES, RevisionConflict),
    headers={**IF_MATCH, **IDEMPOTENCY_KEY},
)
async def put_settings(front: Front, inquiry: Inquiry) -> Answer:
    """Swap the settings, whole: what the document leaves out returns to its default.

    `If-Match`, or the `revision` that the answer to GET carries, guards against a change
    that came between.
    """
    body = inquiry.document()
    revision = expected_revision(inquiry, body.pop("revision", None))
    body.pop("index", None)  # GET says it, so PUT takes it; it means nothing here.
    refuse_strays(body, Settings)
    settings = to_noun(without(body, Settings), Settings)
    problems = settings_problems(settings)
    if problems:
        raise error_for(problems)
    applied = await change(front, inquiry, PutSettings(document=settings, revision=revision))
    put = (applied.value or {})["revision"]
    content = {**plain(settings), "revision": put, "index": applied.index}
    return document(content, headers={"ETag": f'"{put}"'})


def expected_revision(inquiry: Inquiry, said: Any) -> int | None:
    """Return the revision that the new settings must follow, None for any.

    Raises:
        InvalidRequest: Body and `If-Match` say two, or the body's is no number.
    """
    expected = inquiry.expected_revision()
    if said is None:
        return expected
    if type(said) is not int or not 0 <= said <= NUMBER_MAX:
        raise InvalidRequest(f"revision must be a whole number from 0 to {NUMBER_MAX}")
    if expected not in (None, said):
        raise InvalidRequest(f"If-Match says revision {expected}, the body {said}")
    return said
