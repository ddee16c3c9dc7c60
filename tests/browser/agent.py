"""An agent at work while somebody looks on: it knows the REST API only."""

from typing import Any

from tests.browser.site import Site


def begin(site: Site) -> tuple[str, str]:
    """A session, and a run in it that goes on."""
    session = site.call("sessions", title="Followed")["session_id"]
    run = site.call(f"sessions/{session}/runs", agent_id="follower", input="Go")
    return session, run["run_id"]


def say(site: Site, session: str, run: str, content: Any, **more: Any) -> None:
    message = {"role": "assistant", "content": content} | more
    site.call(f"sessions/{session}/messages", messages=[message], run_id=run)


class Agent:
    """At work in a session of its own, in a run that goes on."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.session, self.run = begin(site)

    def say(self, content: Any, **more: Any) -> None:
        say(self.site, self.session, self.run, content, **more)

    def complete(self) -> None:
        self.site.call(f"runs/{self.run}/complete", output="Done")
