//! Values and rules that every part of scoregate shares.
//!
//! Contents: time ([`clock`]), keys ([`keys`]), limits ([`limits`]), the endpoints of the API ([`routes`]), tiers
//! ([`plans`]), evidence of use ([`evidence`]), addresses ([`address`]), secrets ([`secret`]), files that are reread at run time
//! ([`watched_file`]), JSON parsing with error paths ([`json`]), connections of a listening socket ([`accept`]),
//! and enums with a word for each variant ([`words!`]). Nothing here waits for a network or a disk, except that
//! [`clock`] sleeps, [`accept`] waits for connections, and [`secret`] and [`watched_file`] read files.
//!
//! This crate does not depend on a store, an HTTP server or metrics.

pub mod accept;
pub mod address;
pub mod clock;
pub mod evidence;
pub mod json;
pub mod keys;
pub mod limits;
pub mod plans;
pub mod routes;
pub mod secret;
pub mod watched_file;
#[doc(hidden)]
pub mod words;
