"""Rules for pods and pod templates."""
