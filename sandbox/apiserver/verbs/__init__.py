"""The verbs: create, update, patch, delete, list; and admission, which may refuse them."""
