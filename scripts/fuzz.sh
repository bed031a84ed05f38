#!/usr/bin/env bash
# Runs fuzz targets, one after another, and prints a table of what each took and
# found. A failing input is kept under testdata/fuzz of its package.
#
#   scripts/fuzz.sh FUZZTIME [BEGINNING ...]
#
#   scripts/fuzz.sh 1m                            every target
#   scripts/fuzz.sh 10m kineto:FuzzRead schema/   those whose PACKAGE:TARGET begins so
#
# FUZZ_DIR (.fuzz) keeps test programs, the inputs found so far, logs, and
# runs.tsv with a line for each run: when, target, CPU seconds, executions, new
# inputs, result. FUZZ_PARALLEL (1) is how many processes try inputs.
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime=${1:-20s}
shift || true
dir=${FUZZ_DIR:-.fuzz}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
runs=$dir/runs.tsv
root=$PWD

# every_target prints PACKAGE:TARGET lines.
every_target() {
  grep -rn --include='*_test.go' -oE '^func Fuzz\w+' . | sed -E 's|^\./(.*)/[^/]+:[0-9]+:func (Fuzz\w+)|\1:\2|' | sort
}

# program builds the test program of a package, once in a run of this script,
# and prints its path.
program() {
  local to=$dir/bin/${1//\//_}.test
  if [[ ! -e $to.$$ ]]; then
    rm -f "$to".[0-9]*
    go test -c -fuzz . -o "$to" "./$1" >&2 # instrumented for coverage
    touch "$to.$$"
  fi
  echo "$to"
}

# try tries inputs for the given time. Shrinking one that only reaches new code
# takes a minute by default, in which nothing is tried.
try() {
  local bin=$1 package=$2 target=$3
  cd "$root/$package"
  "$bin" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$fuzztime" -test.fuzzminimizetime 100x \
    -test.parallel "${FUZZ_PARALLEL:-1}" -test.fuzzcachedir "$dir/corpus/${package//\//_}" || return
  cd "$root"
}

# fuzz runs a target and adds a line to runs.tsv.
fuzz() {
  local package=$1 target=$2 bin log result=ok
  bin=$(program "$package")
  log=$dir/log/${package//\//_}_$target.log
  TIMEFORMAT='%U %S'
  { time try "$bin" "$package" "$target" >"$log" 2>&1 || result=FOUND; } 2>"$log.time"
  cd "$root"
  local cpu execs new
  cpu=$(awk 'END { printf "%.0f", $1 + $2 }' "$log.time")
  execs=$(sed -nE 's/.*execs: ([0-9]+).*/\1/p' "$log" | tail -1)
  new=$(sed -nE 's/.*new interesting: ([0-9]+).*/\1/p' "$log" | tail -1)
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$(date -u +%FT%TZ)" "$package:$target" "$cpu" "${execs:-0}" "${new:-0}" "$result" >>"$runs"
  printf '%-44s %8s %12s %8s  %s\n' "$package:$target" "$cpu" "${execs:-0}" "${new:-0}" "$result"
  if [[ $result != ok ]]; then
    found=1
    tail -n 40 "$log" >&2
  fi
}

mkdir -p "$dir/bin" "$dir/log"
found=0
all=$(every_target)
[[ $# -gt 0 ]] || mapfile -t all_list <<<"$all"
[[ $# -gt 0 ]] || set -- "${all_list[@]}"
printf '%-44s %8s %12s %8s  %s\n' target 'CPU s' executions new result
for wanted in "$@"; do
  targets=$(grep -E "^$wanted" <<<"$all") || { echo "no target $wanted" >&2; exit 2; }
  for target in $targets; do
    fuzz "${target%%:*}" "${target#*:}"
  done
done
exit $found
