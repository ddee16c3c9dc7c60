"""How runs are shown to people: in lists and on their page."""
