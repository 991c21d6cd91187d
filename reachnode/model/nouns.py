"""What the nouns that cross the wire have in common."""

import msgspec


class Noun(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A record that never changes, written alike wherever it is equal.

    Fields at their default are left out, and unknown fields are refused. So a field that is
    added later costs an older program nothing until it is used, and once it is used the
    older program says that it can't read the record, rather than lose a part of it.

    A default is left out by identity. A field's default is therefore a single object of its
    kind: None, a truth value, an empty text or tuple, a whole number up to 256. A record has
    no way to hold itself, so the garbage collector need not look at it.
    """
