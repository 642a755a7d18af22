"""The reconciler proper: pure functions from desired and observed state to a plan."""
