"""What becomes of each odd shape, in each API's words."""

from typing import Any

import pytest

from sessions_app.services.formats import conversation
from sessions_app.services.formats.parts import NO_RESULT
from tests.domain import assistant, calling, result, user
from tests.providers import PROVIDERS, check, synthetic
from tests.sessions_app.formats.messages import (
    Stored,
    block_call,
    block_result,
    compaction,
    item,
    item_call,
    item_result,
    stored,
    words,
)

PNG = "data:image/png;base64,aGk="
PICTURES: list[dict[str, Any]] = [
    {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
    {"type": "input_image", "image_url": PNG, "detail": "low"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
]
RULES = {"role": "system", "content": "Be short."}


def told(format: str, *messages: dict[str, Any] | Stored, **more: Any) -> list[dict[str, Any]]:
    """As this API is told; whatever it is, it takes it."""
    sent = [stored(each)[0] if isinstance(each, dict) else each for each in messages]
    numbered = [each._replace(sequence=number) for number, each in enumerate(sent, start=1)]
    found = conversation(numbered, format=format, **more)
    check(format, found.messages, found.system)
    return found.messages


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


class TestACallWithoutAResult:
    FORMS = (calling("c1"), assistant([block_call("c1")]), item_call("c1"))

    @pytest.mark.parametrize("api", PROVIDERS)
    @pytest.mark.parametrize("call", FORMS, ids=["chat", "blocks", "item"])
    def test_gets_one_that_is_marked_and_is_an_error(self, api: str, call: dict[str, Any]) -> None:
        found = told(api, user(), call, user("Are you there?"))
        (mark,) = synthetic(found)
        assert NO_RESULT in mark.values()
        assert mark.get("is_error", api != "anthropic")
        assert synthetic(told(api, user(), call, mark_synthetic=False)) == []

    @pytest.mark.parametrize("api", PROVIDERS)
    def test_stands_beside_one_that_has_its_own(self, api: str) -> None:
        found = told(api, user(), calling("c1", "c2"), result("c2", "fine"))
        (mark,) = synthetic(found)
        assert "c1" in mark.values()
        assert words(found).count("fine") == 1


class TestAResult:
    @pytest.mark.parametrize("api", PROVIDERS)
    def test_that_came_late_stands_at_its_call(self, api: str) -> None:
        found = words(told(api, user(), calling("c1"), user("wait"), result("c1", "late")))
        assert found.index("late") < found.index("wait")

    @pytest.mark.parametrize("api", PROVIDERS)
    def test_without_a_call_is_left_out(self, api: str) -> None:
        assert "ghost" not in words(told(api, user(), result("c9", "ghost"), assistant()))

    def test_goes_to_the_call_that_the_history_says(self) -> None:
        """A result of the newer call was removed, so that the older one's seems to be for it."""
        sent = stored(calling("x", name="old"), calling("x", name="new"), result("x", "of old"))
        by_rule = words(conversation(sent, format="openai_chat").messages)
        told_so = words(conversation(sent, format="openai_chat", answers={3: {1}}).messages)
        assert by_rule.index("new") < by_rule.index("of old")
        assert told_so.index("of old") < told_so.index("new")

    def test_that_failed_without_words_says_so(self) -> None:
        failed = [
            user(),
            assistant([block_call("c1")]),
            user([block_result("c1", [], is_error=True)]),
        ]
        answer = told("anthropic", *failed)[-1]["content"][0]
        assert answer["is_error"] is True
        assert answer["content"]

    def test_that_failed_has_no_picture_for_anthropic(self) -> None:
        content = [text("broken"), PICTURES[2]]
        failed = [user(), calling("c1"), result("c1", content, is_error=True)]
        assert told("anthropic", *failed)[-1]["content"][0]["content"] == "broken\n\n[image]"

    def test_that_is_empty_stays_so(self) -> None:
        sent = [user(), calling("c1"), result("c1", "")]
        assert told("openai_chat", *sent)[-1]["content"] == ""
        assert told("openai_responses", *sent)[-1]["output"] == ""
        assert "content" not in told("anthropic", *sent)[-1]["content"][0]

    @pytest.mark.parametrize("output", [None, {"a": 1}, [1, {"b": 2}], 5])
    def test_of_an_item_may_be_any_json(self, output: Any) -> None:
        for api in PROVIDERS:
            told(api, user(), item_call("c1"), item_result("c1", output))

    def test_with_a_picture_is_shown_by_the_user_in_chat_completions(self) -> None:
        sent = [user(), calling("c1", "c2"), result("c1", [PICTURES[0]]), result("c2")]
        found = told("openai_chat", *sent, assistant())
        assert [message["role"] for message in found][1:] == [
            "assistant",
            "tool",
            "tool",
            "user",
            "assistant",
        ]
        assert PNG in words(found[4])


class TestTurns:
    def test_of_an_assistant_are_one_for_anthropic(self) -> None:
        found = told("anthropic", user(), assistant("a"), assistant("b"), user("c"), user("d"))
        assert [(each["role"], len(each["content"])) for each in found] == [
            ("user", 1),
            ("assistant", 2),
            ("user", 2),
        ]

    def test_with_parallel_calls_in_two_messages_are_answered_together(self) -> None:
        sent = [user(), calling("c1"), calling("c2"), result("c2"), result("c1"), user("next")]
        found = told("anthropic", *sent)
        assert [block["id"] for block in found[1]["content"]] == ["c1", "c2"]
        answers = found[2]["content"]
        assert [block.get("tool_use_id") for block in answers] == ["c1", "c2", None]
        kinds = [each["type"].rpartition("_")[2] for each in told("openai_responses", *sent)]
        assert kinds == ["message", "call", "call", "output", "output", "message"]
        roles = [each["role"] for each in told("openai_chat", *sent)]
        assert roles == ["user", "assistant", "tool", "assistant", "tool", "user"]

    def test_begin_with_the_user_for_anthropic(self) -> None:
        assert [each["role"] for each in told("anthropic", assistant("Hi"))] == [
            "user",
            "assistant",
        ]

    def test_that_the_model_shall_go_on_with_end_without_space(self) -> None:
        assert told("anthropic", user(), assistant("I am \n"))[-1]["content"] == [text("I am")]


class TestContent:
    @pytest.mark.parametrize("api", PROVIDERS)
    @pytest.mark.parametrize("nothing", [None, "", [], [text("")]])
    @pytest.mark.parametrize("role", ["system", "user", "assistant"])
    def test_may_be_nothing(self, api: str, role: str, nothing: Any) -> None:
        told(api, user(), {"role": role, "content": nothing}, assistant("Hi"), user())

    @pytest.mark.parametrize("picture", PICTURES, ids=lambda part: part["type"])
    def test_shows_the_user_s_pictures_in_each_api_s_way(self, picture: dict[str, Any]) -> None:
        sent = user([text("Look:"), picture])
        assert told("openai_chat", sent)[0]["content"][1]["image_url"]["url"] == PNG
        assert told("openai_responses", sent)[0]["content"][1]["image_url"] == PNG
        assert told("anthropic", sent)[0]["content"][1] == PICTURES[2]

    @pytest.mark.parametrize("api", PROVIDERS)
    def test_names_what_the_api_has_no_form_for(self, api: str) -> None:
        parts = [{"type": "custom_part"}, {"type": "image"}, {"type": "file", "file": {}}]
        said = words(told(api, user(parts)))
        assert all(name in said for name in ("[custom_part]", "[image]", "[file]"))

    def test_of_a_file_goes_to_every_api(self) -> None:
        sent = user(
            [
                {
                    "type": "file",
                    "file": {"file_data": "data:application/pdf;base64,aGk=", "filename": "a.pdf"},
                }
            ]
        )
        assert told("anthropic", sent)[0]["content"][0]["source"]["data"] == "aGk="
        assert told("openai_responses", sent)[0]["content"][0]["filename"] == "a.pdf"
        assert told("openai_chat", sent)[0]["content"][0]["file"]["filename"] == "a.pdf"

    def test_of_the_system_stands_apart_for_anthropic_each_once(self) -> None:
        developer = {"role": "developer", "content": [text("Small steps.")]}
        found = conversation(
            stored(RULES, developer, user(), RULES, assistant()), format="anthropic"
        )
        assert found.system == "Be short.\n\nSmall steps."
        assert [each["role"] for each in found.messages] == ["user", "assistant"]
        for api in PROVIDERS[:2]:
            roles = [each["role"] for each in told(api, RULES, developer, user(), RULES)]
            assert roles == ["system", "developer", "user", "system"]

    def test_of_a_compaction_is_said_by_the_user(self) -> None:
        for content in ("They met.", [text("They met.")]):
            made = compaction(2, role="system", content=content)
            for api in PROVIDERS:
                found = told(api, RULES, made, calling("c1"), result("c1"), assistant())
                summary = next(each for each in found if "They met." in words(each))
                assert summary["role"] == "user"

    def test_of_openai_s_own_compaction_goes_back_to_it(self) -> None:
        sent = [user(), item("compaction", id="cmp_1", encrypted_content="x"), user()]
        assert told("openai_responses", *sent)[1] == sent[1]["item"]
        assert "[compaction]" in words(told("anthropic", *sent))


class TestThoughts:
    SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "s", "cache_control": None}
    REASONING = item(
        "reasoning",
        id="rs_1",
        summary=[{"type": "summary_text", "text": "Hm."}],
        encrypted_content="x",
        status="completed",
    )

    def test_go_back_to_their_own_api_only(self) -> None:
        sent = [user(), assistant([self.SIGNED, text("Hi")]), self.REASONING, assistant("Ho")]
        anthropic = told("anthropic", *sent)[1]["content"]
        assert [block["type"] for block in anthropic] == ["thinking", "text", "text"]
        responses = [each["type"] for each in told("openai_responses", *sent)]
        assert responses == ["message", "message", "reasoning", "message"]
        chat = [user(), assistant("Hi", reasoning_content="Hm."), *sent[1:]]
        assert "Hm." not in words(told("openai_chat", *chat))

    def test_without_what_proves_them_are_left_out(self) -> None:
        unsigned = {"type": "thinking", "thinking": "Hm."}
        unnamed = item("reasoning", summary=[])
        sent = [user(), assistant([unsigned, text("Hi")]), unnamed, assistant("Ho")]
        assert "Hm." not in words(told("anthropic", *sent))
        assert len(told("openai_responses", *sent)) == 3

    def test_that_nothing_followed_are_left_out(self) -> None:
        sent = [user(), assistant([self.SIGNED]), self.REASONING, user("Well?")]
        for api in PROVIDERS:
            assert "Hm." not in words(told(api, *sent))


class TestTools:
    @pytest.mark.parametrize(
        ("arguments", "read"),
        [
            ('{"a": 12345678901234567890}', {"a": 12345678901234567890}),
            ("", {}),
            ("[1]", {"arguments": [1]}),
            ("{not json", {"arguments": "{not json"}),
            ('{"a": NaN}', {"arguments": '{"a": NaN}'}),
            ('{"a": 1, "a": 2}', {"arguments": '{"a": 1, "a": 2}'}),
            ("[" * 5000, {"arguments": "[" * 5000}),
        ],
    )
    def test_have_arguments_as_object_or_as_the_model_wrote_them(
        self, arguments: str, read: dict[str, Any]
    ) -> None:
        sent = [user(), calling("c1", arguments=arguments), result("c1")]
        assert told("anthropic", *sent)[1]["content"][0]["input"] == read
        assert told("openai_responses", *sent)[1]["arguments"] == arguments
        called = told("openai_chat", *sent)[1]["tool_calls"][0]
        assert called["function"]["arguments"] == arguments

    def test_are_called_by_blocks_with_an_object(self) -> None:
        sent = [user(), assistant([block_call("c1", arguments={"é": 1e2})]), result("c1")]
        assert told("openai_responses", *sent)[1]["arguments"] == '{"é":100.0}'

    def test_have_names_and_ids_that_the_api_takes(self) -> None:
        sent = [
            user(),
            calling("f.ls:0", "f.ls:0", name="f.ls"),
            result("f.ls:0"),
            result("f.ls:0"),
        ]
        uses = told("anthropic", *sent)[1]["content"]
        assert [(use["name"], use["id"]) for use in uses] == [
            ("f_ls", "call_2_0"),
            ("f_ls", "call_2_1"),
        ]
        chat = told("openai_chat", *sent)[1]["tool_calls"]
        assert [call["id"] for call in chat] == ["f.ls:0", "call_2_1"]

    def test_that_take_text_are_called_with_text(self) -> None:
        custom = {"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls -l"}}
        sent = [
            user(),
            {"role": "assistant", "content": None, "tool_calls": [custom]},
            result("c1"),
        ]
        assert told("openai_chat", *sent)[1]["tool_calls"] == [custom]
        assert told("openai_responses", *sent)[1]["type"] == "custom_tool_call"
        assert told("anthropic", *sent)[1]["content"][0]["input"] == {"input": "ls -l"}

    def test_said_twice_are_called_once(self) -> None:
        """Some clients keep a call in a block and in ``tool_calls``."""
        sent = [user(), calling("c1") | {"content": [block_call("c1")]}, result("c1")]
        for api in PROVIDERS:
            assert synthetic(told(api, *sent)) == []

    SHELL = {"call_id": "s1", "action": {"commands": ["ls"]}}
    PRINTED = [{"stdout": "app.py", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]

    def test_of_the_responses_api_s_own_are_functions_elsewhere(self) -> None:
        made = item("shell_call", **self.SHELL)
        answered = item("shell_call_output", call_id="s1", output=self.PRINTED)
        own = told("openai_responses", user(), made, answered)
        assert own[1:] == [made["item"], answered["item"]]
        elsewhere = told("anthropic", user(), made, answered)
        assert elsewhere[1]["content"][0]["name"] == "shell"
        assert "app.py" in words(elsewhere[2])
        (mark,) = synthetic(told("openai_responses", user(), made))
        assert mark["type"] == "function_call_output"

    def test_of_anthropic_s_server_go_back_in_pairs(self) -> None:
        use = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}
        done = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
        whole = told("anthropic", user(), assistant([use, done, text("Found.")]))
        assert whole[1]["content"][:2] == [use, done]
        cut = told("anthropic", user(), assistant([use, text("Found.")]))
        assert cut[1]["content"] == [text("Found.")]


class TestReading:
    @pytest.mark.parametrize("api", PROVIDERS)
    def test_changes_nothing_that_is_stored(self, api: str) -> None:
        made = stored(RULES, user([PICTURES[0]]), assistant([block_call("c1")]), item_call("c2"))
        before = [message.body.text for message in made]
        conversation(made, format=api)
        assert [message.body.text for message in made] == before

    @pytest.mark.parametrize("api", PROVIDERS)
    def test_of_nothing_gives_nothing(self, api: str) -> None:
        assert told(api) == []
