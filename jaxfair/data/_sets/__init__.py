"""The named sets, declared: files and checksums, labels, groups, cautions.

Each module is a table of `Spec`s. Reading rules that several sets share are one level up, and
nothing here opens a file by itself.
"""
