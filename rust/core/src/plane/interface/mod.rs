//! The calls of an open plane. Each hands its work to one part.

mod backups;
mod keys;
mod reads;
mod sealing;
mod upkeep;
mod writes;
