#include "python_marks.h"

#include "heed/io/file.h"

#include <filesystem>

namespace heed {

namespace {

constexpr std::size_t longest_source = 1 << 20, longest_result = 4 << 20;

/// Common beginning of both Python programs: take() reads a text, which is preceded by its length; give() writes the
/// program's only message, 1 and the result or 0 and the error, and exits.
constexpr const char* exchange = R"(
import json, os, struct, sys, types
def take(file=sys.stdin.buffer):
    return file.read(struct.unpack('<q', file.read(8))[0]).decode()
def give(ok, text):
    data = text.encode('utf-8', 'replace')
    data = struct.pack('<qq', ok, len(data)) + data
    data = struct.pack('<q', len(data)) + data
    while data:
        data = data[os.write(3, data):]
    os._exit(0)
)";

/// Defines refused(source), which returns the first forbidden name in a submission and its line, or None. A name is
/// forbidden if it accesses the caller's frames, which hold the arguments of all calls. Modules and functions that
/// could do so indirectly, by running other code or by composing names, are forbidden, too.
constexpr const char* frame_gate = R"(
import ast, re
# Only Python's own attributes, such as f_back: a student may call a variable f_plus.
FRAMES = '|'.join(name for kind in (types.FrameType, types.TracebackType, types.CodeType, types.GeneratorType,
                                    types.CoroutineType, types.AsyncGeneratorType)
                  for name in dir(kind) if re.match('[a-z]+_', name))
BARRED = re.compile(rf'({FRAMES})$|_getframe|_current_frames|_current_exceptions|settrace|setprofile|'
                    r'addaudithook|monitoring$|modules$|attrgetter$|methodcaller$|cell_contents$|'
                    r'__(traceback|closure|globals|code|dict|builtins|getattribute|subclasses|self|import|main|context|'
                    r'cause|func|wrapped|loader|spec|annotations|match_args)__$|'
                    r'(Formatter|vformat|get_field|get_type_hints|ForwardRef|_evaluate|singledispatch(method)?|'
                    r'make_dataclass|update_wrapper|assigned|(Code|Function|Lambda)Type)$')
MODULES = {'gc', 'inspect', 'ctypes', 'importlib', 'traceback', 'builtins', 'calls', 'judge', '__main__', 'pickle',
           'marshal', 'code', 'codeop', 'runpy', 'pdb', 'bdb', 'trace', 'pkgutil', 'imp', 'logging', 'types'}
IMPORTS = {'__future__', 'abc', 'array', 'bisect', 'cmath', 'collections', 'contextlib', 'copy', 'dataclasses',
           'datetime', 'decimal', 'enum', 'fractions', 'functools', 'heapq', 'io', 'itertools', 'json', 'math', 'numbers',
           'operator', 'os', 'pprint', 'random', 're', 'statistics', 'string', 'struct', 'sys', 'textwrap', 'time',
           'typing', 'warnings'}
CALLS = {'eval', 'exec', 'compile', '__import__', 'vars', 'globals', 'locals', 'breakpoint', 'delattr', 'setattr'}
BUILTIN = {'bool', 'bytes', 'bytearray', 'dict', 'float', 'frozenset', 'int', 'list', 'set', 'str', 'tuple'}
def refused(source):
    checked = set()
    for node in ast.walk(ast.parse(source, 'student.py')):
        names = []
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [node.module or '.'] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            names = [name for name in modules if name.split('.')[0] not in IMPORTS]
            names += [alias.name for alias in node.names if BARRED.match(alias.name) or alias.name in MODULES]
        elif isinstance(node, ast.Attribute):
            modules = MODULES - {'calls', 'code', 'judge', 'trace', 'types'}  # self.calls is no module
            names = [node.attr] if BARRED.match(node.attr) or node.attr in modules else []
            if node.attr in ('format', 'format_map') and not isinstance(node.value, ast.Constant):
                names = [node.attr + ' of a text that is not a literal']
        elif isinstance(node, ast.Name):
            by_name = node.id in ('getattr', 'hasattr') and node not in checked
            names = [node.id] if by_name or node.id in CALLS or BARRED.match(node.id) else []
        elif isinstance(node, ast.keyword):
            names = [node.arg] if BARRED.match(node.arg or '') else []
        elif isinstance(node, ast.MatchClass):
            names = [name for name in node.kwd_attrs if BARRED.match(name)]
            if node.patterns and getattr(node.cls, 'id', '') not in BUILTIN:
                names = ['a class pattern with positional subpatterns']
        elif isinstance(node, ast.Expr):
            checked.add(node.value)  # a text in a line by itself is a comment
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in checked:
            names = re.findall(r'[{.](?:\w+[.])*?(__\w+__|tb_frame|f_back|f_locals)', node.value)
        elif isinstance(node, ast.Call) and getattr(node.func, 'id', '') in ('getattr', 'hasattr'):
            constant = len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
            names = [] if constant and not BARRED.match(str(node.args[1].value)) else [node.func.id]
            checked.add(node.func)
        if names:
            return '%s, in line %d' % (names[0], getattr(node, 'lineno', 0))
)";

/// Start of the message that contains the result of refused(), up to a colon.
constexpr std::string_view uses = "it uses ";

/// Program that calls the student's function with each list of arguments. Its inputs, which it reads before
/// it runs the student's code: point, arguments, the student's file, calls.py.
constexpr const char* call_program = R"(
def module(name, source):
    made = types.ModuleType(name)
    sys.modules[name] = made
    exec(compile(source, name + '.py', 'exec'), made.__dict__)
    return made
def line_of(error):
    at, line = error.__traceback__, None
    if isinstance(error, SyntaxError) and error.filename == 'student.py':
        line = error.lineno
    while at is not None:
        if at.tb_frame.f_code.co_filename == 'student.py':
            line = at.tb_lineno
        at = at.tb_next
    return '' if line is None else ', in line %d' % line
take_all = [take() for _ in range(4)]
try:
    point, arguments, source, calls = take_all
    arguments = json.loads(arguments)
    barred = refused(source)
    if barred:
        give(0, 'it uses %s: an answer may use computational modules, such as math, and may not look at its caller' % barred)
    student = module('student', source)
    run = getattr(module('calls', calls), 'run_' + point, None)
    results = [run(student, each) if run else getattr(student, point)(*each) for each in arguments]
    answer = json.dumps(results)
except NotImplementedError as error:
    give(0, str(error) or 'not yet')
except MemoryError:
    give(0, 'it exceeds the memory limit')
except SystemExit:
    give(0, 'it ends the program')
except BaseException as error:
    give(0, ('%s: %s%s' % (type(error).__name__, error, line_of(error)))[:500])
give(1, answer)
)";

/// Program that draws the arguments of several calls, or judges the results up to the first wrong one. Its inputs:
/// "draw", seed, point, judge.py; or "judge", arguments, point, judge.py, results.
constexpr const char* judge_program = R"(
import math, random
def looks(pairs):
    '''Returns the factor that all wrong numbers have in common, as a clause; empty if there is none.'''
    pairs = list(pairs)
    if all(x == 0 for x, y in pairs):
        return ': all are 0'
    ratios = [x / y for x, y in pairs if abs(y) > 1e-3]
    if not ratios or any(not math.isclose(ratio, ratios[0], rel_tol=1e-4) for ratio in ratios):
        return ''
    negative = math.isclose(ratios[0], -1, rel_tol=1e-4)
    return ': like the negative' if negative else f': {ratios[0]:.4g} times what it should be'
task, given, point, source = take(), take(), take(), take()
judge = types.ModuleType('judge')
judge.looks = looks
try:
    exec(compile(source, 'judge.py', 'exec'), judge.__dict__)
    if task == 'draw':
        stream = random.Random(given + point)
        answer = json.dumps([getattr(judge, 'draw_' + point)(stream) for _ in range(getattr(judge, 'CALLS', 20))])
    else:
        function = getattr(judge, 'judge_' + point)
        try:
            calls = zip(json.loads(given), json.loads(take()), strict=True)
            answer = next((said for said in (function(*call) for call in calls) if said), None)
        except Exception as error:
            answer = 'what it returns is not of the expected form (%s)' % type(error).__name__
        answer = answer or ''
        if not isinstance(answer, str):
            raise TypeError('judge_%s returns %r; expected None or a sentence' % (point, answer))
except BaseException as error:
    give(0, ('%s: %s' % (type(error).__name__, error))[:500])
give(1, answer)
)";

/// Returns a program's answer to its inputs. Throws Error with the program's error message, or with the reason why the
/// program ended.
std::string said_by(const char* program, const std::vector<std::string>& texts,
                    std::set<std::string>* refused = nullptr) {
  const PrivateDirectory place;
  Confined process({"/usr/bin/python3", "-I", "-S", "-B", "-c", fmt::format("{}{}", exchange, program)},
                   {.memory = Index{512} << 20, .directory = place.path(), .refused = refused});
  // Sent without a total length, since the programs read a fixed number of texts.
  Message message;
  for (const std::string& text : texts) message.put(text);
  process.send_bytes(message.bytes());
  Message answer = process.receive(longest_result);
  const bool good = answer.integer(0, 1) == 1;
  const std::string said = answer.text(longest_result);
  require(good, "{}", said);
  return said;
}

}  // namespace

PythonTask::PythonTask(const Lab& lab, std::uint64_t seed) : lab_(lab) {
  judge_ = read_file(lab.directory + "/judge.py", longest_source);
  const std::string calls = lab.directory + "/calls.py";
  if (std::filesystem::exists(calls)) calls_ = read_file(calls, longest_source);
  for (const LabPoint& point : lab.points) try {
      arguments_.push_back(said_by(judge_program, {"draw", fmt::format("{}", seed), point.name, judge_}));
    } catch (const Error& error) {
      fail("{}/judge.py: draw_{}: {}", lab.directory, point.name, error.what());
    }
}

Mark PythonTask::mark(const std::string& point, const std::string& arguments, const std::string& source,
                      std::set<std::string>& refused) const {
  std::string result, verdict;
  try {
    result =
        said_by(fmt::format("{}{}", frame_gate, call_program).c_str(), {point, arguments, source, calls_}, &refused);
  } catch (const Error& error) {
    const std::string problem = error.what();
    if (problem.starts_with(uses)) refused.insert(problem.substr(uses.size(), problem.find(':') - uses.size()));
    return {false, {problem}};
  }
  try {
    verdict = said_by(judge_program, {"judge", arguments, point, judge_, result});
  } catch (const Error& error) {
    return {false, {fmt::format("it cannot be graded: {}", error.what())}};
  }
  return verdict.empty() ? Mark{true} : Mark{false, {verdict}};
}

std::vector<Mark> PythonTask::marks(const std::string& source, std::set<std::string>& refused) const {
  std::vector<Mark> marks;
  for (std::size_t i = 0; i < lab_.points.size(); ++i)
    marks.push_back(mark(lab_.points[i].name, arguments_[i], source, refused));
  return marks;
}

}  // namespace heed
