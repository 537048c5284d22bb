"""Unknown parameters from a measured queue or rate, with intervals and with what cannot be told apart."""
