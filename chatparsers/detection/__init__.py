"""The format of a model, found from its template, from its name, or by analysis."""
