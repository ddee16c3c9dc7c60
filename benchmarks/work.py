"""The work that is measured, each piece as the product and the reference are asked for it.

To add a piece: one `Work` in `all_work` with two functions from a number to a request.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from .load import Requests, request
from .seed import USERS, Seeded, text

_keys = count(1)


@dataclass(frozen=True, slots=True)
class Work:
    name: str
    product: Requests
    reference: Requests


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
        Work(
            "read 1,000 messages",
            _get(seeded, lambda _: f"/sessions/{seeded.product[1_000]}/messages?limit=1000"),
            _plain(lambda _: f"/sessions/{seeded.reference[1_000]}/messages"),
        ),
    ]


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
