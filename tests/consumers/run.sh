#!/usr/bin/env bash
# Builds and runs the consumer projects: tests/consumers/run.sh [work folder] [compiler...]
# Without compilers: g++ and clang++-19, those that are installed (clang++-14 builds everything in a stage of its own). Prints one
# line a project and compiler, and leaves with 1 if any failed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${1:-$root/build/consumers}
shift || true
compilers=("$@")
if [ ${#compilers[@]} -eq 0 ]; then
  for cxx in g++ clang++-19; do
    if command -v "$cxx" >/dev/null; then compilers+=("$cxx"); fi
  done
fi
source "$root/cmake/common.sh"
jobs=$(nihao_jobs)
mkdir -p "$work"
work=$(cd "$work" && pwd)
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi

# Local copies for FetchContent. Eigen and xsimd: the system's headers under the layout of their sources. fmt: a source with the
# same target, from the system's headers.
copies=$work/sources
rm -rf "$copies"
mkdir -p "$copies/eigen" "$copies/xsimd/include" "$copies/fmt"
cp -r /usr/include/eigen3/Eigen "$copies/eigen/"
cp -r /usr/include/xsimd "$copies/xsimd/include/"
cp -r /usr/include/fmt "$copies/fmt/"
cat > "$copies/fmt/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.24)
project(fmt LANGUAGES CXX)
add_library(fmt INTERFACE)
target_include_directories(fmt SYSTEM INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(fmt INTERFACE FMT_HEADER_ONLY=1)
add_library(fmt::fmt ALIAS fmt)
END
# The model that the hosts load, where it is there: without it they check only that errors are told.
model=()
for folder in "${NIHAO_MODELS:-}" "${XDG_CACHE_HOME:-$HOME/.cache}/nihao"; do
  if [ -f "$folder/smollm2-135m-q4_1.gguf" ]; then model=("$folder/smollm2-135m-q4_1.gguf"); fi
done
absent=()
for package in nlohmann_json CLI11 doctest benchmark httplib PCRE2 pcre2 MPI CUDAToolkit Python3; do
  absent+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON")
done

failed=0
run_programs() { # build folder
  local program
  for program in consumer linked one_kernel; do
    if [ -x "$1/$program" ]; then "$1/$program" "${model[@]}" || return 1; fi
  done
}
consume() { # name compiler cmake-options...
  local name=$1 cxx=$2 build=$work/$2/$1 begin=$SECONDS
  shift 2
  rm -rf "$build"
  mkdir -p "$build"
  if { cmake -G Ninja -S "$here/$name" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$cxx" "${launcher[@]}" "$@" &&
       cmake --build "$build" --parallel "$jobs" &&
       run_programs "$build"; } > "$build/log" 2>&1; then
    printf 'ok      %-18s %-11s %3d s\n' "$name" "$cxx" $((SECONDS - begin))
  else
    printf 'FAILED  %-18s %-11s\n' "$name" "$cxx"
    tail -n 40 "$build/log"
    failed=1
  fi
}

# All projects with one compiler. $2: whether one of them takes everything from headers; with the others no_exceptions is that program.
consume_all() { # compiler all-from-headers
  local cxx=$1
  rm -rf "$work/$cxx/prefix"
  mkdir -p "$work/$cxx"
  if ! { cmake -G Ninja -S "$root" -B "$work/$cxx/install" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$cxx" "${launcher[@]}" \
             -DNIHAO_DEVELOPER=OFF &&
         cmake --build "$work/$cxx/install" --parallel "$jobs" &&
         cmake --install "$work/$cxx/install" --prefix "$work/$cxx/prefix"; } > "$work/$cxx/install.log" 2>&1; then
    printf 'FAILED  installing with %s\n' "$cxx"
    tail -n 40 "$work/$cxx/install.log"
    return 1
  fi
  consume find_package "$cxx" -DCMAKE_PREFIX_PATH="$work/$cxx/prefix" -DALL_FROM_HEADERS="$2"
  consume add_subdirectory "$cxx"
  consume fetch_content "$cxx" -DFETCHCONTENT_SOURCE_DIR_NIHAO="$root" -DFETCHCONTENT_SOURCE_DIR_EIGEN3="$copies/eigen" \
    -DFETCHCONTENT_SOURCE_DIR_XSIMD="$copies/xsimd" -DFETCHCONTENT_SOURCE_DIR_FMT="$copies/fmt" -DFETCHCONTENT_FULLY_DISCONNECTED=ON
  consume no_exceptions "$cxx" -DCMAKE_CXX_FLAGS_RELEASE=-O1
  consume core_only "$cxx" -DFETCHCONTENT_FULLY_DISCONNECTED=ON "${absent[@]}"
  return $failed
}

# Side by side, for the projects are a long unit each.
all_from_headers=ON running=()
for cxx in "${compilers[@]}"; do
  consume_all "$cxx" $all_from_headers &
  running+=($!)
  all_from_headers=OFF
done
for pid in "${running[@]}"; do wait "$pid" || failed=1; done
exit $failed
