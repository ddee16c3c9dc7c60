from csp.decorators import csp
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView
from django.views.i18n import set_language
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import AllowAny

from runs_app.api.urls import before_sessions
from sessions_app.console import policy

# The schema and its reader are public, and are not what the API's own renderer makes.
PUBLIC = {
    "authentication_classes": [],
    "permission_classes": [AllowAny],
    "content_negotiation_class": DefaultContentNegotiation,
}


def _around_the_api(namespace: str) -> list[URLPattern | URLResolver]:
    """What stands both at the root and under the version, as people look in both places."""
    schema = SpectacularJSONAPIView.as_view(**PUBLIC)
    docs = SpectacularSwaggerSplitView.as_view(url_name=f"{namespace}-openapi", **PUBLIC)
    return [
        path("openapi.json", schema, name=f"{namespace}-openapi"),
        path("docs", csp(policy.API_READER)(docs), name=f"{namespace}-docs"),
    ]


urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", include(before_sessions)),
    path("api/v1/", include("sessions_app.api.urls")),
    path("api/v1/", include("runs_app.api.urls")),
    path("v1/", include("sessions_app.openai.urls")),
    path("api/v1/", include(_around_the_api("v1"))),
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/language/", set_language, name="set_language"),
    path("admin/", admin.site.urls),
    *_around_the_api("root"),
]

handler400 = "config.problems.handler400"
handler403 = "config.problems.handler403"
handler404 = "config.problems.handler404"
handler500 = "config.problems.handler500"
