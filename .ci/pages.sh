# Runs what pages tell their readers to run. Sourced by .ci/run; needs $scratch, a folder for what the pages make.

# page_commands PAGE prints, as one script, what a page has between <!-- ci:begin --> and <!-- ci:end -->: its sh
# blocks, and for each block behind <!-- file: NAME --> a command that writes the block to that file. A page
# without any commands there, or with odd marks, is an error.
page_commands() {
	awk '
		function fail(why) { print FILENAME ":" NR ": " why > "/dev/stderr"; failed = 1; exit 1 }
		/^<!-- ci:begin -->[ \t]*$/ { if (inside) fail("ci:begin within ci:begin"); inside = 1; next }
		/^<!-- ci:end -->[ \t]*$/ {
			if (!inside) fail("ci:end without ci:begin")
			if (fence) fail("ci:end within a block")
			if (file) fail("no block for " file)
			inside = 0; next
		}
		inside && !fence && /^<!-- file: [A-Za-z0-9_.\/-]+ -->[ \t]*$/ { file = $3; next }
		inside && !fence && /^```/ {
			fence = 1; sh = /^```(sh|bash|shell)[ \t]*$/
			if (file) print "cat >" file " <<\047END OF " file "\047"
			next
		}
		inside && fence && /^```[ \t]*$/ { if (file) print "END OF " file; fence = 0; file = ""; next }
		inside && fence && file { print; next }
		inside && fence && sh {
			sub(/^\$ /, "")
			print
			if ($0 !~ /^[ \t]*(#|$)/) commands++
		}
		END {
			if (failed) exit 1
			if (fence) fail("a block is not closed")
			if (inside) fail("ci:begin without ci:end")
			if (!commands) fail("no commands between ci:begin and ci:end")
		}
	' "$1"
}

# run_page PAGE [FOLDER]: runs a page in a folder, by default here. What it leaves running is ended.
run_page() {
	local script
	script="$scratch/$(basename "$1" .md).sh"
	page_commands "$1" >"$script" || return
	(
		cd "${2:-.}"
		bash -euxo pipefail -c 'trap "kill \$(jobs -p) 2>/dev/null || true" EXIT; source "$0"' "$script"
	)
}

# beside_checkout prints a folder in which the checkout is at ./holdfast, as where a reader has cloned it.
beside_checkout() {
	mkdir -p "$scratch/beside"
	ln -sfn "$PWD" "$scratch/beside/holdfast"
	echo "$scratch/beside"
}
