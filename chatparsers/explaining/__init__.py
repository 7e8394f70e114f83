"""Why a text is no call: the likeliest causes, and what to do. And the calls that other formats find in it."""
