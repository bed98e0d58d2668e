"""The HTTP surface: a gunicorn worker that reads requests safely, and the Falcon app behind it."""
