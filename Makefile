# SPDX-License-Identifier: Apache-2.0
# kernd: `make help` lists what can be made.

VERSION := 0.1.0
PREFIX ?= /usr/local
VARIANT ?= release
WERROR ?= 1
V ?= 0
# Debian's interpreter, not one that happens to come first in PATH: the tests need no package.
PYTHON ?= /usr/bin/python3

# Beneath build/; the release variant is build/ itself.
O := build$(if $(filter-out release,$(VARIANT)),/$(VARIANT))
Q := $(if $(filter 0,$(V)),@)
say = $(if $(filter 0,$(V)),@printf '  %-7s %s\n' $(1) $(2);)

.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := all

# ---- compiler and flags --------------------------------------------------------------------------

ifneq ($(filter clang fuzz,$(VARIANT)),)
CC := clang
else ifeq ($(origin CC),default)
CC := gcc
endif
IS_CLANG := $(findstring clang,$(shell $(CC) --version 2>/dev/null))

LIBRARIES := libmicrohttpd json-c sqlite3 libseccomp libarchive libsystemd nettle inih zlib
# Asked once, and only when something is compiled: `make deps` must work before they are there.
LIBRARY_CFLAGS = $(eval LIBRARY_CFLAGS := $$(shell pkg-config --cflags $(LIBRARIES)))$(LIBRARY_CFLAGS)
LIBRARY_LIBS = $(eval LIBRARY_LIBS := $$(shell pkg-config --libs $(LIBRARIES)) -lm)$(LIBRARY_LIBS)

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes \
    -Wmissing-prototypes -Wmissing-declarations -Wold-style-definition -Wpointer-arith \
    -Wcast-qual -Wcast-align -Wwrite-strings -Wformat=2 -Wundef -Wvla -Wswitch-enum \
    -Wimplicit-fallthrough -Wnull-dereference -Wdouble-promotion -Wredundant-decls -Wdate-time
WARNINGS_gcc := -Wformat-signedness -Wlogical-op -Wduplicated-cond -Wduplicated-branches -Walloca \
    -Warith-conversion -Wstringop-overflow=4
WARNINGS_clang := -Wcomma -Wloop-analysis -Wthread-safety
HARDENING := -fstack-protector-strong -fstack-clash-protection -fcf-protection -fPIE \
    -fno-strict-aliasing -fno-delete-null-pointer-checks -fvisibility=hidden \
    -ffunction-sections -fdata-sections
HARDENING_gcc := -ftrivial-auto-var-init=zero -fzero-call-used-regs=used-gpr
FAMILY := $(if $(IS_CLANG),clang,gcc)
# Sanitizers replace libc functions, which the fortified ones would bypass.
FORTIFY := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3

ifneq ($(filter-out release asan tsan clang coverage fuzz,$(VARIANT)),)
$(error VARIANT is one of release asan tsan clang coverage fuzz, not $(VARIANT))
endif
OPTIMIZE_release := -O2 -g
OPTIMIZE_clang := -O2 -g
OPTIMIZE_asan := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
    -fno-sanitize-recover=all
OPTIMIZE_tsan := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
OPTIMIZE_coverage := -O0 -g --coverage
OPTIMIZE_fuzz := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined \
    -fno-sanitize-recover=all
# gcc's flow analysis gives false alarms in the code that sanitizers add.
QUIET_asan := -Wno-null-dereference -Wno-stringop-overflow -Wno-maybe-uninitialized
QUIET_tsan := $(QUIET_asan)

BASE_CFLAGS := -std=gnu11 -D_GNU_SOURCE -I. -DKERND_VERSION='"$(VERSION)"' -pthread \
    $(WARNINGS) $(WARNINGS_$(FAMILY)) $(if $(filter 1,$(WERROR)),-Werror) \
    $(HARDENING) $(HARDENING_$(FAMILY))
VARIANT_CFLAGS := $(OPTIMIZE_$(VARIANT)) $(if $(filter release clang,$(VARIANT)),$(FORTIFY)) \
    $(if $(IS_CLANG),$(filter-out -Wno-stringop-overflow -Wno-maybe-uninitialized,$(QUIET_$(VARIANT))),$(QUIET_$(VARIANT)))
# CPPFLAGS, CFLAGS, LDFLAGS from outside come last, so that packagers win.
ALL_CFLAGS = $(BASE_CFLAGS) $(VARIANT_CFLAGS) $(LIBRARY_CFLAGS) $(CPPFLAGS) $(CFLAGS)
LINK_HARDENING := -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code,--as-needed,--gc-sections,--fatal-warnings
ALL_LDFLAGS = $(filter -fsanitize=% --coverage,$(OPTIMIZE_$(VARIANT))) -pie -pthread \
    $(LINK_HARDENING) $(LDFLAGS)
# kernd-init is never sanitized or measured: it is static, and it runs where no run-time library is.
PLAIN_CFLAGS = $(BASE_CFLAGS) -O2 -g $(FORTIFY) $(CPPFLAGS) $(CFLAGS)
# With musl, where it is installed: before main(), a static program of glibc asks the processor some
# seventy times what it is (cpuid), and in a virtual machine each answer takes up to 10 us.
MUSL := $(if $(IS_CLANG),,$(shell command -v musl-gcc))
INIT_CC := $(or $(MUSL),$(CC))
# musl-gcc knows musl's headers alone, and not those of the kernel.
INIT_CFLAGS = $(PLAIN_CFLAGS) $(if $(MUSL),-idirafter /usr/include -idirafter /usr/include/$(shell $(CC) -print-multiarch))
# Nor are kernd-template.so and kernd-node.so, which are loaded into interpreters that are not ours.
TEMPLATE_CFLAGS = $(PLAIN_CFLAGS) -fPIC
# The interpreter's functions are found when it is loaded.
TEMPLATE_LDFLAGS = -shared -pthread $(LINK_HARDENING) $(LDFLAGS)
INIT_LDFLAGS = -static -pthread \
    -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code,--gc-sections,--fatal-warnings $(LDFLAGS)

# ---- what there is -------------------------------------------------------------------------------

# ROOMS="base box" makes check-unit build and test these folders of lib/ alone.
INIT_SOURCES := $(wildcard lib/box/init.c lib/box/init_*.c)
# kernd-shell, the driver of bash kernels, is a program in the box too.
SHELL_SOURCES := $(wildcard lib/cell/shell.c lib/cell/shell_start.c)
# kernd-template.so, with which an interpreter in a box forks boxes: its own files, what kernd-init
# does to a program before it runs, and how kernd makes a process in its own memory.
TEMPLATE_SOURCES := $(wildcard lib/box/template.c lib/box/template_*.c)
TEMPLATE_PARTS := lib/box/init_state.c lib/box/init_landlock.c lib/box/clone.c
# kernd-node.so, which driver.js loads into node.
ADDON_SOURCES := $(wildcard lib/cell/addon.c)
LIB_SOURCES := $(filter-out $(INIT_SOURCES) $(SHELL_SOURCES) $(TEMPLATE_SOURCES) $(ADDON_SOURCES),$(foreach d,$(if $(ROOMS),$(ROOMS:%=lib/%),lib/*),$(wildcard $(d)/*.c)))
API_SOURCES := $(if $(ROOMS),,$(wildcard api/*.c))
SERVER_SOURCES := $(if $(ROOMS),,$(wildcard server/*.c))
CLIENT_SOURCES := $(if $(ROOMS),,$(filter-out client/main.c,$(wildcard client/*.c)))
MAIN_SOURCE := $(wildcard client/main.c)
ALL_UNIT_SOURCES := $(wildcard tests/unit/test_*.c)
UNIT_SUPPORT := $(filter-out $(ALL_UNIT_SOURCES),$(wildcard tests/unit/*.c))
UNIT_SOURCES := $(if $(ROOMS),$(filter $(patsubst %.c,tests/unit/test_%.c,$(notdir $(LIB_SOURCES))),$(ALL_UNIT_SOURCES)),$(ALL_UNIT_SOURCES))
FUZZ_SOURCES := $(wildcard tests/fuzz/fuzz_*.c)
ASSETS := $(wildcard api/openapi.yaml api/mcp_tools.json api/mcp_diagnostics.json server/assets/* client/shell/* systemd/kernd.*)
# The same description for programs, made from the one for people.
MADE_ASSETS := $(if $(wildcard api/openapi.yaml),$(O)/made/openapi.json)
DRIVERS := $(wildcard lib/cell/*.py lib/cell/*.js lib/cell/*.mjs lib/cell/*.sh)

object = $(patsubst %.c,$(O)/obj/%.o,$(1))
ASSET_OBJECTS := $(ASSETS:%=$(O)/obj/assets/%.o) $(MADE_ASSETS:%=$(O)/obj/assets/%.o)
LIBRARY_OBJECTS := $(call object,$(LIB_SOURCES) $(API_SOURCES) $(SERVER_SOURCES) $(CLIENT_SOURCES)) \
    $(if $(ROOMS),,$(ASSET_OBJECTS))
empty :=
space := $(empty) $(empty)
LIBRARY := $(O)/libkernd$(if $(ROOMS),-$(subst $(space),-,$(strip $(ROOMS)))).a
INIT_OBJECTS := $(INIT_SOURCES:%.c=$(O)/init/%.o)
TEMPLATE_OBJECTS := $(patsubst %.c,$(O)/template/%.o,$(TEMPLATE_SOURCES) $(TEMPLATE_PARTS))
TEMPLATE_BASE_OBJECTS := $(patsubst %.c,$(O)/template/%.o,$(wildcard lib/base/*.c))
# No more of it than programs in boxes need: musl lacks what others are made of.
INIT_BASE_OBJECTS := $(patsubst %,$(O)/init/lib/base/%.o,alloc buf clock err fd id text)
UNIT_PROGRAMS := $(UNIT_SOURCES:tests/unit/%.c=$(O)/tests/unit/%)
FUZZ_PROGRAMS := $(FUZZ_SOURCES:tests/fuzz/%.c=$(O)/tests/fuzz/%)
SHIPPED := $(if $(MAIN_SOURCE),$(O)/kernd) $(if $(INIT_SOURCES),$(O)/kernd-init) \
    $(if $(SHELL_SOURCES),$(O)/kernd-shell) $(if $(TEMPLATE_SOURCES),$(O)/kernd-template.so) \
    $(if $(ADDON_SOURCES),$(O)/kernd-node.so) $(DRIVERS:lib/cell/%=$(O)/%) $(if $(DRIVERS),$(O)/__pycache__/made)

.PHONY: all
all: $(SHIPPED) $(LIBRARY)

# Manual pages, whose lists of commands, settings and calls are the program's own.
PAGES := $(patsubst docs/man/%.in,$(O)/made/%,$(wildcard docs/man/*.in))
.PHONY: man
man: $(PAGES)

# ---- compile and link ----------------------------------------------------------------------------

# A file that changes only when its text does: rebuilds what was made with other flags or lists.
.PHONY: FORCE
FORCE:
define remember
@mkdir -p $(@D); printf '%s\n' '$(subst ','\'',$(1))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(1))' >$@
endef
$(O)/flags: FORCE
	$(call remember,$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(INIT_CC) $(INIT_CFLAGS) $(INIT_LDFLAGS) $(TEMPLATE_CFLAGS) $(TEMPLATE_LDFLAGS))
$(LIBRARY:.a=.list): FORCE
	$(call remember,$(LIBRARY_OBJECTS))

$(O)/obj/%.o: %.c $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(O)/init/%.o: %.c $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC,"$< (init)")$(INIT_CC) $(INIT_CFLAGS) -MMD -MP -c -o $@ $<

$(O)/template/%.o: %.c $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC,"$< (template)")$(CC) $(TEMPLATE_CFLAGS) -MMD -MP -c -o $@ $<

# api/openapi.yaml is asset_openapi_yaml[] up to asset_openapi_yaml_end, with a NUL byte there.
asset_symbol = asset_$(shell printf '%s' '$(notdir $(1))' | tr -c 'A-Za-z0-9' _)
define asset_text
__asm__(".pushsection .rodata\n.balign 16\n.hidden $(2)\n.hidden $(2)_end\n.global $(2)\n.global $(2)_end\n$(2):\n.incbin \"$(1)\"\n$(2)_end:\n.byte 0\n.popsection\n");
endef
$(O)/made/openapi.json: api/openapi.yaml api/openapi_json.py
	@mkdir -p $(@D)
	$(call say,JSON,$@)$(PYTHON) -B api/openapi_json.py $< >$@

$(ASSET_OBJECTS): $(O)/obj/assets/%.o: % Makefile
	@mkdir -p $(@D)
	$(call say,EMBED,$<)printf '%s\n' '$(call asset_text,$<,$(call asset_symbol,$<))' | \
	    $(CC) -std=gnu11 -fcf-protection -x c -c -o $@ -

$(LIBRARY): $(LIBRARY_OBJECTS) $(LIBRARY:.a=.list)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $(filter %.o,$^)

$(O)/kernd: $(call object,$(MAIN_SOURCE)) $(LIBRARY)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LIBRARY_LIBS)

$(O)/init/base.a: $(INIT_BASE_OBJECTS)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

$(O)/kernd-init: $(INIT_OBJECTS) $(O)/init/base.a
	$(call say,LD,$@)$(INIT_CC) $(INIT_LDFLAGS) -o $@ $^

$(O)/kernd-shell: $(SHELL_SOURCES:%.c=$(O)/init/%.o) $(O)/init/base.a
	$(call say,LD,$@)$(INIT_CC) $(INIT_LDFLAGS) -o $@ $^

$(O)/template/base.a: $(TEMPLATE_BASE_OBJECTS)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

$(O)/kernd-template.so: $(TEMPLATE_OBJECTS) $(O)/template/base.a
	$(call say,LD,$@)$(CC) $(TEMPLATE_LDFLAGS) -o $@ $^

$(O)/kernd-node.so: $(ADDON_SOURCES:%.c=$(O)/template/%.o)
	$(call say,LD,$@)$(CC) $(TEMPLATE_LDFLAGS) -o $@ $^

$(DRIVERS:lib/cell/%=$(O)/%): $(O)/%: lib/cell/%
	$(call say,COPY,$@)install -D -m 644 $< $@

# Boxes see this folder read-only, so the interpreter can't keep the bytecode of the drivers itself.
COMPILE_DRIVERS = $(PYTHON) -m compileall -q -f -d /run/kernd-lib --invalidation-mode unchecked-hash
PYTHON_DRIVERS := $(filter %.py,$(DRIVERS:lib/cell/%=%))
$(O)/__pycache__/made: $(PYTHON_DRIVERS:%=$(O)/%)
	$(call say,PYC,$(@D))$(COMPILE_DRIVERS) $^ && touch $@

# An archive: a test that has something in the place of the server's parts links no kit that needs these.
$(O)/tests/kits.a: $(call object,$(UNIT_SUPPORT))
	@mkdir -p $(@D)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

$(O)/tests/unit/%: $(O)/obj/tests/unit/%.o $(O)/tests/kits.a $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LIBRARY_LIBS) -lcmocka

# What offers the load of the benches.
LOAD := $(O)/tests/bench/load
$(LOAD): $(O)/obj/tests/bench/load.o $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^

# In the fuzz variant a target searches; everywhere else it replays the stored inputs.
FUZZ_MAIN := $(if $(filter fuzz,$(VARIANT)),,tests/fuzz/replay.c)
$(O)/tests/fuzz/%: $(O)/obj/tests/fuzz/%.o $(call object,$(FUZZ_MAIN)) $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(subst fuzzer-no-link,fuzzer,$(ALL_LDFLAGS)) -o $@ \
	    $(filter %.o %.a,$^) $(LIBRARY_LIBS)

$(O)/made/prefix: FORCE
	$(call remember,$(PREFIX))

$(PAGES): $(O)/made/%: docs/man/%.in docs/man/generate.py $(SHIPPED) $(O)/made/openapi.json $(O)/made/prefix
	$(call say,MAN,$@)$(PYTHON) -B docs/man/generate.py $< $(O)/kernd $(O)/made/openapi.json \
	    $(PREFIX)/libexec/kernd >$@

.SECONDARY:
-include $(wildcard $(O)/obj/*/*.d $(O)/obj/*/*/*.d $(O)/init/*/*/*.d $(O)/template/*/*/*.d)

# ---- run and check -------------------------------------------------------------------------------

SANITIZED := $(filter asan tsan,$(VARIANT))
# T=name runs the unit tests of that room (T="a b": of both), or the HTTP tests of test_<name>.py.
CHOSEN_UNIT := $(if $(T),$(filter $(T:%=$(O)/tests/unit/test_%),$(UNIT_PROGRAMS)),$(UNIT_PROGRAMS))
# ThreadSanitizer can't place its shadow where the kernel randomizes more than 28 bits.
SETARCH = $(if $(filter tsan,$(VARIANT)),$(shell test "$$(cat /proc/sys/vm/mmap_rnd_bits)" -gt 28 2>/dev/null && echo setarch -R))
# TALLY=FILE adds the counts of a run to that file.
RUN_TESTS = $(SETARCH) $(PYTHON) -B tests/run.py --build $(O) $(SANITIZED:%=--sanitizer %) \
    $(TALLY:%=--tally %) $(HTTP_SKIPPED:%=--skip %)
# Sanitizers look at the daemon alone. Drivers and kernd-init are no part of it, and what a box is
# refused is the kernel's to decide. What one call alone says or refuses has no threads to race.
HTTP_FOLDERS := tests/http $(if $(SANITIZED),,tests/unit/drivers tests/escape)
HTTP_SKIPPED := $(if $(filter tsan,$(VARIANT)),attackers client_javascript client_python command_line command_repl \
    host python readme results secrets session_files session_setup shell_completion web_page)
# What needs no more than Python; the rest of `make lint` needs the packages of `make deps-dev`.
LINT_QUICK := layers banned sizes exports syscalls

.PHONY: run check check-unit check-fuzz check-http tests
# For those who just type `make run`: all cores.
JOBS = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
run: deps-missing
	$(Q)$(MAKE) --no-print-directory $(JOBS) all
	$(Q)exec $(O)/kernd serve --hint $(ARGS)

check: deps-missing
	$(Q)$(MAKE) --no-print-directory $(JOBS) tests
	$(Q)$(RUN_TESTS) $(LINT_QUICK:%=--lint %) $(UNIT_PROGRAMS:%=--unit %) \
	    $(FUZZ_PROGRAMS:%=--fuzz %) $(if $(LINT_QUICK),--http tests/lint) $(HTTP_FOLDERS:%=--http %)

check-unit: $(CHOSEN_UNIT)
	$(Q)$(RUN_TESTS) $(CHOSEN_UNIT:%=--unit %)

check-fuzz: $(FUZZ_PROGRAMS)
	$(Q)$(RUN_TESTS) $(FUZZ_PROGRAMS:%=--fuzz %)

check-http: all $(LOAD)
	$(Q)$(RUN_TESTS) $(T:%=--only %) $(HTTP_FOLDERS:%=--http %)

# The HTTP tests with all boxes made by the real kern, which no package has: make check-kern KERN_BIN=FILE.
.PHONY: check-kern
check-kern: all $(LOAD)
	$(Q)if [ -x "$(KERN_BIN)" ] && [ -f "$(KERN_BIN)" ]; then \
	    KERND_TEST_ENGINE=kern KERN_BIN='$(abspath $(KERN_BIN))' \
	        $(RUN_TESTS) $(T:%=--only %) --http tests/http; \
	elif [ -n "$(KERN_BIN)" ]; then \
	    echo 'check-kern: $(KERN_BIN) is not a program' >&2; exit 2; \
	else \
	    echo 'SKIPPED: check-kern has no kern to test with; name one: make check-kern KERN_BIN=FILE' >&2; \
	fi

# Programs that others wrote, from npm: judges and light clients; then also those that are large.
CLIENT_FOLDERS := tests/clients/mcp tests/clients/description tests/clients/typed tests/clients/proxy
ALL_CLIENT_FOLDERS := $(CLIENT_FOLDERS) tests/clients/agents
.PHONY: check-clients check-clients-all
check-clients: all
	$(Q)$(RUN_TESTS) $(T:%=--only %) $(CLIENT_FOLDERS:%=--http %)

check-clients-all: all
	$(Q)KERND_TEST_ALL=1 $(RUN_TESTS) $(T:%=--only %) $(ALL_CLIENT_FOLDERS:%=--http %)

# Root's: guests are booted. Installs what is missing for that, and makes the guests if they are not there.
.PHONY: check-vm vm-guests
check-vm: all
	$(Q)$(SUDO) env TALLY=$(TALLY) ONLY=$(T) MUST_WORK=$(MUST_WORK) \
	    KERND_VM_PATIENCE=$(or $(KERND_VM_PATIENCE),1) tests/vm/check.sh $(O) $(PLACES)

vm-guests:
	$(Q)$(SUDO) tests/vm/build-rootfs.sh

tests: all $(UNIT_PROGRAMS) $(FUZZ_PROGRAMS) $(LOAD)

.PHONY: asan tsan
asan tsan:
	$(Q)$(MAKE) --no-print-directory VARIANT=$@ LINT_QUICK= check

.PHONY: fuzz
S ?= 60
FUZZ_NAMES := $(FUZZ_SOURCES:tests/fuzz/fuzz_%.c=%)
fuzz:
	$(Q)$(MAKE) --no-print-directory VARIANT=fuzz $(patsubst %,fuzz-%,$(or $(T),$(FUZZ_NAMES)))

# Requests by openapi.yaml against the sanitized server: N at most, S seconds at most.
.PHONY: fuzz-http
fuzz-http:
	$(Q)$(MAKE) --no-print-directory VARIANT=asan all
	$(Q)KERND=build/asan/kernd KERND_TEST_SLOW=4 $(PYTHON) -B tests/stress/fuzz_http.py \
	    $(addprefix --requests ,$(N)) $(addprefix --seconds ,$(S)) $(addprefix --seed ,$(SEED))

# New inputs go to build/fuzz/corpus; a crash is kept beside them, to be moved to tests/fuzz/regress.
fuzz-%: $(O)/tests/fuzz/fuzz_%
	$(Q)mkdir -p $(O)/corpus/$*
	$(Q)$< -max_total_time=$(S) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
	    -artifact_prefix=$(O)/corpus/$*- $(addprefix -dict=,$(wildcard tests/fuzz/$*.dict)) \
	    $(O)/corpus/$* $(wildcard tests/fuzz/corpus/$* tests/fuzz/regress/$*)

.PHONY: coverage
# The daemon under test writes its counts as another user, into the same folders.
coverage:
	$(Q)$(MAKE) --no-print-directory VARIANT=coverage tests
	$(Q)find build/coverage -name '*.gcda' -delete; find build/coverage -type d -exec chmod 1777 {} +
	$(Q)umask 0; $(MAKE) --no-print-directory VARIANT=coverage LINT_QUICK= check
	$(Q)gcovr --root . --filter 'lib/' --filter 'api/' --filter 'server/' --filter 'client/' --print-summary \
	    --txt build/coverage/coverage.txt --html-details build/coverage/coverage.html build/coverage

.PHONY: bench results bench-archives bench-kernels bench-sessions bench-start bench-templates bench-threads stress
bench: all $(LOAD)
	$(Q)KERN_BIN='$(KERN_BIN)' KERN_SANDBOX_JS='$(KERN_SANDBOX_JS)' $(PYTHON) -B tests/bench/bench.py $(ARGS)

# The page and its plots from what `make bench ARGS="--json build/bench.json"` has found.
results:
	$(Q)$(PYTHON) -B tests/bench/report.py build/bench.json docs $(ARGS)

# Snapshots and restores beside GNU tar.
bench-archives: all
	$(Q)$(PYTHON) -B tests/bench/archives.py $(ARGS)

# Beside Jupyter, where that is installed.
bench-kernels: all $(LOAD)
	$(Q)$(PYTHON) -B tests/bench/kernels.py $(ARGS)

# Many sessions, large files, many files.
bench-sessions: all
	$(Q)$(PYTHON) -B tests/bench/sessions.py $(ARGS)

# The request that starts the server which answers it.
bench-start: all
	$(Q)$(PYTHON) -B tests/bench/activation.py $(ARGS)

# Boxes forked of a warm interpreter, beside booted ones; a minute.
bench-templates: all $(LOAD)
	$(Q)$(PYTHON) -B tests/bench/templates.py $(ARGS)

# Parallel numpy calls with and without thread pools that follow `cpus`.
bench-threads: all
	$(Q)$(PYTHON) -B tests/bench/threadpools.py $(ARGS)

stress: all
	$(Q)$(PYTHON) -B tests/http/run.py --jobs 1 $(T:%=--only %) tests/stress

# ---- lint ----------------------------------------------------------------------------------------

C_FILES := $(foreach d,lib/* api server client tests/unit tests/fuzz tests/escape tests/stress tests/bench,$(wildcard $(d)/*.c $(d)/*.h))
PRODUCT_C := $(INIT_SOURCES) $(SHELL_SOURCES) $(TEMPLATE_SOURCES) $(ADDON_SOURCES) $(LIB_SOURCES) $(API_SOURCES) $(SERVER_SOURCES) $(CLIENT_SOURCES) \
    $(MAIN_SOURCE)
SHELL_FILES := .ci/run client/shell/kernd.bash $(wildcard tests/*/*.sh lib/cell/*.sh tests/vm/guest/kernd-vm-run)
TIDY_JOBS ?= $(shell nproc)

.PHONY: lint format format-check tidy cppcheck shellcheck layers banned sizes exports syscalls routes \
    analyze
lint: format-check layers banned sizes exports syscalls routes shellcheck cppcheck tidy

format:
	$(Q)clang-format -i $(C_FILES)

format-check:
	$(Q)clang-format --dry-run -Werror $(C_FILES) && echo 'format: ok'

tidy:
	$(Q)printf '%s\n' $(PRODUCT_C) | xargs -P $(TIDY_JOBS) -I{} clang-tidy --quiet {} -- \
	    -std=gnu11 -D_GNU_SOURCE -I. -DKERND_VERSION='"$(VERSION)"' $(LIBRARY_CFLAGS) 2>$(O)/tidy.log \
	    || { grep -Ev '^[0-9]+ warnings? .*generated' $(O)/tidy.log; exit 1; }
	$(Q)echo 'tidy: ok'

cppcheck:
	$(Q)cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
	    --suppress=varFuncNullUB --suppress=internalAstError \
	    --error-exitcode=1 -j $(TIDY_JOBS) -D_GNU_SOURCE -D__linux__ -D__x86_64__ -DMHD_VERSION=0x00097500 \
	    -DKERND_VERSION='"$(VERSION)"' -I. $(PRODUCT_C) && echo 'cppcheck: ok'

shellcheck:
	$(Q)shellcheck -x -P SCRIPTDIR $(SHELL_FILES) && echo 'shellcheck: ok'

layers banned sizes routes:
	$(Q)$(PYTHON) -B tests/lint/$@.py

exports syscalls: all
	$(Q)$(PYTHON) -B tests/lint/$@.py --build $(O)

analyze:
	$(Q)$(MAKE) --no-print-directory O=build/analyze CFLAGS='-fanalyzer $(CFLAGS)' all

# ---- what must be installed ----------------------------------------------------------------------

PACKAGES := gcc musl-tools make pkg-config bubblewrap libmicrohttpd-dev libjson-c-dev libsqlite3-dev \
    libseccomp-dev libarchive-dev libsystemd-dev nettle-dev libinih-dev zlib1g-dev libedit-dev \
    libedit2 libcmocka-dev python3 python3-yaml curl python3-pip bzip2 xz-utils zstd libarchive-tools
# Beside the tools, shells to complete in, programs that attack servers, and the Python packages that
# must work in a box.
PACKAGES_DEV := clang clang-format clang-tidy cppcheck libclang-rt-dev gcovr shellcheck git mandoc zsh fish \
    slowhttptest wrk hey \
    python3-pip python3-numpy python3-pandas python3-matplotlib python3-pil python3-requests
# Of tests/vm, which installs them when it is run; here for those who want all at once (VM=1).
PACKAGES_VM := qemu-system-x86 systemd-container mmdebstrap e2fsprogs cpio lz4
PACKAGES_DEB := build-essential debhelper dpkg-dev fakeroot lintian
missing = $(filter-out $(shell dpkg-query -W -f '$${db:Status-Abbrev}$${Package}\n' $(1) 2>/dev/null | \
    sed -n 's/^.i //p'),$(1))
# Node may come from elsewhere than Debian, and npm with it (check-clients needs that).
MISSING = $(call missing,$(PACKAGES)) $(if $(wildcard /usr/bin/node),,nodejs)
MISSING_DEV = $(call missing,$(PACKAGES_DEV) $(if $(VM),$(PACKAGES_VM))) $(if $(shell command -v npm),,npm)
SUDO = $(if $(filter 0,$(shell id -u)),,$(shell command -v sudo))
HAVE_APT = $(shell command -v apt-get 2>/dev/null)
define apt_install
$(Q)echo 'installing $(strip $(1))'
$(Q)$(SUDO) apt-get update -qq
$(Q)$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(1)
endef

.PHONY: deps deps-dev deps-missing
deps deps-missing:
	$(if $(HAVE_APT),$(if $(strip $(MISSING)),$(call apt_install,$(MISSING))))
	@:

deps-dev:
	$(if $(HAVE_APT),$(if $(strip $(MISSING) $(MISSING_DEV)),$(call apt_install,$(MISSING) $(MISSING_DEV))))
	@:

# ---- install and package -------------------------------------------------------------------------

LIBEXEC := $(DESTDIR)$(PREFIX)/libexec/kernd
SHARE := $(DESTDIR)$(PREFIX)/share
UNITS := systemd/kernd.service systemd/kernd.socket
UNIT_DIR := $(DESTDIR)$(PREFIX)/lib/systemd/user
page_path = $(SHARE)/man/man$(subst .,,$(suffix $(1)))/$(notdir $(1))
BASH_COMPLETION := $(SHARE)/bash-completion/completions/kernd
# Debian's packages have another place for it than /usr/local.
ZSH_DIR ?= $(PREFIX)/share/zsh/site-functions
ZSH_COMPLETION := $(DESTDIR)$(ZSH_DIR)/_kernd
FISH_COMPLETION := $(SHARE)/fish/vendor_completions.d/kernd.fish

.PHONY: install uninstall dist deb
install: all man
	install -D -m 755 $(O)/kernd $(DESTDIR)$(PREFIX)/bin/kernd
	install -D -m 755 $(O)/kernd-init $(LIBEXEC)/kernd-init
	install -D -m 755 $(O)/kernd-shell $(LIBEXEC)/kernd-shell
	install -D -m 755 $(O)/kernd-template.so $(LIBEXEC)/kernd-template.so
	install -D -m 755 $(O)/kernd-node.so $(LIBEXEC)/kernd-node.so
	$(foreach f,$(DRIVERS:lib/cell/%=%),install -D -m 644 $(O)/$(f) $(LIBEXEC)/$(f) &&) :
	$(COMPILE_DRIVERS) $(PYTHON_DRIVERS:%=$(LIBEXEC)/%)
	$(foreach f,$(UNITS:systemd/%=%),install -D -m 644 systemd/$(f) $(UNIT_DIR)/$(f) &&) :
	sed -i 's|^ExecStart=kernd |ExecStart=$(PREFIX)/bin/kernd |' $(UNIT_DIR)/kernd.service
	$(foreach f,$(PAGES),install -D -m 644 $(f) $(call page_path,$(f)) &&) :
	install -D -m 644 client/shell/kernd.bash $(BASH_COMPLETION)
	install -D -m 644 client/shell/kernd.zsh $(ZSH_COMPLETION)
	install -D -m 644 client/shell/kernd.fish $(FISH_COMPLETION)

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/kernd $(UNITS:systemd/%=$(UNIT_DIR)/%)
	rm -f $(foreach f,$(PAGES),$(call page_path,$(f)))
	rm -f $(BASH_COMPLETION) $(ZSH_COMPLETION) $(FISH_COMPLETION)
	rm -rf $(LIBEXEC)

# The committed tree, byte for byte the same each time: git gives its files the commit's time.
DIST := dist/kernd-$(VERSION).tar.gz
dist:
	$(Q)mkdir -p $(dir $(DIST))
	$(Q)git -c tar.umask=0022 archive --prefix=kernd-$(VERSION)/ HEAD | gzip -9n >$(DIST)
	$(Q)echo $(DIST)

# The same as a Debian source package and what is built from it, in dist/. The packaging is kept
# beside the units it installs. It has no maintainer with an address, and lintian is told so.
DEB := build/deb
define DEB_CHANGELOG
kernd ($(VERSION)-1) unstable; urgency=medium

  * See /usr/share/doc/kernd/changelog.gz.

 -- kernd developers <kernd@localhost>  @DATE@
endef
deb: export DEB_CHANGELOG := $(DEB_CHANGELOG)
deb: dist
	$(if $(HAVE_APT),$(if $(strip $(call missing,$(PACKAGES_DEB))),$(call apt_install,$(call missing,$(PACKAGES_DEB)))))
	$(Q)rm -rf $(DEB) && mkdir -p $(DEB)
	$(Q)cp $(DIST) $(DEB)/kernd_$(VERSION).orig.tar.gz
	$(Q)tar -C $(DEB) -xzf $(DIST)
	$(Q)cp -r $(DEB)/kernd-$(VERSION)/systemd/debian $(DEB)/kernd-$(VERSION)/debian
	$(Q)printf '%s\n' "$$DEB_CHANGELOG" | sed "s/@DATE@/$$(git log -1 --format=%cD)/" \
	    >$(DEB)/kernd-$(VERSION)/debian/changelog
	$(Q)cd $(DEB)/kernd-$(VERSION) && env -u MAKEFLAGS -u MAKELEVEL dpkg-buildpackage --no-sign
	$(Q)lintian --fail-on error,warning --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
	    $(DEB)/kernd_$(VERSION)-1_*.changes
	$(Q)cp $(DEB)/kernd_* dist/ && ls dist

.PHONY: clean help
clean:
	rm -rf build dist

help:
	@printf '%s\n' \
	'make                      build/kernd, build/kernd-init and the drivers' \
	'make run ARGS="..."       installs what is missing, builds, runs kernd serve' \
	'make check                quick lint, unit tests, stored fuzz inputs, HTTP and escape tests' \
	'make check-unit [T=room]  unit tests (ROOMS="base box": of these folders of lib/ alone)' \
	'make check-http [T=name]  HTTP and escape tests' \
	'make check-kern KERN_BIN= the HTTP tests with that kern for all boxes [T=name]' \
	'make check-fuzz           the stored inputs of the fuzz targets' \
	'make check-clients[-all]  conformance suite and clients of others, from npm; all: large ones too' \
	'make check-vm             limits and services in a booted container and a virtual machine (root)' \
	'make asan | tsan          make check in that sanitizer variant' \
	'make fuzz [T=name] [S=60] searches with libFuzzer for S seconds' \
	'make coverage             make check with line counts; build/coverage/coverage.html' \
	'make fuzz-http [N=] [S=]  requests by the description against the sanitized server' \
	'make bench | stress       measurements; long tests' \
	'make results              docs/results.md from build/bench.json, which bench has written' \
	'make bench-archives       snapshots and restores beside GNU tar' \
	'make bench-kernels        cells beside a Jupyter server' \
	'make bench-start          the first request, which starts the server that answers it' \
	'make bench-templates      boxes forked of a warm interpreter, beside booted ones' \
	'make bench-threads        numpy calls with thread pools that follow cpus, and without' \
	'make lint                 format-check layers banned sizes exports syscalls routes shellcheck' \
	'                          cppcheck tidy' \
	'make analyze              builds with gcc -fanalyzer' \
	'make format               clang-format -i' \
	'make deps | deps-dev      Debian packages to build and test; to lint, fuzz and measure too (VM=1:' \
	'                          and those of check-vm)' \
	'make man                  the manual pages, beneath build/made' \
	'make install | uninstall  DESTDIR= PREFIX=/usr/local' \
	'make dist | deb           a tarball of HEAD; Debian packages of it; both in dist/' \
	'make clean                removes build and dist' \
	'' \
	'VARIANT=asan|tsan|clang|coverage|fuzz builds beneath build/VARIANT; WERROR=0 keeps warnings' \
	'warnings; V=1 shows the commands; MUST_WORK=1 makes a skipped test a failure.'
