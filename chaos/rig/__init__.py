"""What a campaign shakes: fleets, their Redis servers, and the processes of both."""
