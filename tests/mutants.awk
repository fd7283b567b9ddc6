# Draws faults: lines of the given source files, each changed in one place, in an order determined by the seed. Prints
# the file, line number and changed line of each, separated by tabs. Comments, messages and declarations are excluded; a
# line with a ///< comment counts as a declaration.
#
#   awk -v seed=1 -f tests/mutants.awk FILE...

# Park and Miller's generator: returns an integer in [1, n].
function draw(n) {
  state = state * 48271 % 2147483647
  return 1 + int(state / 2147483647 * n)
}

# Returns the part of a line before the first comment or string literal: a literal is usually followed by the arguments
# of a message.
function code_of(text,    i, c) {
  for (i = 1; i <= length(text); ++i) {
    c = substr(text, i, 1)
    if (c == "\"" || c == "'" && substr(text, i - 1, 1) !~ /[0-9]/ || substr(text, i, 2) == "//")
      return substr(text, 1, i - 1)
  }
  return text
}

# Adds a variant: the line with the `size` characters from position `at` on replaced by `by`. Skips equal texts:
# exchanging equal arguments is not a fault.
function add(at, size, by) {
  if (substr(line, at, size) != by) variants[++count] = substr(line, 1, at - 1) by substr(line, at + size)
}

function replace(what, by,    at, start) {
  for (start = 1; (at = index(substr(code, start), what)) > 0; start += at - 1 + length(what))
    add(start + at - 1, length(what), by)
}

function swap(a, b) { replace(a, b); replace(b, a) }

function is_word(c) { return c ~ /[A-Za-z0-9_]/ }

# Replaces whole words, like replace(). Skips a word that follows a type, since the line declares it.
function replace_word(what, by,    at, place, before_it) {
  for (place = 1; (at = index(substr(code, place), what)) > 0; place += at - 1 + length(what)) {
    before_it = substr(code, 1, place + at - 2)
    if (is_word(substr(before_it, length(before_it))) || is_word(substr(code, place + at - 1 + length(what), 1))) continue
    if (before_it ~ /[A-Za-z0-9_>*&] $/ && before_it !~ /return $/) continue
    add(place + at - 1, length(what), by)
  }
}

function swap_words(a, b) { replace_word(a, b); replace_word(b, a) }

# Returns the position of the parenthesis that closes the one at `open`, or of the first comma between them; 0 if it is
# on another line.
function end_of_argument(open, commas,    i, depth, c) {
  for (i = open; i <= length(code); ++i) {
    c = substr(code, i, 1)
    if (c ~ /[([{]/) ++depth
    if (c ~ /[])}]/ && --depth == 0) return i
    if (commas && c == "," && depth == 1) return i
  }
  return 0
}

# Replaces a call that is a whole assigned or returned value by the call's first argument.
function leave_out_calls(    open, close_at, comma) {
  if (!match(code, /(= |return )[A-Za-z_][A-Za-z0-9_]*\(/)) return
  open = RSTART + RLENGTH - 1
  close_at = end_of_argument(open, 0)
  comma = end_of_argument(open, 1)
  if (close_at == 0 || substr(code, close_at + 1, 1) != ";" || comma == open + 1) return
  match(substr(code, 1, open - 1), /[A-Za-z_][A-Za-z0-9_]*$/)
  add(RSTART, close_at - RSTART + 1, substr(code, open + 1, comma - open - 1))
}

# Drops one derive() from a chain that derives a random stream, so that two uses draw the same numbers.
function share_streams(    start, at, close_at) {
  for (start = 1; (at = index(substr(code, start), ".derive(")) > 0; start += at + 7) {
    close_at = end_of_argument(start + at + 6, 0)
    if (close_at > 0) add(start + at - 1, close_at - start - at + 2, "")
  }
}

# Drops a simple operand, such as the offset of a batch or a scale. Swaps the first two arguments of a call if both are
# simple, unless the call is a minimum or maximum.
function leave_out_operands(    rest, at, text) {
  for (at = 1; match(substr(code, at), / [-+*\/] [A-Za-z_][A-Za-z0-9_]*[^A-Za-z0-9_.(>:[]/); at += RSTART)
    add(at + RSTART - 1, RLENGTH - 1, "")
  for (at = 1; match(substr(code, at), /[(] ?[a-z_][A-Za-z0-9_]*, [a-z_][A-Za-z0-9_]*[,)]/); at += RSTART) {
    if (substr(code, 1, at + RSTART - 2) ~ /m(in|ax)(<[A-Za-z_]+>)?$/) continue
    text = substr(code, at + RSTART, RLENGTH - 2)
    rest = index(text, ", ")
    add(at + RSTART, RLENGTH - 2, substr(text, rest + 2) ", " substr(text, 1, rest - 1))
  }
}

# Increments integers and doubles fractions.
function change_numbers(    i, size, token) {
  for (i = 1; i <= length(code); i += size) {
    size = 1
    if (substr(code, i, 1) !~ /[0-9]/) continue
    while (substr(code, i + size, 1) ~ /[0-9A-Za-z_.']/) ++size
    if (i > 1 && substr(code, i - 1, 1) ~ /[A-Za-z_0-9.']/) continue
    token = substr(code, i, size)
    if (token ~ /^[0-9]+$/) add(i, size, token + 1)
    if (token ~ /^[0-9]+\.[0-9]+f?$/) add(i, size, token + 0 == 0 ? "1.0" : "(2 * " token ")")
  }
}

# Negates the condition of an `if` that ends on its line.
function negate(    start, i, depth, c) {
  if (!match(code, /if (constexpr )?\(/)) return
  start = RSTART + RLENGTH
  depth = 1
  for (i = start; i <= length(code); ++i) {
    c = substr(code, i, 1)
    if (c == "(") ++depth
    if (c == ")" && --depth == 0) return add(start, i - start, "!(" substr(code, start, i - start) ")")
  }
}

function is_statement(text) {
  if (before !~ /[;{})]$/ || text !~ /;$/ || gsub(/\(/, "(", text) != gsub(/\)/, ")", text)) return 0
  return text ~ /^[A-Za-z_][^ ]* [-+*\/|&]?= / || text ~ /^(\+\+|--)/ || text ~ /^[A-Za-z_][A-Za-z0-9_:.>-]*\(.*\);$/
}

function find_variants(    trimmed) {
  count = 0
  swap(" + ", " - ")
  swap(" * ", " / ")
  swap(" == ", " != ")
  swap(" && ", " || ")
  swap(" += ", " -= ")
  swap(" < ", " <= ")
  swap(" > ", " >= ")
  swap("std::min(", "std::max(")
  swap("true", "false")
  negate()
  change_numbers()
  # Commonly confused words.
  swap_words("rows", "columns")
  swap_words("width", "height")
  swap_words("queries", "keys")
  swap_words("begin", "end")
  swap_words("first", "second")
  swap_words("dropout", "drop_path")
  swap_words("epoch", "step")
  swap_words("mean", "variance")
  replace("training ?", "!training ?")
  replace("training_ ?", "!training_ ?")
  leave_out_calls()
  share_streams()
  leave_out_operands()
  trimmed = code
  sub(/^ +/, "", trimmed)
  sub(/ +$/, "", trimmed)
  if (is_statement(trimmed)) variants[++count] = substr(line, 1, index(line, trimmed) - 1) ";"
}

FNR == 1 { before = ";" }
{
  line = $0
  code = code_of(line)
  if (code !~ /[^ ]/) next
  if (code !~ /^ *(#|template|using|namespace|friend|class|struct|enum|extern|typename|case|public|private|protected)/ &&
      code !~ /static_assert|HEED_ASSERT|operator|fail\(|throw |std::array</ && line !~ /\/\/\/</) {
    find_variants()
    if (count > 0) {
      at[++lines] = FILENAME "\t" FNR
      for (i = 1; i <= count; ++i) found[lines, i] = variants[i]
      choices[lines] = count
    }
  }
  before = code
  sub(/ +$/, "", before)
}
END {
  state = seed
  for (i = 1; i <= 10; ++i) draw(1)
  for (i = lines; i > 0; --i) {
    chosen = draw(i)
    print at[chosen] "\t" found[chosen, draw(choices[chosen])]
    at[chosen] = at[i]
    for (j = 1; j <= choices[i]; ++j) found[chosen, j] = found[i, j]
    choices[chosen] = choices[i]
  }
}
