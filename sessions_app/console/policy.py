"""What a browser may load and run on a page: Content-Security-Policy, from strict to less so."""

from typing import TypeVar

from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from django.http import HttpResponseBase

Policy = dict[str, list[str]]
ResponseT = TypeVar("ResponseT", bound=HttpResponseBase)

NOTHING: Policy = {
    "default-src": [NONE],
    "base-uri": [NONE],
    "form-action": [NONE],
    "frame-ancestors": [NONE],
}
"""For answers of the API, and whatever says nothing else."""

OWN_PAGE: Policy = {
    **NOTHING,
    "script-src": [SELF],
    "style-src": [SELF],
    "img-src": [SELF, "data:"],
    "font-src": [SELF],
    "connect-src": [SELF],
    "form-action": [SELF],
}
"""For pages that extend console/base.html: nothing inline, nothing from elsewhere."""

SKIN: Policy = {
    **OWN_PAGE,
    # The skin's lists and forms are driven by Alpine, which evaluates their attributes and sets
    # styles. Scripts in the page itself stay forbidden here, too.
    "script-src": [SELF, UNSAFE_EVAL],
    "style-src": [SELF, UNSAFE_INLINE],
}
"""For the skin's own pages under /admin/."""

API_READER: Policy = {**OWN_PAGE, "style-src": [SELF, UNSAFE_INLINE]}
"""For the reader of the API's schema, which writes styles into its page."""


def apply(policy: Policy, response: ResponseT) -> ResponseT:
    """What django-csp's decorator does, for views that are methods."""
    response._csp_config = policy  # type: ignore[attr-defined]
    return response
