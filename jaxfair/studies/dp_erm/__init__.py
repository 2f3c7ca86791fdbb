"""Chapter 3: why private training hurts groups unequally, one study a module.

`common` and `networks` are what they share; `gaps` and `persons` their checks.
"""
