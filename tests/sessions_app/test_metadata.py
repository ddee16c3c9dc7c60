import pytest

from sessions_app.errors import InvalidRequest, PayloadTooLarge
from sessions_app.models import MetadataTerm, Session
from sessions_app.services import SessionChanges
from sessions_app.services.metadata import metadata_term
from tests.domain import dump, row


def patch(desk, session_id, metadata):
    return desk.sessions.update(
        session_id=session_id, changes=SessionChanges(metadata=metadata)
    ).metadata.value


def found(key, value):
    terms = MetadataTerm.objects.filter(digest=metadata_term(key, value))
    return Session.objects.filter(metadata_terms__in=terms).exists()


class TestMetadata:
    @pytest.mark.parametrize(
        "value",
        [
            {},
            {"z": 1, "a": {"y": [], "x": None}},
            {"": "", "n": None, "l": [], "o": {}},
            {"big": 2**64, "huge": 10**30, "float": 0.1, "whole": 1.0, "minus": -0.0},
            {"ключ": "значение 😀"},
        ],
    )
    def test_is_kept_as_it_was_sent(self, desk, value):
        stored = row(desk.open(metadata=value)).metadata.value
        assert repr(stored) == repr(value)

    def test_is_limited_in_bytes(self, desk, settings):
        settings.MAX_METADATA_BYTES = 20
        session_id = desk.open(metadata={"a": "ä" * 6})  # 8 bytes around 12
        before = dump()
        with pytest.raises(PayloadTooLarge):
            desk.open(metadata={"a": "ä" * 7})
        with pytest.raises(PayloadTooLarge):
            patch(desk, session_id, {"b": 1})
        assert dump() == before

    @pytest.mark.parametrize("bad", [[], "x", 1, True])
    def test_is_an_object(self, desk, bad):
        session_id = desk.open()
        for refused in (lambda: desk.open(metadata=bad), lambda: patch(desk, session_id, bad)):
            with pytest.raises(InvalidRequest) as caught:
                refused()
            assert list(caught.value.pointers) == ["/metadata"]

    def test_names_a_bad_value_by_its_path(self, desk):
        with pytest.raises(InvalidRequest) as caught:
            desk.open(metadata={"a/b": [1, {"c": {1, 2}}]})
        assert list(caught.value.pointers) == ["/metadata/a~1b/1/c"]


class TestMergePatch:
    @pytest.mark.parametrize(
        ("stored", "sent", "expected"),
        [
            ({"a": 1, "b": {"x": 1}}, {"c": 2}, {"a": 1, "b": {"x": 1}, "c": 2}),
            ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
            ({"a": {"x": 1, "y": 2}}, {"a": {"x": None, "z": 3}}, {"a": {"y": 2, "z": 3}}),
            ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
            ({"a": "x"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
            ({"a": {"b": 1}}, {"a": "x"}, {"a": "x"}),
            ({}, {"a": {"b": None, "c": {"d": None}}}, {"a": {"c": {}}}),
            ({"a": 1}, {}, {"a": 1}),
            ({"a": 1}, {"gone": None}, {"a": 1}),
            ({"a": 1}, None, {}),
            ({"a": 1}, {"l": [None, {"x": None}]}, {"a": 1, "l": [None, {"x": None}]}),
        ],
    )
    def test_is_that_of_rfc_7396(self, desk, stored, sent, expected):
        assert patch(desk, desk.open(metadata=stored), sent) == expected

    def test_keeps_the_order_of_keys(self, desk):
        merged = patch(desk, desk.open(metadata={"z": 1, "m": 2, "a": 3}), {"m": 9, "b": 4})
        assert list(merged) == ["z", "m", "a", "b"]


class TestTerms:
    @pytest.mark.parametrize(
        ("stored", "written"),
        [
            ("x", "x"),
            ("", ""),
            ("5", "5"),
            (5, "5"),
            (True, "true"),
            (False, "false"),
            (None, "null"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (-0.0, "-0.0"),
            (1e22, "1e+22"),
            (2**64 + 1, "18446744073709551617"),
            ("ä\n=&%_", "ä\n=&%_"),
            ("x" * 10_000, "x" * 10_000),
        ],
    )
    def test_find_a_scalar_by_its_json_text(self, desk, stored, written):
        desk.open(metadata={"key.with=signs": stored})
        assert found("key.with=signs", written)
        assert not found("key.with=signs", written + "0")
        assert not found("key", written)

    @pytest.mark.parametrize("stored", [[], {}, [1], {"a": 1}])
    def test_are_none_for_what_is_no_scalar(self, desk, stored):
        desk.open(metadata={"a": stored})
        assert not MetadataTerm.objects.exists()

    def test_tell_key_and_value_apart(self):
        assert metadata_term("a", "bc") != metadata_term("ab", "c")
        assert metadata_term("a=b", "c") != metadata_term("a", "b=c")

    def test_follow_a_patch(self, desk):
        session_id = desk.open(metadata={"a": 1, "b": 2})
        patch(desk, session_id, {"a": 3, "b": None, "c": {"x": 1}, "d": "y"})
        assert found("a", "3")
        assert found("d", "y")
        assert not found("a", "1")
        assert not found("b", "2")
        assert MetadataTerm.objects.filter(session=session_id).count() == 2
