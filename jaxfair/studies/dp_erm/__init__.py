"""Chapter 3: why private training hurts groups unequally, one study per module.

`common` holds what all studies share; `networks` and `persons` hold what the DP-SGD studies share.
"""
