"""A session with a little in it, and where it is."""

import pytest
from django.contrib.auth.models import User

from sessions_app.models import Session
from tests.factories import make_messages, make_session, make_tool_call


@pytest.fixture
def session(agent: User) -> Session:
    return make_session(account=agent)


@pytest.fixture
def places(session: Session) -> dict[str, str]:
    make_messages(session=session)
    call = make_tool_call(session=session)
    return {"session": f"/sessions/{session.session_id}", "call": f"/tool-calls/{call.id}"}
