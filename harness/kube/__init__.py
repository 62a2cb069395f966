"""The one client of an API server: configuration, raw JSON requests, watches, discovery."""
