"""`./dev reproduce`: the figures and tables of CALCioM, CLARISSE and CLARISSE+FlexMPI beside hocket's own."""
