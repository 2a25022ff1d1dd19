#!/usr/bin/env bash
# Builds the Ollama server that the tests use, from the Go module proxy, into
# the user's cache; does nothing if it is there. Takes five minutes on two cores.
#
#   internal/ollamatest/install.sh          build it if it is missing
#   internal/ollamatest/install.sh --where  only say where it is, or will be
#
# Needs Go, gcc and g++, and apt for two header packages (they are only unpacked).
set -euo pipefail

VERSION=v0.17.4
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/askback/ollama-$VERSION
binary=$cache/ollama

if [ "${1:-}" = --where ]; then echo "$binary"; exit; fi
[ -x "$binary" ] && exit
command -v g++ >/dev/null || { echo "building the Ollama server for the tests needs gcc and g++" >&2; exit 1; }

work=$cache/build
mkdir -p "$work/headers" "$work/bin"
if [ ! -e "$work/headers/usr/include/nlohmann/json.hpp" ]; then
	(
		cd "$work"
		packages="nlohmann-json3-dev libstb-dev"
		# shellcheck disable=SC2086
		apt-get download $packages >/dev/null 2>&1 || { apt-get update >/dev/null && apt-get download $packages; }
		for deb in *.deb; do dpkg-deb -x "$deb" headers; done
	)
fi

flags=-O1
[ "$(go env GOARCH)" = amd64 ] && flags="$flags -march=x86-64-v3" # without AVX2 it is twenty times slower
echo "building Ollama $VERSION for the tests (once, some minutes)" >&2
export CGO_ENABLED=1 GOBIN=$work/bin CGO_CFLAGS=$flags CGO_CXXFLAGS=$flags
export CGO_CPPFLAGS="-I$here/stub -I$work/headers/usr/include"
(cd / && go install -trimpath -ldflags "-s -w -X=github.com/ollama/ollama/version.Version=${VERSION#v}" "github.com/ollama/ollama@$VERSION")
mv "$work/bin/ollama" "$binary"
rm -rf "$work"
