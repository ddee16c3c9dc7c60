"""What a search through one session finds, and how far one answer looks."""

import json

import pytest

from sessions_app.console.transcript.hits import hits_of
from sessions_app.models import Session
from sessions_app.services import mentions
from sessions_app.services.mentions import find_mentions
from tests.domain import assistant, calling, result, user


@pytest.fixture
def session_id(desk):
    return desk.open()


def find(session_id, words, **more):
    return find_mentions(Session.objects.get(pk=session_id), words=words, **more)


def sequences(found):
    return [message.sequence for message in found.messages]


def hits(session_id, words):
    return hits_of(find(session_id, words), words=words)


class TestWhatIsFound:
    @pytest.mark.parametrize("words", ["refund", "REFUND", "\uff32efund", "a Refund of"])
    def test_is_every_message_that_says_it_newest_first(self, desk, session_id, words):
        desk.append(session_id, user("A refund of 5"), user("none"), assistant("a REFUND OF 7"))
        assert sequences(find(session_id, words)) == [3, 1]

    def test_is_what_parts_and_results_say(self, desk, session_id):
        part = [{"type": "text", "text": "订单 4711"}]
        desk.append(session_id, user(part), calling("a"), result("a", "订单不存在"))
        assert sequences(find(session_id, "订单")) == [3, 1]

    @pytest.mark.parametrize("words", ["100%", "a_b", "\\", "'"])
    def test_takes_no_sign_for_another(self, desk, session_id, words):
        desk.append(session_id, user("100 a.b"), user(f"so {words}"))
        assert sequences(find(session_id, words)) == [2]

    @pytest.mark.parametrize("words", ["list_files", "LIST_", "北京", 'say "so"'])
    def test_is_a_call_by_its_name_and_arguments(self, desk, session_id, words):
        arguments = json.dumps({"where": "北京", "how": 'say "so"'})
        desk.append(session_id, user(), calling("a", name="list_files", arguments=arguments))
        found = find(session_id, words)
        assert sequences(found) == [2]
        assert [call.name for call in found.calls] == ["list_files"]

    @pytest.mark.parametrize(
        "words", ["ärger", "STRASSE", "ﬁle", '"WAS": "Ärger', "c:\\\\users", "😀"]
    )
    @pytest.mark.parametrize("ensure_ascii", [True, False])
    def test_is_a_call_however_its_arguments_are_written(
        self, desk, session_id, words, ensure_ascii
    ):
        given = {"was": "ÄRGER Straße 😀", "file": "c:\\users"}
        arguments = json.dumps(given, ensure_ascii=ensure_ascii)
        desk.append(session_id, user(), calling("a", arguments=arguments))
        assert sequences(find(session_id, words)) == [2]

    def test_is_nothing_of_other_sessions_roles_and_what_was_removed(self, desk, session_id):
        desk.append(desk.open(), user("word"), calling("a", name="word"))
        desk.append(session_id, user("word"), assistant("word"), user("word"))
        desk.sessions.remove_message(session_id=session_id, sequence=3)
        assert sequences(find(session_id, "word", role="user")) == [1]


class TestHowFarItLooks:
    def test_goes_on_where_a_page_ends(self, desk, session_id, monkeypatch):
        monkeypatch.setattr(mentions, "PAGE_HITS", 3)
        desk.append(session_id, *(user(f"word {n}") for n in range(7)))
        found, seen = find(session_id, "word"), []
        while found.earlier:
            seen += sequences(found)
            found = find(session_id, "word", before=found.earlier)
        assert seen + sequences(found) == [7, 6, 5, 4, 3, 2, 1]

    def test_goes_on_where_a_page_of_calls_ends(self, desk, session_id, monkeypatch):
        monkeypatch.setattr(mentions, "PAGE_HITS", 2)
        for number in range(5):
            desk.append(session_id, calling(f"a{number}", f"b{number}", name="refund"))
        found, calls = find(session_id, "refund"), []
        while found.earlier:
            calls += found.calls
            found = find(session_id, "refund", before=found.earlier)
        assert len({call.pk for call in (*calls, *found.calls)}) == 10

    @pytest.mark.parametrize(("name", "most"), [("REACH_MESSAGES", 2), ("REACH_BYTES", 100)])
    def test_is_bounded_and_said(self, desk, session_id, monkeypatch, name, most):
        monkeypatch.setattr(mentions, name, most)
        desk.append(session_id, user("word"), *(user("other") for _ in range(4)))
        found, looks = find(session_id, "word"), 1
        while found.earlier and not found.messages:
            assert found.earlier > 1
            found, looks = find(session_id, "word", before=found.earlier), looks + 1
        assert (sequences(found), looks > 1) == ([1], True)

    def test_ends_before_the_first_message(self, session_id):
        assert find(session_id, "word", before=0).earlier is None


class TestASnippet:
    def test_shows_the_words_as_they_were_written(self, desk, session_id):
        desk.append(session_id, user("x" * 500 + " The Refund, " + "y" * 500))
        (hit,) = hits(session_id, "refund")
        assert hit.snippet.marked == "Refund"
        assert hit.snippet.before.startswith("…x")
        assert hit.snippet.after.startswith(", yyy")
        assert len("".join(hit.snippet)) < 400

    def test_of_a_large_message_is_near_the_words(self, desk, session_id):
        desk.append(session_id, user("x" * 60_000 + " refund " + "y" * 9_000))
        (hit,) = hits(session_id, "Refund")
        assert hit.snippet.marked == "refund"

    def test_has_no_controls_of_a_terminal(self, desk, session_id):
        desk.append(session_id, user("\x1b[31mA Refund\x1b[0m failed"))
        (hit,) = hits(session_id, "refund")
        assert "".join(hit.snippet) == "A Refund failed"

    def test_of_what_folding_makes_longer_is_still_right(self, desk, session_id):
        desk.append(session_id, user("ﬁﬁﬁﬁ Straße Refund"))
        (hit,) = hits(session_id, "strasse")
        assert hit.snippet.marked == "strasse"

    def test_of_a_call_alone_is_of_its_words(self, desk, session_id):
        desk.append(session_id, calling("a", name="refund"))
        (hit,) = hits(session_id, "refund")
        assert (hit.snippet.marked, hit.calls) == ("refund", [("refund", "{}")])
