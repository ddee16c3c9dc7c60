"""The console's components, as template tags; docs/ADMIN.md has an example of each."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django import template
from django.contrib.admin.templatetags.admin_list import ResultList, result_headers, results
from django.db.models import TextChoices
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from ..console import values
from ..console.titles import title_for
from ..jsontext import JSONText

register = template.Library()
register.filter(title_for)
Shown = str | SafeString


@register.simple_tag
def icon(name: str, **attributes: str) -> SafeString:
    """A picture beside words, which say the same: ``{% icon "runs" %}``."""
    return format_html(
        '<svg class="icon {}" aria-hidden="true"><use href="{}#{}"></use></svg>',
        attributes.get("class", ""),
        static("console/icons.svg"),
        name,
    )


@register.simple_tag
def badge(status: TextChoices | str, label: object = None) -> SafeString:
    """A status of a session, a run or a tool call: ``{% badge run_status %}``."""
    word = label or getattr(status, "label", status)
    return values.badge(str(getattr(status, "value", status)), word)


@register.simple_tag
def moment(value: datetime | None) -> Shown:
    """A point in time, in the viewer's zone: ``{% moment run.started_at %}``."""
    return values.moment(value)


@register.simple_tag
def ago(value: datetime | None) -> Shown:
    """How long ago or ahead: ``{% ago agent_session.last_activity_at %}``."""
    return values.ago(value)


@register.simple_tag
def cell(text: str | None) -> Shown:
    """What a client wrote, on one line and cut: ``{% cell run.model %}``."""
    return values.cell(text)


@register.simple_tag
def line(text: str | None) -> Shown:
    """What a client wrote, short and whole: ``{% line agent_session.title %}``."""
    return values.line(text)


@register.simple_tag
def number(value: int | None) -> str:
    """``{% number agent_session.input_tokens %}``: 12,345."""
    return values.number(value)


@register.simple_tag
def copy(text: object) -> SafeString:
    """A button that copies: ``{% copy agent_session.pk %}``."""
    return format_html(
        '<button type="button" class="copy" data-copy="{0}" data-copied="{2}" title="{1}"'
        ' aria-label="{1}"><span class="uncopied">{3}</span><span class="copied">{4}</span>'
        "</button>",
        text,
        _("Copy"),
        _("Copied"),
        icon("copy"),
        icon("check"),
    )


@register.simple_tag
def document(value: JSONText | str | None, *, download: str) -> Shown:
    """JSON or long text, its beginning, and the whole for download:
    ``{% document run.input download=url %}``."""
    return values.document(value, download=download)


@register.simple_tag
def code(value: JSONText | str | None) -> Shown:
    """JSON or text that is known to be short: ``{% code call.arguments %}``."""
    text = values.readable(value)
    if text is None:
        return values.NOTHING
    return format_html('<pre class="code" tabindex="0">{}</pre>', values.visible(text))


# --- lists of the admin ---


@register.inclusion_tag("console/list_rows.html")
def list_rows(cl: Any) -> dict[str, Any]:
    """The rows of a change list; each cell knows its heading, for where there is no head."""
    headers = list(result_headers(cl))
    labels = [capfirst(str(header["text"])) for header in headers]
    return {
        "label": capfirst(cl.opts.verbose_name_plural),
        "headers": headers,
        "rows": [list(_labelled(row, labels)) for row in results(cl)],
    }


def _labelled(row: ResultList, labels: list[str]) -> Iterator[SafeString]:
    for shown, label in zip(row, labels, strict=True):
        html, is_value = str(shown), "<" not in label
        yield (
            SafeString(html.replace("<td", format_html('<td data-label="{}"', label), 1))
            if is_value and html.startswith("<td")
            else SafeString(html)
        )


@register.inclusion_tag("console/list_filter.html")
def list_filter(cl: Any, spec: Any) -> dict[str, Any]:
    """One filter of a change list: a few choices, a range, or a value that is typed."""
    choices = list(spec.choices(cl))
    typed = choices[0] if getattr(spec, "is_typed", False) else None
    chosen = [choice["display"] for choice in choices[1:] if choice["selected"]]
    typed_range = spec.typed_range(cl) if hasattr(spec, "typed_range") else None
    if typed_range and typed_range["chosen"]:
        chosen = [typed_range["chosen"]]
    return {
        "range": typed_range,
        "title": capfirst(str(spec.title)),
        "parameter": getattr(spec, "parameter_name", ""),
        "choices": choices,
        "typed": typed,
        "chosen": typed["value"] if typed else next(iter(chosen), ""),
    }
