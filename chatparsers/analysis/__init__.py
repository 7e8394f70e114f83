"""Formats of templates that nobody wrote a module for, found by rendering the template and comparing.

`analyse` asks a template to render messages whose texts occur nowhere else (probes.py), reads off what stands between
them (differences.py, reasoning.py, calls.py), says what it found (found.py), makes a format of it from the builder's
own primitives (generate.py), and believes none of it before the format has read back what the template wrote
(proof.py). It knows no marker of any model. The one thing that it takes for granted is what JSON looks like.
"""

from .analyse import Found, analyse
from .found import Analysis

__all__ = ["Analysis", "Found", "analyse"]
