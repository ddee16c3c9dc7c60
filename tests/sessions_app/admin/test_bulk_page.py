"""The page of a decision about many sessions: what it tells, and who may do what there."""

import pytest

from sessions_app.models import BulkMove, Session, SessionEvent
from sessions_app.services import Actor, SessionManager, bulk
from sessions_app.states import SessionStatus
from tests.admin import Page, make_person, read
from tests.factories import make_session
from tests.sessions_app.admin.test_permissions import permission

LIST = "/admin/sessions_app/session/"


def statuses():
    return sorted(Session.objects.values_list("status", flat=True))


def event_page(**narrowed):
    event = SessionEvent.objects.get(to_status="CLOSED", **narrowed)
    return f"/admin/sessions_app/sessionevent/{event.pk}/change/"


class TestTheProgress:
    @pytest.fixture
    def move(self, agent):
        ids = [make_session(account=agent).pk for _ in range(3)]
        actor, to = Actor.operator(make_person("operators")), SessionStatus.CLOSED
        move = bulk.draft(actor=actor, to=to, session_ids=ids)
        bulk.confirm(move, reason="<b>spring</b>")
        return move

    def address(self, move):
        return f"/admin/sessions/bulk/{move.pk}/"

    def test_is_not_driven_by_looking(self, operator, move):
        page = read(operator, self.address(move))
        assert "0 of 3 done" in page.words()
        assert "<b>spring</b>" in page.words()
        assert statuses() == ["ACTIVE"] * 3

    def test_goes_on_with_each_step(self, operator, move):
        response = operator.post(self.address(move), HTTP_HX_REQUEST="true")
        page = Page(response.content.decode())
        assert "3 of 3 done" in page.words()
        assert not page.of("html")
        assert statuses() == ["CLOSED"] * 3

    def test_can_be_stopped(self, operator, move):
        response = operator.post(self.address(move), {"stop": "1"}, follow=True)
        assert "Stopped: 3 were left as they are." in Page(response.content.decode()).words()
        assert statuses() == ["ACTIVE"] * 3

    def test_names_what_failed(self, operator, move):
        first = move.targets.order_by("id")[0]
        move.targets.filter(pk=first.pk).update(outcome="REFUSED", why="database_busy")
        bulk.step(move, seconds=9)
        words = read(operator, self.address(move)).words()
        assert "2 sessions were closed." in words
        assert f"the database is busy; try again ({first.session_id})." in words

    def test_is_told_on_the_list_while_it_goes_on(self, operator, move):
        assert self.address(move) in read(operator, LIST).links()
        bulk.step(move, seconds=9)
        assert self.address(move) not in read(operator, LIST).links()

    @pytest.mark.parametrize(
        ("count", "said"),
        [(1, "is bringing 1 session to “Closed”."), (12_345, "is bringing 12,345 sessions to")],
    )
    def test_is_told_on_the_list_in_words_that_are_right(self, operator, move, count, said):
        BulkMove.objects.update(total=count)
        assert f"a-operators {said}" in read(operator, LIST).words()

    def test_of_a_draft_is_told_nowhere(self, operator, move):
        BulkMove.objects.update(confirmed_at=None)
        assert self.address(move) not in read(operator, LIST).links()
        assert self.address(move) not in read(operator, "/admin/sessions/bulk/").links()
        assert operator.get(self.address(move)).status_code == 404

    def test_is_found_when_it_is_over(self, operator, move):
        bulk.step(move, seconds=9)
        assert "/admin/sessions/bulk/" in read(operator, LIST).links()
        page = read(operator, "/admin/sessions/bulk/")
        assert self.address(move) in page.links()
        assert "3 a-operators <b>spring</b>" in page.words()

    def test_is_led_to_by_the_events_that_it_made(self, operator, move):
        by_itself = make_session(account=make_person("operators"))
        actor = Actor.operator(make_person("operators"))
        SessionManager(actor).close(session_id=by_itself.pk, reason="<b>spring</b>")
        bulk.step(move, seconds=9)
        moved = move.targets.first().session_id
        led = {
            pk: self.address(move) in read(operator, event_page(session=pk)).links()
            for pk in (moved, by_itself.pk)
        }
        assert led == {moved: True, by_itself.pk: False}

    def test_says_who_stopped_it(self, operator, entered, move):
        entered("superuser").post(self.address(move), {"stop": "1"})
        assert "Stopped by a-superuser" in read(operator, self.address(move)).words()

    def test_says_that_the_right_was_withdrawn(self, operator, entered, move):
        make_person("operators").groups.clear()
        bulk.step(move, seconds=9)
        words = read(entered("support"), self.address(move)).words()
        assert "Stopped: the right of a-operators to do this was withdrawn." in words
        assert statuses() == ["ACTIVE"] * 3

    def test_is_driven_by_nobody_else(self, entered, move):
        other = entered("superuser")
        page = read(other, self.address(move))
        assert not [form for form in page.of("form") if "hx-post" in form]
        assert "a-operators has decided this." in page.words()
        assert "while the page is open" not in page.words()
        # It follows what goes on without doing anything.
        assert [tag["hx-get"] for tag in page.of("p") if "hx-get" in tag] == [self.address(move)]
        assert other.post(self.address(move)).status_code == 403
        assert statuses() == ["ACTIVE"] * 3

    def test_is_swapped_below_what_reads_it_aloud(self, operator, move):
        whole = read(operator, self.address(move))
        region = next(tag for tag in whole.of("div") if tag.get("id") == "bulk")
        assert region["aria-live"] == "polite"
        part = Page(operator.post(self.address(move), HTTP_HX_REQUEST="true").content.decode())
        assert not [tag for tag in part.of("div") if "aria-live" in tag]

    def test_is_seen_by_support_and_driven_by_those_who_may(self, entered, move):
        support = entered("support")
        assert read(support, self.address(move)).of("progress")
        assert support.post(self.address(move)).status_code == 403
        assert entered("staff").get(self.address(move)).status_code == 403
        make_person("support").user_permissions.add(permission("resume_session"))
        assert entered("support").post(self.address(move)).status_code == 403
        assert statuses() == ["ACTIVE"] * 3

    @pytest.mark.parametrize("bulk_id", ["bulk_unknown", "%00", "'"])
    def test_that_is_unknown_is_told_so(self, operator, bulk_id):
        assert operator.get(f"/admin/sessions/bulk/{bulk_id}/").status_code == 404
