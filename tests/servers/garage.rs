//! Garage, a real server of S3: it checks signatures and checksums, keeps no versions, and ignores conditional writes.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use super::process::{Process, free};
use super::{ACCESS_KEY, BUCKET, SECRET_KEY, Server, tool};

const REGION: &str = "garage";

/// The server that all tests of this process share, if it is here.
pub(crate) fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Server> = OnceLock::new();
    let program = tool("bin/garage", "`make garage` builds it, in minutes")?;
    Some(SERVER.get_or_init(|| {
        let (process, address) = Process::start("garage", |dir, address| {
            std::fs::write(dir.join("garage.toml"), configuration(dir, address)).unwrap();
            let mut command = Command::new(&program);
            command.arg("-c").arg(dir.join("garage.toml")).args(["server", "--single-node", "--default-bucket"]);
            command.env("GARAGE_DEFAULT_ACCESS_KEY", ACCESS_KEY).env("GARAGE_DEFAULT_SECRET_KEY", SECRET_KEY);
            command.env("GARAGE_DEFAULT_BUCKET", BUCKET).env("RUST_LOG", "garage=info");
            command
        });
        Server { name: "garage", address, region: REGION, process }
    }))
}

/// One node, which nobody else is to join. Virtual hosts are `bucket.localhost`.
fn configuration(dir: &Path, address: SocketAddr) -> String {
    let (dir, rpc, secret) = (dir.display(), SocketAddr::from((Ipv4Addr::LOCALHOST, free().port())), "0".repeat(64));
    format!(
        "metadata_dir = '{dir}/metadata'\ndata_dir = '{dir}/data'\ndb_engine = 'lmdb'\nreplication_factor = 1\n\
         rpc_bind_addr = '{rpc}'\nrpc_secret = '{secret}'\nallow_world_readable_secrets = true\n\
         [s3_api]\napi_bind_addr = '{address}'\ns3_region = '{REGION}'\nroot_domain = '.localhost'\n"
    )
}
