from decimal import Decimal

import pytest

from sessions_app.errors import InvalidRequest
from sessions_app.usage import TOKEN_FIELDS, Usage, usage_of
from tests.domain import assistant, row, run_row, user

MOST = 2**63 - 1


def read(**raw):
    return Usage.from_client(raw, pointer="/usage")


class TestFromClient:
    def test_reads_tokens_and_money(self):
        usage = read(input_tokens=1, output_tokens=2, cached_input_tokens=3, cost_usd="0.25")
        assert usage == Usage(1, 2, 3, 0, 250_000_000)

    def test_takes_nothing_for_zero(self):
        assert Usage.from_client(None, pointer="/usage") == Usage() == read(input_tokens=None)

    def test_ignores_names_that_are_not_its_own(self):
        assert read(total_tokens=5, prompt_tokens_details={"a": []}) == Usage()

    @pytest.mark.parametrize("raw", [[], "1", 1, True, [{}]])
    def test_refuses_what_is_no_object(self, raw):
        with pytest.raises(InvalidRequest) as caught:
            Usage.from_client(raw, pointer="/usage")
        assert list(caught.value.pointers) == ["/usage"]

    @pytest.mark.parametrize("name", TOKEN_FIELDS)
    @pytest.mark.parametrize("value", [-1, 10**12 + 1, 1.0, "1", True, [], {}])
    def test_refuses_tokens_that_are_no_count(self, name, value):
        with pytest.raises(InvalidRequest) as caught:
            read(**{name: value})
        assert list(caught.value.pointers) == [f"/usage/{name}"]

    @pytest.mark.parametrize(
        ("cost", "nanousd"),
        [
            ("0", 0),
            ("0.000000001", 1),
            ("0.0000000004", 0),
            ("1000000", 10**15),
            (0.1, 100_000_000),
            (1e-9, 1),
            (2, 2 * 10**9),
            ("1e-3", 1_000_000),
            ("+1", 10**9),
            (".5", 500_000_000),
            ("5.", 5 * 10**9),
        ],
    )
    def test_keeps_money_to_nine_places(self, cost, nanousd):
        assert read(cost_usd=cost).cost_nanousd == nanousd

    @pytest.mark.parametrize(
        "cost",
        [
            *("", "free", "-0.01", "1000001", "NaN", "sNaN", "Infinity", "1e9999", "$1", "1,5"),
            *(True, [], -1),
            *("1_000", " 1", "1\n", "٣", "１", "0x10", ".", "1e"),  # noqa: RUF001
        ],
    )
    def test_refuses_money_that_is_no_amount(self, cost):
        with pytest.raises(InvalidRequest) as caught:
            read(cost_usd=cost)
        assert list(caught.value.pointers) == ["/usage/cost_usd"]


class TestArithmetic:
    def test_adds_and_subtracts_each_figure(self):
        one, other = Usage(5, 4, 3, 2, 1), Usage(1, 1, 1, 1, 1)
        assert one + other == Usage(6, 5, 4, 3, 2)
        assert one - other == Usage(4, 3, 2, 1, 0)

    def test_is_exact_for_money(self):
        """Ten times ten cents is one dollar, which binary fractions do not say."""
        total = sum((read(cost_usd="0.1") for _ in range(10)), Usage())
        assert usage_of(total)["cost_usd"] == "1"

    def test_is_false_only_when_nothing_was_spent(self):
        assert not Usage()
        assert all(Usage(**{name: 1}) for name in Usage.columns())


class TestAsJson:
    @pytest.mark.parametrize(
        ("nanousd", "text"),
        [
            (0, "0"),
            (1, "0.000000001"),
            (10**9, "1"),
            (10 * 10**9, "10"),
            (1_500_000_000, "1.5"),
            (MOST, "9223372036.854775807"),
        ],
    )
    def test_gives_money_as_a_decimal_string(self, nanousd, text):
        assert usage_of(Usage(cost_nanousd=nanousd))["cost_usd"] == text
        assert Decimal(text) * 10**9 == nanousd


def used(**figures):
    return assistant(usage=figures)


class TestOfMessages:
    def test_adds_to_session_and_run(self, desk):
        session_id = desk.open()
        run = desk.run(session_id)
        desk.append(session_id, used(input_tokens=5), used(input_tokens=7), run_id=run.run_id)
        desk.append(session_id, used(input_tokens=100, cost_usd="0.5"))
        assert row(session_id).input_tokens == 112
        assert row(session_id).cost_nanousd == 500_000_000
        assert run_row(run).input_tokens == 12

    def test_counts_once_for_a_message_sent_again(self, desk):
        session_id = desk.open()
        for _ in range(2):
            desk.append(session_id, assistant(client_message_id="m", usage={"input_tokens": 5}))
        assert row(session_id).input_tokens == 5

    def test_stays_when_the_message_is_popped_or_removed(self, desk):
        """What was spent was spent."""
        session_id = desk.open()
        desk.append(session_id, user(), used(input_tokens=5), used(input_tokens=7))
        desk.sessions.pop_messages(session_id=session_id)
        desk.sessions.remove_message(session_id=session_id, sequence=2)
        assert row(session_id).input_tokens == 12

    def test_never_makes_a_write_impossible(self, desk):
        """Figures that no bill ever showed: the sum stops at what a column holds."""
        session_id = desk.open()
        run = desk.run(session_id)
        for _ in range(10):
            batch = [used(cost_usd=10**6)] * 1000
            desk.append(session_id, *batch, run_id=run.run_id)
        assert row(session_id).cost_nanousd == MOST == run_row(run).cost_nanousd
        desk.runs.complete(run_id=run.run_id, usage=Usage(input_tokens=1))
        assert row(session_id).cost_nanousd == 0


class TestAtTheEndOfARun:
    @pytest.mark.parametrize("end", ["complete", "fail"])
    def test_replaces_the_runs_total_and_the_session_gets_the_difference(self, desk, end):
        session_id = desk.open()
        desk.append(session_id, used(input_tokens=100))
        run = desk.run(session_id)
        desk.append(session_id, used(input_tokens=10, output_tokens=4), run_id=run.run_id)
        more = {"error": {"type": "boom"}} if end == "fail" else {}
        getattr(desk.runs, end)(run_id=run.run_id, usage=Usage(input_tokens=25), **more)
        assert (run_row(run).input_tokens, run_row(run).output_tokens) == (25, 0)
        assert (row(session_id).input_tokens, row(session_id).output_tokens) == (125, 0)

    def test_keeps_what_messages_counted_when_none_is_given(self, desk):
        session_id = desk.open()
        run = desk.run(session_id)
        desk.append(session_id, used(input_tokens=10), run_id=run.run_id)
        desk.runs.complete(run_id=run.run_id)
        assert run_row(run).input_tokens == 10 == row(session_id).input_tokens

    def test_may_be_nothing_at_all(self, desk):
        session_id = desk.open()
        run = desk.run(session_id)
        desk.append(session_id, used(input_tokens=10), run_id=run.run_id)
        desk.runs.complete(run_id=run.run_id, usage=Usage())
        assert run_row(run).input_tokens == 0 == row(session_id).input_tokens
