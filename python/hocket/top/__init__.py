"""The live view: a pure model that receives events, a renderer to text of a given width, and the terminal app."""
