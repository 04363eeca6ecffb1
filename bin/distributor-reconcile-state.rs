//! distributor-reconcile-state: see distributor-reconcile-state(1).

fn main() -> std::process::ExitCode {
    distributor::commands::reconcile_state::main(&distributor::host::Host::real()).into()
}
