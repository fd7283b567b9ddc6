"""Calls the student's functions. huber is called at several points, to judge its slopes."""


def run_huber(student, arguments):
    return [student.huber(u) for u in arguments[0]]
