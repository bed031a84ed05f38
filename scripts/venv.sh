#!/usr/bin/env bash
# Makes a Python environment and installs pinned packages into it, only when
# the pins or the interpreter changed since the last time.
#
#   scripts/venv.sh DIR REQUIREMENTS [REQUIREMENTS_WITHOUT_DEPENDENCIES]
#
# The second file is for packages whose own pins no index can satisfy; what they
# depend on is in the first.
set -euo pipefail

dir=$1
requirements=$2
alone=${3:-}
python=${PYTHON:-python3}

stamp="$dir/.stamp"
want=$({ "$python" --version; cat "$requirements" ${alone:+"$alone"}; } | sha256sum | cut -d' ' -f1)
if [[ -x "$dir/bin/python" && -f "$stamp" && $(<"$stamp") == "$want" ]]; then
  exit 0
fi

echo "installing $requirements into $dir" >&2
rm -rf "$dir"
"$python" -m venv "$dir"
"$dir/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
if [[ -n $alone ]]; then
  "$dir/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --requirement "$alone"
fi
echo "$want" >"$stamp"
