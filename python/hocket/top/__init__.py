"""The live view: a pure model fed with events, a renderer that gives text for a width, and a terminal around both."""
