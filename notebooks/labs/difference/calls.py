"""Calls the student's functions for many pairs of arms at once."""


def run_interval(student, arguments):
    return [student.interval(a, b) for a, b in arguments[0]]


def run_welch(student, arguments):
    return [student.welch(a, b) for a, b in arguments[0]]


def run_paired(student, arguments):
    return [student.paired(a, b) for a, b in arguments[0]]
