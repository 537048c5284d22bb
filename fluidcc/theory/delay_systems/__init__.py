"""Linear systems with delays: roots, margins, critical delays; knows no scenario."""
