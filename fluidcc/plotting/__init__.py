"""Pictures of results; one style, no computing."""
