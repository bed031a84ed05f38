#!/usr/bin/env bash
# Makes a Python environment and installs pinned packages into it, only when
# the pins or the interpreter changed since the last time.
#
#   scripts/venv.sh DIR REQUIREMENTS
set -euo pipefail

dir=$1
requirements=$2
python=${PYTHON:-python3}

stamp="$dir/.stamp"
want=$({ "$python" --version; cat "$requirements"; } | sha256sum | cut -d' ' -f1)
if [[ -x "$dir/bin/python" && -f "$stamp" && $(<"$stamp") == "$want" ]]; then
  exit 0
fi

echo "installing $requirements into $dir" >&2
rm -rf "$dir"
"$python" -m venv "$dir"
"$dir/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
echo "$want" >"$stamp"
