"""Child processes of one command: started, watched and ended together."""

import ctypes
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from types import FrameType
from typing import NoReturn

logger = logging.getLogger("dossier.serve")

Work = Callable[[], None]

_PR_SET_PDEATHSIG = 1
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_GRACE_SECONDS = 15
_RESTART_PAUSE_SECONDS = 2


class StopAsked(Exception):
    """Somebody wants the whole family to end."""


class Family:
    """A server, which everything stands and falls with, and a chore, which is started again.

    The children are forked: the application is loaded once, and they begin at once.
    """

    def __init__(self, *, server: Work, chore: Work) -> None:
        self._server_work = server
        self._chore_work = chore
        self._children: list[ForkProcess] = []

    def run(self) -> int:
        """Stay until asked to stop (0) or until the server ended by itself (never 0)."""
        for stop_signal in _STOP_SIGNALS:
            signal.signal(stop_signal, _raise_stop)
        try:
            return self._watch()
        except StopAsked:
            return 0
        finally:
            self._end_all()

    def _watch(self) -> int:
        server = self._start(self._server_work)
        chore = self._start(self._chore_work)
        while server.is_alive():
            wait([server.sentinel, chore.sentinel])
            if server.is_alive() and not chore.is_alive():
                logger.error("The sweep ended with %s; starting it again", chore.exitcode)
                time.sleep(_RESTART_PAUSE_SECONDS)
                self._children.remove(chore)
                chore = self._start(self._chore_work)
        logger.error("The server ended with %s", server.exitcode)
        return server.exitcode or 1

    def _start(self, work: Work) -> ForkProcess:
        child = multiprocessing.get_context("fork").Process(
            target=_be_child, args=(work, os.getpid())
        )
        child.start()
        self._children.append(child)
        return child

    def _end_all(self) -> None:
        for stop_signal in _STOP_SIGNALS:
            # A second Ctrl-C must not leave children behind.
            signal.signal(stop_signal, signal.SIG_IGN)
        for child in self._children:
            child.terminate()
        deadline = time.monotonic() + _GRACE_SECONDS
        for child in self._children:
            child.join(max(0, deadline - time.monotonic()))
            if child.is_alive():
                child.kill()
                child.join()


def end_with_parent(parent: int) -> None:
    """Have the kernel ask this process to stop when its parent is gone, even by SIGKILL.

    Only Linux has this; elsewhere a killed parent leaves its children to whoever killed it.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        # It went before the request was made.
        os.kill(os.getpid(), signal.SIGTERM)


def _be_child(work: Work, parent: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Ctrl-C reaches every process of a terminal, and the server would take its workers' end for a
    # crash: only the parent listens, and passes it on. Blocked, since the server sets own handlers.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    end_with_parent(parent)
    work()


def _raise_stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise StopAsked
