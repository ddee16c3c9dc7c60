"""Parts of a page that are brought anew one by one, and only when they have changed."""

from dataclasses import dataclass
from hashlib import blake2b

from django.http import HttpRequest
from django.utils.safestring import SafeString

SEEN = "seen"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the page; ``mark`` tells one state of it from another."""

    name: str
    html: SafeString

    @property
    def mark(self) -> str:
        return f"{self.name}:{blake2b(self.html.encode(), digest_size=8).hexdigest()}"


def changed(parts: dict[str, Part], request: HttpRequest) -> list[Part]:
    """The parts that the browser, by what it says it shows, does not have as they are now."""
    seen = set(request.GET.getlist(SEEN))
    return [part for part in parts.values() if part.mark not in seen]
