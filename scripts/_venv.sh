# Sourced by scripts/run and scripts/test: a virtual environment in the repository, with the sources installed in place.
# Usage: ensure_venv EXTRA   (report, dev; dev holds all of the others)
# Three things, each done only when what it depends on has changed: the environment, the libraries, the compiled kernels.
set -euo pipefail
# libraries come without compiled modules (below): each process that is started would compile all it imports, anew
unset PYTHONDONTWRITEBYTECODE
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$ROOT"

find_python() {
  local candidate
  for candidate in "${PYTHON:-}" python3.13 python3.12 python3.11 python3 python; do
    [ -n "$candidate" ] || continue
    if command -v "$candidate" >/dev/null 2>&1 &&
       "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"; return
    fi
  done
  echo "torqueloop needs Python 3.11 or newer; none was found (set PYTHON=/path/to/python)" >&2
  exit 2
}

# what a folder of sources holds, as one number
sources_sum() {
  find torqueloop core cython_kernels hil configs pyproject.toml setup.py MANIFEST.in -type f \
    ! -name '*.so' ! -name '*.pyc' ! -path '*/topologies/*.pyx' -print0 | sort -z | xargs -0 cat | cksum
}

# run COMMAND once for each content of STAMP: stamped STAMP WANT COMMAND...
stamped() {
  local stamp="$1" want="$2"
  shift 2
  if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$want" ]; then
    rm -f "$stamp"
    "$@"
    printf '%s' "$want" > "$stamp"
  fi
}

# install what pyproject.toml names: install_listed (build | EXTRA). uv takes a tenth of the time pip does; pip stands in
# where uv cannot be had, or does not find what pip finds (it reads no pip.conf)
install_listed() {
  local pip=(.venv/bin/python -m pip install --quiet --no-compile --disable-pip-version-check)
  listed "$1" >".venv/$1.txt"
  if [ ! -x .venv/bin/uv ]; then "${pip[@]}" uv >/dev/null 2>&1 || true; fi
  local index=()
  if [ -n "${PIP_INDEX_URL:=$(.venv/bin/python -m pip config get global.index-url 2>/dev/null)}" ]; then
    index=(--index-url "$PIP_INDEX_URL")
  fi
  # with the certificates of the system, as pip has them (the first name is that of older versions)
  UV_NATIVE_TLS=1 UV_SYSTEM_CERTS=1 .venv/bin/uv pip install --quiet --python .venv/bin/python ${index[@]+"${index[@]}"} \
    -r ".venv/$1.txt" 2>.venv/uv.log ||
    "${pip[@]}" -r ".venv/$1.txt"
}

# the requirements in pyproject.toml, a line each: listed (build | EXTRA)
listed() {
  .venv/bin/python - "$1" <<'PYTHON'
import sys, tomllib
with open("pyproject.toml", "rb") as file:
    config = tomllib.load(file)
project, listed = config["project"], list(config["build-system"]["requires"])
if sys.argv[1] != "build":
    listed += project["dependencies"] + project["optional-dependencies"][sys.argv[1]]
print("\n".join(listed))
PYTHON
}

# the libraries of an extra; while they are fetched, which leaves processors idle, the kernels are built
install_libraries() {
  local kernels
  echo "installing the libraries of torqueloop[$1] into .venv, building the kernels ..." >&2
  install_listed build
  .venv/bin/python setup.py --quiet build_ext --inplace >.venv/early_build.log 2>&1 &
  kernels=$!
  install_listed "$1"
  # what went wrong here is told by the build that follows, which finds made what went well
  wait "$kernels" || true
}

# how far a build is, while the process runs: progress PROCESS. On a terminal the line is rewritten every second, in a log
# there is a new one every 15 s
progress() {
  local begin=$SECONDS said
  while kill -0 "$1" 2>/dev/null; do
    said="$(cat build/progress 2>/dev/null || true)"
    if [ -t 2 ]; then
      printf '\rbuilding the kernels: %s compiled, %d s ' "${said:-0}" "$((SECONDS - begin))" >&2
    elif [ "$(((SECONDS - begin) % 15))" = 0 ]; then
      echo "building the kernels: ${said:-0} compiled, $((SECONDS - begin)) s" >&2
    fi
    sleep 1
  done
  if [ -t 2 ]; then echo >&2; fi
}

build_kernels() {
  # without isolation the build uses the libraries of .venv, and what it made before
  local build=(.venv/bin/python setup.py --quiet build_ext --inplace)
  if [ ! -x .venv/bin/torqueloop ] || [ pyproject.toml -nt .venv/bin/torqueloop ]; then
    build=(.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .)
  fi
  "${build[@]}" >.venv/build.log 2>&1 &
  progress "$!"
  wait "$!" || { cat .venv/build.log >&2; exit 1; }
  touch .venv/bin/torqueloop
}

# the environment and the libraries of an extra
ensure_libraries() {
  local extra="$1" python libraries
  python="$(find_python)"
  if ! command -v cc >/dev/null 2>&1 && ! command -v gcc >/dev/null 2>&1; then
    echo "torqueloop needs a C compiler (cc or gcc); on Debian or Ubuntu: apt-get install build-essential" >&2
    exit 2
  fi
  if [ ! -x .venv/bin/python ]; then
    echo "setting up .venv (once, one to three minutes) ..." >&2
    "$python" -m venv .venv
  fi
  libraries="$(cksum < pyproject.toml)"
  if [ "$(cat .venv/torqueloop-dev.stamp 2>/dev/null)" != "$libraries" ]; then
    stamped ".venv/torqueloop-$extra.stamp" "$libraries" install_libraries "$extra"
  fi
}

# and the compiled kernels beside the sources
ensure_venv() {
  ensure_libraries "$1"
  SOURCES="$(sources_sum)"
  stamped .venv/torqueloop-kernels.stamp "$SOURCES" build_kernels
}
