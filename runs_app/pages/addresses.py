"""Where a run's page leads to."""

from django.urls import reverse

from sessions_app.admin.base import address


def call_url(call_id: str) -> str:
    return address("sessions_app_toolcall_change", call_id)


def run_url(run_id: str) -> str:
    """Of the page that stands in the form's place (`RunPage`)."""
    return address("runs_app_run_change", run_id)


def records_url(model: str, run_id: str) -> str:
    """The list of all records of this kind that belong to the run."""
    return f"{reverse(f'admin:sessions_app_{model}_changelist')}?run={run_id}"
