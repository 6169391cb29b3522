"""What the fleet says of itself: figures in Prometheus's formats, and whether it is alive and ready."""
