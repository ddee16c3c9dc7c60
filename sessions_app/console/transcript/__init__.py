"""A conversation as people read it: messages taken apart into what a page can show."""

from .cards import CallCard
from .entries import Entry, entries_of
from .parts import Block, blocks_of, whole_text

__all__ = ["Block", "CallCard", "Entry", "blocks_of", "entries_of", "whole_text"]
