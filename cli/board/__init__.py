"""`oarlock board`: a page that shows a running fleet. One look a second for all who watch, none where nobody does."""
