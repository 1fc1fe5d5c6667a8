#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Checks the format of every Swift file and, where shellcheck is installed, every shell script that has the ending `.sh`, and .ci/run.
set -euo pipefail
cd "$(dirname "$0")/.."

swift format lint --strict --parallel --recursive Package.swift Sources Tests Demo Benchmarks

# The table of UUID names is what its data says.
python3 scripts/uuid-names.py --check

# No trailing blanks, and the licence in each source file.
bad=0
while IFS= read -r file; do
    case $file in
    *.swift | *.sh | *.h | *.py)
        head -n 3 "$file" | grep -q 'SPDX-License-Identifier: MIT' || { echo "$file: no SPDX line" >&2; bad=1; }
        ;;
    esac
    if grep -nE '[[:blank:]]+$' "$file" >&2; then
        echo "$file: trailing blanks" >&2
        bad=1
    fi
done < <(git ls-files '*.swift' '*.sh' '*.h' '*.py' '.ci/run')
[ "$bad" -eq 0 ] || exit 1

if command -v shellcheck >/dev/null; then
    git ls-files '*.sh' .ci/run | xargs shellcheck -x
else
    echo "lint: shellcheck is not installed, shell scripts are not checked" >&2
fi
