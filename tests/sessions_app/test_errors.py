import inspect
import re

import pytest

from sessions_app import errors
from sessions_app.errors import DossierError, InvalidRequest, SessionClosed, pointer_token


def concrete(base=DossierError):
    for kind in base.__subclasses__():
        yield kind
        yield from concrete(kind)


ERRORS = sorted(concrete(), key=lambda kind: kind.__name__)


class TestEveryError:
    @pytest.mark.parametrize("kind", ERRORS)
    def test_has_a_code_and_a_title_of_its_own(self, kind):
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", kind.code)
        assert kind.title

    def test_has_a_code_that_no_other_has(self):
        assert len({kind.code for kind in ERRORS}) == len(ERRORS)

    @pytest.mark.parametrize("kind", ERRORS)
    def test_has_the_code_that_its_name_says(self, kind):
        spelled = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()
        assert kind.code == spelled

    @pytest.mark.parametrize("kind", ERRORS)
    def test_says_what_happened(self, kind):
        error = kind("It went wrong.")
        assert error.detail == str(error) == "It went wrong."

    def test_is_defined_in_one_module(self):
        assert {kind.__module__ for kind in ERRORS} == {errors.__name__}

    def test_knows_no_http(self):
        assert not [kind for kind in ERRORS if {"status", "status_code", "hint"} & set(vars(kind))]
        code = inspect.getsource(errors).partition('"""')[2].partition('"""')[2]
        assert not re.search(r"HTTP|POST|ETag|header|endpoint|if_(exists|active)", code)


class TestData:
    def test_carries_typed_extras(self):
        assert SessionClosed("It is closed.", version=3).data == {"version": 3}

    def test_of_an_invalid_value_is_its_pointer(self):
        error = InvalidRequest.at("/metadata/a~1b", "is wrong")
        assert error.pointers == {"/metadata/a~1b": "is wrong"}
        assert error.detail == "/metadata/a~1b: is wrong"

    def test_of_an_invalid_body_is_the_empty_pointer(self):
        error = InvalidRequest.at("", "must be an object")
        assert error.pointers == {"": "must be an object"}
        assert error.detail == "body: must be an object"

    @pytest.mark.parametrize(("key", "token"), [("a", "a"), ("a/b", "a~1b"), ("~1", "~01")])
    def test_of_a_pointer_escapes_keys(self, key, token):
        assert pointer_token(key) == token
