"""What pages are put together from."""

from datetime import timedelta

import pytest
from django.template import Context, Template
from django.utils import timezone, translation

from runs_app.states import RunStatus
from sessions_app.console import values
from sessions_app.jsontext import JSONText
from sessions_app.states import SessionStatus, ToolCallStatus

NOW = timezone.now()
HOSTILE = "<script>evil()</script>\u202e"


def rendered(source, **context):
    return Template("{% load console %}" + source).render(Context(context))


@pytest.mark.parametrize("status", [*SessionStatus, *RunStatus, *ToolCallStatus])
def test_a_status_has_a_word_and_a_colour(status):
    html = rendered("{% badge status %}", status=status)
    assert html == f'<span class="badge badge-{status.value.lower()}">{status.label}</span>'


@pytest.mark.parametrize(
    ("distance", "text", "chinese"),
    [
        (timedelta(seconds=-30), "now", "现在"),
        (timedelta(minutes=-3), "3 minutes ago", "3 分钟前"),
        (timedelta(hours=-1, minutes=-59), "1 hour ago", "1 小时前"),
        (timedelta(days=-2), "2 days ago", "2 天前"),
        (timedelta(minutes=5, seconds=5), "in 5 minutes", "5 分钟后"),
        (timedelta(days=3, seconds=5), "in 3 days", "3 天后"),
    ],
)
def test_a_time_says_how_far_it_is(distance, text, chinese):
    at = timezone.now() + distance
    assert f">{text}</time>" in rendered("{% ago at %}", at=at)
    with translation.override("zh-hans"):
        assert f">{chinese}</time>" in rendered("{% ago at %}", at=at)


def test_a_time_long_ago_is_a_date():
    at = NOW - timedelta(days=400)
    assert f">{at:%Y-%m-%d}</time>" in rendered("{% ago at %}", at=at)


def test_a_time_is_exact_in_utc_for_those_without_scripts():
    html = rendered("{% moment at %}", at=NOW)
    assert f'title="{NOW:%Y-%m-%d %H:%M:%S} UTC"' in html
    assert rendered("{% moment at %}{% ago at %}", at=None) == 2 * values.NOTHING


@pytest.mark.parametrize(
    "source",
    [
        "{% line it %}",
        "{% cell it %}",
        "{% code it %}",
        "{% copy it %}",
        "{% badge 'REMOVED' it %}",
        '{% document it download="/x" %}',
    ],
)
def test_hostile_text_stays_text(source):
    html = rendered(source, it=HOSTILE)
    assert "<script" not in html
    assert "evil()" in html


def test_json_is_indented():
    html = rendered("{% code it %}", it=JSONText.of({"a": [1]}))
    assert "&quot;a&quot;: [\n    1\n  ]" in html


@pytest.mark.parametrize(
    ("context", "links"),
    [({}, 0), ({"newer_url": "?a=1"}, 1), ({"newer_url": "?a=1", "older_url": "?b=1"}, 2)],
)
def test_paging_leads_where_there_is_something(context, links):
    html = rendered('{% include "console/paging.html" %}', **context)
    assert html.count("href=") == links
    assert html.count('aria-disabled="true"') == 2 - links
