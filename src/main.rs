//! Command line in, exit code out.

use scoregate::cli::{self, Exit};

fn main() -> Exit {
    cli::main()
}
