//! The system under test: build, start, wait until ready, stop; nothing outlives the run.
