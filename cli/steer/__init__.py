"""Commands that change what a fleet does: pause, resume, requeue; and what of it was done."""
