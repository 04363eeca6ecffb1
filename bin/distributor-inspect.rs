//! distributor-inspect: see distributor-inspect(1).

fn main() -> std::process::ExitCode {
    distributor::commands::inspect::main(&distributor::host::Host::real()).into()
}
