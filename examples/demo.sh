#!/bin/sh
# What distributor does, on the project's own documents and the example bundle: make, check, publish, skip, replace, and
# refuse to touch what is not its own; and pages from Markdown.
# Called by `make demo`, which puts the programs on the PATH; everything lands under target/demo.
set -eu
cd "$(dirname "$0")/.."
demo=target/demo

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
[ -t 1 ] && [ -z "${NO_COLOR-}" ] && [ "${TERM-dumb}" != dumb ] || say() { printf '\n%s\n' "$1"; }
run() { printf '$ %s\n' "$*"; "$@"; }
refused() { run "$@" && status=0 || status=$?; echo "exit status $status"; [ "$status" -eq 1 ]; }

# Modes from here on are those of the configuration, not of this directory.
rm -rf "$demo"
mkdir -p "$demo/source"
cp -R docs "$demo/source/docs"
cp -R examples/bundles/welcome "$demo/source/welcome"
cat > "$demo/site.yml" <<'YAML'
pipelines:
  - id: demo
    source:
      backend: local
      path: source
    destinations:
      - id: www
        backend: local
        path: www
        links:
          base_url: https://www.example.org/
      - id: backup
        backend: local
        path: backup
YAML

say "1. Make a bundle of the project's documents, and check it"
run distributor-bundle "$demo/source/docs" --id demo.docs
run distributor-validate "$demo/source/docs"

say "2. Look before you leap"
run distributor-run --config "$demo/site.yml" --dry-run

say "3. Publish"
run distributor-run --config "$demo/site.yml"

say "4. Once more: nothing is new, nothing is written"
run distributor-run --config "$demo/site.yml"

say "5. Change one bundle: it is replaced, the other one is left alone"
echo "A second release." >> "$demo/source/welcome/notes/release.txt"
run distributor-bundle "$demo/source/welcome" --id example.welcome --force
run distributor-run --config "$demo/site.yml"

say "6. Somebody puts a file of their own where the next version goes: it is refused, and their file is unharmed"
echo "Do not lose this." > "$demo/www/welcome/notes/mine.txt"
echo "A third release." >> "$demo/source/welcome/notes/release.txt"
run distributor-bundle "$demo/source/welcome" --id example.welcome --force
refused distributor-run --config "$demo/site.yml"
run cat "$demo/www/welcome/notes/mine.txt"

say "7. Move it aside, run again: published"
run mv "$demo/www/welcome/notes/mine.txt" "$demo/mine.txt"
run distributor-run --config "$demo/site.yml"

say "8. Make pages of a bundle of Markdown files, and publish them with its image"
mkdir "$demo/bundles"
cp -R examples/bundles/handbook "$demo/bundles/handbook"
cp examples/handbook.yml "$demo/handbook.yml"
run distributor-run --config "$demo/handbook.yml" --verbose

say "Look at"
echo "  $demo/www/welcome/index.html           a published page"
echo "  $demo/www/welcome/.distributor.json    the record of what is managed there"
echo "  $demo/published/handbook/index.html    a page that was made from Markdown"
echo "  $demo/mine.txt                         the stranger's file"
echo "  $demo/site.yml                         the configuration"
