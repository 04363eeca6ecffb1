//! distributor-validate: see distributor-validate(1).

fn main() -> std::process::ExitCode {
    distributor::commands::validate::main(&distributor::host::Host::real()).into()
}
