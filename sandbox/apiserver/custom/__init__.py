"""Custom resources: CustomResourceDefinitions, and the kinds that they define.

A definition becomes a `Kind` for each version (`kinds.py`). What its objects may hold says the version's structural
schema: `pruning.py` and `defaulting.py` bring an object into its form, `schema_errors.py` says what is wrong with it.
`definitions.py` follows the definitions in the store and serves what they define.
"""
