#!/usr/bin/env bash
# Runs every fuzz target of the module, one after another.
#
#   scripts/fuzz.sh FUZZTIME
set -euo pipefail

fuzztime=${1:-20s}
for package in $(go list ./...); do
  targets=$(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true)
  for target in $targets; do
    echo "== $package $target"
    # Shrinking an input that only reaches new code takes a minute by default, in
    # which nothing is tried.
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -fuzzminimizetime 100x "$package"
  done
done
