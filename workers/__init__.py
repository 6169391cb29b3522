"""The fleet: ingestors, RQ workers, their supervisor and the command line. All input and output lives here."""
