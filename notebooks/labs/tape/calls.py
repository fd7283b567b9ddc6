"""Runs the student's operations, and returns values and gradients."""


def run_operation(operation, student, arguments):
    """Returns the gradients of both operands after the backward step of this operation alone, from the cotangent."""
    a, b, cotangent, there = arguments
    tape = student.Tape()
    a, b = tape.var(a), tape.var(b)
    a.grad = [[there] * len(row) for row in a.value]
    out = operation(a, b)
    out.grad = cotangent
    tape.steps[-1]()
    return [a.grad, b.grad]


def run_add(student, arguments):
    return run_operation(student.add, student, arguments)


def run_mul(student, arguments):
    return run_operation(student.mul, student, arguments)


def run_matmul(student, arguments):
    return run_operation(student.matmul, student, arguments)


def run_backward(student, arguments):
    """Returns the gradients of total(relu(x w) + x w + x w), which uses x w three times."""
    x, w = arguments
    tape = student.Tape()
    x, w = tape.var(x), tape.var(w)
    xw = student.matmul(x, w)
    result = student.total(student.add(student.add(student.relu(xw), xw), xw))
    tape.backward(result)
    return [x.grad, w.grad]
