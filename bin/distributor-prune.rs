//! distributor-prune: see distributor-prune(1).

fn main() -> std::process::ExitCode {
    distributor::commands::prune::main(&distributor::host::Host::real()).into()
}
