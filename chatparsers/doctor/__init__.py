"""The doctor: what is wrong with a model's template, tokenizer, format and grammar, each finding with a witness."""
