"""`manage.py import_sessions`: transcripts that people have, once each."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from sessions_app.management.transcripts import loading
from sessions_app.models import Message, Session, ToolCall
from sessions_app.services import Actor, SessionManager
from tests.domain import assistant, calling, result, user
from tests.factories import make_account

pytestmark = pytest.mark.django_db

_SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "transcripts"
needs_samples = pytest.mark.skipif(not _SAMPLES.is_dir(), reason="there are no samples")
AT = "2026-02-10T21:11:52.438Z"


@pytest.fixture
def account() -> User:
    return make_account("ada")


@pytest.fixture
def load(account: User, capsys: pytest.CaptureFixture[str]) -> Any:
    def load(format: str, *paths: Path, **options: Any) -> str:
        call_command("import_sessions", *map(str, paths), format=format, account="ada", **options)
        return capsys.readouterr().out

    return load


def written(folder: Path, name: str, *lines: Any) -> Path:
    path = folder / name
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    path.write_text(text, encoding="utf-8")
    return path


def said(uuid: str, role: str, content: Any, **more: Any) -> dict[str, Any]:
    """A line of Claude Code's."""
    inner = {"role": role, "content": content, **more.pop("message", {})}
    return {
        "type": role,
        "sessionId": "s1",
        "uuid": uuid,
        "timestamp": AT,
        "message": inner,
        "cwd": "/w",
        **more,
    }


def use(id: str) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}}]


def used(id: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": id, "content": "a.py"}]


@needs_samples
class TestTheSamples:
    def test_of_claude_code(self, load: Any) -> None:
        load("claude-code", _SAMPLES / "claude-code-short.jsonl")
        session = Session.objects.get()
        assert session.external_id == "claude-code:55604662-cf2a-4331-851a-ec234028f8ca"
        assert (session.title, session.message_count) == ("mix phx.server doesnt seem to start", 9)
        calls = ToolCall.objects.filter(session=session).order_by("id")
        assert [(call.name, call.status) for call in calls] == [
            ("Bash", "FAILED"),
            ("Glob", "FAILED"),
        ]
        # Four blocks of one message: its usage stands in each line, and counts once.
        assert (session.input_tokens, session.cached_input_tokens) == (25353, 11515)

    def test_of_codex(self, load: Any) -> None:
        load("codex", _SAMPLES / "codex-sample.jsonl")
        session = Session.objects.get()
        assert session.external_id == "codex:019b2ea4-aaaa-bbbb-cccc-58208e1f0000"
        assert (session.title, session.message_count) == ("Start", 16)
        assert session.title_is_said
        call = ToolCall.objects.get()
        assert (call.name, call.status) == ("run_shell_command", "SUCCEEDED")
        assert (
            json.loads(str(call.result and call.result.value))["stdout"] == "line1\nline2\nline3\n"
        )


class TestClaudeCode:
    def test_has_its_sub_agents_in_sessions_of_their_own(self, load: Any, tmp_path: Path) -> None:
        path = written(
            tmp_path,
            "s1.jsonl",
            {"type": "file-history-snapshot", "messageId": "x"},
            said("u1", "user", "<command-name>/clear</command-name>"),
            said("u2", "user", "Fix it\nnow"),
            said("u3", "assistant", use("t1"), message={"model": "m"}),
            said("u4", "user", "Look", isSidechain=True, agentId="a1"),
            said("u5", "user", used("t1")),
            {"type": "summary", "summary": "Fixing it", "leafUuid": "u5"},
        )
        load("claude-code", path, user_id="ada")
        main = Session.objects.get(external_id="claude-code:s1")
        assert (main.title, main.user_id, main.agent_id) == ("Fixing it", "ada", "claude-code")
        assert not main.title_is_said
        assert Session.objects.get(external_id="claude-code:s1:a1").message_count == 1
        first = Message.objects.get(session=main, sequence=3).body.value
        assert (first["model"], first["client_created_at"]) == ("m", "2026-02-10T21:11:52.438000Z")


class TestCodex:
    def test_keeps_items_and_answers_by_their_ids(self, load: Any, tmp_path: Path) -> None:
        def item(**payload: Any) -> dict[str, Any]:
            return {"timestamp": AT, "type": "response_item", "payload": payload}

        call = {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"}
        path = written(
            tmp_path,
            "rollout.jsonl",
            {"type": "session_meta", "payload": {"id": "abc"}},
            item(type="reasoning", summary=[], encrypted_content="x"),
            item(**call),
            item(type="function_call_output", call_id="c", output="ok"),
            {"type": "event_msg", "payload": {"type": "token_count"}},
        )
        load("codex", path)
        (tool,) = ToolCall.objects.all()
        assert (tool.name, tool.status, tool.result and tool.result.value) == (
            "shell",
            "SUCCEEDED",
            "ok",
        )
        assert Message.objects.get(sequence=2).body.value["item"] == call

    def test_of_an_older_form_has_no_envelopes(self, load: Any, tmp_path: Path) -> None:
        content = [{"type": "input_text", "text": "Hello"}]
        path = written(
            tmp_path,
            "old.jsonl",
            {"id": "old", "timestamp": AT, "instructions": None},
            {"record_type": "state"},
            {"type": "message", "role": "user", "content": content},
        )
        load("codex", path)
        assert Session.objects.get(external_id="codex:old").message_count == 1


_CHAT = [user("Hello", created_at=1_770_000_000), assistant("Hi")]


class TestOpenAI:
    @pytest.mark.parametrize(
        ("lines", "sessions"),
        [
            ([json.dumps(_CHAT, indent=1)], 1),
            ([{"messages": _CHAT, "id": "mine", "title": "T", "score": 1}], 1),
            ([[{"messages": _CHAT}, {"messages": _CHAT[:1]}]], 2),
            ([{"messages": _CHAT}, {"messages": _CHAT[:1]}, {"messages": _CHAT}], 2),
            (_CHAT, 1),
        ],
    )
    def test_takes_any_form_that_it_comes_in(
        self, load: Any, tmp_path: Path, lines: list[Any], sessions: int
    ) -> None:
        for _ in range(2):
            load("openai", written(tmp_path, "chat.json", *lines))
            assert Session.objects.count() == sessions
        found = Session.objects.order_by("-message_count")[0]
        assert found.message_count == 2
        body = Message.objects.get(session=found, sequence=1).body.value
        assert body["client_created_at"] == "2026-02-02T02:40:00.000000Z"

    def test_is_known_again_under_another_name(self, load: Any, tmp_path: Path) -> None:
        load("openai", written(tmp_path, "a.json", _CHAT))
        load("openai", written(tmp_path, "b.json", _CHAT))
        assert Session.objects.count() == 1


class TestARestart:
    def test_finishes_what_was_cut_off(
        self, load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        chat = [user(f"{number}") for number in range(7)]
        path = written(tmp_path, "chat.json", chat)
        monkeypatch.setattr(loading, "_BATCH_MESSAGES", 3)
        append, calls = SessionManager.append, []

        def cut_off(*args: Any, **kwargs: Any) -> Any:
            calls.append(kwargs)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return append(*args, **kwargs)

        monkeypatch.setattr(SessionManager, "append", cut_off)
        with pytest.raises(KeyboardInterrupt):
            load("openai", path)
        assert Session.objects.get().message_count == 3
        assert "stored: 4, known before: 3" in load("openai", path)
        assert "stored: 0, known before: 7" in load("openai", path)
        stored = Message.objects.order_by("sequence")
        assert [message.body.value["content"] for message in stored] == [*map(str, range(7))]

    def test_takes_what_a_file_has_grown_by(self, load: Any, tmp_path: Path) -> None:
        lines = [said("u1", "user", "Hi"), said("u2", "assistant", use("t1"))]
        load("claude-code", written(tmp_path, "s1.jsonl", *lines))
        grown = written(tmp_path, "s1.jsonl", *lines, said("u3", "user", used("t1")))
        assert "stored: 1, known before: 2" in load("claude-code", grown)

    def test_leaves_a_session_alone_that_was_closed(
        self, load: Any, account: User, tmp_path: Path
    ) -> None:
        path = written(tmp_path, "s1.jsonl", said("u1", "user", "Hi"))
        load("claude-code", path)
        session_id = Session.objects.get().session_id
        SessionManager(Actor.account(account)).close(session_id=session_id)
        assert "stored: 0, known before: 1" in load("claude-code", path)
        more = written(tmp_path, "s1.jsonl", said("u1", "user", "Hi"), said("u2", "user", "More"))
        with pytest.raises(CommandError):
            load("claude-code", more)


class TestABadFile:
    @pytest.mark.parametrize(
        "case",
        [
            ("claude-code", [said("u1", "user", "Hi"), '{"type": "user'], "line 2: it is not JSON"),
            ("claude-code", [said("u1", "user", used("t9"))], "line 1: no unanswered call"),
            ("claude-code", [said("u1", "user", 5)], "line 1: /content"),
            ("claude-code", [said("u1", "user", "\ud83d")], "line 1: A string holds a lone"),
            ("claude-code", [{"type": "user", "message": {}}], "line 1: a message without"),
            ("claude-code", [{"a": 1}], "the file: holds no message"),
            ("claude-code", ["[]"], "line 1: no JSON object"),
            ("codex", [{"type": "message"}], "line 1: an item before"),
            ("openai", [[user("Hi"), {"role": "king"}]], "message 2: /role"),
            ("openai", [[user("Hi"), result("c1")]], "message 2: no unanswered call"),
            ("openai", ['[{"role": "user",', '"content": NaN}]'], "the document: NaN"),
            ("openai", [{"prompt": "x"}], "messages: none; expected is"),
            ("openai", ["%PDF-1.7"], "the document: it is not JSON"),
        ],
    )
    def test_is_named_with_its_place_and_left_out(
        self, account: User, tmp_path: Path, capsys: Any, case: tuple[str, list[Any], str]
    ) -> None:
        kind, lines, place = case
        bad = written(tmp_path, "a-bad.jsonl", *lines)
        good = written(tmp_path, "b.jsonl", said("u9", "user", "Hi", sessionId="good"))
        paths = [bad, good] if kind == "claude-code" else [bad]
        with pytest.raises(CommandError, match=rf"^1 of {len(paths)} files"):
            call_command("import_sessions", *map(str, paths), format=kind, account="ada")
        assert f"{bad}: {place}" in capsys.readouterr().err
        assert Session.objects.count() == len(paths) - 1

    def test_of_no_account_or_no_file_is_said(self, load: Any, tmp_path: Path) -> None:
        with pytest.raises(CommandError, match="There is no file"):
            load("codex", tmp_path / "none")
        with pytest.raises(CommandError, match="There is no account"):
            call_command("import_sessions", str(tmp_path), format="codex", account="nobody")

    def test_of_a_folder_does_not_stop_the_others(self, load: Any, tmp_path: Path) -> None:
        written(tmp_path, "a.json", [calling("c1"), result("c1")])
        written(tmp_path, "b.json", "nonsense")
        (tmp_path / "deep").mkdir()
        written(tmp_path / "deep", "c.jsonl", {"messages": _CHAT})
        with pytest.raises(CommandError, match=r"^1 of 3 files"):
            load("openai", tmp_path)
        assert Session.objects.count() == 2
