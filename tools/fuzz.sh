#!/usr/bin/env bash
# Runs every fuzz target of the workspace, one after the other, each for FUZZTIME (a minute), and fails
# at the end where one of them failed. A finding is written to testdata/fuzz of its package: keep it as a
# seed once it is fixed. Arguments are patterns that package and target ("libs/catalog/load FuzzLoad") must match.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${FUZZTIME:-60s}
failed=()
out=$(mktemp)
trap 'rm -f "$out"' EXIT
while IFS=: read -r file target; do
	dir=./$(dirname "$file")
	for pattern in "$@"; do
		[[ "$dir $target" =~ $pattern ]] || continue 2
	done
	echo "== $dir $target"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 5s "$dir" 2>&1 | tee "$out" && continue
	# A target that is at work when its time is over can end with this error alone, which is no finding.
	grep -q 'context deadline exceeded' "$out" && ! grep -q 'Failing input written' "$out" || failed+=("$dir $target")
done < <(git ls-files --cached --others --exclude-standard -- '*_test.go' |
	while read -r f; do [[ -f $f ]] && sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(.*|$f:\1|p" "$f"; done | sort)

if ((${#failed[@]} > 0)); then
	printf 'failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
