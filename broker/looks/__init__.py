"""What people see of the broker. Nothing here decides, and nothing changes."""
