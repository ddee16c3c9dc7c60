"""Somebody who has a page open that follows a run: time passes, and they look away.

The page's clock must have been taken over (`page.clock.install`) before the page is opened: it goes
on as always, and seconds in which nothing may happen pass at once.
"""

from typing import Any

_HIDDEN = "Object.defineProperty(document, 'hidden', {configurable: true, get: () => %s})"


def asked_in(page: Any, seconds: int = 3) -> list[str]:
    """What the page asks for in these seconds; it has shown what was answered."""
    asked: list[Any] = []

    def note(request: Any) -> None:
        asked.append(request)

    page.on("request", note)
    page.clock.fast_forward(seconds * 1000)
    page.wait_for_timeout(200)
    page.remove_listener("request", note)
    for request in asked:
        request.response()
        page.wait_for_timeout(100)
    return [request.url for request in asked]


def look_away(page: Any) -> None:
    page.evaluate(_HIDDEN % "true")


def look_back(page: Any) -> None:
    page.evaluate(_HIDDEN % "false")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
