# tarn. `make help` lists what there is to make.
BOARD ?= host
include boards/$(BOARD)/board.mk

LUA     ?= lua5.4
OUT     ?= build/$(BOARD)
ROOMS   ?= $(notdir $(patsubst %/,%,$(wildcard engine/*/)))
SOURCES := $(foreach room,$(ROOMS),$(wildcard engine/$(room)/*.c))
OBJECTS := $(SOURCES:%.c=$(OUT)/%.o)
TESTS   ?= $(patsubst tests/%.c,$(OUT)/tests/%,$(wildcard tests/*/*_test.c))

CFLAGS  ?= -O2 -g
WARN    := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wformat=2 -Wundef \
           -Wstrict-prototypes -Wmissing-prototypes -Wswitch-enum -Wvla -Wcast-align=strict \
           -Wnull-dereference -Wimplicit-fallthrough -Wdouble-promotion -Wredundant-decls \
           -Wframe-larger-than=2048 -Werror
ALL_CFLAGS := -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iengine -I$(OUT)/gen -MMD -MP $(WARN) \
              $(BOARD_CFLAGS) $(CFLAGS)
LIBS := -lzstd -llz4 -lavro -ljansson -lcjson -luv -lz -lbz2 -lm -lpthread

.PHONY: all test tidy fmt clean help
all: $(OUT)/libtarn.a ## the engine for BOARD

test: $(TESTS) ## runs every test for BOARD (RUN=... to run them under an emulator)
	@set -e; for t in $^; do printf '%s: ' "$$t"; $(RUN) $$t; done

tidy: ## layering, format, lint: what a change must pass before it is sent
	$(LUA) scripts/lint/layers.lua engine
	clang-format -n --Werror $(wildcard engine/*/*.[ch] tests/*/*.[ch])
	luacheck -q lua scripts
	cppcheck -q --std=c11 --enable=warning,performance,portability --error-exitcode=1 -Iengine engine

fmt: ## rewrites the C files in the one style
	clang-format -i $(wildcard engine/*/*.[ch] tests/*/*.[ch])

clean: ## forgets what was built for BOARD
	rm -rf $(OUT)

help: ## this list
	@grep -hE '^[a-z]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 10

$(OUT)/libtarn.a: $(OBJECTS)
	@rm -f $@
	$(AR) rcs $@ $^

$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@

$(OUT)/tests/%: tests/%.c $(OUT)/libtarn.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Itests $< $(OUT)/libtarn.a $(LIBS) -o $@

-include $(OBJECTS:.o=.d)
