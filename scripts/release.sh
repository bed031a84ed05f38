#!/bin/sh
# Builds what a release consists of into a directory: the program for this
# machine with DuckDB, static programs without it for Linux and macOS, manual
# pages, completions, a wheel per program, checksums and a list of components.
#   scripts/release.sh VERSION DIRECTORY [PYTHON]
# PYTHON needs hatchling (python/requirements-test.txt). RELEASE_PROGRAM names a
# program for this machine that is built already, RELEASE_SMALL the platforms of
# the static ones (OS/ARCH ...).
set -eu
cd "$(dirname "$0")/.."
version=$1
mkdir -p "$2"
out=$(realpath "$2")
python=${3:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-s -w -X main.version=$version"

pack() { # NAME: a reproducible archive of the program, its pages and completions
  cp LICENSE README.md "$work/$1/"
  tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - "$1" | gzip -9n > "$out/$1.tar.gz"
}

os=$(go env GOOS)
arch=$(go env GOARCH)
full=tracelake-$version-$os-$arch
mkdir -p "$work/$full/man" "$work/$full/completions"
if [ -n "${RELEASE_PROGRAM:-}" ]; then
  cp "$RELEASE_PROGRAM" "$work/$full/tracelake"
else
  go build -tags disable_grpc_modules -trimpath -ldflags "$flags" -o "$work/$full/tracelake" ./cmd/tracelake
fi
"$work/$full/tracelake" man "$work/$full/man"
for shell in bash zsh fish; do
  "$work/$full/tracelake" completion "$shell" > "$work/$full/completions/tracelake.$shell"
done
pack "$full"
scripts/wheel.sh "$work/$full/tracelake" "$version" "$out" "$python"

for target in ${RELEASE_SMALL-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}; do
  small=tracelake-small-$version-${target%/*}-${target#*/}
  mkdir -p "$work/$small"
  CGO_ENABLED=0 GOOS=${target%/*} GOARCH=${target#*/} \
    go build -tags noduckdb,disable_grpc_modules -trimpath -ldflags "$flags" -o "$work/$small/tracelake" ./cmd/tracelake
  cp -r "$work/$full/man" "$work/$full/completions" "$work/$small/"
  pack "$small"
  # A wheel of this platform with DuckDB is better than one without.
  if [ "$target" != "$os/$arch" ]; then
    scripts/wheel.sh "$work/$small/tracelake" "$version" "$out" "$python"
  fi
done

go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 bin \
  -json -noserial -output "$out/tracelake-$version.cdx.json" -version "$version" "$work/$full/tracelake"
cd "$out"
sha256sum tracelake-* > SHA256SUMS
