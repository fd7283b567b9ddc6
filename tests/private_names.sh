#!/bin/sh
# Checks that the files of a folder that are compiled together define no private name twice. The compiler reports only
# equal definitions; overloads are forbidden too, since a call in another file could select them. An alias may be
# repeated verbatim.
#
#   sh tests/private_names.sh BUILD FILE...      FILE: a source compiled together with others of its folder
set -eu

cd "$(dirname "$0")/.."
shift
awk '
  FNR == 1 { unnamed = 0; folder = FILENAME; sub(/\/[^\/]*$/, "", folder) }
  /^namespace \{/ { unnamed = 1; next }
  /^\} *\/\/ namespace$/ { unnamed = 0; next }
  unnamed || /^static / {
    # clang-format starts each definition in a namespace in the first column.
    text = $0
    name = ""
    sub(/^template <.*> /, "", text)
    if (text ~ /^using [A-Za-z_0-9]+ =/ || text ~ /^(struct|class|enum|union) [A-Za-z_0-9]+ [:{]/) {
      split(text, words, " ")
      name = words[2]
    } else if (text ~ /^[A-Za-z]/ && text !~ /^(using|namespace|return|struct|class|enum|union|template) ?/) {
      sub(/[({=;[].*/, "", text)
      if (match(text, /[ &*][A-Za-z_0-9]+ *$/)) name = substr(text, RSTART + 1, RLENGTH - 1)
      sub(/ *$/, "", name)
    }
    if (name == "") next
    ++names
    place = FILENAME ":" FNR
    if ((folder, name) in file && file[folder, name] != FILENAME && !(/^using / && $0 == line[folder, name])) {
      print "tests/private_names.sh: " name " is defined in " first[folder, name] " and in " place >"/dev/stderr"
      clash = 1
    } else {
      file[folder, name] = FILENAME
      line[folder, name] = $0
      first[folder, name] = place
    }
  }
  END {
    if (names < 100) { print "tests/private_names.sh: only " names + 0 " private names were found" >"/dev/stderr"; exit 1 }
    if (clash) exit 1
    print "private names: " names ", each unique in its folder"
  }' "$@"
