# Which of the nested modules a change can break. Sourced by .ci/run.

# nested_modules prints the folder of each module below the root.
nested_modules() {
	find . -mindepth 2 -name go.mod -not -path './.git/*' -not -path '*/testdata/*' \
		-printf '%P\n' | sed 's|/go.mod$||' | sort
}

# uses MODULE prints what a module uses, from the root: its folder; what all of them rest on; the
# packages of this repository that it imports (their own files, not what they import in turn: what a
# package promises is tested beside it); and the files and folders outside of it that its code names.
uses() {
	local module=$1 file path
	printf '%s\n' "$module/" go.mod docs/api.txt .ci/
	(
		cd "$module"
		go list -f '{{range .Imports}}{{.}}{{"\n"}}{{end}}{{range .TestImports}}{{.}}{{"\n"}}{{end}}{{range .XTestImports}}{{.}}{{"\n"}}{{end}}' ./...
	) | sort -u | sed -n -e 's|^github.com/holdfast-go/holdfast$|./|p' -e 's|^github.com/holdfast-go/holdfast/\(.*\)|\1/|p'
	{ git grep -noE '"(\.\./)+[^" ]+"' -- "$module/*.go" || true; } | while IFS=: read -r file _ path; do
		path=$(realpath -m --relative-to=. "$(dirname "$file")/$(tr -d '"' <<<"$path" | sed 's|/[^/]*\*.*||')")
		case "$path" in
		. | ..*) ;; # the whole repository says nothing
		*) echo "$path" ;;
		esac
	done
}

# changed prints the files that have changed since the commit $HOLDFAST_BASE. Without it, the change
# is what was committed in the 24 hours before HEAD, and since.
changed() {
	local base=${HOLDFAST_BASE:-} newest
	newest=$(git log -1 --format=%ct)
	[ -n "$base" ] || base=$(git rev-list -1 --before="$((newest - 24 * 3600))" HEAD)
	if ! git cat-file -e "$base^{commit}" 2>/dev/null; then
		git ls-files # nobody knows what has changed
		return
	fi
	echo "changed since $(git log -1 --format='%h of %cI' "$base")" >&2
	git diff --name-only "$base"
	git ls-files --others --exclude-standard
}

# affected prints the modules that use a changed file. A Lua script may concern all of them, a test
# of another module none.
affected() {
	local files module
	files=$(changed)
	for module in $(nested_modules); do
		if uses "$module" | sort -u | awk -v folder="$module/" '
			NR == FNR { used[n++] = $0; next }
			/_test\.go$/ && index($0, folder) != 1 { next }
			/\.lua$/ { found = 1 }
			{
				for (i = 0; i < n; i++) {
					if (used[i] == "./" ? $0 !~ "/" && /\.go$/ : index($0, used[i]) == 1) found = 1
				}
			}
			END { exit !found }
		' - <(echo "$files"); then
			echo "$module"
		fi
	done
}
