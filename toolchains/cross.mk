# What the cross targets share: Debian's compiler and a sysroot of its libraries.
SYSROOT := build/sysroot/$(TARGET)
SYSTEM  := $(SYSROOT)/done
CC      := $(TRIPLE)-gcc --sysroot=$(CURDIR)/$(SYSROOT)
AR      := $(TRIPLE)-ar
OBJCOPY := $(TRIPLE)-objcopy

$(SYSTEM): toolchains/sysroot
	@echo "unpacking the libraries of $(TARGET) into $(SYSROOT)"
	$(QUIET)scripts/deps/debian $(TARGET)
	$(QUIET)toolchains/sysroot $(TARGET) $(SYSROOT)
	$(QUIET)touch $@
