//! The generator: schedule, engine, protocol drivers, recorder.
