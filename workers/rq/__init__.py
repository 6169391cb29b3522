"""The genuine RQ worker around the turns: its queue, heartbeat, jobs and requests."""
