#!/usr/bin/env bash
# Installs servers that speak as object stores do, for tests, once per version:
# prints the path of the one that is asked for.
#
#   scripts/emulators.sh s3|gs|azblob [DIR]
#
# They are no part of the module: their dependencies are many, and ours are none
# of theirs.
set -euo pipefail

dir=${2:-${XDG_CACHE_HOME:-$HOME/.cache}/tracelake-test}
# the same versions as internal/store/storetest
versitygw=v1.8.0
fake_gcs=v1.56.1
azurite=3.35.0 # the last that runs on Node 20

go_program() { # PACKAGE VERSION NAME
  local to=$dir/$2
  [[ -x $to/$3 ]] || (mkdir -p "$to" && cd "$to" && GOBIN="$to" GOFLAGS='' CGO_ENABLED=0 go install "$1@$2" >&2)
  echo "$to/$3"
}

case ${1:-} in
s3)
  if [[ -n ${TRACELAKE_VERSITYGW:-} ]]; then
    echo "$TRACELAKE_VERSITYGW"
  else
    go_program github.com/versity/versitygw/cmd/versitygw "$versitygw" versitygw
  fi
  ;;
gs) go_program github.com/fsouza/fake-gcs-server "$fake_gcs" fake-gcs-server ;;
azblob)
  to=$dir/azurite-$azurite
  if [[ ! -x $to/node_modules/.bin/azurite-blob ]]; then
    rm -rf "$to"
    npm install --prefix "$to.part" --no-audit --no-fund --ignore-scripts --loglevel=error "azurite@$azurite" >&2
    mv "$to.part" "$to"
  fi
  echo "$to/node_modules/.bin/azurite-blob"
  ;;
*)
  echo "emulators.sh: say s3, gs or azblob" >&2
  exit 2
  ;;
esac
