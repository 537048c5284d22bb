"""What the documentation shows of results: `results` makes them, with stamps; the others write pages of them."""
