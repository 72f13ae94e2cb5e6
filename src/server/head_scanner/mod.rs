//! Checks the heads of HTTP/1.1 requests before the codec reads them.

mod scanner;
#[cfg(test)]
mod tests;

pub use scanner::{HeadLimit, HeadScanner};
