"""Commands that run something: processes of a fleet, a whole cluster, a demonstration, a campaign."""
