"""The playground: a page on which the package runs in a browser, with Pyodide, and shows all that it reads.

`reading` answers what the page asks, in any Python. `examples` are the prepared requests. `build` makes the static
folder: the page, Pyodide's files, and the package as one archive. Nothing on the page asks another host.
"""

from __future__ import annotations
