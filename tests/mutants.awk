# Draws faults: lines of the source files given, in an order that the seed fixes, each changed in one place. Prints for
# each its file, its number and the changed line, between tabs. What stands in comments, messages and declarations is
# left alone; members with a comment of their own are declarations.
#
#   awk -v seed=1 -f tests/mutants.awk FILE...

# Park and Miller's generator: a whole number in [1, n].
function draw(n) {
  state = state * 48271 % 2147483647
  return 1 + int(state / 2147483647 * n)
}

# The code of a line, up to a comment or a text: what follows a text says what went wrong.
function code_of(text,    i, c) {
  for (i = 1; i <= length(text); ++i) {
    c = substr(text, i, 1)
    if (c == "\"" || c == "'" && substr(text, i - 1, 1) !~ /[0-9]/ || substr(text, i, 2) == "//")
      return substr(text, 1, i - 1)
  }
  return text
}

function add(at, size, by) { variants[++count] = substr(line, 1, at - 1) by substr(line, at + size) }

function replace(what, by,    at, start) {
  for (start = 1; (at = index(substr(code, start), what)) > 0; start += at - 1 + length(what))
    add(start + at - 1, length(what), by)
}

function swap(a, b) { replace(a, b); replace(b, a) }

# Whole numbers become one more, fractions twice as much.
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

# The condition of an `if` that ends on its line.
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
