"""Tables and properties of decisions. A number such as 11.2.26 in a test's id is that of the upstream unit
case it stands for; deviations.md lists the cases that are tested differently or elsewhere.
"""
