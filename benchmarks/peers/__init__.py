"""Other task queues of Python on Redis, each with a job that does nothing but be counted."""
