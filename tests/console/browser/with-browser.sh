#!/bin/sh
# Runs the console's tests in a browser, or takes pictures: PYTHON [FOLDER].
set -eu
python=$1 pictures=${2:-}

missing() {
  for program in chromium chromedriver; do
    command -v $program >/dev/null || printf ' %s' $program
  done
}
if [ -n "$(missing)" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver; } >/dev/null 2>&1 || true
fi
if [ -n "$(missing)" ]; then
  echo "the console is not looked at in a browser: no$(missing) (apt-get install chromium chromium-driver)" >&2
  exit 0
fi
if [ -n "$pictures" ]; then
  exec "$python" -m tests.console.browser.pictures "$pictures"
fi
exec "$python" -m pytest -q tests/console
