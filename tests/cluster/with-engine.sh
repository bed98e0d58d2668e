#!/bin/sh
# Runs a command with DATABASE and OBJECTS of servers that are started for it and ended with it.
#   with-engine.sh COMMAND...
# Binaries and ports: see start-engine.sh beside it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
base=${TMPDIR:-/tmp}
# As root, the servers run as nobody, who has to reach their files.
[ "$(id -u)" != 0 ] || setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$base" || base=/tmp
work=$(mktemp -d "$base/fleetcast-cluster.XXXXXX")
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
