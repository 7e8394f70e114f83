"""What the core knows of JSON Schema: documents and their references, tools and the types of their arguments."""
