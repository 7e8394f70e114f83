"""A language of parsing rules, and the machine that reads text by them. It knows no chat, no tool and no JSON."""
