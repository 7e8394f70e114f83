"""Finds the formats of templates that have no format module, by rendering the template and comparing.

`analyse` lets a template render messages whose texts occur nowhere else (probes.py). It finds the markup between these
texts (differences.py, reasoning.py, calls.py), records it (found.py), and makes a format of it from the builder's
primitives (generate.py). It accepts the format only if the format reads back every text that the template wrote
(proof.py). It knows no marker of any model. It takes only one thing for granted: the syntax of JSON.
"""

from .analyse import Found, analyse
from .found import Analysis

__all__ = ["Analysis", "Found", "analyse"]
