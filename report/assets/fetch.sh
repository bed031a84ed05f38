#!/usr/bin/env bash
# Fetches the chart library again from its npm package and checks the digests.
# Give another version to update: report/assets/fetch.sh 1.6.33
set -euo pipefail
cd "$(dirname "$0")/uplot"

version=${1:-1.6.32}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
(cd "$tmp" && npm pack --silent "uplot@$version" && tar -xzf "uplot-$version.tgz")
cp "$tmp/package/LICENSE" "$tmp/package/dist/uPlot.iife.min.js" "$tmp/package/dist/uPlot.min.css" .
chmod 644 LICENSE uPlot.iife.min.js uPlot.min.css
if [[ -z ${1:-} ]]; then
  sha256sum --check SHA256SUMS
else
  sha256sum LICENSE uPlot.iife.min.js uPlot.min.css >SHA256SUMS
  echo "write the version in README.md and look at a report before you commit" >&2
fi
