"""Messages as items, which is what OpenAI's Conversations API makes a conversation of.

`incoming` makes drafts of items, `outgoing` items of stored messages, whoever stored them; `ids`
says how an item is called. Pure functions, which read nothing else. Contract:
``docs/OPENAI.md``.
"""
