//! What the system and the host use, once a second.
