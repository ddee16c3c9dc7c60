"""The door for clients of OpenAI's Conversations API: each request is one call of a manager, and
each answer what that API would say. Contract: ``docs/OPENAI.md``."""
