"""The home page: its figures, where they lead, and who sees them."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs_app.management.demo import seed
from runs_app.pages import charts
from sessions_app.models import Session
from tests.admin import make_person, read
from tests.factories import make_session

HOME = "/admin/"
HOSTILE = "<script>alert(1)</script>\u202e" + "x" * 300


@pytest.fixture(scope="class")
def demo(class_db):
    now = timezone.now()
    list(seed(sessions=120, seed=5, now=now))
    return now


def figures(client):
    """By address, the number that the page shows beside it."""
    html = client.get(HOME).content.decode()
    tiles = re.findall(
        r'<a class="tile [^"]*" href="([^"]*)">\s*<span class="tile-number">([^<]*)', html
    )
    statuses = re.findall(
        r'<li><a href="([^"]*)"><span class="badge[^>]*>[^<]*</span><span class="number">([^<]*)',
        html,
    )
    return {url.replace("&amp;", "&"): int(number) for url, number in tiles + statuses}


class TestHome:
    def test_counts_what_the_lists_show_that_it_leads_to(self, entered, demo):
        client = entered("support")
        found = figures(client)
        assert len(found) == 10
        assert sum(found.values()) > 120
        for url, number in found.items():
            listed = client.get(url)
            assert listed.status_code == 200
            assert listed.context["cl"].result_count == number, url

    def test_leads_from_each_day_to_its_runs(self, entered, demo):
        client = entered("support")
        page = client.get(HOME)
        for row in page.context["days"]:
            assert client.get(row.url).context["cl"].result_count == row.figures.total
            for number, url in row.outcomes[:3]:
                assert client.get(url).context["cl"].result_count == number

    def test_shows_figures_to_those_who_may_see_sessions_and_runs(self, entered, demo):
        for role in ("support", "operators", "superuser"):
            assert "Needs attention" in read(entered(role), HOME).words()
        for role in ("administrators", "staff"):
            page = read(entered(role), HOME)
            assert "Needs attention" not in page.words()
            assert "Runs per day" not in page.words()

    @pytest.mark.parametrize("missing", ["view_run", "view_session"])
    def test_needs_both_rights(self, entered, demo, missing):
        group = make_person("support").groups.get()
        group.permissions.remove(*Permission.objects.filter(codename=missing))
        assert "Needs attention" not in read(entered("support"), HOME).words()

    def test_shows_titles_as_text(self, entered, demo):
        Session.objects.update(title=HOSTILE)
        page = read(entered("support"), HOME)
        assert page.scripts.strip() == ""
        assert "<script>alert(1)</script>⟨U+202E⟩" in page.words()

    def test_names_its_figures_in_words(self, entered, demo):
        page = read(entered("support"), HOME)
        days = [link for link in page.of("a") if "day=" in link.get("href", "")]
        drawn = [link for link in days if link.get("aria-label")]
        assert len(drawn) == 3 * 14
        assert all(re.search(r"\d", link["aria-label"]) for link in drawn)
        query = parse_qs(urlsplit(drawn[-1]["href"]).query)
        assert query["day"] == [f"{demo:%Y-%m-%d}"]


class TestAnEmptyHome:
    def test_says_that_there_is_nothing(self, entered):
        page = read(entered("support"), HOME)
        assert "None in the last 7 days." in page.words()

    def test_asks_as_often_for_many_sessions_as_for_few(self, entered, agent):
        client = entered("support")
        make_session(account=agent)
        counts = []
        for sessions in (5, 100):
            list(seed(sessions=sessions, seed=sessions, now=timezone.now()))
            client.get(HOME)
            with CaptureQueriesContext(
                connection,
            ) as queries:
                client.get(HOME)
            counts.append(len(queries))
        assert counts[0] == counts[1] < 16


class TestTheFiltersItLeadsTo:
    @pytest.mark.parametrize("value", ["x", "2026-13-01", "9999-12-31", "0001-01-01", "\x00"])
    def test_take_no_day_that_is_none(self, entered, demo, value):
        page = entered("support").get("/admin/runs_app/run/", {"day": value})
        assert page.status_code == 200
        assert page.context["cl"].result_count == 0

    def test_leave_unknown_values_alone(self, entered, demo):
        page = entered("support").get("/admin/sessions_app/session/", {"expires": "never"})
        assert page.status_code in (200, 302)


class TestCharts:
    @pytest.mark.parametrize(
        ("most", "top"), [(0, 1), (1, 1), (3, 5), (21, 25), (100, 100), (101, 200), (2600, 5000)]
    )
    def test_end_at_a_round_number(self, most, top):
        assert charts.nice(most) == top

    @pytest.mark.parametrize(
        ("most", "top"), [(0, 1), (3, 4), (61, 120), (4_700, 7_200), (90_000, 172_800)]
    )
    def test_end_at_a_round_time(self, most, top):
        assert charts.nice_time(most) == top

    def test_stack_to_the_bottom(self):
        parts = charts.stack([("a", 5), ("none", 0), ("b", 5)], 10)
        assert [(part.kind, part.y, part.height) for part in parts] == [
            ("a", 50, 50),
            ("b", 0, 50),
        ]

    def test_show_what_is_almost_nothing(self):
        assert charts.stack([("a", 1)], 10_000)[0].height == 1

    def test_draw_no_line_over_days_without_a_value(self):
        assert charts.line([1, None, 1, 1], 1) == "M10 0.00h0.01M50 0.00h0.01L70 0.00"

    @pytest.mark.parametrize(
        ("value", "said"), [(0, "0"), (950, "950"), (1_500, "1.5k"), (2_000_000, "2M")]
    )
    def test_say_numbers_shortly(self, value, said):
        assert charts.compact(value) == said
