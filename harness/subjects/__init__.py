"""Subjects: the controllers under test, behind one small protocol."""
