"""The shapes that datasets have, and how a row of each becomes messages. Plain Python: nothing here knows Arrow."""
