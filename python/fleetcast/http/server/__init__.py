"""Sockets, request heads, bodies and threads: the server around a WSGI call and its answer."""
