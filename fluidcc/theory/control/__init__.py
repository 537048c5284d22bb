"""Control theory of fluid scenarios: where they settle."""
