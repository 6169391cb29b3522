"""The revisions of an owner's template, kept as ControllerRevisions."""
