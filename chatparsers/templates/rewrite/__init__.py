"""Messages rewritten for a template that cannot show them."""
