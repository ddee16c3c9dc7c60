"""How sessions_app speaks to the app above it, which it may not import.

Each signal is sent with ``send`` inside the transaction that holds the session's row lock, so a
receiver that raises takes the whole write back. ``session`` is the locked row.
"""

from django.dispatch import Signal

# A session leaves ACTIVE. ``status`` is the new one; receivers settle its unfinished runs.
# Arguments: session, status (SessionStatus), actor (Actor), reason (str), now, and at: when it took
# effect, which for an expiry is its deadline.
session_ended = Signal()

# A deadline of one of the session's runs has passed. Receivers interrupt what has lapsed.
# Arguments: session, now.
run_lapsed = Signal()

# A write names a run that the session row alone cannot vouch for (it is not the active one), or
# reports usage for it. Receivers check the attempt, renew the lease and add the usage.
# Arguments: session, run_id (str), attempt (int | None), usage (Usage), now.
run_written = Signal()
