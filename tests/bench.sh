#!/usr/bin/env bash
# Measures the local rows of the project's bars against real peers in the same run, and prints ratios. Called by
# `make bench` with the release programs on the PATH. Timings never decide a test: this only prints.
set -euo pipefail

disk=${BENCH_DISK:-target/bench}
memory=${BENCH_MEMORY:-/dev/shm/distributor-bench}
rounds=${BENCH_ROUNDS:-5}
here=$(dirname "$0")

for need in rsync sha256sum cp cmark taskset; do
    command -v "$need" >/dev/null || { echo "bench: $need is missing" >&2; exit 1; }
done
echo "peers: $(rsync --version | head -1 | tr -s ' ' | cut -d' ' -f1-3), $(cp --version | head -1), $(sha256sum --version | head -1)," \
    "$(cmark --version | head -1)"
echo "host: $(uname -sr), $(nproc) cores; best of $rounds rounds"
trap 'rm -rf "$memory" "$disk"' EXIT

# Seconds that a command takes, the best of all rounds; `prepare` runs before each and is not counted.
best() {
    local prepare=$1 least=999999999999 begun took
    shift
    for ((round = 0; round < rounds; round++)); do
        eval "$prepare" >/dev/null 2>&1
        begun=$(date +%s%N)
        "$@" >/dev/null 2>&1
        took=$(($(date +%s%N) - begun))
        ((took < least)) && least=$took
    done
    awk -v n="$least" 'BEGIN { printf "%.4f", n / 1e9 }'
}

# A row: what, ours, the peer's, the bar where there is one.
row() {
    awk -v what="$1" -v ours="$2" -v peer="$3" -v name="$4" -v bar="${5-}" 'BEGIN {
        ratio = ours / peer
        printf "%-46s %8.3f s  %8.3f s %-22s ratio %.2f%s\n", what, ours, peer, name, ratio,
            bar == "" ? "" : sprintf("  bar %.2f  %s", bar, ratio <= bar ? "met" : "MISSED")
    }'
}

peak() { { command time -f %M "$@" >/dev/null; } 2>&1 | tail -1; }

# The configuration of a place; the settings of its destination may go on.
site() {
    printf 'pipelines:\n  - id: p\n    source: {backend: local, path: in}\n' >"$1/site.yml"
    printf '    destinations: [{id: d, backend: local, path: out%s}]\n' "${2-}" >>"$1/site.yml"
}

many() {
    mkdir -p "$1/in/x"
    (cd "$1/in/x" && head -c 40960000 /dev/urandom | split -b 4096 -a 4 -d - f &&
        for n in $(seq 0 99); do mkdir "d$n" && mv f$(printf %02d "$n")?? "d$n/"; done)
    distributor-bundle -q "$1/in/x" --id bench
    site "$1"
}

publish() { distributor-run -q -c "$1/site.yml"; }

# So many Markdown pages, each made into one of HTML; what becomes of the raw HTML in them.
pages() {
    mkdir -p "$1/in/x"
    awk -v pages="$2" -v into="$1/in/x" -f "$here/bench-pages.awk"
    distributor-bundle -q "$1/in/x" --id bench
    site "$1" ', outputs: {policy: generated_only}, transforms: [{type: markdown_to_html, raw_html: '"$3"'}]'
}

rm -rf "$memory" "$disk"
many "$memory"
many "$disk"
sync

ours=$(best "rm -rf $memory/out" publish "$memory")
peer=$(best "rm -rf $memory/rs" rsync -a "$memory/in/" "$memory/rs/")
row "publish, 10,000 x 4 KiB, tmpfs" "$ours" "$peer" "rsync -a" 1.0

ours=$(best "rm -rf $disk/out; sync" publish "$disk")
peer=$(best "rm -rf $disk/rs; sync" rsync -a --fsync "$disk/in/" "$disk/rs/")
row "publish, 10,000 x 4 KiB, disk, durable" "$ours" "$peer" "rsync -a --fsync" 0.25

ours=$(best : publish "$memory")
peer=$(best : rsync -a "$memory/in/" "$memory/rs/")
row "repeated run, 10,000 files" "$ours" "$peer" "rsync -a, no change" 0.4
command -v time >/dev/null 2>&1 && rm -rf "$memory/out" && echo "memory, publish 10,000 files: $(peak distributor-run -q -c "$memory/site.yml") KiB"
rm -rf "$memory"

# Into one page, on one core: it reads no manifest, hashes nothing and writes no 2,000 files, and has no second core.
render() { cmark "$memory"/in/x/*.md; }

# What so many bytes take in MB a second, ours and the peer's, and whether ours is what it should be.
rate() {
    awk -v bytes="$1" -v ours="$2" -v peer="$3" -v bar="$4" 'BEGIN {
        printf "    %.0f MB of Markdown a second, cmark %.0f, bar %d  %s\n", bytes / ours / 1e6, bytes / peer / 1e6, bar,
            (bytes / ours / 1e6 >= bar) ? "met" : "MISSED"
    }'
}

for count in 200 2000; do
    for html in escape sanitize; do
        pages "$memory" "$count" "$html"
        ours=$(best "rm -rf $memory/out" publish "$memory")
        peer=$(best : render)
        row "pages, $count x 20 KiB, $html, tmpfs" "$ours" "$peer" "cmark"
        rate "$(cat "$memory"/in/x/*.md | wc -c)" "$ours" "$peer" 60
        rm -rf "$memory/out"
        echo "    memory: $(peak distributor-run -q -c "$memory/site.yml") KiB, cmark $(peak sh -c "cmark $memory/in/x/*.md") KiB"
        rm -rf "$memory"
    done
done

big=$memory/big
mkdir -p "$big/in/x"
head -c 2147483648 /dev/urandom >"$big/in/x/one"
distributor-bundle -q "$big/in/x" --id bench
site "$big"
rounds=$((rounds < 3 ? rounds : 3))
ours=$(best "rm -rf $big/out" publish "$big")
copy=$(best "rm -f $big/copy" cp "$big/in/x/one" "$big/copy")
rm -f "$big/copy"
sum=$(best : sha256sum "$big/in/x/one")
peer=$(printf '%s\n%s\n' "$copy" "$sum" | sort -rn | head -1)
row "publish, one file of 2 GiB, tmpfs" "$ours" "$peer" "slower of cp, sha256sum" 1.15
rm -rf "$big/out"

(cd "$big/in/x" && split -b 512M -d one part && rm one && rm manifest.json)
distributor-bundle -q "$big/in/x" --id bench
(cd "$big/in/x" && sha256sum part* >"$big/sums")
check() { (cd "$big/in/x" && taskset -c 0 sha256sum -c --quiet "$big/sums"); }
ours=$(best : taskset -c 0 distributor-validate -q "$big/in/x")
peer=$(best : check)
row "validate, 2 GiB, one core" "$ours" "$peer" "sha256sum -c" 1.1
two=$(best : distributor-validate -q "$big/in/x")
row "validate, 2 GiB, all cores" "$two" "$ours" "one core" 1.0
command -v time >/dev/null 2>&1 && echo "memory, validate 2 GiB: $(peak distributor-validate -q "$big/in/x") KiB"

rounds=20
ours=$(best : distributor-run --version)
peer=$(best : true)
awk -v a="$ours" -v b="$(best : /bin/true)" 'BEGIN { printf "%-46s %8.4f s  %8.4f s %-22s bar %.4f s\n", "start, --version", a, b, "true", b * 1.5 + 0.003 }'
