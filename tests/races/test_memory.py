"""Report CON-07: two patches of different keys, of which one was lost."""

from functools import partial

import pytest

from tests.races.load import together


@pytest.mark.parametrize("rounds", [100, pytest.param(500, marks=pytest.mark.soak)])
def test_patches_of_different_keys_both_survive(client, clients, rounds):
    session_id = client.new_session(working_memory={"goal": "base"})
    path = f"/sessions/{session_id}/working-memory"
    left, right = clients[:2]
    for number in range(rounds):
        before = client.get(path)
        answers = together(
            [
                partial(left.request, "PATCH", path, {"extra": {"left": number}}),
                partial(right.request, "PATCH", path, {"next_action": str(number)}),
            ]
        )
        assert [answer.status for answer in answers] == [200, 200]
        after = client.get(path)
        assert after["version"] == before["version"] + 2
        assert after["extra"]["left"] == number
        assert after["next_action"] == str(number)
    assert after["goal"] == "base"


def test_of_two_patches_with_one_version_one_is_refused(client, clients):
    session_id = client.new_session()
    path = f"/sessions/{session_id}/working-memory"
    for version in range(10):
        calls = [
            partial(each.request, "PATCH", path, {"goal": f"{n}"}, if_match=f'"{version}"')
            for n, each in enumerate(clients[:2])
        ]
        answers = together(calls)
        assert sorted(answer.status for answer in answers) == [200, 412]
        (refused,) = [answer.body for answer in answers if not answer.ok]
        assert (refused["code"], refused["version"]) == ("version_mismatch", version + 1)


def test_metadata_patches_of_different_keys_all_survive(client, clients):
    """Report CON-08 under load: a PATCH merges what is stored, not what its sender had read."""
    session_id = client.new_session(metadata={"kept": True})
    calls = [
        partial(each.request, "PATCH", f"/sessions/{session_id}", {"metadata": {f"key{n}": n}})
        for n, each in enumerate(clients)
    ]
    assert {answer.status for answer in together(calls)} == {200}
    expected = {"kept": True} | {f"key{number}": number for number in range(20)}
    assert client.session(session_id)["metadata"] == expected
