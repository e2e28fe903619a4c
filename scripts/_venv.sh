# Sourced by scripts/run and scripts/test: a virtual environment in the repository, set up once, renewed when sources change.
# Usage: ensure_venv EXTRA   (report, dev)
set -euo pipefail
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

ensure_venv() {
  local extra="$1" python stamp want
  python="$(find_python)"
  if ! command -v cc >/dev/null 2>&1 && ! command -v gcc >/dev/null 2>&1; then
    echo "torqueloop needs a C compiler (cc or gcc); on Debian or Ubuntu: apt-get install build-essential" >&2
    exit 2
  fi
  # everything that goes into the installed package; the environment is renewed when any of it changed
  want="$extra $(find package core cython_kernels hil configs pyproject.toml setup.py MANIFEST.in -type f \
      ! -name '*.so' ! -name '*.pyc' ! -path '*/topologies/*.pyx' -print0 | sort -z | xargs -0 cat | cksum)"
  stamp=".venv/torqueloop-$extra.stamp"
  if [ ! -x .venv/bin/python ]; then
    echo "setting up .venv (once, about two minutes) ..." >&2
    "$python" -m venv .venv
  fi
  if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$want" ]; then
    echo "installing torqueloop[$extra] into .venv ..." >&2
    rm -f .venv/torqueloop-*.stamp
    install_package "$extra"
    printf '%s' "$want" > "$stamp"
  fi
}

install_package() {
  .venv/bin/python -m pip install --quiet --disable-pip-version-check ".[$1]"
}
