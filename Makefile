# tarn. `make help` lists what there is to make, for the BOARD (boards/) and the TARGET (toolchains/; none: this machine).
BOARD  ?= host
TARGET ?=
include boards/$(BOARD)/board.mk

LUA     ?= lua5.4
PYTHON  ?= python3
OUT     ?= build/$(BOARD)$(TARGET:%=-%)
ROOMS   ?= $(notdir $(patsubst %/,%,$(wildcard engine/*/)))
JOBS    ?= $(shell nproc)
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(JOBS)
endif

# The library is every room but the program's main; tarn*.c (the public API) needs all of them.
SOURCES := $(filter-out engine/app/main.c,$(foreach room,$(ROOMS),$(wildcard engine/$(room)/*.c))) \
           $(if $(filter table,$(ROOMS)),$(wildcard engine/*.c))
OBJECTS := $(SOURCES:%.c=$(OUT)/%.o)
PROGRAM := $(patsubst engine/app/main.c,$(OUT)/tarn,$(wildcard $(patsubst %,engine/%/main.c,$(filter app,$(ROOMS)))))
SIM     ?= $(patsubst %.c,$(OUT)/%.o,$(filter-out %_test.c,$(wildcard tests/sim/*.c)))
TESTS   ?= $(patsubst tests/%.c,$(OUT)/tests/%,$(wildcard tests/*/*_test.c))
DRIVERS := $(patsubst tests/%.c,$(OUT)/tests/%,$(wildcard tests/interop/*_driver.c))
FUZZ    := $(patsubst tests/%.c,$(OUT)/tests/%,$(wildcard tests/fuzz/*_fuzz.c))
GEN     := $(if $(wildcard boards/$(BOARD)/board.lua),$(OUT)/gen/board.h) $(OUT)/gen/library.h $(OUT)/gen/help.h

CFLAGS  ?= -O2 -g
WARN    := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wformat=2 -Wundef \
           -Wstrict-prototypes -Wmissing-prototypes -Wswitch-enum -Wvla -Wcast-align=strict \
           -Wnull-dereference -Wimplicit-fallthrough -Wdouble-promotion -Wredundant-decls \
           -Wframe-larger-than=2048 -Werror
ALL_CFLAGS := -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iengine -I$(OUT)/gen -MMD -MP $(WARN) \
              $(BOARD_CFLAGS) $(TARGET_CFLAGS) $(CFLAGS)
TLS  := $(patsubst %,$(OUT)/tls/lib%.a,mbedtls mbedx509 mbedcrypto)
LIBS := -llua5.4 -lzstd -llz4 -lavro -ljansson -lcjson -lexpat -luv -lz -lbz2 -lm -lpthread
QUIET := $(if $(V),,@)

# The same tree, built three ways.
asan := OUT=build/asan CFLAGS="-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
        -fno-sanitize-recover=all -DTN_DEBUG -Wno-frame-larger-than"
tsan := OUT=build/tsan CFLAGS="-O1 -g -fsanitize=thread -DTN_DEBUG -Wno-frame-larger-than"
fuzz := OUT=build/fuzz CC=clang WARN= CFLAGS="-O1 -g -fno-omit-frame-pointer \
        -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -DTN_DEBUG -Wno-frame-larger-than"

# Random tests: where the seed comes from, and how long they look. CI gives more, `make soak` ten times more.
SEED         := $(or $(SEED),$(shell printf '%d' 0x$$(git rev-parse --short=8 HEAD 2>/dev/null || date +%s)))
PEER_SECONDS ?= 30
CUT_SECONDS  ?= 12
FUZZ_SECONDS ?= 10
STRESS_SECONDS ?= 1200
export SEED PEER_SECONDS CUT_SECONDS FUZZ_SECONDS
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache

.PHONY: all library programs gen objects deps test peers cross tidy fmt bench bench-upload delay stress soak sim demo fuzz clean help venv oracle versitygw cluster flink threaded fuzzers
.DELETE_ON_ERROR:
.SECONDARY:

all: library $(PROGRAM) ## build/host/tarn and the library (BOARD=... for another board, TARGET=... for another machine)

library: $(OUT)/libtarn.a
programs: all $(TESTS) $(FUZZ) $(DRIVERS)
	@:
gen: $(GEN)
objects: $(OBJECTS) $(PROGRAM:%/tarn=%/engine/app/main.o)

deps: ## installs what the build and the tests need (apt), when it is missing
	@scripts/deps/debian build test

# What needs packages runs in a second make, which sees them.
test: deps ## all tests that need no Java: C, sanitizers, simulator, fuzz replay, golden tables, pypaimon
	@$(MAKE) --no-print-directory programs venv
	@$(MAKE) --no-print-directory $(asan) programs
	@$(MAKE) --no-print-directory $(tsan) threaded
	@sh scripts/test/list test | sh scripts/test/all build/test $(JOBS)

peers: deps ## what tarn and the official Java Paimon make of each other's tables, and tarn and an object store of each other
	@scripts/deps/debian peers
	@$(MAKE) --no-print-directory programs venv oracle versitygw
	@sh scripts/test/list peers | sh scripts/test/all build/peers $(JOBS)

flink: deps ## what real Apache Flink makes of the lake: it reads, compacts in a pause, and writes beside gateways
	@scripts/deps/debian peers
	@$(MAKE) --no-print-directory programs venv oracle versitygw cluster
	@sh scripts/test/list flink | sh scripts/test/all build/flink/log $(JOBS)

cross: ## the C tests on 32-bit and 64-bit ARM, emulated (TARGET=armhf and TARGET=arm64 build for them)
	@scripts/deps/debian build armhf arm64 emulator
	@$(MAKE) --no-print-directory TARGET=armhf programs
	@$(MAKE) --no-print-directory TARGET=arm64 programs
	@sh scripts/test/list cross | sh scripts/test/all build/cross $(JOBS)

tidy: ## layers, format, warnings, lint: what a change must pass before it is sent
	@scripts/deps/debian build tidy armhf
	@$(MAKE) --no-print-directory gen build/stylua/done
	@sh scripts/test/list tidy | TEST_LINES=200 sh scripts/test/all build/tidy $(JOBS)

bench: deps ## CPU and memory of tarn and of every peer that is installed, and what lookups and scripts cost
	@scripts/deps/debian bench
	@$(MAKE) --no-print-directory all
	@scripts/bench

bench-upload: deps ## how fast files go to a bucket, against rclone and boto3, by HTTP and by TLS, and how well a rate is kept
	@scripts/deps/debian bench
	@$(MAKE) --no-print-directory all versitygw build/bench/upload build/bench/venv/done
	@build/bench/venv/bin/python3 tests/bench/upload.py build/bench

stress: deps ## a source at three times what the daemon takes, for STRESS_SECONDS, and a picture of it
	@scripts/deps/debian stress
	@$(MAKE) --no-print-directory all
	@$(PYTHON) tests/bench/stress.py build/stress --seconds $(STRESS_SECONDS) --seed $(SEED)

delay: deps ## how long a row waits while the daemon compacts two million others, on one core
	@$(MAKE) --no-print-directory all
	@$(PYTHON) tests/bench/delay.py --seed $(SEED)

fleet: ## how many gateways may share a table, by which way they commit: a simulation that goes up to 10,000
	@$(PYTHON) tests/bench/fleet.py

soak: ## test and peers with ten times the seconds that CI gives them
	@$(MAKE) --no-print-directory test PEER_SECONDS=600 CUT_SECONDS=1200 FUZZ_SECONDS=600
	@$(MAKE) --no-print-directory peers PEER_SECONDS=2400

sim: $(OUT)/tests/app/day_test ## a day of the daemon in the simulator, told as it happens (SEED=... says which)
	@SEED=$(SEED) TRACE=1 CUT_SECONDS=0 $<

demo: deps ## sensors into a table, a lake in a folder, a crash in the middle, and pypaimon's view of it
	@$(MAKE) --no-print-directory --silent all venv
	@scripts/demo

fuzz: ## libFuzzer on each target of tests/fuzz, FUZZ_SECONDS each (clang)
	@scripts/deps/debian build fuzz
	@$(MAKE) --no-print-directory $(fuzz) fuzzers
	@sh scripts/test/list fuzz | sh scripts/test/all build/fuzz/log $(JOBS)

fmt: build/stylua/done ## rewrites C and Lua files in the one style
	clang-format -i $(wildcard engine/*.[ch] engine/*/*.[ch] tests/*.h tests/*/*.[ch])
	build/stylua/bin/node scripts/lint/stylua.mjs --write $(wildcard boards/*/*.lua lua/*/*.lua scripts/*.lua scripts/*/*.lua tests/*/*.lua)

clean: ## forgets what was built
	rm -rf build

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 14

$(OUT)/libtarn.a: $(OBJECTS)
	$(QUIET)rm -f $@
	$(QUIET)$(AR) rcs $@ $^

# mbed TLS comes without a hook for its memory: in these archives its calls lead to engine/io/tls_memory.c. Its ChaCha20 gives way
# to that of engine/io/tls_chacha.c.
$(OUT)/tls/%.a: Makefile | $(SYSTEM)
	$(QUIET)mkdir -p $(@D)
	$(QUIET)$(OBJCOPY) --redefine-sym calloc=tn_tls_calloc --redefine-sym free=tn_tls_free \
	    --weaken-symbol=mbedtls_chacha20_update \
	    $(shell $(CC) -print-file-name=$*.a) $@

$(OUT)/tarn: $(OUT)/engine/app/main.o $(OUT)/libtarn.a $(TLS)
	$(QUIET)$(CC) $(ALL_CFLAGS) $^ $(LIBS) -o $@

$(OUT)/%.o: %.c | $(GEN) $(SYSTEM)
	$(QUIET)mkdir -p $(@D)
	$(QUIET)$(CC) $(ALL_CFLAGS) $(if $(filter tests/%,$<),-Itests) -c $< -o $@

# What tests share; an archive, so that a test links only what it names.
$(OUT)/libsim.a: $(SIM)
	$(QUIET)mkdir -p $(@D)
	$(QUIET)rm -f $@
	$(QUIET)$(AR) rcs $@ $^

$(OUT)/tests/%_test: $(OUT)/tests/%_test.o $(OUT)/libsim.a $(OUT)/libtarn.a $(TLS)
	$(QUIET)$(CC) $(ALL_CFLAGS) $^ $(LIBS) -o $@

# What a test of other programs runs in tarn's place.
$(OUT)/tests/%_driver: $(OUT)/tests/%_driver.o $(OUT)/libtarn.a $(TLS)
	$(QUIET)$(CC) $(ALL_CFLAGS) $^ $(LIBS) -o $@

$(OUT)/tests/fuzz/%_fuzz: $(OUT)/tests/fuzz/%_fuzz.o $(OUT)/tests/fuzz/replay.o $(OUT)/libtarn.a $(TLS)
	$(QUIET)$(CC) $(ALL_CFLAGS) $^ $(LIBS) -o $@

# The same targets as libFuzzer programs (only with the flags of `fuzz`).
fuzzers: $(FUZZ:%_fuzz=%_libfuzzer)
$(OUT)/tests/fuzz/%_libfuzzer: $(OUT)/tests/fuzz/%_fuzz.o $(OUT)/libtarn.a $(TLS)
	$(QUIET)$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer $^ $(LIBS) -o $@

build/bench/upload: $(OUT)/tests/bench/upload.o $(OUT)/libtarn.a $(TLS)
	$(QUIET)mkdir -p $(@D)
	$(QUIET)$(CC) $(ALL_CFLAGS) $^ $(LIBS) -o $@

# Tests in which threads meet: those that name the executor.
threaded: $(patsubst tests/%.c,$(OUT)/tests/%,$(shell sh scripts/test/list threaded))
	@:

# The memory parts of the board, as C.
$(OUT)/gen/board.h: boards/$(BOARD)/board.lua scripts/board.lua
	$(QUIET)mkdir -p $(@D)
	$(QUIET)$(LUA) scripts/board.lua $< >$@

# tarn's Lua library and the texts of `tarn help`, as C.
LIBRARY := $(wildcard lua/tarn/*.lua)
HELP    := $(wildcard engine/app/help/*.txt)
$(OUT)/gen/library.h: $(LIBRARY) scripts/embed.lua
	$(QUIET)mkdir -p $(@D)
	$(QUIET)$(LUA) scripts/embed.lua library lua $(LIBRARY) >$@
$(OUT)/gen/help.h: $(HELP) scripts/embed.lua
	$(QUIET)mkdir -p $(@D)
	$(QUIET)$(LUA) scripts/embed.lua help engine/app/help $(HELP) >$@

# The official peers: pypaimon in an environment of its own, Java's class path by Maven.
venv: build/venv/done
	@:
build/venv/done: tests/interop/requirements.txt
	@echo "installing pypaimon into build/venv"
	$(QUIET)$(PYTHON) -m venv --clear build/venv
	$(QUIET)build/venv/bin/pip install --quiet --disable-pip-version-check -r $<
	$(QUIET)touch $@

build/bench/venv/done: tests/bench/requirements.txt
	@echo "installing boto3 into build/bench/venv"
	$(QUIET)mkdir -p build/bench
	$(QUIET)$(PYTHON) -m venv --clear build/bench/venv
	$(QUIET)build/bench/venv/bin/pip install --quiet --disable-pip-version-check -r $<
	$(QUIET)touch $@

# StyLua is no package of Debian: its library comes by npm, and npm by pip.
build/stylua/done: scripts/deps/stylua.txt scripts/deps/stylua.json
	@echo "installing stylua into build/stylua"
	$(QUIET)$(PYTHON) -m venv --clear build/stylua
	$(QUIET)build/stylua/bin/pip install --quiet --disable-pip-version-check -r $<
	$(QUIET)cp scripts/deps/stylua.json build/stylua/package.json
	$(QUIET)cd build/stylua && PATH="$$PWD/bin:$$PATH" npm install --silent --no-audit --no-fund
	$(QUIET)touch $@

oracle:
	$(QUIET)tests/interop/oracle/oracle build

cluster:
	$(QUIET)tests/interop/flink/flink build

# The object store of the tests.
versitygw: build/go/done
	@:
build/go/done: scripts/deps/versitygw
	$(QUIET)scripts/deps/versitygw
	$(QUIET)touch $@

-include $(OBJECTS:.o=.d) $(SIM:.o=.d) $(TESTS:=.d) $(FUZZ:=.d) $(DRIVERS:=.d) $(PROGRAM:%/tarn=%/engine/app/main.d)
