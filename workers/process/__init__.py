"""What every process of the fleet needs: settings, clock, log lines, event loop, shards."""
