//! distributor-run: see distributor-run(1).

fn main() -> std::process::ExitCode {
    distributor::commands::run::main(&distributor::host::Host::real()).into()
}
