//! Walks the plan: phases, trials, events.
