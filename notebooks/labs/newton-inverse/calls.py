"""Calls the student's functions. The gradient of the iteration is compared with differences of the student's newton."""

H = 1e-5


def moved(A, i, j, step):
    return [[x + step * (r == i and c == j) for c, x in enumerate(row)] for r, row in enumerate(A)]


def run_unrolled(student, arguments):
    A, a, steps, dX = arguments
    places = [(i, j) for i in range(len(A)) for j in range(len(A))]
    return {"gradient": student.unrolled(A, a, steps, dX),
            "above": [student.newton(moved(A, i, j, H), a, steps) for i, j in places],
            "below": [student.newton(moved(A, i, j, -H), a, steps) for i, j in places]}
