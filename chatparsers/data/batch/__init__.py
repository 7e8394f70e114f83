"""Files of rows through a callable, into parts: on the processes of one machine, or on Ray."""
