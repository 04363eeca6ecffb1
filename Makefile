# Needs GNU make and a Rust toolchain. No step has to come before `make demo`, `make test` or `make install`.

PREFIX = /usr/local
BINDIR = $(PREFIX)/bin
MANDIR = $(PREFIX)/share/man
DOCDIR = $(PREFIX)/share/doc/distributor
DESTDIR =

CARGO = cargo
INSTALL = install
TARGET = $(or $(CARGO_TARGET_DIR),target)
FUZZ_SECONDS = 60

PROGRAMS = distributor distributor-run distributor-validate distributor-inspect distributor-reconcile-state distributor-prune distributor-bundle
PAGES = $(sort $(wildcard man/*.[157]))
PAPERS = README.md CHANGELOG.md docs
EXAMPLES = $(filter-out examples/published,$(wildcard examples/*))
LICENCES = LICENSE-MIT LICENSE-APACHE
GARAGE = target/tools/bin/garage
# The test targets that have tests of S3.
S3_TESTS = servers storage s3
FUZZERS = $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))

.PHONY: all bench bench-s3 test test-s3 garage demo install uninstall lint-man fuzz-quick

all:
	$(CARGO) build --release --locked --bins

test:
	tests/needs
	$(CARGO) test --locked

# The tests of S3 on every server there is for them, none skipped.
test-s3: garage
	DISTRIBUTOR_TEST_NO_SKIP=1 tests/needs
	DISTRIBUTOR_TEST_NO_SKIP=1 $(CARGO) test --locked $(S3_TESTS:%=--test %)

# A server of S3 for tests and measurements: built once, in minutes.
garage: $(GARAGE)

$(GARAGE):
	CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_DEBUG=false \
		$(CARGO) install garage --version 2.5.0 --locked --no-default-features --features lmdb,bundled-libs \
		--root target/tools --target-dir target/tools/build
	rm -rf target/tools/build

demo:
	$(CARGO) build --profile light --locked --bins
	PATH="$(abspath $(TARGET))/light:$$PATH" examples/demo.sh

# Against rsync, cp and sha256sum, in one run; BENCH_ROUNDS, BENCH_DISK and BENCH_MEMORY set how often and where.
bench: all
	PATH="$(abspath $(TARGET))/release:$$PATH" tests/bench.sh

# Against rclone and s5cmd on a server of its own; BENCH_ROUNDS, BENCH_SERVERS ("garage moto") and BENCH_MEMORY too.
bench-s3: all garage
	PATH="$(abspath $(TARGET))/release:$$PATH" tests/bench-s3.sh

# As root after a build by another user, nothing is built again: cargo is only asked where a program is missing.
install:
	@for program in $(PROGRAMS); do \
		test -x "$(TARGET)/release/$$program" || { $(MAKE) all && break; } || exit 1; \
	done
	$(INSTALL) -d "$(DESTDIR)$(BINDIR)" "$(DESTDIR)$(DOCDIR)/examples"
	$(INSTALL) -m 0755 $(PROGRAMS:%="$(TARGET)/release/%") "$(DESTDIR)$(BINDIR)"
	for page in $(PAGES); do \
		$(INSTALL) -d "$(DESTDIR)$(MANDIR)/man$${page##*.}" && \
		$(INSTALL) -m 0644 "$$page" "$(DESTDIR)$(MANDIR)/man$${page##*.}" || exit 1; \
	done
	$(INSTALL) -m 0644 $(LICENCES) "$(DESTDIR)$(DOCDIR)"
	cp -R $(PAPERS) "$(DESTDIR)$(DOCDIR)"
	cp -R $(EXAMPLES) "$(DESTDIR)$(DOCDIR)/examples"
	chmod -R u=rwX,go=rX "$(DESTDIR)$(DOCDIR)"

uninstall:
	rm -f $(PROGRAMS:%="$(DESTDIR)$(BINDIR)/%")
	for page in $(PAGES); do \
		rm -f "$(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/}" || exit 1; \
	done
	rm -rf "$(DESTDIR)$(DOCDIR)"

# Prints what mandoc has to say, and fails if it is anything.
lint-man:
	@test -n "$(PAGES)" || { echo "no man pages" >&2; exit 1; }
	@said=$$(mandoc -Tlint -Wwarning $(PAGES)) && test -z "$$said" || { printf '%s\n' "$$said" >&2; exit 1; }

# cargo-fuzz asks for a nightly toolchain; RUSTC_BOOTSTRAP lets the stable one pass for it.
fuzz-quick:
	@test -n "$(FUZZERS)" || { echo "no fuzz targets" >&2; exit 1; }
	@for target in $(FUZZERS); do \
		echo "== $$target, $(FUZZ_SECONDS) s"; \
		mkdir -p "fuzz/corpus/$$target"; \
		RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run "$$target" "fuzz/corpus/$$target" "fuzz/seeds/$$target" -- \
			-max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=512 -print_final_stats=1 || exit 1; \
	done
