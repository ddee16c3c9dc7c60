"""A message before it has a place."""

import json

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.services.drafts import ROLES, draft_message

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
SPEAKERS = st.sampled_from([role for role in ROLES if role != "tool"])


class TestOfARoleAndAText:
    """It is read in a shorter way than others, which must not show."""

    @given(role=SPEAKERS, content=TEXTS)
    def test_is_written_as_every_other(self, role: str, content: str) -> None:
        short = draft_message({"role": role, "content": content}, pointer="")
        usual = draft_message({"content": content, "role": role}, pointer="")
        assert short._replace(body=usual.body, calls=[], results=[]) == usual
        assert short.body.value == usual.body.value
        stored = {"role": role, "content": content.replace("\x00", "\ufffd")}
        assert short.body.text == json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
