//! What a bundle keeps, what it says when it is damaged, and what `kill -9` leaves of it.

mod crash;
mod damage;
mod documentation;
mod fixture;
mod format_1;
mod format_2;
mod given;
mod growth;
mod loads;
mod logs;
mod resume;
mod round_trip;
