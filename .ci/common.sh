# What .ci/run and .ci/long share: where they stand, how they report, what they
# need installed. Sourced, never run.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null # a command that asks a question must fail, not hang

export CI=true
# Each step says for itself whether it runs the tests on real servers, and the long ones.
unset HOLDFAST_SERVERS HOLDFAST_LONG
# A clone that belongs to another user makes git refuse, and go build with it.
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"

step_name=setup
began=$SECONDS

finish() {
	local status=$?
	if [ "$status" -eq 0 ]; then
		echo "==> passed in $((SECONDS - began)) s"
	else
		echo "==> FAILED in step: $step_name (status $status)" >&2
	fi
}
trap finish EXIT

# step NAME COMMAND [ARG]...: runs the command, and says how long it took.
step() {
	step_name=$1
	shift
	local start=$SECONDS
	echo "==> $step_name"
	"$@"
	echo "    $((SECONDS - start)) s"
}

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
	need redis-server redis-server
	need gcc gcc libc6-dev # the race detector links C
	need psql postgresql # fence/sqltest
	need javac openjdk-17-jdk-headless # interop/ runs Redisson
	need mvn maven
	need chromium chromium # the console is tested in a browser
	need promtool prometheus # deploy/tour
	redis-server --version
	go version
}
