//! The command from end to end: real studies in folders of their own, real systems, real load, and
//! a look at what is left on the disk and in the process list.

mod architecture;
mod audit;
mod bad_input;
mod bundles_of_earlier_versions;
mod busy_machine;
mod capacity;
mod check_and_plan;
mod common;
mod compare;
mod database_of_a_system;
mod databases;
mod doctor;
mod failing_systems;
mod faults;
mod flows;
mod interrupts;
mod metrics;
mod nothing_outlives;
mod once;
mod one_system;
mod other_commands;
mod outputs;
mod planner;
mod resume;
mod script_studies;
mod scripts;
mod secrets;
mod soak;
mod sockets;
mod spare_blocks;
mod steady;
mod storage;
mod turns;
mod until_decided;
mod whole_study;
