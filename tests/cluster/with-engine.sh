#!/bin/sh
# Runs a command with DATABASE and OBJECTS of servers that are started for it and ended with it.
#   with-engine.sh COMMAND...
# Binaries and ports: see start-engine.sh beside it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/fleetcast-cluster.XXXXXX")
trap '"$here/start-engine.sh" "$work" end; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
found=$("$here/start-engine.sh" "$work" start 3)
DATABASE=${found##*DATABASE=}
found=$("$here/start-engine.sh" "$work" s3)
OBJECTS=${found##*OBJECTS=}
export DATABASE OBJECTS ENGINE_WORK="$work"
"$@"
