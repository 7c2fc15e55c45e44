"""`./dev reproduce`: the figures and tables of five papers beside hocket's own."""
