"""How an answer is read: streams, what they have read, calls, messages and events."""
