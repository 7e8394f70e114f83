"""Gives a C class the name that `public` gives a class of Python."""

from cpython.object cimport PyTypeObject

_kept = []


def rename(type kind, bytes name):
    _kept.append(name)
    (<PyTypeObject*> kind).tp_name = name
