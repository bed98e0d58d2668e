"""Sockets, request heads, bodies and threads: everything up to a WSGI call and its answer."""
