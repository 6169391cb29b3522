"""The running fleet at a glance, as one value with bounded work. Who shows it imports this; this draws nothing."""
