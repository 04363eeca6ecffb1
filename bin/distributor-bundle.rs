//! distributor-bundle: see distributor-bundle(1).

fn main() -> std::process::ExitCode {
    distributor::commands::bundle::main(&distributor::host::Host::real()).into()
}
