"""What every endpoint shares: strict reading, one transaction for a write, idempotency, ETags.

A view declares what it takes and calls one service::

    class RunsView(DomainView):
        parameters = {"GET": [Choices(name="status", choices=RunStatus.values)]}
        bodies = {"POST": NewRunIn}  # a StrictSerializer; a body that is not declared is refused
        paginated = True  # GET also takes limit and cursor

        @extend_schema(responses=RunOut(many=True))
        def get(self, request, session_id):
            runs = RunManager(self.actor).list_of(session_id=session_id)
            return self.page(runs.order_by("-run_id"), represent)

        @extend_schema(responses={201: RunOut})
        def post(self, request, session_id):
            new = NewRun(**self.valid)
            run = RunManager(self.actor).create(session_id=session_id, new=new)
            return self.respond(represent(run), status=201)

Before the handler of a method is called: ``self.params`` holds every declared query parameter
(absent: its default) and ``self.valid`` the validated body; ``self.http`` is Django's request.
POST, PUT, PATCH and DELETE run inside `write_transaction` and behind ``Idempotency-Key``; their
record belongs to the session named ``session_id`` in the path, or to that of
``self.keep_session(session_id)``, which views without it in the path must call.

An answer that is too large to keep, or must be current when it is repeated, is made again: the
handler sets ``self.keep = {"first": 3, "last": 5}`` (small, JSON), and the view defines
``rebuild(self, request, kept, **kwargs) -> Response``.

Versions: list in ``etags`` the methods that send or check them. A write passes
``if_match=self.if_match`` to its service. A read of something versioned::

        if self.holds(session.version, settled=...):
            return self.not_modified(session.version)
        return self.respond(represent_session(session), version=session.version)
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.utils.functional import cached_property
from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from sessions_app.actors import Actor
from sessions_app.api.etags import etag, if_match, none_match
from sessions_app.api.query import MAX_TEXT, Parameter, Text, cleaned_text, read_query
from sessions_app.api.response import Response, dumps
from sessions_app.errors import InvalidRequest
from sessions_app.jsontext import JSONText
from sessions_app.prepared import Listing, Reading
from sessions_app.services.content_reads import record_read_of_others
from sessions_app.services.idempotency import Answer, Write, once
from sessions_app.services.locking import write_transaction

if TYPE_CHECKING:
    from rest_framework.pagination import BasePagination

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})

# The paginator reads these itself; here they are only known names.
_PAGING = (Text(name="limit"), Text(name="cursor", max_length=1 << 20))

_NO_QUERY = QueryDict()

Handler = Callable[..., Response]


class DomainView(APIView):
    """Base of every endpoint; see the module's description."""

    # Without OPTIONS: there is no metadata to answer with.
    http_method_names = ["get", "post", "put", "patch", "delete", "head"]

    parameters: ClassVar[Mapping[str, Sequence[Parameter]]] = {}
    bodies: ClassVar[Mapping[str, type[BaseSerializer]]] = {}
    etags: ClassVar[frozenset[str]] = frozenset()
    paginated: ClassVar[bool] = False
    # The media type of the file that its POST takes in place of JSON; see `prepare`.
    takes_file: ClassVar[str | None] = None
    # Its DELETE ends the session itself, and is the one answer that outlives it.
    deletes_session: ClassVar[bool] = False

    # Django's request: DRF's, in ``request``, raises and catches an exception before it hands on
    # what it does not have itself.
    http: HttpRequest
    params: dict[str, Any]
    valid: dict[str, Any]
    keep: Any = None
    _session_id: str | None = None
    _was_conditional = False

    # --- For handlers ---

    @property
    def account(self) -> User:
        """The account; MayUseAPI lets no anonymous request come this far."""
        return cast(User, self.request.user)

    @cached_property
    def actor(self) -> Actor:
        return Actor.account(self.account)

    @property
    def query(self) -> QueryDict:
        """The query parameters; most requests have none."""
        return self.http.GET if self.http.META.get("QUERY_STRING") else _NO_QUERY

    @property
    def if_match(self) -> int | None:
        """The version that this write expects, from ``If-Match``; None where any will do."""
        self._was_conditional = True
        return if_match(self.http.META.get("HTTP_IF_MATCH"))

    def keep_session(self, session_id: str) -> None:
        """Say whose deletion empties the idempotency record of this write."""
        self._session_id = session_id
        self.http.agent_session_id = session_id  # type: ignore[attr-defined]  # for logs

    def respond(
        self,
        data: Any,
        *,
        status: int = 200,
        version: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        tags = {} if version is None else {"ETag": etag(version)}
        return Response(data, status=status, headers={**tags, **(headers or {})})

    def holds(self, version: int, *, settled: bool = True) -> bool:
        """Whether ``If-None-Match`` names this version.

        ``settled`` is False while the effective status differs from the stored one: then the
        version alone does not say what the reader would see.
        """
        return settled and none_match(self.http.META.get("HTTP_IF_NONE_MATCH"), version)

    def not_modified(self, version: int) -> Response:
        return Response(status=304, headers={"ETag": etag(version)})

    def page(
        self, listed: QuerySet[Any] | Listing | Reading, represent: Callable[[Any], Any]
    ) -> Response:
        """One page of an ordered queryset or of a listing (see `config.pagination`)."""
        return self.page_of_all(listed, lambda rows: [represent(row) for row in rows])

    def page_of_all(
        self, listed: QuerySet[Any] | Listing | Reading, represent: Callable[[list[Any]], list[Any]]
    ) -> Response:
        """The same, of which all rows are represented at once."""
        paginator = self._paginator()
        rows = paginator.paginate_queryset(listed, self.request, view=self)
        page: Response = paginator.get_paginated_response(represent(rows))
        return page

    def rebuild(self, request: Request, kept: Any, *args: Any, **kwargs: Any) -> Response:
        """The answer again, from what ``self.keep`` was."""
        raise NotImplementedError

    # --- For views that read their body in another way ---

    def prepare(self, request: Request) -> None:
        """Read and validate the body, before any lock is taken."""
        serializer = self.bodies.get(self.http.method or "")
        if serializer is None:
            if request.data != {}:
                raise InvalidRequest.at("", "this request takes no body")
            return
        self.valid = _validator(serializer).run_validation(request.data)

    def answer_at_once(self, request: Request, write: Write | None) -> Response | None:
        """Do a write that needs no decision, with its record, outside of any transaction; None:
        nothing was done, and the handler is called."""
        return None

    def reads_nothing(self) -> bool:
        """Whether the write that was asked for only stores what is new (`write_transaction`)."""
        return False

    def canonical_body(self, request: Request) -> Any:
        """What tells two requests with one idempotency key apart, beside the query."""
        return request.data

    # --- The way of a request ---

    @property
    def pagination_class(self) -> "type[BasePagination] | None":
        default = cast("type[BasePagination]", api_settings.DEFAULT_PAGINATION_CLASS)
        return default if self.paginated else None

    def _paginator(self) -> Any:
        if self.pagination_class is None:
            raise NotImplementedError("paginated = True, or DEFAULT_PAGINATION_CLASS, is missing")
        return self.pagination_class()

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """APIView's, with the handler called by `_answer`."""
        # A path may hold a NUL, too, which PostgreSQL does not even compare (report DATA-01).
        self.args, self.kwargs = args, {name: _cleaned(value) for name, value in kwargs.items()}
        self.http = request
        self.request = request = self.initialize_request(request, *args, **kwargs)
        self.headers = {}
        response: Any
        try:
            self.initial(request, *args, **kwargs)
            response = self._answer(request)
        except Exception as error:  # noqa: BLE001 (handle_exception raises what it does not know)
            response = self.handle_exception(error)
        self._untie()
        return self.finalize_response(request, response, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """APIView's, without the choice of a format and a version: there is one of each."""
        self.perform_authentication(request)
        self.check_permissions(request)
        self.check_throttles(request)

    def _untie(self) -> None:
        """Untie view and request from each other: bodies of many megabytes would wait for the
        garbage collector."""
        self.request.parser_context = {}
        self.__dict__.pop("head", None)  # bound to the view by Django, for views with a `get`

    def _answer(self, request: Request) -> Response:
        method = self.http.method or ""
        if method not in self._methods():
            self.headers = self.default_response_headers  # `Allow` (RFC 9110, section 15.5.6)
            self.http_method_not_allowed(request)
        declared = self.parameters.get("GET" if method == "HEAD" else method, ())
        paging = _PAGING if self.paginated and method not in WRITES else ()
        read = read_query(self.query, [*declared, *paging])
        self.params = {parameter.name: read[parameter.name] for parameter in declared}
        self.valid = {}
        handler: Handler = getattr(self, method.lower())
        if method not in WRITES:
            if session_id := self.kwargs.get("session_id"):
                record_read_of_others(actor=self.actor, session_id=session_id)
            return handler(request, **self.kwargs)
        self.prepare(request)
        return self._write(request, handler)

    @classmethod
    @cache
    def _methods(cls) -> frozenset[str]:
        own = {name for name in cls.http_method_names if hasattr(cls, name)}
        # Django answers HEAD by `get`.
        return frozenset(name.upper() for name in (own | {"head"} if "get" in own else own))

    def _write(self, request: Request, handler: Handler) -> Response:
        key = _idempotency_key(self.http)
        write = None if key is None else self._keyed(request, key)
        if (at_once := self.answer_at_once(request, write)) is not None:
            return at_once
        if write is None:
            with write_transaction(reads_nothing=self.reads_nothing()):
                return self._handled(request, handler)
        done: Response | None = None

        def work() -> Answer | None:
            nonlocal done  # of several attempts, the last is the one that was not taken back
            done = self._handled(request, handler)
            return self._recordable(done)

        earlier = once(write, work, reads_nothing=self.reads_nothing())
        return cast(Response, done) if earlier is None else self._replayed(request, earlier)

    def _handled(self, request: Request, handler: Handler) -> Response:
        response = handler(request, **self.kwargs)
        if "HTTP_IF_MATCH" in self.http.META and not self._was_conditional:
            # Ignored, it would be a lost update that the client believes impossible.
            raise InvalidRequest.at("/If-Match", "this request cannot be conditional")
        return response

    def _keyed(self, request: Request, key: str) -> Write:
        return Write(
            account=self.account,
            method=self.http.method or "",
            path=self.http.path,
            key=key,
            query=list(self.query.lists()),
            body=self.canonical_body(request),
            outlives_session=self.deletes_session and self.http.method == "DELETE",
        )

    def _recordable(self, response: Response) -> Answer | None:
        if not 200 <= response.status_code < 300:  # noqa: PLR2004
            return None
        session_id = self._session_id or self.kwargs.get("session_id")
        if session_id is None:
            raise NotImplementedError(f"{type(self).__name__} must call keep_session()")
        headers = {name: text for name, text in response.items() if name != "Content-Type"}
        return Answer(
            status=response.status_code,
            headers=headers,
            body=None if self.keep is not None else _text(response),
            kept=None if self.keep is None else JSONText(dumps(self.keep).decode()),
            session_id=session_id,
        )

    def _replayed(self, request: Request, answer: Answer) -> Response:
        if answer.kept is None:
            response = Response(answer.body, status=answer.status)
        else:
            response = self.rebuild(request, answer.kept.value, **self.kwargs)
            response.status_code = answer.status
        for name, text in answer.headers.items():
            response.headers.setdefault(name, text)
        response.headers["Idempotency-Replayed"] = "true"
        return response


def _text(response: Response) -> JSONText | None:
    return JSONText(response.content.decode()) if response.content else None


_validators: dict[type[BaseSerializer], BaseSerializer] = {}


def _validator(serializer: type[BaseSerializer]) -> BaseSerializer:
    """One for all requests: to make it copies each of its fields, and validating keeps no state."""
    if serializer not in _validators:
        _validators[serializer] = serializer()
    return _validators[serializer]


def _cleaned(value: Any) -> Any:
    return value.replace("\x00", "\ufffd") if isinstance(value, str) else value


def _idempotency_key(request: HttpRequest) -> str | None:
    given = request.META.get("HTTP_IDEMPOTENCY_KEY")
    if given is None:
        return None
    key = cleaned_text(given, pointer="/Idempotency-Key")
    if not 1 <= len(key) <= MAX_TEXT:
        raise InvalidRequest.at("/Idempotency-Key", f"a key has 1 to {MAX_TEXT} characters")
    return key
