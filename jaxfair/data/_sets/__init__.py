"""The named sets, declared: files and checksums, labels, groups, cautions.

Each module is a table of `Spec`s; reading rules that several sets share live
one level up, and nothing here opens a file by itself.
"""
