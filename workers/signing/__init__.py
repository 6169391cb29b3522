"""Signatures of cached objects: made by the ingestors, checked by whoever reads one."""
