"""How the values of a page are laid out in bytes."""
