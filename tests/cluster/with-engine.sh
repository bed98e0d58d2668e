#!/bin/sh
# Runs a command with DATABASE and OBJECTS of servers that are started for it and ended with it.
#   with-engine.sh COMMAND...
# Binaries and ports: see start-engine.sh beside it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/fleetcast-cluster.XXXXXX")
trap '"$here/start-engine.sh" "$work" end; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
# Without the programs (exit 3, which says so) the tests are skipped.
if found=$("$here/start-engine.sh" "$work" start 3); then
  DATABASE=${found##*DATABASE=} ENGINE_WORK=$work
  export DATABASE ENGINE_WORK
else
  [ $? = 3 ]
fi
if found=$("$here/start-engine.sh" "$work" s3); then
  OBJECTS=${found##*OBJECTS=}
  export OBJECTS
else
  [ $? = 3 ]
fi
"$@"
