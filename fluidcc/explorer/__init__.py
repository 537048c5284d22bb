"""The explorer: a setting that is moved by hand, and what its models say of it, in a browser or a notebook."""
