"""Your own controllers: the names that ``oarlock`` exports. The fleet runs them as it runs the built-in ones."""
