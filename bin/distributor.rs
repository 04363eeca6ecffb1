//! distributor: see distributor(1).

fn main() -> std::process::ExitCode {
    distributor::commands::distributor::main(&distributor::host::Host::real()).into()
}
