#!/bin/sh
# Builds a Python wheel around a tracelake binary and prints its path.
#   scripts/wheel.sh BINARY VERSION DIRECTORY [PYTHON]
set -eu
binary=$(realpath "$1")
mkdir -p "$3"
out=$(realpath "$3")
python=${4:-python3}
case $python in
  /*) ;;
  */*) python=$PWD/$python ;; # not its target: an environment is told by the link
esac
# git describes 1.2.0-3-gabc, Python wants 1.2.0.post3+gabc.
version=$(printf %s "${2#v}" | sed -E 's/-dirty$//; s/-([0-9]+)-(g[0-9a-f]+)$/.post\1+\2/')
case $version in
  [0-9]*.[0-9]*) ;;
  *) version=0.0.0.dev0+g$(printf %s "$version" | tr -c 'a-zA-Z0-9' '.') ;;
esac
cd "$(dirname "$0")/../python/package"
TRACELAKE_WHEEL_BINARY=$binary TRACELAKE_WHEEL_VERSION=$version "$python" -m hatchling build -t wheel -d "$out" >&2
ls -t "$out"/tracelake-*.whl | head -n 1
