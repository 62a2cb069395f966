"""How a run goes on from one interval to the next, and where traffic goes meanwhile."""
