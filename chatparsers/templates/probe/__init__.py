"""What a template can show, found by rendering it."""
