#!/bin/sh
# Writes man pages from the help: heed.1, and heed-COMMAND.1 for each command.
#
#   sh mk/manual.sh HEED DIRECTORY
set -eu

heed=$1
directory=$2
version=$("$heed" --version | cut -d ' ' -f 2)
mkdir -p "$directory"

# commands WORD...: lists the subcommands of a command.
commands() {
  "$heed" help "$@" | sed -n '/^Subcommands:$/,/^$/s/^  \([a-z_][a-z_]*\) .*/\1/p'
}

# body WORD...: prints the help of a command; a heading that ends in a colon becomes a section.
body() {
  "$heed" help "$@" | awk '
    { gsub(/\\/, "\\e"); gsub(/-/, "\\-"); sub(/^[.\47]/, "\\\\\\&&") }
    !usage && !/^Usage: / { summary = summary (summary ? " " : "") $0; next }
    /^Usage: / { usage = 1; sub(/^Usage: /, ""); print ".SH SYNOPSIS\n" $0 "\n.in 0\n.nf"; next }
    /^(Positionals|Options|Subcommands|Topics):$/ { sub(/:/, ""); print ".fi\n.SH " toupper($0) "\n.in 0\n.nf"; next }
    /^$/ { blank = 1; next }
    blank && !/^ / && !text++ { print ".fi\n.SH DESCRIPTION\n.in 0\n.nf"; blank = 0 }
    { if (blank) print ""; blank = 0; print }
    END { print ".fi" }'
}

# page NAME WORD...: writes the man page NAME of a command and its subcommands.
page() {
  name=$1
  shift
  {
    printf '.TH %s 1 "" "heed %s" "heed"\n.SH NAME\n%s \\- %s\n' "$(echo "$name" | tr "[:lower:]" "[:upper:]")" "$version" "$name" \
      "$("$heed" help "$@" | sed '/^Usage:/,$d; s/^heed: //' | tr '\n' ' ' | sed 's/ *$//; s/-/\\-/g')"
    body "$@"
    for below in $([ $# -gt 0 ] && commands "$@"); do
      body "$@" "$below" | sed "s/^\.SH SYNOPSIS/.SH COMMAND $(echo "$below" | tr "[:lower:]" "[:upper:]")/; s/^\.SH \(OPTIONS\|POSITIONALS\|DESCRIPTION\)/.SS \1/"
    done
    printf '.SH SEE ALSO\n'
    if [ $# -gt 0 ]; then
      printf '.BR heed (1)\n'
    else
      commands | sed 's/.*/.BR heed\\-& (1),/; $s/,$//'
    fi
  } >"$directory/$name.1"
}

page heed
for command in $(commands); do page "heed-$command" "$command"; done
