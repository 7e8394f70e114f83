"""A model's template, format and tokenizer together: requests, conversations, prompts read back."""
