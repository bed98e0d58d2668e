"""The console: pages for people who run the service, on the private listener, reading only.

`app` takes a request, `sessions` says whose it is, `pages` has the files of the browser's side in
`static/`, `views/` a file for what each view shows, and `tenant_reads` keeps a store that hangs
from holding up the others.
"""
