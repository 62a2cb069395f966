"""The half of the controller that does I/O: watches feed a cache, one worker per Canary, writes in order."""
