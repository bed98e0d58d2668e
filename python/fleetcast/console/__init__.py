"""The console: pages for people who run the service, on the private listener, read-only.

`app` takes a request, and `sessions` finds its session. `pages` serves the browser's files in
`static/`. `views/` has a file for each view. `tenant_reads` keeps a store that hangs from delaying
the others.
"""
