"""Where an operator's day begins: what needs them, and the way to it."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.site import Site

pytestmark = pytest.mark.browser


@pytest.fixture
def home(chromium: Any, site: Site) -> Iterator[Any]:
    with site.visit(chromium) as page:
        page.goto("/admin/")
        yield page


class TestAnOperator:
    def test_goes_from_a_number_to_what_it_counts(self, home: Any) -> None:
        tile = home.locator(".tile-failed")
        number = tile.locator(".tile-number").inner_text()
        tile.click()
        home.wait_for_url("**/runs_app/run/?status=FAILED&created=7d")
        assert int(number) > 0
        expect(home.locator("#changelist-form tbody tr")).to_have_count(min(50, int(number)))
        assert {*home.locator("tbody .badge").all_inner_texts()} == {"Failed"}

    def test_opens_a_run_that_went_wrong(self, home: Any) -> None:
        home.locator(".troubled a").first.click()
        home.wait_for_url("**/runs_app/run/run_*/change/")

    def test_reaches_a_day_by_keyboard(self, home: Any) -> None:
        today = home.locator("[aria-labelledby=runs-by-day] svg a").last
        today.focus()
        assert "runs" in today.get_attribute("aria-label")
        home.keyboard.press("Enter")
        home.wait_for_url("**/runs_app/run/?day=*")
        assert home.locator("#changelist-form tbody tr").count() > 0

    def test_reads_the_charts_as_a_table(self, home: Any) -> None:
        table = home.locator(".day-table table")
        expect(table).not_to_be_visible()
        home.get_by_text("The same figures as a table").click()
        expect(table.locator("tbody tr")).to_have_count(14)

    @pytest.mark.parametrize("width", [360, 768, 1024, 1440])
    def test_sees_no_page_wider_than_the_window(self, home: Any, width: int) -> None:
        home.set_viewport_size({"width": width, "height": 800})
        assert home.evaluate("document.documentElement.scrollWidth") <= width
        for tile in home.locator(".tile").all():
            box = tile.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width

    def test_sees_bars_as_high_as_their_numbers(self, home: Any) -> None:
        heights = [
            float(bar.get_attribute("height"))
            for bar in home.locator("[aria-labelledby=runs-by-day] .bar-completed").all()
        ]
        assert len(heights) >= 10
        assert all(0 < height <= 100 for height in heights)
