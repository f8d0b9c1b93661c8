"""The web console: a page that asks the service what every client may ask it."""
