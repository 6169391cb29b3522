"""Commands that change what a fleet does: pause, park, requeue, drain and their like; and what of it was done."""
