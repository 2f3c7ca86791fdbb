"""Chapter 3: why private training hurts groups unequally, one study a module.

`common` has what they all share, `networks` and `persons` what the studies of
DP-SGD share.
"""
