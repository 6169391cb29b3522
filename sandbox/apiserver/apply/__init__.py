"""Server-side apply: who manages which field of an object, and the merge of what a manager applies.

`field_sets` are sets of paths in the form of FieldsV1, `field_types` say how lists and maps merge, `typed` reads and
merges objects by them, `managers` keeps metadata.managedFields, and `request` serves the PATCH.
"""
