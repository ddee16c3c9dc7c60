"""Whatever is sent to these paths, the answer is never a 500."""

import json
from typing import Any

import pytest
from django.urls import URLPattern
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs_app.api.urls import urlpatterns
from runs_app.models import Run
from sessions_app.models import Session
from tests.api_client import APIClient
from tests.factories import make_run

NAMES = [
    "attempt", "reason", "timeout_seconds", "output", "usage", "error", "input", "agent_id",
    "model", "metadata", "if_active", "lease_seconds", "start", "retry_of", "parent_run_id",
]  # fmt: skip
ODD: list[Any] = [
    None, True, 0, -1, 1, 10, 2**31, 2**63, 10**40, 0.5, 1e308, "", "x", "\x00", "\ud83d", "😀",
    "x" * 300, "queue", "cancel", [], [[]], {}, {"": None}, {"type": 1, "message": ""},
    {"type": "t", "message": "m"}, {"type": "\x00", "message": "\x00"}, {"input_tokens": 2**70},
    {"cost_usd": "1e-400"}, {"cost_usd": 1e300}, {"cost_usd": "9" * 400}, {"cost_usd": "sNaN"},
]  # fmt: skip

bodies = st.one_of(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(ODD), max_size=4), st.sampled_from(ODD)
)
queries = st.dictionaries(
    st.sampled_from(
        ["last_n", "format", "limit", "cursor", "status", "stuck", "agent_id", "started_after"]
    ),
    st.sampled_from(["", "0", "1", "-1", "10" * 20, "٣", "\x00", "native", "RUNNING", "😀"]),
    max_size=3,
)
headers = st.fixed_dictionaries(
    {},
    optional={
        "If_Match": st.sampled_from(["*", '"1"', 'W/"1"', '"', "", '"99999999999999999999"']),
        "If_None_Match": st.sampled_from(["*", '"1"', '"1", "2"', ",", '"']),
        "Idempotency_Key": st.sampled_from(["", "k", "x" * 300, "\x7f"]),
        "Prefer": st.just("return=minimal"),
    },
)
routes = st.sampled_from(
    [str(pattern.pattern) for pattern in urlpatterns if isinstance(pattern, URLPattern)]
)
methods = st.sampled_from(["GET", "POST", "POST", "POST", "PUT", "PATCH", "DELETE"])


@pytest.fixture
def run(session: Session) -> Run:
    return make_run(session=session)


@pytest.mark.usefixtures("remembered_tokens")
class TestGarbage:
    @settings(
        max_examples=250,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(method=methods, route=routes, body=bodies, query=queries, headers=headers)
    def test_is_refused_or_taken(
        self, api: APIClient, run: Run, *, method: str, route: str, **sent: Any
    ) -> None:
        """The client itself raises what a view does not answer, and what the document lacks."""
        path = route.replace("<str:session_id>", run.session_id).replace("<str:run_id>", run.pk)
        raw = json.dumps(sent["body"]).encode() if method not in ("GET", "HEAD") else None
        answer = api.send(method, f"/{path}", raw, query=sent["query"], **sent["headers"])
        assert answer.status_code < 500
