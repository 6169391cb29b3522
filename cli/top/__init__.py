"""`oarlock top`: a live look at a running fleet. Only this folder knows of the terminal that shows it."""
