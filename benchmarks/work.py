"""The work that is measured, each piece as the product and the reference are asked for it.

To add a piece: one `Work` in `all_work` with two functions from a number to a request; in
`lone_work` with one, where nothing bare does the same; a page of the console is a line in
`console_work`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from .load import Requests, request
from .seed import USERS, Seeded, rare, text

_keys = count(1)


@dataclass(frozen=True, slots=True)
class Work:
    """``reference`` None: nothing does the same, so the product is measured by itself."""

    name: str
    product: Requests
    reference: Requests | None = None


def all_work(seeded: Seeded) -> list[Work]:
    """What agents do all day."""
    one = json.dumps({"role": "user", "content": text(1_000)}).encode()
    twenty = json.dumps({"messages": [json.loads(one)] * 20}).encode()
    return [
        Work("append one message", *_appends(seeded, seeded.targets, one)),
        Work("append a batch of 20", *_appends(seeded, seeded.targets, twenty)),
        Work(
            "resume: state and last 50 of 1,000",
            _get(seeded, lambda _: f"/sessions/{seeded.product[1_000]}/context"),
            _plain(lambda _: f"/sessions/{seeded.reference[1_000]}/context"),
        ),
        Work(
            "list 50 newest of one user",
            _get(seeded, lambda n: f"/sessions?user_id=user-{n % USERS}"),
            _plain(lambda n: f"/sessions?user_id=user-{n % USERS}"),
        ),
        Work("create a session", *_creations(seeded)),
        Work("search a rare word", _get(seeded, lambda n: f"/search?q={rare(n % USERS)}")),
        Work("search a word that all have", _get(seeded, lambda _: "/search?q=state")),
        Work(
            "list sessions by a rare word", _get(seeded, lambda n: f"/sessions?q={rare(n % USERS)}")
        ),
        Work(
            "read 1,000 messages",
            _get(seeded, lambda _: f"/sessions/{seeded.product[1_000]}/messages?limit=1000"),
            _plain(lambda _: f"/sessions/{seeded.reference[1_000]}/messages"),
        ),
    ]


def lone_work(seeded: Seeded) -> list[Work]:
    """What is so much the product's own that a bare view beside it would say nothing."""
    fork = f"/api/v1/sessions/{seeded.product[10_000]}/fork"
    return [
        Work("fork 10,000 messages", lambda _: request("POST", fork, headers=_keyed(seeded))),
        *door_work(seeded),
    ]


def door_work(seeded: Seeded) -> list[Work]:
    """The same by the API's own calls and by the door of OpenAI's clients, who send no key."""
    one = {"role": "user", "content": text(1_000)}
    session = seeded.product[1_000]
    conversation = f"/v1/conversations/{session.replace('sess_', 'conv_')}/items"
    return [
        Work(
            "append one message, without a key", _posts(seeded, "/api/v1/sessions/{}/messages", one)
        ),
        Work("append one item", _posts(seeded, "/v1/conversations/{}/items", {"items": [one]})),
        Work(
            "read 100 messages",
            _get(seeded, lambda _: f"/sessions/{session}/messages?limit=100"),
        ),
        Work(
            "read 100 items",
            lambda _: request("GET", f"{conversation}?order=asc", headers=_headers(seeded)),
        ),
    ]


def console_work(seeded: Seeded) -> list[Work]:
    """What an operator's browser asks for; a page has no bare counterpart that does the same."""
    longest = max(seeded.product)
    pages = {
        "home": "/",
        "session list, page one": "/sessions_app/session/",
        "session list, needs attention": "/sessions_app/session/?attention=yes",
        "session list, a user": "/sessions_app/session/?user=user-7",
        "session list, words that match nothing": "/sessions_app/session/?q=nowhere",
        f"session page of {longest:,} messages": f"/sessions/{seeded.product[longest]}/",
        "run list": "/runs_app/run/",
    }
    headers = {"Cookie": f"sessionid={seeded.browser}"}
    return [Work(name, _page(f"/admin{path}", headers)) for name, path in pages.items()]


def _page(path: str, headers: dict[str, str]) -> Requests:
    return lambda _: request("GET", path, headers=headers)


def growing_work(seeded: Seeded, length: int) -> list[Work]:
    """The same append and resume in a session of so many messages."""
    one = json.dumps({"role": "user", "content": text(1_000)}).encode()
    targets = {"product": [seeded.product[length]], "reference": [seeded.reference[length]]}
    return [
        Work(f"append at {length:,}", *_appends(seeded, targets, one)),
        Work(
            f"resume at {length:,}",
            _get(seeded, lambda _: f"/sessions/{seeded.product[length]}/context"),
            _plain(lambda _: f"/sessions/{seeded.reference[length]}/context"),
        ),
    ]


def _appends(
    seeded: Seeded, targets: dict[str, list[str]], body: bytes
) -> tuple[Requests, Requests]:
    product, reference = targets["product"], targets["reference"]

    def ours(number: int) -> bytes:
        path = f"/api/v1/sessions/{product[number % len(product)]}/messages"
        return request("POST", path, body=body, headers=_keyed(seeded))

    def theirs(number: int) -> bytes:
        path = f"/sessions/{reference[number % len(reference)]}/messages"
        return request("POST", path, body=body)

    return ours, theirs


def _posts(seeded: Seeded, path: str, body: Any) -> Requests:
    targets, sent = seeded.targets["product"], json.dumps(body).encode()
    headers = _headers(seeded)
    return lambda n: request(
        "POST", path.format(targets[n % len(targets)]), body=sent, headers=headers
    )


def _creations(seeded: Seeded) -> tuple[Requests, Requests]:
    body = json.dumps({"agent_id": "bench", "user_id": "new", "title": "A new one"}).encode()
    return (
        lambda _: request("POST", "/api/v1/sessions", body=body, headers=_keyed(seeded)),
        lambda _: request("POST", "/sessions", body=body),
    )


def _keyed(seeded: Seeded) -> dict[str, str]:
    return _headers(seeded) | {"Idempotency-Key": f"bench-{next(_keys)}"}


def _headers(seeded: Seeded) -> dict[str, str]:
    return {"Authorization": f"Bearer {seeded.token}"}


def _get(seeded: Seeded, path: Callable[[int], str]) -> Requests:
    return lambda number: request("GET", f"/api/v1{path(number)}", headers=_headers(seeded))


def _plain(path: Callable[[int], str]) -> Requests:
    return lambda number: request("GET", path(number))
