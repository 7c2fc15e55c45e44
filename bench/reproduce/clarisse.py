from reproduce.figure import Figure

FIGURES: tuple[Figure, ...] = ()
