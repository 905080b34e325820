//! Agents and a coordinator over a real broker. The agents run on threads of the test; what only processes can suffer, such
//! as `SIGSTOP`, is tested with the command.

mod given;
mod loads;
mod losses;
mod scripts;
mod security;
