# What .ci/run and .ci/long share: where they stand, how they report, what they
# need installed. Sourced, never run.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null # a command that asks a question must fail, not hang

STATICCHECK=honnef.co/go/tools/cmd/staticcheck@v0.8.2 # 2026.2.2: the tags by year are no module versions
ACTIONLINT=github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GOTESTSUM=gotest.tools/gotestsum@v1.13.0

export CI=true
# Each step says for itself whether it runs the tests on real servers, and the long ones.
unset HOLDFAST_SERVERS HOLDFAST_LONG
# A clone that belongs to another user makes git refuse, and go build with it. Without
# -trimpath, what was built in one folder would be built again for a clone in another.
export GOFLAGS="${GOFLAGS:-} -buildvcs=false -trimpath"
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'

scratch=$(mktemp -d)
mkdir "$scratch/events"
step_name=setup
beside= # the process of beside, while it runs

finish() {
	local status=$?
	trap - EXIT
	[ -z "$beside" ] || kill -- "-$beside" 2>/dev/null || true
	timings || true
	rm -rf "$scratch"
	if [ "$status" -eq 0 ]; then
		echo "==> passed in $SECONDS s"
	else
		echo "==> FAILED in step: $step_name (status $status)" >&2
	fi
	exit "$status"
}
trap finish EXIT

# step NAME COMMAND [ARG]...: runs the command, and says how long it took.
step() {
	step_name=$1
	shift
	local start=$SECONDS
	echo "==> $step_name"
	"$@"
	echo "$((SECONDS - start)) $step_name" >>"$scratch/steps"
	echo "    $((SECONDS - start)) s"
}

# beside COMMAND [ARG]...: starts a command that mostly computes, which may be several steps, beside steps that
# mostly wait. In a step of its own, joined waits for it and shows what it has printed.
beside() {
	set -m # a process group of its own, which finish can end
	(renice -n 5 -p "$BASHPID" >/dev/null && "$@") >"$scratch/joined.log" 2>&1 &
	set +m
	beside=$!
}
joined() {
	local status=0
	wait "$beside" || status=$?
	beside=
	cat "$scratch/joined.log"
	return "$status"
}

# tests EVENTS COMMAND [ARG]...: runs a command that prints what go test -json prints, and shows a
# line for each package instead. The file EVENTS of $scratch/events has it all.
tests() {
	local events=$scratch/events/$1
	shift
	"$scratch/bin/gotestsum" --format pkgname --jsonfile "$events" --ignore-non-json-output-lines --raw-command -- "$@"
}

# timings prints where the time went: each step, and the slowest packages and tests.
timings() {
	[ -s "$scratch/steps" ] || return 0
	echo "==> seconds of each step"
	awk '{ printf "%7d  %s\n", $1, substr($0, length($1) + 2) }' "$scratch/steps"
	echo "==> the ten slowest packages, the ten slowest tests: seconds"
	slowest 'select(.Test == null)'
	slowest 'select(.Test != null and (.Test | contains("/") | not))'
}

# slowest FILTER prints the ten that took longest of the events which a filter of jq lets through.
slowest() {
	local file
	for file in "$scratch"/events/*; do
		[ -e "$file" ] || continue
		jq -r --arg step "${file##*/}" "select(.Elapsed != null) | $1 |"'
			"\(.Elapsed) \(.Package | ltrimstr("github.com/holdfast-go/")) \(.Test // "") (\($step))"' "$file"
	done | sort -rn | awk 'NR <= 10 { seconds = $1; $1 = ""; printf "%7.1f %s\n", seconds, $0 }'
}

# turn prints a number that the commit determines. What takes turns from change to change goes by it.
turn() { echo $((16#$(git rev-parse HEAD | cut -c1-6))); }

# need COMMAND PACKAGE...: installs the Debian packages if the command is missing.
apt_is_fresh=
need() {
	local command=$1
	shift
	if command -v "$command" >/dev/null; then
		return
	fi
	local root=()
	if [ "$(id -u)" -ne 0 ]; then
		root=(sudo)
	fi
	if [ -z "$apt_is_fresh" ]; then
		"${root[@]}" apt-get update -qq
		apt_is_fresh=yes
	fi
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

install_tools() {
	need jq jq # the tables of times
	need redis-server redis-server
	need gcc gcc libc6-dev # the race detector links C
	need psql postgresql # fence/sqltest
	need javac openjdk-17-jdk-headless # interop/ runs Redisson
	need mvn maven
	need chromium chromium # the console is tested in a browser
	need promtool prometheus # deploy/tour
	GOBIN=$scratch/bin go install "$GOTESTSUM"
	redis-server --version
	go version
}
