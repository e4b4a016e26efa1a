#!/usr/bin/env bash
# Puts a current Emscripten (3.1.69, for LLVM 19, with Binaryen 120), Highway 1.2 and doctest 2.4.11 into one folder of
# a Debian 12 machine, from Debian's own packages, replacing none of the machine's.
#   bash wasm/toolchain/emscripten.sh [PREFIX]
# PREFIX is by default the user's cache folder, so that every clone shares it.
#
# Debian 12's own Emscripten 3.1.6 emits relaxed-SIMD opcodes from before the standard, which no browser accepts.
# 3.1.69 is in the next Debian release, and its Binaryen needs that release's libc: so the packages of that release are
# downloaded from the mirror this machine already uses and unpacked here, and Binaryen runs through its own loader.
# em++ finds its settings beside itself (`.emscripten`), so calling it by its path is all that is needed.
set -euo pipefail
prefix=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/headlight/toolchain-1}
mkdir -p "$prefix"; prefix=$(cd "$prefix" && pwd)
release=trixie
version=3.1.69
llvm=/usr/lib/llvm-19/bin
packages=(emscripten binaryen libhwy-dev doctest-dev node-acorn)
runtime=(libc6 libstdc++6 libgcc-s1)
emscripten=$prefix/root/usr/share/emscripten

fail() { echo "emscripten.sh: $1" >&2; exit 1; }

# Two clones may be set up at the same time.
exec 9>"$prefix/.lock"; flock 9
# (The package brings settings of its own, for a machine of its release: ours name the prefix.)
if [ -e "$prefix/.complete" ] && grep -qs "^BINARYEN_ROOT = '$prefix/" "$emscripten/.emscripten"; then exit 0; fi

echo "== Emscripten $version and Highway into $prefix"
[ -x "$llvm/clang++" ] || fail "$llvm/clang++ is missing: apt-get install clang-19 lld-19 llvm-19"
command -v python3 >/dev/null || fail "python3 is missing: apt-get install python3"
[ "$(dpkg --print-architecture)" = amd64 ] || fail "these packages are for amd64: install a current emsdk instead"

# A private apt state: the same mirror and key ring as this machine's own Debian source, the next release.
download() {
  local apt=$1 mirror
  mirror=$(apt-get indextargets --format '$(SITE) $(ORIGIN) $(COMPONENT) $(CODENAME)' |
    awk '$2 == "Debian" && $3 == "main" && $4 !~ /-/ && !seen { print $1; seen = 1 }')
  [ -n "$mirror" ] || fail "no Debian package source is configured here: run apt-get update, or install a current emsdk"
  rm -rf "$apt"; mkdir -p "$apt"/{sources,lists/partial,cache/archives/partial,debs}
  printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' \
    "$mirror" "$release" /usr/share/keyrings/debian-archive-keyring.gpg > "$apt/sources/next.sources"
  cat > "$apt/apt.conf" <<CONF
Dir::State::Lists "$apt/lists";
Dir::Cache "$apt/cache";
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$apt/sources";
APT::Sandbox::User "root";
CONF
  export APT_CONFIG="$apt/apt.conf"
  apt-get update -qq
  (cd "$apt/debs" && apt-get download -qq "${packages[@]}" "${runtime[@]}")
  unset APT_CONFIG
}

unpack() {
  local p
  rm -rf "$prefix/root" "$prefix/loader"; mkdir -p "$prefix/root" "$prefix/loader"
  for p in "${packages[@]}"; do dpkg -x "$prefix/apt/debs/$p"_*.deb "$prefix/root"; done
  for p in "${runtime[@]}"; do dpkg -x "$prefix/apt/debs/$p"_*.deb "$prefix/loader"; done
  rm -rf "$prefix/apt"
}

# Binaryen's tools, each started by the loader that it was linked for.
wrap_binaryen() {
  local loader libs tool
  mkdir -p "$prefix/binaryen/bin"
  loader=$(find "$prefix/loader" -name 'ld-linux-*.so.*' | sort | head -n 1)
  libs=$prefix/loader/usr/lib/x86_64-linux-gnu:$prefix/root/usr/lib/x86_64-linux-gnu
  for tool in "$prefix/root/usr/bin/wasm-"* "$prefix/root/usr/bin/wasm2js"; do
    printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' "$loader" "$libs" "$tool" \
      > "$prefix/binaryen/bin/$(basename "$tool")"
  done
  chmod +x "$prefix/binaryen/bin/"*
}

configure() {
  local header
  # emcc's optimiser imports acorn as an ES module: it must lie in a node_modules folder above it.
  mkdir -p "$emscripten/node_modules"
  ln -sfn "$prefix/root/usr/share/nodejs/acorn" "$emscripten/node_modules/acorn"
  # The headers that emcc may see, and nothing else of /usr/include. Highway is used header-only.
  mkdir -p "$prefix/include"
  for header in hwy doctest; do ln -sfn "$prefix/root/usr/include/$header" "$prefix/include/$header"; done
  ln -sfn /usr/include/nlohmann "$prefix/include/nlohmann"
  cat > "$emscripten/.emscripten" <<CONF
import shutil
LLVM_ROOT = '$llvm'
BINARYEN_ROOT = '$prefix/binaryen'
NODE_JS = shutil.which('node')
FROZEN_CACHE = True
CONF
}

if [ ! -e "$prefix/.complete" ]; then
  download "$prefix/apt"
  unpack
  wrap_binaryen
fi
configure
found=$("$emscripten/em++" --version | head -n 1)
case $found in *" $version "*) ;; *) fail "expected Emscripten $version, found: $found" ;; esac
touch "$prefix/.complete"
